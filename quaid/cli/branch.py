"""`quaid branch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import warn_left
from quaid.cli.invocation import Invocation, fields
from quaid.cli.terminal import clipped, line_width, moment, section, short, styled, titled
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.memory import Memory

ACTIONS = ("list", "create", "switch", "merge", "delete")


def run_branch(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The branch.")] = None,
    start: Annotated[
        str, typer.Option("--from", metavar="REV|DATE", help="create: begin with the memory as it was then.")
    ] = "HEAD",
    force: Annotated[bool, typer.Option("--force", help="delete: also a branch that is not merged.")] = False,
) -> None:
    r"""Keep another memory in the same vault: for an experiment, an agent or a persona. A branch is one of git's.

    \b
    list         the branches, and how far each is from the one in use
    create NAME  a branch of the memory as it is, or as it was --from
    switch NAME  use that memory from now on, with every program
    merge NAME   take into this memory what the other has learned
    delete NAME  remove one that is merged; what it held is kept as a backup

    Compare two with quaid diff MAIN..NAME, which also compares their answers.

    Examples:
      quaid branch create experiment
      quaid branch switch experiment
      quaid diff main..experiment --recall questions.txt
      quaid branch merge experiment
    """
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    if action != "list" and name is None:
        raise UsageError(f"Which branch? Give its name: quaid branch {action} NAME; see them with: quaid branch list")
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        branches = memory.timeline.branches
        if action == "list" or name is None:
            _list(invocation, memory)
        elif action == "create":
            head = branches.create(name, start)
            text = titled(f"{styled('Made', 'green')}: the branch {name}", [("at", short(head.id))])
            invocation.respond(text, **fields(head, "name", "id"))
            invocation.notify(f"Use that memory with: quaid branch switch {name}")
        elif action == "switch":
            before = next((head.name for head in branches.list() if head.is_current), None)
            head = branches.switch(name)
            text = titled(f"{styled('In use', 'green')}: the branch {name}", [("at", short(head.id))])
            invocation.respond(text, **fields(head, "name", "id"), before=before)
            if before not in {None, name}:
                invocation.notify(f"Go back with: quaid branch switch {before}")
        elif action == "merge":
            _merge(invocation, memory, name)
        else:
            backup = branches.delete(name, force=force)
            invocation.respond(f"{styled('Deleted', 'green')}: the branch {name}", name=name, backup=backup)
            invocation.notify(f"Bring it back with: quaid branch create {name} --from {backup}")


def _list(invocation: Invocation, memory: Memory) -> None:
    heads = memory.timeline.branches.list()
    newest = memory.timeline.tell(*(head.id for head in heads))
    rows, shapes = [], []
    for head, entry in zip(heads, newest, strict=True):
        ahead, behind = memory.git.count_apart(head.id, "HEAD")
        mark = styled("*", "green") if head.is_current else " "
        apart = "" if head.is_current else f"{ahead} more, {behind} fewer commits"
        when = head.when.isoformat()
        rows.append((mark, head.name, moment(when), apart, clipped(entry.what, line_width() // 2)))
        shape = fields(head, "name", "id", "is_current", "place")
        shapes.append({**shape, "when": when, "ahead": ahead, "behind": behind, "what": entry.what})
    invocation.respond(section("Branches", rows) or "No branch yet: nothing is committed.", branches=shapes)


def _merge(invocation: Invocation, memory: Memory, name: str) -> None:
    into = memory.timeline.branches.find().name
    done = memory.timeline.branches.merge(name)
    text = f"Nothing to merge: {into} has all that {name} has"
    if done.id:
        text = titled(f"{styled('Merged', 'green')}: {name} into {into}", [("commit", short(done.id))])
    invocation.respond(text, name=name, into=into, commit=done.id, left=done.left)
    warn_left(invocation, done.left)
    if done.id:
        invocation.notify(
            f"See what it brought with: quaid diff HEAD^..HEAD; undo it with: quaid undo {short(done.id)}"
        )
