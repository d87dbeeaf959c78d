"""`quaid log`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.dates import parse_option_moment
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import moment, one_line, short, styled
from quaid.errors import NoteNotFoundError

if TYPE_CHECKING:
    from quaid.timeline.log import LogEntry


def run_log(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="Show at most N commits.")] = 20,
    author: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only commits of authors whose name or e-mail contains this.")
    ] = None,
    fact: Annotated[str | None, typer.Option(metavar="REF", help="Only commits that concern this fact.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only commits that came from this session.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="From this day on: 2026-03-01, last March, 2026-03-01T14:30.")
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="List the files of each commit.")] = False,
) -> None:
    """Show who changed what and what it meant, newest first, a night of the janitor's as one line. Times are in UTC.

    With --author, --fact or --session each decision of a night is a line of its own.

    Examples:
      quaid log -n 5 --stat
      quaid log --fact 7k3qd
      quaid log --author Quaid --since yesterday --json
    """
    invocation: Invocation = ctx.obj
    after = parse_option_moment("--since", since, datetime.now(UTC))
    with invocation.open() as memory:
        trailer = ("Quaid-Session", session) if session else None
        if fact:
            with suppress(NoteNotFoundError):  # a forgotten note is referenced by its whole id
                fact = memory.get(fact).document.id
            trailer = ("Quaid-Fact", fact)
        entries = memory.timeline.log(
            limit, author=author, grep_trailer=trailer, since=after.isoformat() if after else None
        )
        if fact and session:
            entries = [entry for entry in entries if session in entry.commit.trailers.get("Quaid-Session", ())]
    invocation.respond(
        render_entries(entries, stat=stat),
        commits=[{**asdict(entry.commit), "who": entry.who, "what": entry.what} for entry in entries],
    )
    if not entries:
        invocation.notify("No commit fits.")


def render_entries(entries: Sequence[LogEntry], *, stat: bool) -> str:
    """One line a commit, with `stat` also its files."""
    named = [entry.commit.author if entry.who == "other" else entry.who for entry in entries]
    width = max(map(len, named), default=0)
    lines = []
    for name, entry in zip(named, entries, strict=True):
        head = f"{styled(short(entry.commit.id), 'yellow')}  {moment(entry.commit.when)}  {name:{width}}"
        lines.append(f"{head}  {one_line(entry.what)}")
        lines += [f"            {path}" for path in entry.commit.files] if stat else []
    return "\n".join(lines)
