"""`quaid context`: what an agent should have before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from quaid.cli.invocation import Invocation
from quaid.cli.options import option


def run_context(
    invocation: Invocation,
    tokens: Annotated[int | None, option("N", "The maximum length.", "--tokens", min=50)] = None,
) -> None:
    """Print what an agent should know before it starts: core notes, preferences, projects, questions, recent facts.

    Hooks give the same text to the agents of connected programs.

    Examples:
      quaid context
      quaid context --tokens 500
    """
    with invocation.open() as memory:
        text = memory.context(tokens, cwd=invocation.cwd or str(Path.cwd()))
    if not text:
        invocation.notify("There is nothing to tell yet. Write something into USER.md, or: quaid remember 'a fact'")
    invocation.respond(text, text=text, tokens=-(-len(text) // 4))
