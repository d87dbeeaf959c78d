r"""The grammar of `snippets/SOUL.snippets.md`: small observations about a core note, the oldest first.

    ## Compaction - 2026-02-12 14:30

    - Prefers to work in focused 2-hour blocks
    - Gets frustrated when interrupted mid-thought

One section per day and trigger: what is learned later that day joins it. An observation is one line; one that looks
like a heading, a list or a fence gets a backslash before the mark, which markdown does not show.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from quaid.model import name_key
from quaid.vault import headings
from quaid.vault.headings import TopSection

_TITLE = re.compile(r"(?P<trigger>.*\S) - (?P<when>\d{4}-\d\d-\d\d \d\d:\d\d)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BULLET = re.compile(r"[-*+][ \t]+(?P<text>\S.*)")
_GRAMMAR = re.compile(
    r"(?P<lead>(?:\d{1,9}(?=\\*[.)]))?)(?P<slashes>\\*)"
    r"(?=(?:[-+*.)]|#{1,6}|\[[ xX]\])(?:\s|$)|>|```|~~~|[-=_*]{3,}$)"
)


@dataclass(frozen=True, slots=True)
class SnippetSection:
    """The observations of one trigger, `text[start:end]`, from `body` on without the heading. `when` has no zone: it is
    as written.
    """

    trigger: str
    when: datetime
    bullets: tuple[str, ...]
    start: int
    body: int
    end: int


@dataclass(slots=True)
class _Item:
    """A list item as it is found, from `start`: `end` moves on with each line that belongs to it."""

    start: int
    end: int
    lines: list[str] = field(default_factory=list)


def parse_sections(text: str) -> list[SnippetSection]:
    """The dated sections in their order; the owner's other headings are left out. Never raises."""
    return list(_sections(text))


def add_bullets(text: str | None, trigger: str, when: datetime, bullets: Sequence[str]) -> str:
    """`text` with the observations that its section of this day and trigger does not have yet.

    Args:
        text: the file, None when there is none.
        trigger: what made the conversation be read, `Compaction`, `Reset`.
        when: the moment, in the zone that the reader is to see.
        bullets: one observation each; of equal ones (case, white space and a final full stop aside) the first counts.

    Returns:
        The whole new text; `text` itself, or the empty text, when nothing is new.
    """
    text, trigger = text or "", headings.one_line(trigger) or headings.NO_TRIGGER
    same = [
        section
        for section in _sections(text)
        if section.when.date() == when.date() and name_key(section.trigger) == name_key(trigger)
    ]
    known = {headings.text_key(bullet) for section in same for bullet in section.bullets}
    new = [render_bullet(bullet) for bullet in headings.drop_known(map(headings.one_line, bullets), known)]
    if not new:
        return text
    lines = "\n".join(new)
    if not same:
        return headings.insert_block(text, len(text), f"## {trigger} - {when.isoformat(' ')[:16]}\n\n{lines}")
    if items := _items(text, same[-1]):
        return headings.insert_lines(text, items[-1].end, lines)
    return headings.insert_block(text, headings.content_end(text, same[-1].start, same[-1].end), lines)


def remove_bullets(text: str, bullets: Collection[str]) -> str:
    """`text` without the observations, of whatever section, that say one of `bullets`.

    A section that has nothing left goes with its last one; all else stays as it is.
    """
    gone = set(map(headings.text_key, bullets))
    for section in reversed(list(_sections(text))):
        items = [item for item in _items(text, section) if headings.text_key(_bullet_text(item)) in gone]
        rest = text[section.body : section.end]
        for item in reversed(items):
            rest = rest[: item.start - section.body] + rest[item.end - section.body :]
        start = section.body if rest.strip() or not items else section.start
        text = text[:start] + (rest if start == section.body else "") + text[section.end :]
    return text


def render_bullet(bullet: str) -> str:
    """The list item of an observation of one line."""
    return "- " + headings.change_escapes(_GRAMMAR, bullet, lambda slashes: slashes + "\\")


def _sections(text: str) -> Iterator[SnippetSection]:
    for section in headings.top_sections(text):
        title = _TITLE.fullmatch(section.title)
        try:
            when = datetime.fromisoformat(title["when"]) if title else None
        except ValueError:
            continue
        if title and when:
            bullets = tuple(map(_bullet_text, _items(text, section)))
            yield SnippetSection(title["trigger"], when, bullets, section.start, section.body, section.end)


def _bullet_text(item: _Item) -> str:
    return headings.change_escapes(_GRAMMAR, " ".join(item.lines), lambda slashes: slashes[1:])


def _items(text: str, section: TopSection | SnippetSection) -> list[_Item]:
    items: list[_Item] = []
    is_open = is_after_blank = False
    for line in _LINE.finditer(text, section.body, section.end):
        words = line[0].strip()
        bullet = _BULLET.match(line[0].rstrip())
        is_open = bool(bullet) or (is_open and (not is_after_blank or not words or line[0][0] in " \t"))
        if bullet:
            items.append(_Item(line.start(), line.end(), [bullet["text"]]))
        elif is_open and words:
            items[-1].lines.append(words)
            items[-1].end = line.end()
        is_after_blank = not words
    return items
