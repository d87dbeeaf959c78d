"""A markdown text by its lines: headings, code fences, tables, text, each with the lines it stands on.

The tree of a markdown parser does not say on which lines a block stood, so lines are read instead: enough to cut a text
without harming it. Nothing inside of code or a comment is a heading, and a fence without an end hides nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from quaid.vault.markdown import without_comments

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r"[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*$")
_HEADING = re.compile(r" {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<title>.*))?$")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_NO_TITLE = re.compile(r"(?: {4}|\t| {0,3}(?:[-*+][ \t]|\d{1,9}[.)][ \t]|[>|<]))")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_COMMENT = re.compile(r" {0,3}<!--")
_MAX_TITLE_LINES = 3
"""Lines: a parser alone takes a longer paragraph above a line of dashes for a title."""

BlockKind = Literal["heading", "text", "fence", "table"]


@dataclass(frozen=True, slots=True)
class Block:
    """Lines `first` to `last` of a text (from 1) that belong together, as `text`, without comments.

    Of a heading `level` is 1 to 6 and `title` what it says, markup included.
    """

    kind: BlockKind
    first: int
    last: int
    text: str
    level: int = 0
    title: str = ""


def split_blocks(lines: Sequence[str], first: int = 1) -> Iterator[Block]:
    """The blocks of a markdown text in their order; its first line has the number `first`.

    Comments (`<!-- … -->`), rules and blank lines are in none.
    """
    reader = _Reader(lines, first)
    while reader.place < len(lines):
        yield from reader.step()
    yield from reader.close()


def split_paragraphs(lines: Sequence[str], first: int = 1) -> Iterator[Block]:
    """The same of a text that is not markdown: the paragraphs between blank lines."""
    begin = 0
    for place, line in enumerate([*lines, ""]):
        if not line.strip():
            if begin < place:
                yield Block("text", first + begin, first + place - 1, "\n".join(lines[begin:place]))
            begin = place + 1


class _Reader:
    """Goes from block to block. `_begin` is where the paragraph began that is not closed yet, -1 when there is none."""

    def __init__(self, lines: Sequence[str], first: int) -> None:
        self.place = 0
        self._lines = lines
        self._first = first
        self._begin = -1
        self._closings = {"`": _Closings(lines, "`"), "~": _Closings(lines, "~")}
        self._comment_ends = [place for place, line in enumerate(lines) if "-->" in line]

    def step(self) -> Iterator[Block]:
        line = self._lines[self.place]
        if not line.strip():
            yield from self.close()
            self.place += 1
        elif (end := self._fence_end(line)) is not None:
            yield from self._whole("fence", end)
        elif (end := self._comment_end(line)) is not None:
            yield from self._comment(end)
        elif heading := _HEADING.match(line):
            yield from self.close()
            yield self._heading(self.place, len(heading["level"]), heading["title"] or "")
        elif self._is_underline(line):
            title = " ".join(each.strip() for each in self._lines[self._begin : self.place])
            begin, self._begin = self._begin, -1
            yield self._heading(begin, 1 if "=" in line else 2, title)
        elif self._is_table():
            yield from self._whole("table", self._table_end())
        elif _RULE.match(line):
            yield from self.close()
            self.place += 1
        else:
            self._begin = self.place if self._begin < 0 else self._begin
            self.place += 1

    def close(self) -> Iterator[Block]:
        """End the paragraph, if there is one."""
        if self._begin >= 0:
            text = without_comments("\n".join(self._lines[self._begin : self.place]), is_shown=True)
            if text.strip():
                yield Block("text", self._first + self._begin, self._first + self.place - 1, text)
        self._begin = -1

    def _whole(self, kind: BlockKind, end: int) -> Iterator[Block]:
        """The block from here to the line `end`."""
        yield from self.close()
        text = "\n".join(self._lines[self.place : end + 1])
        yield Block(kind, self._first + self.place, self._first + end, text)
        self.place = end + 1

    def _heading(self, begin: int, level: int, title: str) -> Block:
        text = "\n".join(self._lines[begin : self.place + 1])
        self.place += 1
        title = _CLOSING_HASHES.sub("", title.strip()).strip()
        return Block("heading", self._first + begin, self._first + self.place - 1, text, level, title)

    def _fence_end(self, line: str) -> int | None:
        fence = _FENCE.match(line) if "```" in line or "~~~" in line else None
        return self._closings[fence["mark"][0]].after(self.place, len(fence["mark"])) if fence else None

    def _comment_end(self, line: str) -> int | None:
        if not _COMMENT.match(line):
            return None
        found = bisect_right(self._comment_ends, self.place - 1)
        return self._comment_ends[found] if found < len(self._comment_ends) else None

    def _comment(self, end: int) -> Iterator[Block]:
        """Pass over a comment; what follows it in its last line is text."""
        yield from self.close()
        rest = self._lines[end].partition("-->")[2]
        if shown := without_comments(rest, is_shown=True).strip():
            yield Block("text", self._first + end, self._first + end, shown)
        self.place = end + 1

    def _is_underline(self, line: str) -> bool:
        if self._begin < 0 or self.place - self._begin > _MAX_TITLE_LINES or not _UNDERLINE.match(line):
            return False
        return not _NO_TITLE.match(self._lines[self._begin])

    def _is_table(self) -> bool:
        """Return True if a row of names and one of dashes begin here."""
        if "|" not in self._lines[self.place] or self.place + 1 == len(self._lines):
            return False
        dashes = self._lines[self.place + 1]
        return "|" in dashes and "-" in dashes and not dashes.strip(" \t>|:-")

    def _table_end(self) -> int:
        """Its last line: a blank one ends it, and so does any other block."""
        end = self.place + 1
        while end + 1 < len(self._lines) and "|" in (row := self._lines[end + 1]):
            if _HEADING.match(row) or _FENCE.match(row) or _COMMENT.match(row):
                break
            end += 1
        return end


class _Closings:
    """The lines that can close a fence of one character."""

    def __init__(self, lines: Sequence[str], char: str) -> None:
        marks = ((place, _CLOSING.match(line)) for place, line in enumerate(lines) if char * 3 in line)
        self._marks = [(place, len(mark["mark"])) for place, mark in marks if mark and mark["mark"][0] == char]
        self._unclosed = float("inf")

    def after(self, place: int, length: int) -> int | None:
        """The line that closes a fence of `length` characters in line `place`; None when nothing does."""
        if length >= self._unclosed:
            return None
        for index in range(bisect_right(self._marks, (place, length)), len(self._marks)):
            if self._marks[index][0] > place and self._marks[index][1] >= length:
                return self._marks[index][0]
        self._unclosed = length
        return None
