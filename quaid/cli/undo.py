"""`quaid undo`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import warn_left
from quaid.cli.invocation import Invocation
from quaid.cli.memory_changes import render_changes
from quaid.cli.terminal import clipped, count, line_width, lines, paragraphs, section, short, styled
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.timeline.undo import Undone

MAX_SHOWN = 20


def run_undo(
    ctx: typer.Context,
    reference: Annotated[
        str | None, typer.Argument(metavar="REF", help="A commit, or a run of the janitor's; see them with: quaid log")
    ] = None,
    last: Annotated[
        bool, typer.Option("--last", help="The last change that Quaid made and that is not undone.")
    ] = False,
    anybodys: Annotated[bool, typer.Option("--any", help="Also a commit that is not Quaid's.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done and do nothing.")] = False,
) -> None:
    """Take back a change that Quaid made: a fact, a conversation, an import, a night, an answer, a setting, an undo.

    What was changed since stays, line by line, and is named. The undo is a commit, which can be undone too.

    Examples:
      quaid undo --last
      quaid undo --dry-run 4fea123456
      quaid undo 7k3qd
    """
    if (reference is None) != last:
        raise UsageError("What is to be undone? Give --last, or a commit or run; see them with: quaid log")
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        undone = memory.timeline.undo(reference, anybodys=anybodys, dry_run=dry_run)
    tell_undone(invocation, undone, dry_run=dry_run)


def tell_undone(invocation: Invocation, undone: Undone, *, dry_run: bool = False) -> None:
    """Print what was taken back, and what stays."""
    head = f"{styled('Would undo' if dry_run else 'Undone', 'green')}: {count(len(undone.commits), 'commit')}"
    subjects = [f"  {clipped(commit.subject, line_width())}" for commit in undone.commits[:MAX_SHOWN]]
    text = "Nothing was changed: it is undone already, or has only asked and counted"
    if undone.changes or undone.commit:
        text = lines(head, *subjects, f"  commit  {short(undone.commit)}" if undone.commit else None)
    kept = [(path, line) for path, changed in undone.kept.items() for line in changed or ("the whole note",)]
    invocation.respond(
        paragraphs(text, render_changes(undone.changes), section("Changed since, so it stays", kept)),
        dry_run=dry_run, commits=[commit.id for commit in undone.commits], commit=undone.commit,
        changes=[asdict(change) for change in undone.changes], kept=undone.kept, left=undone.left,
    )  # fmt: skip
    warn_left(invocation, undone.left)
    if undone.commit:
        invocation.notify(f"Take that back with: quaid undo {short(undone.commit)}")
