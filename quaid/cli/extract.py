"""`quaid extract`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, count, styled
from quaid.cli.written import warn_left
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.writer import Kept

NO_MODEL = "No model is configured yet, so no facts can be drawn; conversations are kept and recalled as they are."


def run_extract(
    ctx: typer.Context,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="A transcript; - reads it from stdin.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Its session id, if the transcript names none.")
    ] = None,
    pending: Annotated[bool, typer.Option("--pending", help="List the conversations that wait for a model.")] = False,
) -> int:
    """Take in a conversation: plain text ("Name: what was said"), JSON lines or a Claude Code session.

    What was said is kept as an episode and can be recalled at once; system text, tool output and thinking are left
    out. The same session is never kept twice: when it has grown, only its new turns are added.

    Examples:
      quaid extract chat.jsonl
      quaid extract ~/.claude/projects/my-project/session.jsonl
      pbpaste | quaid extract - --session standup-friday
      quaid extract --pending
    """
    invocation: Invocation = ctx.obj
    if pending:
        return _list_pending(invocation)
    if file is None:
        raise UsageError("Which transcript? Give a file, or - for stdin: quaid extract chat.jsonl")
    with invocation.open() as memory, invocation.progress(memory):
        kept = memory.extract(sys.stdin.buffer if file == "-" else Path(file).expanduser(), session=session)
    invocation.tell(lambda: _render(kept), **_as_shape(kept))
    if kept.left:
        warn_left(invocation, kept.left)
    if kept.new_turns and kept.waiting:
        invocation.say("It can be recalled now. No model is configured, so no facts were drawn from it.")
    return 0


def _list_pending(invocation: Invocation) -> int:
    from quaid.overview import list_waiting

    with invocation.open() as memory:
        waiting = list_waiting(memory)
    if not waiting:
        invocation.tell(lambda: "", waiting=[])
        invocation.say("No conversation is waiting.")
        return 0
    shape: dict[str, object] = {"waiting": list(waiting), "error": {"code": "no_model", "message": NO_MODEL}}
    invocation.tell(lambda: "\n".join(waiting), **shape)
    print(f"quaid: {NO_MODEL}", file=sys.stderr)
    return 1


def _as_shape(kept: Kept) -> dict[str, object]:
    return {
        "session": kept.session,
        "path": kept.path,
        "turns": kept.turns,
        "new_turns": kept.new_turns,
        "waiting": kept.waiting,
        "commit": kept.commit,
        "left": list(kept.left),
        "skipped": kept.skipped,
    }


def _render(kept: Kept) -> str:
    if kept.new_turns:
        head = f"{styled('Kept', 'green')}: {count(kept.new_turns, 'new turn')} of session {kept.session}"
    else:
        head = f"Nothing new: session {kept.session} is kept already, {count(kept.turns, 'turn')}"
    rows = [("path", kept.path)]
    if kept.skipped:
        rows.append(("left out", ", ".join(f"{number:,} {reason}" for reason, number in kept.skipped.items())))
    if kept.commit:
        rows.append(("commit", kept.commit[:10]))
    return "\n".join([head, *(f"  {line}" for line in columns(rows).splitlines())])
