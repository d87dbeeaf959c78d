"""`quaid context` and `quaid hook`: what agents are given."""

from pathlib import Path
from typing import Annotated

from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, flag, option
from quaid.hooks.entry import EVENTS, main


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


def run_hook(
    invocation: Invocation,
    event: Annotated[str, argument("EVENT", f"{', '.join(EVENTS)}; work does what is queued.")],
    text: Annotated[bool, flag("Answer with plain text instead of JSON.", "--text")] = False,
) -> int:
    """Answer an event of a program that an agent runs in; the event is JSON on stdin, as Claude Code sends it.

    A session begins with what an agent should know; a prompt gets the memories that answer it; conversations that end
    or are compacted are queued, and a worker in the background stores them. Always exits 0; says nothing where
    QUAID_NO_HOOKS is set. Connect a program with: quaid install

    Examples:
      echo '{"session_id": "s1", "prompt": "What milk does Maya take?"}' | quaid hook user-prompt-submit --text
      quaid hook work
    """
    vault = ["--vault", str(invocation.vault)] if invocation.vault else []
    return main([event, *(["--text"] if text else []), *vault])
