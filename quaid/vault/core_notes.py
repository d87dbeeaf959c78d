r"""The grammar of the core notes, and of the observations and journals about them. No byte that is there changes.

SOUL.md, USER.md, MEMORY.md and AGENTS.md are read before every conversation, so they must stay short. Bullets are added
below the owner's sections.

`snippets/SOUL.snippets.md` has small observations, the oldest first, a section per day and trigger:

    ## Compaction - 2026-02-12 14:30

    - Prefers to work in focused 2-hour blocks

`journal/SOUL.journal.md` has paragraphs of thought, the newest first, an entry per day and trigger:

    ## 2026-02-12 - Compaction

    Today's conversation revealed a pattern I've been developing around...

What is learned later that day joins its section or entry. A line that looks like a heading, a list or a fence gets a
backslash before the mark, which markdown does not show.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import NamedTuple

from quaid.model import name_key
from quaid.vault import headings, markdown, notes

LEARNED = "Learned"
"""The section for bullets where no other is named; created when it is needed."""
MAX_CHARACTERS = 8_000
"""The limit of a core note where no session shows it."""
_DEEPER = re.compile(r"^ {0,3}#{3,6}[ \t]", re.MULTILINE)
_ITEM = re.compile(r"[ \t]*[-*+][ \t]+\S|[ \t]+\S")
_BULLET = re.compile(r"(?<!\s)\s*[-*+]\s+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_OBSERVATION = re.compile(r"[-*+][ \t]+(?P<text>\S.*)")
_OBSERVED = re.compile(r"(?P<trigger>.*\S) - (?P<when>\d{4}-\d\d-\d\d \d\d:\d\d)")
_ENTERED = re.compile(r"(?P<when>\d{4}-\d\d-\d\d) - (?P<trigger>\S.*)")
_BETWEEN = re.compile(r"\n(?:[ \t]*\n)+")
_BULLET_MARKS = re.compile(
    r"(?P<lead>(?:\d{1,9}(?=\\*[.)]))?)(?P<slashes>\\*)"
    r"(?=(?:[-+*.)]|#{1,6}|\[[ xX]\])(?:\s|$)|>|```|~~~|[-=_*]{3,}$)"
)
_PARAGRAPH_MARKS = re.compile(r"(?P<lead>[ \t]*)(?P<slashes>\\*)(?=#{1,6}(?:\s|$)|```|~~~|(?:[-_*.]{3,}|=+|-+)\s*$)")


# -- core notes ------------------------------------------------------------------------------------------------------


def section_titles(text: str) -> list[str]:
    """Return the headings below which a bullet can be added, `Learned` included, existing or not. A heading with
    subheadings, or in a comment, is left out.
    """
    return list(dict.fromkeys([*(title for title, _ in _places(text)), LEARNED]))


def add_bullets(text: str | None, section: str, bullets: Sequence[str]) -> str:
    """Return `text` with the `bullets`, of one line each, that no line of it says yet.

    They go to the end of `section`, else of `## Learned`, which is created if it is missing.
    """
    text = text or ""
    known = {headings.text_key(_BULLET.sub("", line, count=1)) for line in text.splitlines()}
    new = list(headings.drop_known(map(headings.one_line, bullets), known))
    if not new:
        return text
    lines = "\n".join(map(_render_bullet, new))
    places = {name_key(title): place for title, place in reversed(list(_places(text)))}
    place = places.get(name_key(section), places.get(name_key(LEARNED)))
    if place is None:
        return headings.insert_block(text, len(text), f"## {LEARNED}\n\n{lines}")
    last_line = text[:place].rstrip("\n").rpartition("\n")[2]
    insert = headings.insert_lines if _ITEM.match(last_line) else headings.insert_block
    return insert(text, place, lines)


def list_bullets(text: str) -> list[tuple[int, int, str]]:
    """Return the list items of one line, outside of comments, each with where its line starts and ends."""
    hidden = list(markdown.comments(text))
    return [
        (start, end, words)
        for start, end, words in _observations(text, headings.text_start(text), len(text))
        if "\n" not in text[start:end].strip() and not any(first < start < last for first, last in hidden)
    ]


def change_bullets(text: str, changes: Mapping[str, str]) -> str:
    """Return `text` with the list items that say what is in `changes` worded as there; without them where that is
    empty, or where another line says it already.
    """
    for start, end, words in reversed(list_bullets(text)):
        new = changes.get(words)
        rest = text[:start] + text[end:]
        if new is not None:
            is_known = any(headings.text_key(new) == headings.text_key(other) for *_, other in list_bullets(rest))
            line = text[start:end]
            text = (
                rest
                if is_known or not new
                else f"{text[:start]}{_render_bullet(new)}{line[len(line.rstrip()) :]}{text[end:]}"
            )
    return text


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Yield each section that takes bullets, with the end of its content."""
    hidden = list(markdown.comments(text))
    for section in headings.top_sections(text):
        title = headings.one_line(section.title)
        place = headings.content_end(text, section.start, section.end)
        if not title or _DEEPER.search(text[section.body : section.end]):
            continue
        if not any(start < section.start < end or start < place < end for start, end in hidden):
            yield title, place


