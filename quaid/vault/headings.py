"""A text by its headings, and blocks put into it: what snippets and journal have in common.

Nothing here changes a byte that is there; a block comes between, in the text's own newline style.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from quaid.model import name_key
from quaid.vault import frontmatter, notes
from quaid.vault.blocks import split_blocks

NO_TRIGGER = "Session"

_ENDS_BLANK = re.compile(r"(?:^\ufeff?|\n)[ \t]*\r?\n\Z")
_STARTS_BLANK = re.compile(r"[ \t]*\r?(?:\n|\Z)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TopSection:
    """A heading of level one or two and what stands under it: `text[start:end]`, from `body` on without the heading."""

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
    """Return True if what follows `text` stands behind a blank line, or first of all."""
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


def change_escapes(grammar: re.Pattern[str], line: str, change: Callable[[str], str]) -> str:
    """`line` with `change` applied to the `slashes` before what looks like `grammar`, if it does.

    One more is written and one less read, so that a line which had some keeps them.
    """
    found = grammar.match(line)
    return f"{found['lead']}{change(found['slashes'])}{line[found.end() :]}" if found else line
