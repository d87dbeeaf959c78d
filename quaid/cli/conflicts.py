"""`quaid conflicts`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation, check_one_of
from quaid.cli.terminal import columns, count
from quaid.errors import BadInputError, NoteNotFoundError, UsageError
from quaid.history import unmerged
from quaid.index import documents
from quaid.model import note_name
from quaid.vault import files
from quaid.vault.merging import markers
from quaid.vault.merging.texts import merge_note

if TYPE_CHECKING:
    from quaid.history.unmerged import Unmerged
    from quaid.memory import Memory
    from quaid.vault.merging.markers import Side

_REMOVED = {True: "removed here, changed there", False: "changed here, removed there"}


@dataclass(frozen=True, slots=True)
class _Conflict:
    """A note that a merge could not solve. `left` is None where the merge was committed with its marks."""

    path: str
    what: str
    left: Unmerged | None


def run_conflicts(
    ctx: typer.Context,
    ref: Annotated[
        str | None, typer.Argument(metavar="REF", help="The note to settle: its path or name, or all.")
    ] = None,
    settle: Annotated[
        str | None, typer.Option("--settle", metavar="SIDE", help="Keep ours, theirs or both in the note REF.")
    ] = None,
) -> int:
    """List the notes that a merge could not solve, or settle them; exit code 1 while there are any.

    Both sides of such a note are searched meanwhile. ours is this machine's side; in a rebase it is the other one's.

    Examples:
      quaid conflicts
      quaid conflicts --settle both Garden.md
      quaid conflicts --settle theirs all
    """
    invocation: Invocation = ctx.obj
    check_one_of("settle", [settle] if settle else None, markers.SIDES)
    if (settle is None) != (ref is None):
        raise UsageError("--settle needs a SIDE and a REF. Try: quaid conflicts --settle both REF")
    with invocation.open() as memory:
        found = _list_conflicts(memory)
        settled: list[str] = []
        meant = [one for one in found if ref in {"all", one.path, note_name(one.path), one.path.rpartition("/")[2]}]
        if ref not in {None, "all"} and not meant:
            raise NoteNotFoundError(str(ref))
        for conflict in meant:
            _settle(memory, conflict, next(side for side in markers.SIDES if side == settle))
            settled.append(conflict.path)
        left = [conflict for conflict in found if conflict.path not in settled]
        operation = unmerged.operation(memory.root)
    shape = {
        "settled": settled,
        "conflicts": [{"path": conflict.path, "what": conflict.what} for conflict in left],
        "operation": operation,
    }
    lines = [f"Settled: {path}" for path in settled]
    if left:
        lines += [count(len(left), "conflict"), columns([(one.path, one.what) for one in left])]
    invocation.tell(lambda: "\n".join(lines) or "No note is in conflict.", **shape)
    if left and not settled:
        invocation.say(f"Settle one with: quaid conflicts --settle both {shlex.quote(left[0].path)}")
    elif operation in {"merge", "rebase", "cherry-pick", "revert"} and not any(conflict.left for conflict in left):
        invocation.say(f"All is settled. End the {operation} with: git {operation} --continue")
    return 1 if left else 0


def _list_conflicts(memory: Memory) -> list[_Conflict]:
    """The notes that git has left, then those with marks that were committed."""
    found = {}
    for left in unmerged.list_unmerged(memory.root):
        what = "changed on both sides" if left.base else "added on both sides"
        found[left.path] = _Conflict(left.path, _REMOVED[left.ours is None] if left.is_removed else what, left)
    for path in documents.list_conflicts(memory.index()):
        found.setdefault(path, _Conflict(path, "changed on both sides", None))
    return [found[path] for path in sorted(found)]


def _settle(memory: Memory, conflict: _Conflict, side: Side) -> None:
    now = files.read_note(memory.root, conflict.path)
    if conflict.left is None:
        assert now is not None
        memory.writer.save_edit(conflict.path, now, _choose(conflict.path, now, b"", side))
    elif now is not None and markers.has_markers(now):
        base = unmerged.read_side(memory.root, conflict.left.base) or b""
        unmerged.settle(memory.root, conflict.path, _choose(conflict.path, now, base, side))
    else:
        blobs = {"ours": conflict.left.ours, "theirs": conflict.left.theirs}
        blobs["both"] = conflict.left.ours or conflict.left.theirs
        if side == "both" and None not in (conflict.left.ours, conflict.left.theirs):
            raise BadInputError(f"{conflict.path} cannot hold both sides. Settle it with ours or theirs.")
        unmerged.settle(memory.root, conflict.path, unmerged.read_side(memory.root, blobs[side]))


def _choose(path: str, marked: bytes, base: bytes, side: Side) -> bytes:
    """The note without marks: with both sides by its parts where it has any, so that no key stands in it twice."""
    if side == "both":
        ours, theirs = markers.choose_side(marked, "ours"), markers.choose_side(marked, "theirs")
        merged = merge_note(base if base not in (ours, theirs) else b"", ours, theirs, path)
        if merged is not None:
            return merged
    return markers.choose_side(marked, side)
