r"""The grammar of `journal/SOUL.journal.md`: what was thought about, in paragraphs, the newest first.

    ## 2026-02-12 - Compaction

    Today's conversation revealed a pattern I've been developing around...

One entry per day and trigger: a second one of the day joins it as a further paragraph. A line that looks like a
heading or a fence gets a backslash before the mark, which markdown does not show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from quaid.model import name_key
from quaid.vault import headings, notes

_TITLE = re.compile(r"(?P<day>\d{4}-\d\d-\d\d) - (?P<trigger>\S.*)")
_BETWEEN = re.compile(r"\n(?:[ \t]*\n)+")
_GRAMMAR = re.compile(r"(?P<lead>[ \t]*)(?P<slashes>\\*)(?=#{1,6}(?:\s|$)|```|~~~|(?:[-_*.]{3,}|=+|-+)\s*$)")


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """The paragraphs of one day and trigger, `text[start:end]` with their heading."""

    day: date
    trigger: str
    paragraphs: tuple[str, ...]
    start: int
    end: int


def parse_entries(text: str) -> list[JournalEntry]:
    """The dated entries in their order; the owner's other headings are left out. Never raises."""
    return list(_entries(text))


def add_entry(text: str | None, trigger: str, when: datetime, paragraph: str) -> str:
    """`text` with `paragraph` under its day and trigger, unless it is there already.

    Args:
        text: the file, None when there is none.
        trigger: what made the conversation be read, `Compaction`, `Reset`.
        when: its day, in the zone that the reader is to see, says where a new entry goes.
        paragraph: one or several, blank lines between; each is added on its own.

    Returns:
        The whole new text; `text` itself, or the empty text, when nothing is new.
    """
    text, trigger, day = text or "", headings.one_line(trigger) or headings.NO_TRIGGER, when.date()
    entries = list(_entries(text))
    same = [entry for entry in entries if entry.day == day and name_key(entry.trigger) == name_key(trigger)]
    known = {headings.text_key(known) for entry in same for known in entry.paragraphs}
    paragraphs = _split(headings.without_control(paragraph))
    fresh = headings.drop_known(paragraphs, known)
    new = "\n\n".join(_change_escapes(paragraph, lambda slashes: slashes + "\\") for paragraph in fresh)
    if not new:
        return text
    if same:
        place = headings.content_end(text, same[0].start, same[0].end)
        return headings.insert_block(text, place, new)
    return headings.insert_block(text, _place(entries, day, len(text)), f"## {day} - {trigger}\n\n{new}")


def remove_entries(text: str, entries: Sequence[JournalEntry]) -> str:
    """`text` without those of its entries."""
    for entry in sorted(entries, key=lambda entry: entry.start, reverse=True):
        text = text[: entry.start] + text[entry.end :]
    return text


def insert_entry(text: str | None, written: str) -> str:
    """`text`, a journal or the archive of one, with an entry as another one has it, heading included.

    Its lines stay as they are; it goes before the first that is not newer. One that is there is not put in again.
    """
    text, written = text or "", written.rstrip()
    if re.search(rf"^\ufeff?{re.escape(written)}\r?$", text, re.MULTILINE):
        return text
    (entry,) = parse_entries(written)
    place = _place(parse_entries(text), entry.day, len(text))
    before, after = text[:place], text[place:]
    newline = notes.newline_of(before + after or written)
    if before.removeprefix("\ufeff") and not before.endswith("\n"):
        before += newline
    lead = "" if headings.ends_blank(before) else newline
    return f"{before}{lead}{written}{newline}{newline if after.strip() else ''}{after}"


def archive_path(journal_path: str, day: date) -> str:
    """`journal/SOUL.journal.md` -> `journal/archive/SOUL-2026-02.md`"""
    folder, name = journal_path.rsplit("/", 1)
    return f"{folder}/archive/{name.removesuffix('.journal.md')}-{day.isoformat()[:7]}.md"


def _place(entries: list[JournalEntry], day: date, end: int) -> int:
    """Before the first entry that is not newer, else behind the last."""
    not_newer = next((entry.start for entry in entries if entry.day <= day), None)
    return not_newer if not_newer is not None else max((entry.end for entry in entries), default=end)


def _entries(text: str) -> Iterator[JournalEntry]:
    for section in headings.top_sections(text):
        title = _TITLE.fullmatch(section.title)
        try:
            day = date.fromisoformat(title["day"]) if title else None
        except ValueError:
            continue
        if title and day:
            written = _split(text[section.body : section.end].replace("\r\n", "\n"))
            paragraphs = tuple(_change_escapes(paragraph, lambda slashes: slashes[1:]) for paragraph in written)
            yield JournalEntry(day, title["trigger"], paragraphs, section.start, section.end)


def _split(text: str) -> list[str]:
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return [paragraph for paragraph in _BETWEEN.split(lines.strip("\n")) if paragraph.strip()]


def _change_escapes(paragraph: str, change: Callable[[str], str]) -> str:
    return "\n".join(headings.change_escapes(_GRAMMAR, line, change) for line in paragraph.split("\n"))
