"""Three versions of a text into one, line by line; a change of the past taken out of what it has become."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from quaid.text.line_ends import restore_lines
from quaid.vault import frontmatter


class _LineChange(NamedTuple):
    """`base[start:end]` becomes `lines`."""

    start: int
    end: int
    lines: tuple[bytes, ...]

    def collides_with(self, other: "_LineChange") -> bool:
        """Return whether both change a line, or add at one place."""
        if self == other:
            return False
        both_add_here = self.start == self.end == other.start == other.end
        return both_add_here or (self.start < other.end and other.start < self.end)

    def singles(self) -> "list[_LineChange]":
        """Return it as changes of one line each, where each line becomes one line or none."""
        if self.lines and len(self.lines) != self.end - self.start:
            return [self]
        places = range(self.start, self.end)
        return [_LineChange(place, place + 1, self.lines[i : i + 1]) for i, place in enumerate(places)]


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """`base` with the changes of both sides, None where both change the same line in different ways.

    Changes of neighbouring lines are not a conflict, unlike in git: a head has a key a line, and a remark added below
    a sentence does not change the sentence.
    """
    lines = base.splitlines(keepends=True)
    changes = sorted({*_changes(lines, ours), *_changes(lines, theirs)})
    if any(one.collides_with(other) for one, other in pairwise(changes)):
        return None
    return _with_changes(lines, changes)


def revert_change(before: bytes, after: bytes, now: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """Return `now` without what made `after` of `before`, line by line; and the lines that were changed again since, as
    they are now, or as they were where they were removed.

    A key of the head that was changed again keeps the value it has now: undoing a wording does not undo the status
    that came after it. The lines of `now` keep their ends, which git may not know.
    """
    if b"\r\n" in now and b"\r\n" not in before + after:
        reverted, kept = revert_change(before, after, now.replace(b"\r\n", b"\n"))
        old, new = (data.decode("utf-8", "surrogateescape") for data in (now, reverted))
        return restore_lines(old, new).encode("utf-8", "surrogateescape"), kept
    plain = merge_lines(after, now, before)
    if plain is not None:
        return plain, ()
    before, after = _with_heads_of_now(before, after, now)
    lines = after.splitlines(keepends=True)
    since = {single for change in _changes(lines, now) for single in change.singles()}
    back = {single for change in _changes(lines, before) for single in change.singles()}
    in_the_way = {one for one in since - back if any(one.collides_with(other) for other in back)}
    free = {other for other in back if not any(other.collides_with(one) for one in in_the_way)}
    kept = tuple(line for one in sorted(in_the_way) for line in one.lines or lines[one.start : one.end])
    return _with_changes(lines, sorted(since | free)), kept


def _with_heads_of_now(before: bytes, after: bytes, now: bytes) -> tuple[bytes, bytes]:
    """Return `before` and `after` with the keys of the head that were changed again as they are in `now`."""
    try:
        past, then, today = (before.decode(), after.decode(), now.decode())
        heads = [frontmatter.parse(text).fields for text in (past, then, today)]
        names = dict.fromkeys(name for head in heads for name in head)
        values = {name: [head.get(name) for head in heads] for name in names}
        changed_again = {name: last for name, (first, middle, last) in values.items() if first != middle != last}
        if not changed_again:
            return before, after
        first, middle = (frontmatter.set_fields(text, changed_again).encode() for text in (past, then))
    except (UnicodeDecodeError, frontmatter.FrontmatterBrokenError):
        return before, after
    return first, middle


def _with_changes(lines: Sequence[bytes], changes: Sequence[_LineChange]) -> bytes:
    """Return the text with `changes` that are in order and do not collide."""
    merged: list[bytes] = []
    position = 0
    for change in changes:
        merged += [*lines[position : change.start], *change.lines]
        position = change.end
    return b"".join([*merged, *lines[position:]])


def _changes(base: Sequence[bytes], other: bytes) -> list[_LineChange]:
    new = other.splitlines(keepends=True)
    matcher = SequenceMatcher(None, base, new, autojunk=False)
    return [
        _LineChange(start, end, tuple(new[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]
