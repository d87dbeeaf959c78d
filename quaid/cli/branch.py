"""`quaid branch`."""

from __future__ import annotations

from typing import Annotated

from quaid.cli.change_output import warn_left
from quaid.cli.commands import Actions
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, flag, option
from quaid.cli.terminal import clipped, line_width, moment, section, short, styled, titled
from quaid.shapes import json_object

_Name = Annotated[str, argument("NAME", "The branch.")]

run_branch = Actions(
    """
    Keep another memory in the same vault: for an experiment, an agent or a persona. A branch is one of git's.

    Compare two with quaid diff MAIN..NAME, which also compares their answers.

    Examples:
      quaid branch create experiment
      quaid branch switch experiment
      quaid diff main..experiment --recall questions.txt
      quaid branch merge experiment
    """,
    default="list",
)


@run_branch.action("list")
def list_branches(invocation: Invocation) -> None:
    """List the branches, and how far each is from the one in use (the default)."""
    rows, shapes = [], []
    with invocation.open() as memory:
        heads = memory.timeline.branches.list()
        for head, newest in zip(heads, memory.timeline.tell(*(head.id for head in heads)), strict=True):
            ahead, behind = memory.git.count_apart(head.id, "HEAD")
            mark = styled("*", "green") if head.is_current else " "
            apart = "" if head.is_current else f"{ahead} more, {behind} fewer commits"
            when = head.when.isoformat()
            rows.append((mark, head.name, moment(when), apart, clipped(newest.what, line_width() // 2)))
            shape = json_object(head, "name", "id", "is_current", "place", when=when, ahead=ahead, behind=behind)
            shapes.append({**shape, "what": newest.what})
    invocation.respond(section("Branches", rows) or "No branch yet: nothing is committed.", branches=shapes)


@run_branch.action("create")
def create(
    invocation: Invocation,
    name: _Name,
    start: Annotated[str, option("REV|DATE", "Begin with the memory as it was then.", "--from")] = "HEAD",
) -> None:
    """Make a branch of the memory as it is, or as it was --from."""
    with invocation.open() as memory:
        head = memory.timeline.branches.create(name, start)
    text = titled(f"{styled('Made', 'green')}: the branch {name}", [("at", short(head.id))])
    invocation.respond(text, **json_object(head, "name", "id"))
    invocation.notify(f"Use that memory with: quaid branch switch {name}")


@run_branch.action("switch")
def switch(invocation: Invocation, name: _Name) -> None:
    """Use that memory from now on, with every program."""
    with invocation.open() as memory, invocation.progress(memory):
        branches = memory.timeline.branches
        before = next((head.name for head in branches.list() if head.is_current), None)
        head = branches.switch(name)
    text = titled(f"{styled('In use', 'green')}: the branch {name}", [("at", short(head.id))])
    invocation.respond(text, **json_object(head, "name", "id", before=before))
    if before not in {None, name}:
        invocation.notify(f"Go back with: quaid branch switch {before}")


@run_branch.action("merge")
def merge(invocation: Invocation, name: _Name) -> None:
    """Take into this memory what the other has learned."""
    with invocation.open() as memory, invocation.progress(memory):
        into = memory.timeline.branches.find().name
        done = memory.timeline.branches.merge(name)
    text = f"Nothing to merge: {into} has all that {name} has"
    if done.id:
        text = titled(f"{styled('Merged', 'green')}: {name} into {into}", [("commit", short(done.id))])
    invocation.respond(text, name=name, into=into, commit=done.id, left=done.left)
    warn_left(invocation, done.left)
    if done.id:
        step = f"undo it with: quaid undo {short(done.id)}"
        invocation.notify(f"See what it brought with: quaid diff HEAD^..HEAD; {step}")


@run_branch.action("delete")
def delete(
    invocation: Invocation,
    name: _Name,
    force: Annotated[bool, flag("Also a branch that is not merged.", "--force")] = False,
) -> None:
    """Delete a branch that is merged; what it held is kept as a backup."""
    with invocation.open() as memory:
        backup = memory.timeline.branches.delete(name, force=force)
    invocation.respond(f"{styled('Deleted', 'green')}: the branch {name}", name=name, backup=backup)
    invocation.notify(f"Bring it back with: quaid branch create {name} --from {backup}")