def _render_bullet(bullet: str) -> str:
    return f"- {_escape(_BULLET_MARKS, bullet)}"


# -- dated sections --------------------------------------------------------------------------------------------------


class DatedSection(NamedTuple):
    """The observations or paragraphs of one day and trigger, `text[start:end]`, from `body` on without the heading.
    `when` has no zone: it is as written.
    """

    trigger: str
    when: datetime
    texts: tuple[str, ...]
    start: int
    body: int
    end: int

    @property
    def day(self) -> date:
        return self.when.date()

    def is_of(self, trigger: str, day: date) -> bool:
        return self.day == day and name_key(self.trigger) == name_key(trigger)


def parse_observations(text: str) -> list[DatedSection]:
    """Return the sections of observations in their order, without the owner's other headings. Never raises."""
    return [
        DatedSection(trigger, when, tuple(words for _, _, words in _observations(text, part.body, part.end)), *span)
        for trigger, when, part in _dated(text, _OBSERVED)
        for span in ((part.start, part.body, part.end),)
    ]


def parse_entries(text: str) -> list[DatedSection]:
    """Return the entries of a journal in their order, without the owner's other headings. Never raises."""
    found = []
    for trigger, when, part in _dated(text, _ENTERED):
        written = _split(text[part.body : part.end].replace("\r\n", "\n"))
        paragraphs = tuple(_escape(_PARAGRAPH_MARKS, paragraph, is_reading=True) for paragraph in written)
        found.append(DatedSection(trigger, when, paragraphs, part.start, part.body, part.end))
    return found


def _dated(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, datetime, headings.SectionSpan]]:
    for section in headings.top_sections(text):
        title = pattern.fullmatch(section.title)
        try:
            when = datetime.fromisoformat(title["when"]) if title else None
        except ValueError:
            continue
        if title and when:
            yield title["trigger"], when, section


# -- observations ----------------------------------------------------------------------------------------------------


def add_observations(text: str | None, trigger: str, when: datetime, observations: Sequence[str]) -> str:
    """Return `text` with the observations that its section of this day and trigger does not have yet.

    Args:
        text: the file, None when there is none.
        trigger: why the conversation was read, `Compaction`, `Reset`.
        when: the moment, in the reader's zone.
        observations: of equal ones (except for case, white space and a final full stop) the first counts.

    Returns:
        The whole new text; `text` itself, or the empty text, when nothing is new.
    """
    text, trigger = text or "", headings.one_line(trigger) or headings.NO_TRIGGER
    same = [section for section in parse_observations(text) if section.is_of(trigger, when.date())]
    known = {headings.text_key(line) for section in same for line in section.texts}
    new = [_render_bullet(line) for line in headings.drop_known(map(headings.one_line, observations), known)]
    if not new:
        return text
    lines = "\n".join(new)
    if not same:
        return headings.insert_block(text, len(text), f"## {trigger} - {when.isoformat(' ')[:16]}\n\n{lines}")
    section = same[-1]
    if items := _observations(text, section.body, section.end):
        return headings.insert_lines(text, items[-1][1], lines)
    return headings.insert_block(text, headings.content_end(text, section.start, section.end), lines)


def remove_observations(text: str, observations: Collection[str]) -> str:
    """Return `text` without `observations`, in whatever section. A section that becomes empty is removed."""
    gone = set(map(headings.text_key, observations))
    for section in reversed(parse_observations(text)):
        items = [item for item in _observations(text, section.body, section.end) if headings.text_key(item[2]) in gone]
        rest = text[section.body : section.end]
        for start, end, _ in reversed(items):
            rest = rest[: start - section.body] + rest[end - section.body :]
        begin = section.body if rest.strip() or not items else section.start
        text = text[:begin] + (rest if begin == section.body else "") + text[section.end :]
    return text


