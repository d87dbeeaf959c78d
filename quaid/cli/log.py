"""`quaid log`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from quaid.cli.dates import parse_option_moment
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import moment, one_line, short, styled
from quaid.errors import NoteNotFoundError
from quaid.model import Commit


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
    """Show what changed, newest first, one commit a line. Times are in UTC.

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
            with suppress(NoteNotFoundError):  # what was forgotten is meant by its whole id
                fact = memory.get(fact).document.id
            trailer = ("Quaid-Fact", fact)
        commits = memory.answers.log(limit, author=author, grep_trailer=trailer, since=after and after.isoformat())
        if fact and session:
            commits = [commit for commit in commits if session in commit.trailers.get("Quaid-Session", ())]
    invocation.tell(lambda: render_commits(commits, stat=stat), commits=[asdict(commit) for commit in commits])
    if not commits:
        invocation.say("No commit fits.")


def render_commits(commits: Sequence[Commit], *, stat: bool) -> str:
    """One line a commit, with `stat` also its files."""
    authors = max((len(commit.author) for commit in commits), default=0)
    lines = []
    for commit in commits:
        head = f"{styled(short(commit.id), 'yellow')}  {moment(commit.when)}  {commit.author:{authors}}"
        lines.append(f"{head}  {one_line(commit.subject)}")
        lines += [f"            {path}" for path in commit.files] if stat else []
    return "\n".join(lines)
