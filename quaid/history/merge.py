"""Three versions of a text into one, line by line; a change of the past taken out of what it has become."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from quaid.vault import frontmatter


class _LineChange(NamedTuple):
    """`base[start:end]` becomes `lines`."""

    start: int
    end: int
    lines: tuple[bytes, ...]


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """`base` with the changes of both sides, None where both change the same line in different ways.

    Changes of neighbouring lines are not a conflict, unlike in git: a head has a key a line, and a remark added below
    a sentence does not change the sentence.
    """
    lines = base.splitlines(keepends=True)
    changes = sorted({*_changes(lines, ours), *_changes(lines, theirs)})
    for one, other in pairwise(changes):
        both_add_here = one.start == one.end == other.start == other.end
        if other.start < one.end or both_add_here:
            return None
    merged: list[bytes] = []
    position = 0
    for change in changes:
        merged += [*lines[position : change.start], *change.lines]
        position = change.end
    return b"".join([*merged, *lines[position:]])


def revert_change(before: bytes, after: bytes, now: bytes) -> bytes | None:
    """`now` without what made `after` of `before`; None where the same lines of the body were changed since.

    A key of the head that was changed again keeps the value it has now: undoing a wording does not undo the status
    that came after it.
    """
    plain = merge_lines(after, now, before)
    if plain is not None:
        return plain
    try:
        past, then, today = (before.decode(), after.decode(), now.decode())
        heads = [frontmatter.parse(text).fields for text in (past, then, today)]
        names = dict.fromkeys(name for head in heads for name in head)
        values = {name: [head.get(name) for head in heads] for name in names}
        changed_again = {name: last for name, (first, middle, last) in values.items() if first != middle != last}
        texts = [frontmatter.set_fields(text, changed_again).encode() for text in (past, then)]
    except (UnicodeDecodeError, frontmatter.FrontmatterBrokenError):
        return None
    return merge_lines(texts[1], now, texts[0])


def _changes(base: Sequence[bytes], other: bytes) -> list[_LineChange]:
    new = other.splitlines(keepends=True)
    matcher = SequenceMatcher(None, base, new, autojunk=False)
    return [
        _LineChange(start, end, tuple(new[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]
