"""The sections of a text, and blocks that are inserted into it.

Nothing here changes a byte that is there; a block comes between, in the text's own newline style.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from quaid.model import name_key
from quaid.vault import episodes, frontmatter, notes
from quaid.vault.markdown import Block, split_blocks

NO_TRIGGER = "Session"

_ENDS_BLANK = re.compile(r"(?:^\ufeff?|\n)[ \t]*\r?\n\Z")
_STARTS_BLANK = re.compile(r"[ \t]*\r?(?:\n|\Z)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_MARKUP = str.maketrans(dict.fromkeys("#|^:[]%*`_", " "))
"""Characters that Obsidian leaves out of a link to a heading, and markup in one."""


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """`text[start:end]`, a heading and all below it, headings of deeper levels among it.

    `titles` is the path of headings, outermost first; empty for the text before the first one. `body` is the offset
    behind the heading, `next` that of the next heading of any level.
    """

    titles: tuple[str, ...]
    level: int
    start: int
    body: int
    next: int
    end: int

    @property
    def title(self) -> str:
        return self.titles[-1] if self.titles else ""


def sections(text: str, blocks: Iterable[Block] | None = None) -> Iterator[SectionSpan]:
    """Yield the text before the first heading, if there is any, and the section of each heading. No heading is in the
    head, code or a comment. `blocks` are those of the text behind the head, if it is not markdown.
    """
    lines = text_lines(text)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=text_start(text)))
    blocks = split_blocks([line.removesuffix("\r") for line in lines]) if blocks is None else blocks
    marks = [block for block in blocks if block.kind == "heading"]
    begins = [*(starts[block.first - 1] for block in marks), len(text)]
    if text[starts[0] : begins[0]].strip():
        yield SectionSpan((), 0, starts[0], starts[0], begins[0], begins[0])
    path: list[tuple[int, str]] = []
    for place, block in enumerate(marks):
        path = [*(outer for outer in path if outer[0] < block.level), (block.level, block.title)]
        end = next((n for n in range(place + 1, len(marks)) if marks[n].level <= block.level), len(marks))
        titles = tuple(title for _, title in path)
        body = min(starts[block.last], len(text))
        yield SectionSpan(titles, block.level, begins[place], body, begins[place + 1], begins[end])


def top_sections(text: str) -> list[SectionSpan]:
    """Return the sections of levels one and two in their order, each up to the next one. Only lines with `#` are their
    headings.
    """
    found = [each for each in sections(text) if each.level in {1, 2} and text[each.start :].lstrip()[:1] == "#"]
    ends = [*(each.start for each in found[1:]), len(text)]
    return [replace(each, end=end) for each, end in zip(found, ends, strict=False)]


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


def read_turn(text: str, number: int) -> str:
    """Return the block of a turn with its speaker; empty where there is none."""
    _, body = notes.split_body(text)
    turns = (turn for turn in episodes.parse_turns(body) if turn.number == number)
    return "\n\n".join(body[turn.start : turn.end].strip("\r\n") for turn in turns)


def read_section(text: str, heading: str) -> str:
    """Return a heading and all below it, up to the next of its level; of `^id` the paragraph that has it; empty where
    there is none.
    """
    if heading.startswith("^"):
        start, lines = 0, notes.split_body(text)[1].splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.split()[-1:] == [heading]:
                return "".join(lines[start : number + 1])
            start = start if line.strip() else number + 1
    wanted = name_key(heading.translate(_MARKUP))
    found = (each for each in sections(text) if each.titles and name_key(each.title.translate(_MARKUP)) == wanted)
    return next((text[each.start : each.end] for each in found), "")
