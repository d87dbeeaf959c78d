"""`quaid conflicts`."""

from __future__ import annotations

import shlex
from typing import Annotated

from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, check_one_of, option
from quaid.cli.terminal import columns, count
from quaid.errors import BadInputError, UsageError
from quaid.history import merges
from quaid.history.merges import Conflict
from quaid.index.references import resolve_one
from quaid.memory import Memory
from quaid.model import note_name
from quaid.vault import files, merging
from quaid.vault.merging import Side, merge_note


def run_conflicts(
    invocation: Invocation,
    ref: Annotated[str | None, argument("REF", "The note to settle: its path or name, or all.")] = None,
    settle: Annotated[str | None, option("SIDE", "Keep ours, theirs or both in the note REF.", "--settle")] = None,
) -> int:
    """List the notes that a merge could not solve, or settle them; exit code 1 while there are any.

    Both sides of such a note are searched meanwhile. ours is this machine's side; in a rebase it is the other one's.

    Examples:
      quaid conflicts
      quaid conflicts --settle both Garden.md
      quaid conflicts --settle theirs all
    """
    check_one_of("settle", [settle] if settle else None, merging.SIDES)
    if (settle is None) != (ref is None):
        raise UsageError("--settle needs a SIDE and a REF. Try: quaid conflicts --settle both REF")
    with invocation.open() as memory:
        found = merges.list_conflicts(memory.root)
        settled: list[str] = []
        chosen = [one for one in found if ref in {"all", one.path, note_name(one.path), one.path.rpartition("/")[2]}]
        if ref not in {None, "all"} and not chosen:
            path = resolve_one(memory.index(), str(ref)).document.path
            raise BadInputError(
                f"{path} is not in conflict: git knows of no merge that it left, so marks in it are text. "
                "Remove them in an editor if they should not be there."
            )
        for conflict in chosen:
            _settle(memory, conflict, next(side for side in merging.SIDES if side == settle))
            settled.append(conflict.path)
        left = [conflict for conflict in found if conflict.path not in settled]
        operation = merges.read_operation(memory.root)
    shape = {
        "settled": settled,
        "conflicts": [{"path": conflict.path, "what": _describe(conflict)} for conflict in left],
        "operation": operation,
    }
    lines = [f"Settled: {path}" for path in settled]
    if left:
        lines += [count(len(left), "conflict"), columns([(one.path, _describe(one)) for one in left])]
    invocation.respond("\n".join(lines) or "No note is in conflict.", **shape)
    if left and not settled:
        invocation.notify(f"Settle one with: quaid conflicts --settle both {shlex.quote(left[0].path)}")
    elif operation in {"merge", "rebase", "cherry-pick", "revert"} and all(conflict.is_committed for conflict in left):
        invocation.notify(f"All is settled. End the {operation} with: git {operation} --continue")
    return 1 if left else 0


def _describe(conflict: Conflict) -> str:
    if conflict.is_removed:
        return "changed here, removed there" if conflict.ours else "removed here, changed there"
    return "changed on both sides" if conflict.base or conflict.is_committed else "added on both sides"


def _settle(memory: Memory, conflict: Conflict, side: Side) -> None:
    now = files.read_note(memory.root, conflict.path)
    base, ours, theirs = (merges.read_side(memory.root, blob) or b"" for blob in conflict[1:4])
    if now is not None and merging.find_conflicts(now, ours, theirs):
        after = _choose(conflict.path, now, base, (ours, theirs), side)
        if conflict.is_committed:
            memory.writer.save_edit(conflict.path, now, after)
        else:
            merges.settle_conflict(memory.root, conflict.path, after)
    else:
        blobs = {"ours": conflict.ours, "theirs": conflict.theirs, "both": conflict.ours or conflict.theirs}
        if side == "both" and None not in (conflict.ours, conflict.theirs):
            raise BadInputError(f"{conflict.path} cannot hold both sides. Settle it with ours or theirs.")
        merges.settle_conflict(memory.root, conflict.path, merges.read_side(memory.root, blobs[side]))


def _choose(path: str, marked: bytes, base: bytes, sides: tuple[bytes, bytes], side: Side) -> bytes:
    """Return the note without marks. Both sides are merged by their parts, so that no key is in it twice."""
    if side == "both":
        ours, theirs = (merging.choose_side(marked, each, *sides) for each in ("ours", "theirs"))
        merged = merge_note(base if base not in (ours, theirs) else b"", ours, theirs, path)
        if merged is not None:
            return merged
    return merging.choose_side(marked, side, *sides)