def _observations(text: str, begin: int, finish: int) -> list[tuple[int, int, str]]:
    """Return the list items in a part of `text`, with where they start and end; one may have more than one line."""
    spans: list[tuple[int, int]] = []
    words_of: list[list[str]] = []
    is_open = is_after_blank = False
    for line in _LINE.finditer(text, begin, finish):
        words = line[0].strip()
        bullet = _OBSERVATION.match(line[0].rstrip())
        is_open = bool(bullet) or (is_open and (not is_after_blank or not words or line[0][0] in " \t"))
        if bullet:
            spans.append(line.span())
            words_of.append([bullet["text"]])
        elif is_open and words:
            spans[-1] = (spans[-1][0], line.end())
            words_of[-1].append(words)
        is_after_blank = not words
    return [
        (*span, _escape(_BULLET_MARKS, " ".join(words), is_reading=True))
        for span, words in zip(spans, words_of, strict=True)
    ]


# -- journals --------------------------------------------------------------------------------------------------------


def add_entry(text: str | None, trigger: str, when: datetime, paragraph: str) -> str:
    """Return `text` with `paragraph` under its day and trigger, unless it is there already.

    Args:
        text: the file, None when there is none.
        trigger: why the conversation was read, `Compaction`, `Reset`.
        when: its day, in the reader's zone, is where a new entry goes.
        paragraph: one or several, with blank lines between; each is added separately.

    Returns:
        The whole new text; `text` itself, or the empty text, when nothing is new.
    """
    text, day = text or "", when.date()
    words = headings.one_line(trigger).split()
    while words and not words[-1].strip("#"):  # hashes at the end of a heading are not part of its title
        words.pop()
    trigger = " ".join(words) or headings.NO_TRIGGER
    entries = parse_entries(text)
    same = [entry for entry in entries if entry.is_of(trigger, day)]
    known = {headings.text_key(known) for entry in same for known in entry.texts}
    fresh = headings.drop_known(_split(headings.without_control(paragraph)), known)
    new = "\n\n".join(_escape(_PARAGRAPH_MARKS, paragraph) for paragraph in fresh)
    if not new:
        return text
    if same:
        return headings.insert_block(text, headings.content_end(text, same[0].start, same[0].end), new)
    return headings.insert_block(text, _find_place(entries, day, len(text)), f"## {day} - {trigger}\n\n{new}")


def remove_entries(text: str, entries: Sequence[DatedSection]) -> str:
    """Return `text` without some of its entries."""
    for entry in sorted(entries, key=lambda entry: entry.start, reverse=True):
        text = text[: entry.start] + text[entry.end :]
    return text


def insert_entry(text: str | None, written: str) -> str:
    """Return `text`, a journal or its archive, with an entry as another one has it, heading included.

    Its lines stay as they are; it goes before the first that is not newer. An entry that is there is not added again.
    """
    text, written = text or "", written.rstrip()
    if re.search(rf"^\ufeff?{re.escape(written)}\r?$", text, re.MULTILINE):
        return text
    (entry,) = parse_entries(written)
    place = _find_place(parse_entries(text), entry.day, len(text))
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


def _find_place(entries: Sequence[DatedSection], day: date, end: int) -> int:
    """Return the start of the first entry that is not newer, else the end of the last."""
    not_newer = next((entry.start for entry in entries if entry.day <= day), None)
    return not_newer if not_newer is not None else max((entry.end for entry in entries), default=end)


def _split(text: str) -> list[str]:
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return [paragraph for paragraph in _BETWEEN.split(lines.strip("\n")) if paragraph.strip()]


def _escape(pattern: re.Pattern[str], text: str, *, is_reading: bool = False) -> str:
    """Add a backslash before each mark at the start of a line that looks like markup, or remove one: so a line that had
    some keeps them.
    """

    def change(line: str) -> str:
        found = pattern.match(line)
        if found is None:
            return line
        slashes = found["slashes"][1:] if is_reading else found["slashes"] + "\\"
        return f"{found['lead']}{slashes}{line[found.end() :]}"

    return "\n".join(map(change, text.split("\n")))
