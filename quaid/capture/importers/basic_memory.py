"""basic-memory: notes with a permalink, observations and relations.

`- [category] text #tag (context)` is an observation: a fact about the note's subject.
`- relation_type [[Target]] (remark)` is a relation: an edge. Both count anywhere in a note, whatever the heading above
them. All other text goes into the subject's own note.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from posixpath import basename, splitext

from quaid.capture.cleaning import clean_text
from quaid.capture.facts import NewFact
from quaid.capture.importers.import_content import ImportContent, ImportedEntity, ImportFormat, ImportSource
from quaid.errors import BadInputError
from quaid.model import FACT_TYPES, Edge, name_key
from quaid.text.words import count_words
from quaid.vault import frontmatter, markdown, notes

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
_TYPE_NAMES = {
    "person": "person people contact",
    "place": "place location",
    "organization": "organization organisation company team",
    "project": "project",
    "event": "event meeting",
    "pet": "pet",
    "thing": "thing device tool product",
}
_TYPES = {name: kind for kind, names in _TYPE_NAMES.items() for name in names.split()}
_CATEGORIES = {"opinion": "belief", "preference": "preference", "preferences": "preference", "meeting": "event"}


class _Subject:
    """One note: its subject, and its lines by kind."""

    def __init__(self, path: str, text: str, found: ImportContent) -> None:
        head = frontmatter.parse(clean_text(found.admit(path, text)))
        self.fields = {key: value if isinstance(value, str) else "" for key, value in head.fields.items()}
        self.title = " ".join(self.fields.get("title", "").split()) or splitext(basename(path))[0]
        self.place = self.fields.get("permalink", "").strip() or path.removesuffix(".md")
        self.created = notes.parse_time(self.fields.get("created"))
        self.aliases = frontmatter.list_values(head.fields.get("aliases"))
        self.observations: list[NewFact] = []
        self.relations: list[tuple[str, str]] = []
        lines = zip(head.body.split("\n"), markdown.blank(head.body, "fence").split("\n"), strict=True)
        prose = [line for line, outside_code in lines if not self._read_line(outside_code, found)]
        self.prose = _without_empty_sections(prose, self.title)

    def _read_line(self, line: str, found: ImportContent) -> bool:
        """Read an observation or a relation; return False for any other line."""
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
        category, text, tags, context = observation
        if count_words(text) < 2 and not context:
            found.left_out["observations of one word"] += 1
            return True
        fact_type = _CATEGORIES.get(category, category)
        fact = NewFact(
            f"{text} ({context})" if context else text,
            imported_from=self.place,
            type=fact_type if fact_type in FACT_TYPES else "fact",
            created=self.created,
            keywords=tuple(dict.fromkeys(word for word in (category, *tags) if word and word not in FACT_TYPES)),
        )
        self.observations.append(fact)
        return True

    def facts(self) -> list[NewFact]:
        """The observations; one that does not name the subject gets the title in front."""
        title = name_key(self.title)
        return [
            fact if title in name_key(fact.text) else replace(fact, text=f"{self.title}: {fact.text}")
            for fact in self.observations
        ]

    def entity(self, names: set[str]) -> ImportedEntity:
        """Return the note of the subject; `names` are what links call it."""
        aliases = {name_key(self.title): self.title}
        for alias in (*self.aliases, *sorted(names)):
            if alias.strip():
                aliases.setdefault(name_key(alias), alias.strip())
        kind = _TYPES.get(self.fields.get("type", "").casefold(), "concept")
        return ImportedEntity(self.title, kind, tuple(aliases.values())[1:], self.prose, self.place, self.created)


class BasicMemory(ImportFormat):
    name = "basic-memory"

    @staticmethod
    def recognises(source: ImportSource) -> bool:
        """Most notes have a title and a permalink as basic-memory writes them, and every fifth of these, one at least,
        a section of observations or relations in its grammar. Other programs use permalinks too.
        """
        heads = [frontmatter.parse(text) for text in source.notes.values()]
        marked, written = 0, 0
        for head in heads:
            title, permalink = head.fields.get("title"), str(head.fields.get("permalink") or "")
            if not (isinstance(title, str) and _PERMALINK.fullmatch(permalink)):
                continue
            marked += 1
            is_inside = False
            for line in head.body.split("\n"):
                if heading := _HEADING.match(line):
                    is_inside = heading[2].casefold() in {"observations", "relations"}
                elif is_inside and (item := _ITEM.match(line)):
                    written += bool(_parse_relation(item[1]) or _OBSERVATION.match(item[1]))
                    break
        return 2 * marked > len(heads) and 5 * written >= marked

    @staticmethod
    def read(source: ImportSource, found: ImportContent) -> None:
        subjects = [_Subject(path, text, found) for path, text in source.notes.items()]
        if not subjects:
            raise BadInputError(
                f"{source.name} holds no markdown. Give the folder that basic-memory keeps a project in."
            )
        seen: set[str] = set()
        titles: dict[str, str] = {}
        """Key of a title, file name, permalink or its end, by which links name a note -> its title."""
        for subject in subjects:
            if name_key(subject.title) in seen:
                subject.title = f"{subject.title} ({subject.place})"
            seen.add(name_key(subject.title))
            for name in (subject.title, subject.place, subject.place.rsplit("/", 1)[-1]):
                titles.setdefault(_link_key(name), subject.title)
        names: dict[str, set[str]] = {}
        for subject in subjects:
            for relation, target in subject.relations:
                title = titles.get(_link_key(target), target.rsplit("/", 1)[-1])
                names.setdefault(title, set()).add(target)
                found.edges.append(Edge(subject.title, relation, title))
            for target in markdown.links(subject.prose):
                names.setdefault(titles.get(_link_key(target), target), set()).add(target)
            found.facts.extend(subject.facts())
        for subject in subjects:
            found.entities[subject.title] = subject.entity(names.get(subject.title, set()))


def _parse_relation(text: str) -> tuple[str, str, str | None] | None:
    """Return (relation, target, remark). A relation ends with its target: other sentences with a link are none."""
    found = _RELATION.match(text)
    if found is None:
        return None
    relation = found["quoted"] or found["single"] or found["word"]
    target = markdown.link_target(found["target"]).removeprefix("memory://").strip("/")
    return (relation, target, found["context"]) if target and any(map(str.isalpha, relation)) else None


def _parse_observation(text: str) -> tuple[str, str, tuple[str, ...], str] | None:
    """Return (category, text, tags, context).

    Not of tasks (`[ ]`, `[x]`, `[>]`), nor clock times, links and footnotes, which are in brackets too.
    """
    found = _OBSERVATION.match(text)
    category = found[1].strip() if found else ""
    if found and (_CLOCK.fullmatch(category) or category in "xX" or not any(map(str.isalnum, category))):
        return None
    text = found[2].strip() if found else text
    context = _CONTEXT.search(text)
    if context:
        text = text[: context.start()]
    tags = tuple(tag for run in _TAG.findall(text) for tag in run.split("#"))
    if not found and (not tags or "[[" in text):
        return None
    words = list(_WORD.finditer(text))
    while words and words[-1].start() and _TAG_ALONE.fullmatch(words[-1][0]):
        text = text[: words.pop().start()]
    text = _TAG.sub(lambda tag: tag[1].replace("#", " "), text).strip()
    return (category.casefold(), text, tags, context[1].strip() if context else "") if text else None


def _link_key(target: str) -> str:
    return name_key(target.removesuffix(".md"))


def _without_empty_sections(body: Sequence[str], title: str) -> str:
    """Return the body without the title that repeats the note's name and without headings with nothing below them."""
    lines: list[str] = []
    for line in (*body, "# "):
        heading = _HEADING.match(line)
        while heading and lines:
            above = _HEADING.match(lines[-1])
            if lines[-1].strip() and not (above and len(above[1]) >= len(heading[1])):
                break
            lines.pop()
        if heading and lines:
            lines.append("")
        if not (heading and name_key(heading[2]) == name_key(title)):
            lines.append(line)
    return "\n".join(lines[:-1]).strip()
