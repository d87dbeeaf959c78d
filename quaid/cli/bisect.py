"""`quaid bisect`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.memory_changes import render_changes
from quaid.cli.terminal import count, lines, moment, paragraphs, short, styled


def run_bisect(
    ctx: typer.Context,
    query: Annotated[str, typer.Option("--query", metavar="QUESTION", help="The question.")],
    expect: Annotated[
        str, typer.Option("--expect", metavar="X", help="What it should have: a text, or a note by its name or id.")
    ],
    span: Annotated[
        str, typer.Option("--between", metavar="A..B", help="Look between these commits or days, not everywhere.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="The hits that count.")] = 5,
) -> int:
    """Find the commit at which the answer to a question lost, or gained, what is expected of it.

    The past is asked at about as many commits as their number has binary digits. No model is asked and nothing of the
    vault is touched. The exit code is 1 when the answer was never seen to change.

    Examples:
      quaid bisect --query "Where does Maya live?" --expect Lisbon
      quaid bisect --query "what milk?" --expect 7k3qd --between "last March.."
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        memory.warm()
        turn = memory.timeline.bisect(query, expect, span, limit)
    state = "has" if turn.is_there else "does not have"
    asked = f"asked at {turn.asked:,} of {count(turn.commits, 'commit')}"
    entry = turn.entry
    head = f"The answer {state} {expect!r}, and never was seen otherwise"
    if entry:
        verb = styled("gained", "green") if turn.is_there else styled("lost", "red")
        when = f"{styled(short(entry.commit.id), 'yellow')}  {moment(entry.commit.when)}  {entry.who}  {entry.what}"
        head = lines(f"The answer {verb} {expect!r} with", f"  {when}")
    invocation.respond(
        paragraphs(head, render_changes(turn.changes)),
        query=query, expect=expect, is_there=turn.is_there, asked=turn.asked, commits=turn.commits,
        commit={**asdict(entry.commit), "who": entry.who, "what": entry.what} if entry else None,
        changes=[asdict(change) for change in turn.changes],
    )  # fmt: skip
    invocation.notify(f"({asked})")
    return 0 if entry else 1
