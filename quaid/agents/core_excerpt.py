"""What a session shows of a core note that is longer than its room: each section, its oldest lines left out.

Lines are put below the last of a section, by the janitor and by people, so the newest are the last: of a list the end
is kept. Of prose it is the beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quaid.recall.core_room import divide_room

CUT = "(cut for length)"
_HEADING = re.compile(r"^ {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")


def shorten_note(text: str, room: int) -> str:
    """Return `text` in at most `room` characters, whole lines of it; empty where not even a few have room."""
    if len(text) <= room:
        return text
    sections = list(_split(text))
    # A line end and perhaps a mark for each section.
    spare = sum(len(heading) + len(CUT) + 3 for heading, _ in sections)
    if spare > room // 2:  # more headings than text could be shown
        kept = _last_lines(text.split("\n"), room - len(CUT) - 1)
        return "\n".join([CUT, *kept]) if kept else ""
    shares = divide_room([len("\n".join(body)) for _, body in sections], room - spare)
    shown = [
        "\n".join([*([heading] if heading else []), *_shorten_section(body, share)])
        for (heading, body), share in zip(sections, shares, strict=True)
    ]
    return "\n".join(filter(None, shown))


def _split(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (heading, lines below it); the first has no heading."""
    heading, body = "", list[str]()
    for line in text.split("\n"):
        if _HEADING.match(line):
            if heading or body:
                yield heading, body
            heading, body = line, []
        else:
            body.append(line)
    yield heading, body


def _shorten_section(lines: Sequence[str], room: int) -> list[str]:
    if len("\n".join(lines)) <= room:
        return list(lines)
    first = next((place for place, line in enumerate(lines) if _ITEM.match(line)), len(lines))
    items = _last_lines(lines[first:], room if not first else room * 2 // 3)
    prose = _first_lines(lines[:first], room - len("\n".join(items)))
    return [*prose, CUT, *items]


def _first_lines(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            if not kept and not line[: room + len(line)].isspace():
                kept.append(line[: max(0, room + len(line))].rstrip())
            break
        kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _last_lines(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    kept.reverse()
    while kept and not kept[0].strip():
        kept.pop(0)
    return kept
