"""Three versions of a text into one, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple


class _Change(NamedTuple):
    """`base[start:end]` becomes `lines`."""

    start: int
    end: int
    lines: tuple[bytes, ...]


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """`base` with the changes of both sides, None where both change the same line in different ways.

    Changes of neighbouring lines are no conflict, other than for git: a head has a key a line, and who adds a remark
    below a sentence has not changed the sentence.
    """
    lines = base.splitlines(keepends=True)
    changes = sorted({*_changes(lines, ours), *_changes(lines, theirs)})
    merged: list[bytes] = []
    position = 0
    if any(_collide(one, following) for one, following in pairwise(changes)):
        return None
    for change in changes:
        merged += [*lines[position : change.start], *change.lines]
        position = change.end
    return b"".join([*merged, *lines[position:]])


def _changes(base: Sequence[bytes], other: bytes) -> list[_Change]:
    new = other.splitlines(keepends=True)
    matcher = SequenceMatcher(None, base, new, autojunk=False)
    return [
        _Change(start, end, tuple(new[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _collide(one: _Change, other: _Change) -> bool:
    """Whether two changes, the first beginning no later, are of the same lines, or add at the same place."""
    both_add_here = one.start == one.end == other.start == other.end
    return other.start < one.end or both_add_here
