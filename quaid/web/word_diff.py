"""What has changed between two versions of a text, line by line, and inside a changed line word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Literal, NamedTuple

from quaid.redaction import admit

CONTEXT = 2
"""Unchanged lines that are shown around a change."""
MAX_LINES = 2_000
"""Longer texts are not compared: the time grows with the square."""
MAX_WORDS = 1_500
"""Of a changed passage; a longer one is shown as taken out and put in."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

How = Literal["same", "removed", "added", "gap"]

_MARKS: dict[str, How] = {" ": "same", "-": "removed", "+": "added"}


class Piece(NamedTuple):
    """A stretch of text, and what became of it. A gap stands for unchanged lines that are left out."""

    how: How
    text: str


def diff_words(before: str, after: str) -> list[Piece]:
    """Return `after` with what is gone of `before` where it was; nothing where they are the same."""
    if before == after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MAX_LINES:
        return [Piece("gap", f"too long to compare: {len(old):,} lines before, {len(new):,} after")]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return list(chain.from_iterable(_diff_group(group, old, new) for group in matcher.get_grouped_opcodes(CONTEXT)))


def diff_versions(before: bytes | None, after: bytes | None) -> list[Piece]:
    """Return what one version of a file made of the other, None for no file, without secrets: a piece of one would not
    look like it.
    """
    old, new = (admit((data or b"").decode("utf-8", "replace"), keep_lines=True).text for data in (before, after))
    return diff_words(old, new)


def _diff_group(
    group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]
) -> Iterator[Piece]:
    if group[0][1]:
        yield Piece("gap", "…\n")
    for tag, start, end, first, last in group:
        gone, come = "".join(old[start:end]), "".join(new[first:last])
        if tag == "equal":
            yield Piece("same", gone)
        else:
            yield from _diff_passage(_WORD.findall(gone), _WORD.findall(come))


def _diff_passage(old: list[str], new: list[str]) -> Iterator[Piece]:
    is_short = max(len(old), len(new)) <= MAX_WORDS
    matcher = SequenceMatcher(None, old, new, autojunk=False) if is_short else None
    steps = matcher.get_opcodes() if matcher else [("replace", 0, len(old), 0, len(new))]
    for tag, start, end, first, last in steps:
        if tag == "equal":
            yield Piece("same", "".join(old[start:end]))
            continue
        if end > start:
            yield Piece("removed", "".join(old[start:end]))
        if last > first:
            yield Piece("added", "".join(new[first:last]))


def read_diff(diff: str) -> list[Piece]:
    """Return the lines of a unified diff without the marks they begin with; hunks are separated by gaps."""
    pieces = []
    for line in diff.splitlines(keepends=True):
        how = _MARKS.get(line[:1])
        pieces.append(Piece(how, line[1:]) if how else Piece("gap", "…\n" if line.startswith("@@") else line))
    return pieces
