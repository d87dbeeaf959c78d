"""`quaid log`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import moment, one_line, short, styled
from quaid.errors import NoteNotFoundError
from quaid.model import Commit


def run_log(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many commits.")] = 20,
    author: Annotated[str | None, typer.Option(metavar="NAME", help="Only whose name or e-mail contains this.")] = None,
    fact: Annotated[str | None, typer.Option(metavar="REF", help="Only what concerns this fact.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only what came from this session.")] = None,
    since: Annotated[str | None, typer.Option(metavar="DATE", help="Only after this date, as git reads it.")] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Also the files of each commit.")] = False,
) -> None:
    """What changed, newest first, one commit a line. Times are in UTC.

    Examples:
      quaid log -n 5 --stat
      quaid log --fact 7k3qd
      quaid log --author Quaid --since yesterday --json
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        trailer = ("Quaid-Session", session) if session else None
        if fact:
            with suppress(NoteNotFoundError):  # what was forgotten is meant by its whole id
                fact = memory.get(fact).document.id
            trailer = ("Quaid-Fact", fact)
        commits = memory.answers.log(limit, author=author, grep_trailer=trailer, since=since)
        if fact and session:
            commits = [commit for commit in commits if session in commit.trailers.get("Quaid-Session", ())]
    invocation.tell(lambda: _render_log(commits, stat=stat), commits=[asdict(commit) for commit in commits])
    if not commits:
        invocation.say("No commit fits.")


def _render_log(commits: Sequence[Commit], *, stat: bool) -> str:
    authors = max((len(commit.author) for commit in commits), default=0)
    lines = []
    for commit in commits:
        head = f"{styled(short(commit.id), 'yellow')}  {moment(commit.when)}  {commit.author:{authors}}"
        lines.append(f"{head}  {one_line(commit.subject)}")
        lines += [f"            {path}" for path in commit.files] if stat else []
    return "\n".join(lines)
