"""The grammar of SOUL.md, USER.md, MEMORY.md and AGENTS.md: sections of the owner's, and bullets put below them.

They are read before every conversation, so they have to stay short. Nothing here changes a byte that is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quaid.model import name_key
from quaid.vault import headings, markdown, snippets

LEARNED = "Learned"
"""The section that bullets go to where no other one is named; made when it is needed."""
MAX_CHARACTERS = 8_000
MAX_LINES = 200
MAX_LINES_A_NIGHT = 8
"""Lines that a night may add to a core note without asking."""

_DEEPER = re.compile(r"^ {0,3}#{3,6}[ \t]", re.MULTILINE)
_ITEM = re.compile(r"[ \t]*[-*+][ \t]+\S|[ \t]+\S")
_BULLET = re.compile(r"(?<!\s)\s*[-*+]\s+")


def is_long(text: str) -> bool:
    """Return True if a core note is longer than a note should be that is read before every conversation."""
    return len(text) > MAX_CHARACTERS or text.count("\n") > MAX_LINES


def section_titles(text: str) -> list[str]:
    """The headings below which a bullet can be put, `Learned` among them, there or not. One that has headings of its
    own below it, or that is commented out, is left out.
    """
    return list(dict.fromkeys([*(title for title, _ in _places(text)), LEARNED]))


def add_bullets(text: str | None, section: str, bullets: Sequence[str]) -> str:
    """`text` with those of `bullets`, of one line each, that no line of it says yet.

    They go to the end of `section`, else of `## Learned`, which is made if it is not there.
    """
    text = text or ""
    known = {headings.text_key(_BULLET.sub("", line, count=1)) for line in text.splitlines()}
    new = list(headings.drop_known(map(headings.one_line, bullets), known))
    if not new:
        return text
    lines = "\n".join(map(snippets.render_bullet, new))
    places = {name_key(title): place for title, place in reversed(list(_places(text)))}
    place = places.get(name_key(section), places.get(name_key(LEARNED)))
    if place is None:
        return headings.insert_block(text, len(text), f"## {LEARNED}\n\n{lines}")
    last_line = text[:place].rstrip("\n").rpartition("\n")[2]
    insert = headings.insert_lines if _ITEM.match(last_line) else headings.insert_block
    return insert(text, place, lines)


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Each section that takes bullets, with the place behind its last line."""
    hidden = list(markdown.comments(text))
    for section in headings.top_sections(text):
        title = headings.one_line(section.title)
        place = headings.content_end(text, section.start, section.end)
        if not title or _DEEPER.search(text[section.body : section.end]):
            continue
        if not any(start < section.start < end or start < place < end for start, end in hidden):
            yield title, place
