"""The one question before anything is sent to a model."""

from __future__ import annotations

import sys
from dataclasses import replace

import typer

from quaid.cli.invocation import Invocation
from quaid.config import set_users_own
from quaid.llm import Models
from quaid.settings import ModelSettings


def can_answer(invocation: Invocation) -> bool:
    """Return whether somebody sits at a terminal and wants to read questions."""
    return not (invocation.as_json or invocation.quiet) and sys.stdin.isatty() and sys.stderr.isatty()


def ask_about_models(invocation: Invocation, settings: ModelSettings, *, asks: bool = True) -> None:
    """Ask, or say how to agree where nobody can answer or, without `asks`, is to be asked; do nothing when the user has
    decided or there is no model.
    """
    found = None if settings.provider else Models(replace(settings, provider="auto")).describe()
    if found is None or found.provider is None:
        return
    where = f"sends them to {found.goes_to}" if found.goes_to else "stays on this machine"
    if not asks or not can_answer(invocation):
        invocation.say(
            f"{found.provider} could draw facts from your conversations ({where}). Nothing is sent before you agree: "
            f"quaid config models.provider {found.provider}"
        )
        return
    question = f"May {found.provider} read your conversations and notes, to draw facts from them? That {where}"
    agreed = typer.confirm(question, default=False, err=True)
    path = set_users_own("models.provider", found.provider if agreed else "none")
    invocation.say(f"Noted in {path}. Change it with: quaid config models.provider {'none' if agreed else 'auto'}")
