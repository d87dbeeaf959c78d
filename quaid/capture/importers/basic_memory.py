"""basic-memory: notes with a permalink, observations and relations.

`- [category] text #tag (context)` is an observation: a fact about the note's subject.
`- relation_type [[Target]] (remark)` is a relation: an edge. Both count wherever they stand, the headings
above them are a convention. What else a note says goes into the subject's own note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from posixpath import basename, splitext
from typing import Any, NamedTuple

from quaid.capture.cleaning import clean_text
from quaid.capture.importers.import_content import ImportContent, ImportedEntity, ImportedFact, ImportSource
from quaid.errors import BadInputError
from quaid.model import FACT_TYPES, Edge, name_key
from quaid.text.words import count_words
from quaid.vault import frontmatter, markdown, notes

NAME = "basic-memory"

_PERMALINK = re.compile(r"[^\W_][\w.-]*(?:/[\w.-]+)*")
_ITEM = re.compile(r"[ \t]*[-*+][ \t]+(.+)$")
_HEADING = re.compile(r"(#{1,6})[ \t]+((?:[^ \t#]|[ \t#]+(?=[^ \t#]))*+)[ \t#]*$")
_OBSERVATION = re.compile(r"\[([^\[\]()]+)\][ \t]+(.+)$")
_CLOCK = re.compile(r"\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?(?:\s+-\s+\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?)?")
_TAG = re.compile(r"(?<!\S)#([^\s#]+(?:#[^\s#]+)*)")
_TAG_ALONE = re.compile(r"#[^\s#]\S*")
_WORD = re.compile(r"\S+")
_CONTEXT = re.compile(r"(?<!\s)\s*\(([^()]*)\)\s*$")
_RELATION = re.compile(
    r"(?:\"(?P<quoted>[^\"]+)\"|'(?P<single>[^']+)'|(?P<word>[^\s\[\]\"']+))[ \t]+"
    r"\[\[(?P<target>[^\[\]]+)\]\][ \t]*(?P<context>\(.*\))?[ \t]*$"
)
_TYPES = {
    "person": "person", "people": "person", "contact": "person",
    "place": "place", "location": "place",
    "organization": "organization", "organisation": "organization", "company": "organization", "team": "organization",
    "project": "project", "event": "event", "meeting": "event", "pet": "pet",
    "thing": "thing", "device": "thing", "tool": "thing", "product": "thing",
}  # fmt: skip
_CATEGORIES = {"opinion": "belief", "preference": "preference", "preferences": "preference", "meeting": "event"}


class _Line(NamedTuple):
    """An observation, taken apart."""

    category: str
    text: str
    tags: tuple[str, ...]
    context: str


@dataclass(slots=True)
class _Subject:
    """One note: what it is about, and its lines by what they are."""

    title: str
    place: str
    fields: Mapping[str, Any]
    observations: list[_Line] = field(default_factory=list)
    relations: list[tuple[str, str]] = field(default_factory=list)
    prose: str = ""

    def take(self, line: str, found: ImportContent) -> bool:
        """Take an observation or a relation; return False for any other line."""
        item = _ITEM.match(line)
        if item is None:
            return False
        if relation := _parse_relation(item[1]):
            self.relations.append(relation[:2])
            found.left_out["remarks on relations"] += bool(relation[2])
            return True
        observation = _parse_observation(item[1])
        if observation is None:
            return False
        if count_words(observation.text) < 2 and not observation.context:
            found.left_out["observations of one word"] += 1
        else:
            self.observations.append(observation)
        return True

    def as_fact(self, line: _Line) -> ImportedFact:
        says_whom = name_key(self.title) in name_key(line.text)
        text = line.text if says_whom else f"{self.title}: {line.text}"
        if line.context:
            text = f"{text} ({line.context})"
        category = line.category.casefold()
        fact_type = _CATEGORIES.get(category, category)
        return ImportedFact(
            text,
            self.place,
            fact_type if fact_type in FACT_TYPES else "fact",
            created=self._created,
            keywords=tuple(dict.fromkeys(word for word in (category, *line.tags) if word and word not in FACT_TYPES)),
        )

    def as_entity(self, called: set[str]) -> ImportedEntity:
        """The note of the subject; `called` is what links call it."""
        given = self.fields.get("aliases")
        aliases = [alias for alias in given if isinstance(alias, str)] if isinstance(given, list) else []
        names = {name_key(self.title): self.title}
        for alias in (*aliases, *sorted(called)):
            if alias.strip():
                names.setdefault(name_key(alias), alias.strip())
        kind = self.fields.get("type")
        return ImportedEntity(
            self.title,
            _TYPES.get(kind.casefold(), "concept") if isinstance(kind, str) else "concept",
            tuple(names.values())[1:],
            self.prose,
            self.place,
            self._created,
        )

    @property
    def _created(self) -> datetime | None:
        value = self.fields.get("created")
        return notes.parse_time(value) if isinstance(value, str) else None


def recognises(source: ImportSource) -> bool:
    """Most notes have a title and a permalink as basic-memory gives them to each one, and every fifth of these, one at
    least, a section of observations or relations in its grammar. Other programs know permalinks too.
    """
    heads = [frontmatter.parse(text) for text in source.notes.values()]
    marked = [
        head.body
        for head in heads
        if _PERMALINK.fullmatch(str(head.fields.get("permalink") or "")) and isinstance(head.fields.get("title"), str)
    ]
    return 2 * len(marked) > len(heads) and 5 * sum(map(_has_section, marked)) >= len(marked)


def _has_section(body: str) -> bool:
    is_inside = False
    for line in body.split("\n"):
        if heading := _HEADING.match(line):
            is_inside = heading[2].casefold() in {"observations", "relations"}
        elif is_inside and (item := _ITEM.match(line)):
            return bool(_parse_relation(item[1]) or _OBSERVATION.match(item[1]))
    return False


def read(source: ImportSource, found: ImportContent) -> None:
    subjects = [_read_note(path, text, found) for path, text in source.notes.items()]
    if not subjects:
        raise BadInputError(f"{source.name} holds no markdown. Give the folder that basic-memory keeps a project in.")
    seen: set[str] = set()
    titles: dict[str, str] = {}  # what a link may call a note by, title, file name, permalink or its end, -> its title
    for subject in subjects:
        if name_key(subject.title) in seen:
            subject.title = f"{subject.title} ({subject.place})"
        seen.add(name_key(subject.title))
        for name in (subject.title, subject.place, subject.place.rsplit("/", 1)[-1]):
            titles.setdefault(_link_key(name), subject.title)
    called: dict[str, set[str]] = {}
    for subject in subjects:
        for relation, target in subject.relations:
            title = titles.get(_link_key(target), target.rsplit("/", 1)[-1])
            called.setdefault(title, set()).add(target)
            found.edges.append(Edge(subject.title, relation, title))
        for target in markdown.links(subject.prose):
            called.setdefault(titles.get(_link_key(target), target), set()).add(target)
        found.facts.extend(map(subject.as_fact, subject.observations))
    for subject in subjects:
        found.entities[subject.title] = subject.as_entity(called.get(subject.title, set()))


def _read_note(path: str, text: str, found: ImportContent) -> _Subject:
    head = frontmatter.parse(clean_text(found.admitted(path, text)))
    stem = splitext(basename(path))[0]
    title = head.fields.get("title")
    permalink = head.fields.get("permalink")
    subject = _Subject(
        " ".join(title.split()) if isinstance(title, str) and title.strip() else stem,
        permalink.strip() if isinstance(permalink, str) and permalink.strip() else path.removesuffix(".md"),
        head.fields,
    )
    kept: list[str] = []
    for line, shown in zip(head.body.split("\n"), markdown.blank(head.body, "fence").split("\n"), strict=True):
        if not subject.take(shown, found):
            kept.append(line)
    subject.prose = _without_empty_sections("\n".join(kept), subject.title)
    return subject


def _parse_relation(text: str) -> tuple[str, str, str | None] | None:
    """(relation, target, remark). A sentence that happens to hold a link is none: a relation ends with its target."""
    found = _RELATION.match(text)
    if found is None:
        return None
    relation = found["quoted"] or found["single"] or found["word"]
    target = markdown.link_target(found["target"]).removeprefix("memory://").strip("/")
    return (relation, target, found["context"]) if target and any(map(str.isalpha, relation)) else None


def _parse_observation(text: str) -> _Line | None:
    """Not tasks (`[ ]`, `[x]`, `[>]`), nor clock times, links and footnotes, which are in brackets too."""
    found = _OBSERVATION.match(text)
    category = found[1].strip() if found else ""
    if found and (_CLOCK.fullmatch(category) or category in "xX" or not any(map(str.isalnum, category))):
        return None
    said = found[2].strip() if found else text
    context = _CONTEXT.search(said)
    if context:
        said = said[: context.start()]
    tags = tuple(tag for run in _TAG.findall(said) for tag in run.split("#"))
    if not found and (not tags or "[[" in said):
        return None
    words = list(_WORD.finditer(said))
    while words and words[-1].start() and _TAG_ALONE.fullmatch(words[-1][0]):
        said = said[: words.pop().start()]
    said = _TAG.sub(lambda tag: tag[1].replace("#", " "), said).strip()
    return _Line(category, said, tags, context[1].strip() if context else "") if said else None


def _link_key(target: str) -> str:
    return name_key(target.removesuffix(".md"))


def _without_empty_sections(body: str, title: str) -> str:
    """The body without the title that repeats the note's name and without headings that have nothing below them."""
    kept: list[str] = []
    for line in (*body.split("\n"), "# "):
        heading = _HEADING.match(line)
        while heading and kept:
            above = _HEADING.match(kept[-1])
            if kept[-1].strip() and not (above and len(above[1]) >= len(heading[1])):
                break
            kept.pop()
        if heading and kept:
            kept.append("")
        if not (heading and name_key(heading[2]) == name_key(title)):
            kept.append(line)
    return "\n".join(kept[:-1]).strip()
