"""A text by its headings, and blocks put into it: what snippets and journal have in common.

Nothing here changes a byte that is there; a block comes between, in the text's own newline style.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from quaid.model import name_key
from quaid.vault import episodes, frontmatter, markdown, notes
from quaid.vault.markdown import without_comments

NO_TRIGGER = "Session"

_ENDS_BLANK = re.compile(r"(?:^\ufeff?|\n)[ \t]*\r?\n\Z")
_STARTS_BLANK = re.compile(r"[ \t]*\r?(?:\n|\Z)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TopSection:
    """A heading of level one or two and the text under it: `text[start:end]`, from `body` on without the heading."""

    title: str
    start: int
    body: int
    end: int


def top_sections(text: str) -> list[TopSection]:
    """Return the sections of levels one and two in their order. Only lines with `#` are their headings."""
    found = [each for each in find_headings(text) if each[0] <= 2 and text[each[1] : each[2]].lstrip().startswith("#")]
    ends = [*(begin for _, begin, _, _ in found[1:]), len(text)]
    return [TopSection(title, begin, body, end) for (_, begin, body, title), end in zip(found, ends, strict=False)]


def find_headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield (level, start, start of what follows, title) of each heading; none is in the head, code or a comment."""
    lines = text_lines(text)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=text_start(text)))
    for block in split_blocks([line.removesuffix("\r") for line in lines]):
        if block.kind == "heading":
            yield block.level, starts[block.first - 1], min(starts[block.last], len(text)), block.title


def text_start(text: str) -> int:
    """Return the offset at which the text that may be changed begins: behind the head and the byte order mark."""
    return frontmatter.body_start(text) or int(text.startswith("\ufeff"))


def text_lines(text: str) -> list[str]:
    """Return the lines from there on, without their newlines."""
    return text[text_start(text) :].split("\n")


def insert_block(text: str, offset: int, block: str) -> str:
    """`text` with `block`, lines without a final newline, at `offset`, a line's start or the end.

    A blank line parts it from its neighbours. A missing final newline stays missing.
    """
    newline = notes.newline_of(text)
    block = block.replace("\n", newline)
    before, after = text[:offset], text[offset:]
    written = before.removeprefix("\ufeff")
    if written and not written.endswith("\n"):
        return f"{before}{newline}{newline}{block}{after}"
    lead = "" if ends_blank(before) else newline
    trail = "" if _STARTS_BLANK.match(after) else newline
    return f"{before}{lead}{block}{newline}{trail}{after}"


def insert_lines(text: str, offset: int, lines: str) -> str:
    """`text` with `lines`, without a final newline, right behind the line that ends at `offset`."""
    newline = notes.newline_of(text)
    lines = lines.replace("\n", newline)
    before, after = text[:offset], text[offset:]
    return f"{before}{lines}{newline}{after}" if before.endswith("\n") else f"{before}{newline}{lines}{after}"


def ends_blank(text: str) -> bool:
    """Return True if `text` is empty or ends with a blank line."""
    return not text.removeprefix("\ufeff") or bool(_ENDS_BLANK.search(text))


def content_end(text: str, start: int, end: int) -> int:
    """Return the offset behind the last line of `text[start:end]` that is not blank."""
    return text.find("\n", start + len(text[start:end].rstrip())) + 1 or len(text)


def one_line(text: str) -> str:
    return " ".join(without_control(text).split())


def without_control(text: str) -> str:
    """`text` with all newlines as LF and what no note can hold, or show, as spaces."""
    return _CONTROL.sub(" ", re.sub(r"\r\n?", "\n", text))


def text_key(text: str) -> str:
    """Return the key that texts share which differ in case, white space or a final full stop only."""
    return notes.text_hash(name_key(one_line(text)).rstrip("."))


def drop_known(texts: Iterable[str], known: set[str]) -> Iterator[str]:
    """Yield those of `texts` that say something and whose key is not `known`, each once."""
    seen = {*known, text_key("")}
    for text in texts:
        if (its_key := text_key(text)) not in seen:
            seen.add(its_key)
            yield text


# -- blocks -----------------------------------------------------------------------------------------------------------
#
# A markdown parser does not report the lines of a block, so lines are read instead: enough to cut a text without
# harming it. Nothing inside code or a comment is a heading, and a fence without an end hides nothing.

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


# -- parts of a note --------------------------------------------------------------------------------------------------

_ATX_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t]+(?P<title>[^\r\n]*)")
_MARKUP = str.maketrans(dict.fromkeys("#|^:[]%*`_", " "))
"""Characters that Obsidian leaves out of a link to a heading, and markup in one."""


def read_turn(text: str, number: int) -> str:
    """Return the block of a turn with its speaker; empty where there is none."""
    _, body = notes.split_body(text)
    turns = (turn for turn in episodes.parse_turns(body) if turn.number == number)
    return "\n\n".join(body[turn.start : turn.end].strip("\r\n") for turn in turns)


def read_section(text: str, heading: str) -> str:
    """Return a heading and all below it, up to the next of its level; of `^id` the paragraph that bears it; empty where
    there is none.
    """
    lines = notes.split_body(text)[1].splitlines(keepends=True)
    if heading.startswith("^"):
        return _read_block(lines, heading)
    wanted = _heading_key(heading)
    headings = _find_atx_headings(lines)
    for place, (start, level, title) in enumerate(headings):
        if _heading_key(title) == wanted:
            end = next((line for line, other, _ in headings[place + 1 :] if other <= level), len(lines))
            return "".join(lines[start:end])
    return ""


def _find_atx_headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Return (line, level, title) of each heading outside of code and comments."""
    found = []
    shown = markdown.blank("".join(lines), "fence", "code", "comment").splitlines()
    for number, line in enumerate(lines):
        if _ATX_HEADING.match(shown[number]) and (heading := _ATX_HEADING.match(line)):
            found.append((number, len(heading["marks"]), heading["title"]))
    return found


def _read_block(lines: list[str], mark: str) -> str:
    for number, line in enumerate(lines):
        if line.split()[-1:] == [mark]:
            start = number
            while start > 0 and lines[start - 1].strip():
                start -= 1
            return "".join(lines[start : number + 1])
    return ""


def _heading_key(title: str) -> str:
    return name_key(title.translate(_MARKUP))
