"""The one question before anything is sent to a model."""

from __future__ import annotations

import sys
from dataclasses import replace

import typer

from quaid.cli.invocation import Invocation
from quaid.config import set_users_own
from quaid.llm import Models
from quaid.llm.discovery import Description
from quaid.llm.prices import USUAL_DAY, cost_of_day
from quaid.settings import ModelSettings


def can_answer(invocation: Invocation) -> bool:
    """Return whether somebody sits at a terminal and wants to read questions."""
    return not (invocation.as_json or invocation.quiet) and sys.stdin.isatty() and sys.stderr.isatty()


def tell_about_models(invocation: Invocation, settings: ModelSettings) -> None:
    """Say what a day costs with the models that the user has chosen, else ask about those that are there."""
    found = Models(settings).describe() if settings.provider else None
    if found is None:
        ask_about_models(invocation, settings)
    elif found.provider is not None:
        invocation.notify(describe_cost(found, settings))


def describe_cost(found: Description, settings: ModelSettings) -> str:
    """What a usual day costs with the models found, as a sentence."""
    models = " and ".join(dict.fromkeys([found.deep, found.fast]))
    if not found.goes_to:
        return f"With {models} on this machine a day costs nothing."
    cost = cost_of_day({"deep": found.deep, "fast": found.fast}, settings)
    if cost is None:
        return f"What a day costs with {models} is not known. Say it: quaid config models.deep_price IN/OUT"
    plan = ", unless a plan of yours covers it" if found.provider == "claude-code" else ""
    return f"A day ({USUAL_DAY}) costs about ${cost:.2f} with {models}{plan}."


def ask_about_models(invocation: Invocation, settings: ModelSettings, *, asks: bool = True) -> None:
    """Ask, or say how to agree where nobody can answer or, without `asks`, is to be asked; do nothing when the user has
    decided or there is no model.
    """
    found = None if settings.provider else Models(replace(settings, provider="auto")).describe()
    if found is None or found.provider is None:
        return
    invocation.notify(describe_cost(found, settings))
    where = f"sends them to {found.goes_to}" if found.goes_to else "stays on this machine"
    if not asks or not can_answer(invocation):
        invocation.notify(
            f"{found.provider} could draw facts from your conversations ({where}). Nothing is sent before you agree: "
            f"quaid config models.provider {found.provider}"
        )
        return
    question = f"May {found.provider} read your conversations and notes, to draw facts from them? That {where}"
    agreed = typer.confirm(question, default=False, err=True)
    path = set_users_own("models.provider", found.provider if agreed else "none")
    invocation.notify(f"Noted in {path}. Change it with: quaid config models.provider {'none' if agreed else 'auto'}")
