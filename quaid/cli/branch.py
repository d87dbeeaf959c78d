"""`quaid branch`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import warn_left
from quaid.cli.diff import list_answers, render_answers, shape_of_diff
from quaid.cli.invocation import Invocation, fields
from quaid.cli.memory_changes import render_changes
from quaid.cli.terminal import clipped, line_width, moment, paragraphs, section, short, styled, titled
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.memory import Memory

ACTIONS = ("list", "create", "switch", "compare", "merge", "delete")


def run_branch(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The branch.")] = None,
    other: Annotated[
        str | None, typer.Argument(metavar="OTHER", help="compare: the other branch, by default the one in use.")
    ] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="REV|DATE", help="create: begin with the memory as it was then.")
    ] = "HEAD",
    recall: Annotated[
        Path | None, typer.Option("--recall", metavar="FILE", help="compare: the answers to these questions too.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="--recall: the hits that count as an answer.")
    ] = 5,
    force: Annotated[bool, typer.Option("--force", help="delete: also a branch that is not merged.")] = False,
) -> None:
    r"""Keep another memory beside this one: for an experiment, an agent or a persona. A branch is one of git's.

    \b
    list              the branches, and how far each is from the one in use
    create NAME       a branch of the memory as it is, or as it was --from
    switch NAME       use that memory from now on, with every program
    compare NAME [OTHER]
                      what each knows that the other does not; --recall: and answers
    merge NAME        take into this memory what the other has learned
    delete NAME       remove one that is merged; what it held is kept as a backup

    Examples:
      quaid branch create experiment
      quaid branch switch experiment
      quaid branch compare experiment main --recall questions.txt
      quaid branch merge experiment
    """
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    if action != "list" and name is None:
        raise UsageError(f"Which branch? Give its name: quaid branch {action} NAME; see them with: quaid branch list")
    if other is not None and action != "compare":
        raise UsageError(f"quaid branch {action} takes one name, {other!r} is one too many.")
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        if action == "list" or name is None:
            list_branches(invocation, memory)
        elif action == "create":
            create(invocation, memory, name, start)
        elif action == "switch":
            switch(invocation, memory, name)
        elif action == "compare":
            compare(invocation, memory, name, other, recall, limit)
        elif action == "merge":
            merge(invocation, memory, name)
        else:
            delete(invocation, memory, name, force=force)


def list_branches(invocation: Invocation, memory: Memory) -> None:
    """Show the branches, the newest commit of each, and how far each is from the one in use."""
    timeline, git = memory.timeline, memory.git.branches
    heads = timeline.branches.list()
    apart = [git.count_apart(head.id, "HEAD") for head in heads]
    newest = timeline.tell(*(head.id for head in heads))
    rows = [
        (
            styled("*", "green") if head.is_current else " ",
            head.name,
            moment(head.when.isoformat()),
            "" if head.is_current else f"{more} more, {less} fewer commits",
            clipped(entry.what, line_width() // 2),
        )
        for head, (more, less), entry in zip(heads, apart, newest, strict=True)
    ]
    invocation.respond(
        section("Branches", rows) or "No branch yet: nothing is committed.",
        branches=[
            {**fields(head, "name", "id", "is_current", "place"), "when": head.when.isoformat(), "ahead": more,
             "behind": less, "what": entry.what}
            for head, (more, less), entry in zip(heads, apart, newest, strict=True)
        ],
    )  # fmt: skip


def create(invocation: Invocation, memory: Memory, name: str, start: str) -> None:
    """Make a branch."""
    head = memory.timeline.branches.create(name, start)
    what = memory.timeline.tell(head.id)[0].what
    told = titled(f"{styled('Made', 'green')}: the branch {name}", [("at", f"{short(head.id)}  {what}")])
    invocation.respond(told, **fields(head, "name", "id"))
    invocation.notify(f"Use that memory with: quaid branch switch {name}")


def switch(invocation: Invocation, memory: Memory, name: str) -> None:
    """Use another branch from now on."""
    before = next((head.name for head in memory.timeline.branches.list() if head.is_current), None)
    head = memory.timeline.branches.switch(name)
    what = memory.timeline.tell(head.id)[0].what
    told = titled(f"{styled('In use', 'green')}: the branch {name}", [("at", f"{short(head.id)}  {what}")])
    invocation.respond(told, **fields(head, "name", "id"), before=before)
    if before not in {None, name}:
        invocation.notify(f"Go back with: quaid branch switch {before}")


def compare(
    invocation: Invocation, memory: Memory, name: str, other: str | None, recall: Path | None, limit: int
) -> None:
    """Show what one memory has that the other has not."""
    other = other or memory.timeline.branches.current().name
    diff = memory.timeline.compare_branches(name, other)
    answers = list_answers(memory, diff, recall, limit)
    titles = {
        "learned": f"Only in {name}", "forgotten": f"Only in {other}", "changed": f"Otherwise in {other} [-…-] and "
        f"{name} {{+…+}}", "superseded": f"No longer true in {name}", "restored": f"No longer true in {other}",
    }  # fmt: skip
    told = paragraphs(render_changes(diff.changes, titles), render_answers(answers))
    invocation.respond(
        told or f"{name} and {other} hold the same memory.", name=name, other=other,
        **shape_of_diff(diff, answers),
    )  # fmt: skip


def merge(invocation: Invocation, memory: Memory, name: str) -> None:
    """Take what another branch has into the one in use."""
    merged = memory.timeline.branches.merge(name)
    head = f"{styled('Merged', 'green')}: {name} into {merged.into}"
    told = f"Nothing to merge: {merged.into} has all that {name} has"
    if merged.commit:
        told = titled(head, [("commit", short(merged.commit))])
    invocation.respond(told, **asdict(merged))
    warn_left(invocation, merged.left)
    if merged.commit:
        invocation.notify(
            f"See what it brought with: quaid diff HEAD^..HEAD; undo it with: quaid undo {short(merged.commit)}"
        )


def delete(invocation: Invocation, memory: Memory, name: str, *, force: bool) -> None:
    """Delete a branch, and say where what it held is kept."""
    backup = memory.timeline.branches.delete(name, force=force)
    invocation.respond(f"{styled('Deleted', 'green')}: the branch {name}", name=name, backup=backup)
    invocation.notify(f"Bring it back with: quaid branch create {name} --from {backup}")
