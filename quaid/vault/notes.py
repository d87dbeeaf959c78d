"""Bytes of a file -> Note, and new notes -> text.

Parsing never fails. A value that cannot be understood becomes a sentence in `Note.problems`, and the note stays
searchable as plain text.
"""

import hashlib
import json
import math
import re
import tomllib
import unicodedata
from calendar import month_name
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from quaid.model import CONFLICT_PROBLEM, Chunk, Edge, Kind, Note, name_key, note_name
from quaid.redaction import admit
from quaid.text.dates import find_day_in_name, read_date, read_period
from quaid.text.words import is_whole_word
from quaid.vault import agent_notes, episodes, files, frontmatter, layout, markdown
from quaid.vault.frontmatter import Head
from quaid.vault.layout import Layout

MEGABYTE = 1_000_000
NOT_MADE = "it is in a folder of Quaid's, but Quaid did not make it: it is read as your own note"
_CREATED = ("created", "date", "created_at", "createdat", "date created", "creation date")
"""The keys of the date of an own note, in any case."""
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}
_MAX_NUMBER = 10**9
"""The largest number in a head: SQLite's whole numbers end at 2**63."""


@dataclass(frozen=True)
class StoredNote:
    """The note at `rel_path` as it is on disk. An owner's own note (`is_own`) is never edited."""

    rel_path: str
    data: bytes
    is_own: bool = False

    @property
    def name(self) -> str:
        """The file name, which links use."""
        return note_name(self.rel_path)

    @property
    def id(self) -> str:
        return str(self.head.fields.get("id") or self.rel_path)

    @cached_property
    def head(self) -> frontmatter.Head:
        return frontmatter.parse(self.data.decode("utf-8", errors="replace"))

    @property
    def hash(self) -> str:
        return content_hash(self.data)

    @cached_property
    def shown(self) -> str:
        """Its text as an agent may see it: without secrets, and without the mark that an agent wrote it."""
        return admit(agent_notes.without_mark(decode(self.data, len(self.data) + 1)[0]), keep_lines=True).text


def content_hash(data: bytes) -> str:
    """SHA-256 of the file's bytes, hex."""
    return hashlib.sha256(data).hexdigest()


def text_hash(text: str) -> str:
    """SHA-256 of what a fact says, to the letter: whether other words say the same is for `claims` to decide."""
    return content_hash(text.encode("utf-8", "surrogatepass"))


def parse_note(rel_path: str, data: bytes, max_bytes: int = 2 * MEGABYTE, place: Layout = layout.DEFAULT) -> Note:
    """Read one file of the vault. `max_bytes` bounds how much of a very long note is searched.

    The head of a note that Quaid did not make means nothing to Quaid: such a note is its path, its words, its names
    and its properties.
    """
    text, problems = decode(data, max_bytes)
    head = frontmatter.parse(text)
    kind = place.kind_of(rel_path, head.fields)
    conflict = kind is not Kind.EPISODE and markdown.has_conflict_markers(text)
    if problems or conflict:
        head = replace(head, problems=(*problems, *head.problems, *([CONFLICT_PROBLEM] * conflict)))
    is_own = kind not in _WITH_HEAD and (not place.is_managed or layout.is_agents(head.fields))
    return _make_note(rel_path, data, kind, text, head, place, is_own=is_own)


def parse_fact(rel_path: str, data: bytes) -> Note:
    """Read a note that is known to be a fact."""
    text, problems = decode(data, 2 * MEGABYTE)
    head = frontmatter.parse(text)
    head = replace(head, problems=(*problems, *head.problems))
    return _make_note(rel_path, data, Kind.FACT, text, head, layout.DEFAULT, is_own=False)


def is_sound(head: Head) -> bool:
    """Return True for a YAML head without any doubt about what belongs to it."""
    return bool(head.fields) and not head.problems and not head.body.startswith("---")


def _make_note(rel_path: str, data: bytes, kind: Kind, text: str, head: Head, place: Layout, *, is_own: bool) -> Note:
    is_doubtless = is_sound(head)
    if is_own and (not head.fields or head.body.startswith("---")):
        other = parse_other_head(head.body)
        head = Head({**other.fields, **head.fields}, other.body, (*head.problems, *other.problems))
    body = head.body
    reader = _Fields(head.fields, any_case=is_own)
    made = _Fields({}) if is_own else reader
    path = PurePosixPath(rel_path)
    stem, folder = path.stem, str(path.parent)
    names = tuple(dict.fromkeys([stem, *reader.list("aliases"), *(reader.list("alias") if is_own else ())]))
    is_tools = place.is_tools_note(rel_path)
    shaped, chunks = _shape(kind, body, names, reader, is_own=is_own, is_tools=is_tools)
    owner, privacy = read_ownership(text, head.fields, is_sound=is_doubtless)
    edges = markdown.edges(body, stem if kind is Kind.ENTITY else None)
    properties: tuple[Edge, ...] = ()
    created = (reader.date(key) for key in (_CREATED if is_own else ("created", "started")))
    is_misplaced = is_own and kind is Kind.NOTE and place.folder_kind(rel_path) is not None
    if is_own and kind is Kind.NOTE:
        properties = tuple(islice(property_edges(head.fields, stem), MAX_EDGES))
    return Note(
        rel_path=rel_path,
        content_hash=content_hash(data),
        kind=kind,
        id=made.text("id") or rel_path,
        title=reader.text("title") or reader.text("label") or stem,
        text=shaped,
        text_hash=text_hash(shaped) if kind is Kind.FACT else None,
        chunks=chunks,
        type=made.text("type"),
        status=made.text("status") or ("active" if kind is Kind.FACT else None),
        # Who else's it is counts only where it is private: `owner` alone is a property like any other.
        owner=owner if owner and (privacy == "private" or not is_own) else "default",
        privacy=(privacy if not is_own else "") or "private",
        confidence=made.number("confidence"),
        durability=made.text("durability"),
        speaker=made.text("speaker"),
        source="assistant" if is_own and layout.is_agents(head.fields) else made.text("source"),
        session=made.text("session"),
        project=made.text("project") or place.project_of(rel_path),
        technical=made.flag("technical"),
        pinned=(not is_own or kind is Kind.CORE) and reader.flag("pinned"),
        verified=(not is_own or kind is Kind.CORE) and reader.flag("verified"),
        confirmations=made.count("confirmations"),
        created=next(filter(None, created), None) or (find_day_in_name(stem) if is_own else None),
        valid_from=made.date("valid_from", is_period=True),
        valid_until=made.date("valid_until", is_period=True),
        superseded_by=markdown.link_target((made.text("superseded_by") or "").strip("[]")) or None,
        names=names,
        keywords=tuple(reader.list("keywords")),
        tags=tuple(dict.fromkeys(map(name_key, markdown.tags(reader.list("tags"), body)))),
        edges=tuple(dict.fromkeys((*edges, *properties))),
        links=tuple(dict.fromkeys((*markdown.links(body, folder), *(edge.object for edge in properties)))),
        citations=tuple(markdown.citations([*made.list("turns"), body])),
        pending=tuple(read_pending(reader, body)) if kind is Kind.REVIEW else (),
        problems=tuple(dict.fromkeys((*head.problems, *reader.problems, *([NOT_MADE] * is_misplaced)))),
    )


_ANSWERED_NO = re.compile(r"^[ \t]*[-*+][ \t]+\[[xX]\][ \t]+No\b", re.MULTILINE)
_MAX_REASON = 120


def read_pending(fields: "_Fields", body: str) -> Iterator[Edge]:
    """Yield the facts that a *yes* to a question would replace or reject: old, why, successor. After a *no*, none."""
    if _ANSWERED_NO.search(body):
        return
    successor = markdown.link_target((fields.text("with") or "").strip("[]")) or ""
    paragraphs = (part.strip() for part in re.split(r"\n\s*\n", body))
    reason = markdown.plain(next((part for part in paragraphs if part and not part.startswith("# ")), ""))
    for reference in fields.list("replaces"):
        if old := markdown.link_target(reference.strip("[]")):
            yield Edge(old, reason[:_MAX_REASON], successor)


def render_fact(fields: Mapping[str, frontmatter.Value | None], text: str, edges: Sequence[Edge] = ()) -> str:
    """A fact note: head, what is true, then its edges as a list."""
    listed = "".join(f"{edge_line(edge)}\n" for edge in edges)
    return f"{frontmatter.render(fields)}{text}\n" + (f"\n{listed}" if listed else "")


def render_entity(fields: Mapping[str, frontmatter.Value | None], edges: Sequence[Edge] = ()) -> str:
    """An entity note: head, then its edges with the subject left out."""
    return frontmatter.render(fields) + "".join(f"{edge_line(edge, own=True)}\n" for edge in edges)


def edge_line(edge: Edge, *, own: bool = False) -> str:
    subject = "" if own else f"{_link(edge.subject)} "
    return f"- {subject}{edge.relation} {_link(edge.object)}"


def newline_of(text: str) -> str:
    """Return CRLF if `text` has one, else LF."""
    return "\r\n" if "\r\n" in text else "\n"


def append_edge(text: str, edge: Edge, *, own: bool = False) -> str:
    """Return a note with one more edge at its end, in the note's newline style, and set off from a paragraph above it,
    of which it would become a part.
    """
    newline, lines, line = newline_of(text), text.rstrip().splitlines(), edge_line(edge, own=own)
    if lines and not lines[-1].startswith(("- ", "* ", "+ ", "---")):
        text = text.rstrip("\r\n") + newline * 2
    if text.endswith("\n"):
        return f"{text}{line}{newline}"
    return f"{text}{newline}{line}" if text else f"{line}\n"


def split_body(text: str) -> tuple[str, str]:
    """(head with its `---` lines, body); joined they are `text` again."""
    start = frontmatter.body_start(text)
    return text[:start], text[start:]


def parse_time(iso: str | None) -> datetime | None:
    """`2026-11-20T14:30:00+01:00` or `2026-11-20` as a moment with its offset, else in UTC; None for anything else."""
    try:
        moment = datetime.fromisoformat(iso) if iso else None
        if moment is None or moment.tzinfo is None:
            return moment and moment.replace(tzinfo=UTC)
        return moment if moment.astimezone(UTC) else None
    except (ValueError, OverflowError):  # in UTC it may lie before the year 1
        return None


def render_time(moment: datetime) -> str:
    """`2026-11-20T14:30:00+01:00`, with `Z` for UTC: seconds are enough, and Obsidian shows it as a date and time."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def format_day(iso: str) -> str:
    """`2023-05-08T13:56:00Z` -> `8 May 2023`, `2023-05` -> `May 2023`; anything else as it is."""
    match = re.match(r"(\d{4})-(\d\d)(?:-(\d\d)|\Z)", iso)
    if not match or not 1 <= int(match[2]) <= 12:
        return iso
    return f"{int(match[3] or 0) or ''} {month_name[int(match[2])]} {match[1]}".lstrip()


def _link(name: str) -> str:
    note_name = PurePosixPath(layout.entity_path(name)).stem
    return f"[[{name}]]" if note_name == name else f"[[{note_name}|{name.translate(_NO_LINK)}]]"


_NO_LINK = {ord(char): " " for char in "[]|\n\r\\"}


def decode(data: bytes, max_bytes: int) -> tuple[str, tuple[str, ...]]:
    """The text of a file, whatever its bytes, and sentences about what is odd about it."""
    problems: list[str] = []
    if len(data) > max_bytes:
        problems.append(f"only its first {max_bytes / MEGABYTE:g} MB are searchable")
        data = data[:max_bytes]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace").replace("\0", " "), (*problems, "it is UTF-16, not UTF-8")
    zeros = data.count(0)
    if zeros > len(data) // 20:
        return "", (*problems, "it is not text")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        cut = data.decode("utf-8", errors="ignore")
        if problems and len(cut.encode()) > len(data) - 4:  # the limit fell inside a character
            text = cut
        elif zeros:
            return "", (*problems, "it is not text")
        else:
            text = data.decode("cp1252", errors="replace")
            problems.append("it is not UTF-8; read as Windows-1252")
    if zeros:
        problems.append(f"it holds {zeros} NUL bytes")
        text = text.replace("\0", " ")
    return text, tuple(problems)


class _Fields:
    """A head's fields by type; a value of the wrong type is a problem and counts as absent."""

    def __init__(self, fields: Mapping[str, Any], *, any_case: bool = False) -> None:
        self.all = fields
        self._fields = {**{key.casefold(): value for key, value in fields.items()}, **fields} if any_case else fields
        self.problems: list[str] = []

    def text(self, key: str) -> str | None:
        value = self._fields.get(key)
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], (str, list)):
            value = value[0][0] if isinstance(value[0], list) and value[0] else value[0]  # an unquoted [[Link]]
        if value is None or isinstance(value, str):
            return (value or "").strip() or None
        self.problems.append(f"{key} should be one value")
        return None

    def list(self, key: str) -> list[str]:
        value = self._fields.get(key)
        items = list(frontmatter.read_items(value))
        if value is not None and not isinstance(value, (str, list)):
            self.problems.append(f"{key} should be a list")
        if None in items:
            self.problems.append(f"{key} should be a list of words")
        return list(filter(None, items))

    def number(self, key: str) -> float | None:
        value = self.text(key)
        if value is None:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if abs(number) <= _MAX_NUMBER:
            return number
        self.problems.append(f"{key} should be a number, is {value!r}")
        return None

    def count(self, key: str) -> int:
        number = self.number(key) or 0
        if number >= 0 and number == int(number):
            return int(number)
        self.problems.append(f"{key} should be a whole number, is {number:g}")
        return 0

    def flag(self, key: str) -> bool:
        value = (self.text(key) or "false").lower()
        if value not in _TRUE | _FALSE:
            self.problems.append(f"{key} should be true or false, is {value!r}")
        return value in _TRUE

    def date(self, key: str, *, is_period: bool = False) -> str | None:
        value = self.text(key)
        read = partial(read_period, end=key == "valid_until") if is_period else read_date
        if value is None or (day := read(value)):
            return value and day
        self.problems.append(f"{key} should be a date like 2026-11-20, is {value!r}")
        return None


_WITH_HEAD = frozenset({Kind.FACT, Kind.ENTITY, Kind.EPISODE})
"""The kinds whose marks are in the head, so that it is Quaid's."""


def _shape(
    kind: Kind, body: str, names: Sequence[str], fields: _Fields, *, is_own: bool, is_tools: bool
) -> tuple[str, tuple[Chunk, ...]]:
    """Return the text of a fact or an entity, and what of a note is searched."""
    stem, title = names[0], fields.text("title")
    if is_tools:  # it has credentials, and recall shows a hit as it is; `quaid docs search` knows it without them
        return "", (Chunk(0, title or stem, "", " ".join(names[1:])),)
    if kind is Kind.REVIEW:  # a question about a memory is none: a list of unanswered questions would answer them
        return "", ()
    if kind is Kind.FACT:
        text = markdown.plain(markdown.without_edges(body)) or "; ".join(map(_spoken, markdown.edges(body))) or stem
        keywords = " ".join([*fields.list("keywords"), *names[1:]])
        return text, tuple(Chunk(i, piece, "", keywords) for i, piece in enumerate(markdown.split_text(text)))
    if kind is Kind.ENTITY:
        prose = markdown.plain(markdown.without_edges(body))
        known = "; ".join(_spoken(edge) for edge in markdown.edges(body, stem))
        text = ". ".join(filter(None, (prose.removesuffix(".") if known else prose, known))) or stem
        # A name in the text is not repeated: its note would be the best for any question that has the name.
        found = {name: re.finditer(rf"(?i){re.escape(name)}", text) for name in names}
        unsaid = (name for name in names if not any(is_whole_word(text, *each.span()) for each in found[name]))
        context = ", ".join(unsaid)
        return text, tuple(Chunk(i, piece, context) for i, piece in enumerate(markdown.split_text(text)))
    if kind is Kind.EPISODE and (turns := tuple(_cut_turns(body, fields))):
        return "", turns
    title = title or fields.text("label") or stem
    keywords = " ".join([*fields.list("keywords"), *fields.list("tags"), *names[1:]])
    chunks: list[Chunk] = []
    for section in markdown.sections(body):
        context = " > ".join(dict.fromkeys((title, *section.heading)))
        pieces = enumerate(markdown.split_text(section.text), len(chunks))
        chunks += [Chunk(i, piece, context, keywords) for i, piece in pieces]
    chunks = chunks or [Chunk(0, title, "", keywords)]
    if is_own and (properties := describe_properties(fields.all)[: 2 * markdown.CHUNK_CHARS]):
        # Keywords of the opening, each on a line: searched, not embedded.
        chunks[0] = replace(chunks[0], keywords=f"{keywords}\n{properties}")
    return "", tuple(chunks)


def _spoken(edge: Edge) -> str:
    return f"{edge.subject} {edge.relation.replace('_', ' ')} {edge.object}"


def _cut_turns(body: str, fields: _Fields) -> Iterator[Chunk]:
    started, keywords = fields.date("started"), fields.text("title") or ""
    place = 0
    for turn in episodes.parse_turns(body, parse_time(started)):
        said_at = turn.said_at or started
        # "Caroline (8 May 2023)": the best of six forms tried on LoCoMo (docs/explanation/recall.md).
        context = " ".join(filter(None, (turn.speaker, f"({format_day(said_at)})" if said_at else "")))
        for piece in markdown.split_text(turn.text):
            yield Chunk(place, piece, context, "" if place else keywords, turn.number, turn.speaker, said_at)
            place += 1


# -- properties of the owner's own notes ------------------------------------------------------------------------------

MAX_PROPERTIES = 50
MAX_VALUE_CHARS = 300
MAX_EDGES = 100
_MAX_VALUES = 1_000
_MAX_DEPTH = 5
_MAX_KEY_CHARS = 60
_MAX_TEXT_CHARS = 2_000
_NAMING = frozenset({"alias", "aliases", "keywords", "tag", "tags", "title"})
"""Keys that the index has already, as names and keywords."""
_LOOKS = frozenset({"cssclass", "cssclasses", "publish"})
"""Keys that tell Obsidian how to show a note."""
_LINK = re.compile(r"\[\[[^\[\]]+\]\]")
_NOT_WORD = re.compile(r"\W+")


def describe_properties(fields: Mapping[str, Any]) -> str:
    """Return the properties as lines of `key: value, value`, bounded in number and length."""
    found = []
    for key, value in islice(fields.items(), MAX_PROPERTIES):
        values = ", ".join(filter(None, (_plain(text) for text in islice(list_texts(value), _MAX_VALUES))))
        if values and key.casefold() not in _NAMING | _LOOKS:
            found.append(f"{_plain(key)[:_MAX_KEY_CHARS]}: {values[:MAX_VALUE_CHARS]}")
    return "\n".join(found)


def property_edges(fields: Mapping[str, Any], subject: str) -> Iterator[Edge]:
    """Yield an edge from `subject` for each wikilink in a property; the relation is its key."""
    for key, value in islice(fields.items(), MAX_PROPERTIES):
        relation = _NOT_WORD.sub("_", key.casefold()).strip("_")
        if not relation or len(relation) > _MAX_KEY_CHARS or key.casefold() in _NAMING | _LOOKS:
            continue
        for text in islice(list_texts(value), _MAX_VALUES):
            for target in markdown.links(" ".join(_LINK.findall(text))):
                yield Edge(subject, relation, note_name(target))


def list_texts(value: object, depth: int = 0) -> Iterator[str]:
    """The texts in a value; what is nested too deeply is left out."""
    if isinstance(value, str):
        yield value[:_MAX_TEXT_CHARS]
    elif depth >= _MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (f"{key}: {text}" for text in list_texts(item, depth + 1))
    elif isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], list) and all(isinstance(part, str) for part in value[0]):
            yield f"[[{', '.join(value[0])}]]"  # an unquoted [[Link]] is a list of lists to YAML
            return
        for item in value:
            yield from list_texts(item, depth + 1)


def _plain(text: str) -> str:
    return " ".join(markdown.plain(text).split())


# -- heads in TOML and JSON, and Logseq's page properties -------------------------------------------------------------

_TOML = re.compile(r"\+\+\+[ \t]*\r?\n(?P<head>.*?)^\+\+\+[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML_ENTRY = re.compile(r"^(?=[\w\"'\[])", re.MULTILINE)
_MAX_ENTRIES = 2_000
_PROPERTY = re.compile(
    r"(?:- |  )?(?P<key>[^\W\d][\w/-]*)::(?: +|(?=\r?$))(?P<value>[^\r\n]*)\r?(?:\n|\Z)", re.MULTILINE
)
_LIST_KEYS = frozenset({"alias", "aliases", "tags", "keywords"})


def parse_other_head(text: str) -> Head:
    """Return the head of a note that has no YAML one; without fields, and all of `text` as its body, if it has none.
    Never fails: a broken head leaves a problem.
    """
    if toml := _TOML.match(text):
        head, body = toml["head"].replace("\r\n", "\n"), text[toml.end() :]
        try:
            return Head(_as_text(tomllib.loads(f"\n{head}")), body)  # its first line is the second of the note
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            sound, broken = {}, ""
            for entry in _TOML_ENTRY.split(head)[:_MAX_ENTRIES]:
                try:
                    sound.update(tomllib.loads(entry))
                except (tomllib.TOMLDecodeError, RecursionError):
                    broken += entry
            return Head(_as_text(sound), broken + body, (f"the frontmatter is not TOML: {error}",))
    if text.startswith("{"):
        try:
            found, end = json.JSONDecoder().raw_decode(text)
            return Head(_as_text(found), text[end:])
        except (ValueError, RecursionError):
            return Head(body=text)
    late = frontmatter.parse(text.lstrip())
    if late.fields and not late.problems:
        return replace(late, problems=("it has frontmatter that does not begin in the first line",))
    fields: dict[str, Any] = {}
    end = 0
    while line := _PROPERTY.match(text, end):
        key = line["key"]
        value = line["value"].strip()
        fields[key] = [part.strip() for part in value.split(",")] if key.casefold() in _LIST_KEYS else value
        end = line.end()
    return Head(fields, text[end:])


def _as_text(value: Any) -> Any:
    """Return a value of TOML as the YAML head has it: scalars are strings."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date | time) else str(value)


# -- owner and privacy of a note --------------------------------------------------------------------------------------

OPEN = frozenset({"shared", "public"})
"""The words that show a note to everyone."""
_OWNER_KEYS = frozenset({"owner", "owners"})
_PRIVACY_KEYS = frozenset({"privacy", "private", "visibility", "confidential"})
_MARK_KEYS = _OWNER_KEYS | _PRIVACY_KEYS
_DENIED = frozenset({"false", "no", "off", "0"})
"""`private: false` states nothing."""
_MAX_CHARS = 4_000
"""Characters of a note without a sound head that are read line by line."""
_LINE = re.compile(
    r"(?:^|[{,?])[^\w\n{,?]*(?P<key>owners?|privacy|private|visibility|confidential)[^\w\n:=]*(?:::?|=)"
    r"(?P<value>[ \t]*\[[^\]\n]*\]*|[^\n,;{}]*)(?P<more>(?:\n[ \t-][^\n:=]*$)*)",
    re.IGNORECASE | re.MULTILINE,
)
_MAY_BE_PRIVATE = re.compile(r"private|[^\x00-\x7f]", re.IGNORECASE)
_PRIVATE_ITEM = re.compile(r"[-:=,\[][ \t]*[\"'#]*private[\"']*[ \t]*(?:[,\]}]|$)", re.IGNORECASE | re.MULTILINE)


def read_ownership(text: str, fields: Mapping[str, Any], *, is_sound: bool) -> tuple[str, str]:
    """Return the owner and the privacy (one of `OPEN`, or `private`) that a note states, each empty where it does not:
    in the `fields` of its head and, where that is not sound, in the lines of its `text`.

    Several owners become one name that nobody has, so that the note is hidden from all.
    """
    marks = [*_list_owner_marks(fields), *(() if is_sound else _list_owner_lines(text))]
    names: dict[str, None] = {}
    for value in (value for key, value in marks if key in _OWNER_KEYS):
        linked = re.search(r"\[\[([^\[\]]+)\]\]", value)
        name = note_name(markdown.link_target(linked[1])) if linked else value
        names |= dict.fromkeys(filter(None, [name.strip(" \t\"'*_`>-@")]))
    stated = [(key, words) for key, value in marks if key in _PRIVACY_KEYS and (words := _words(value))]
    stated = [(key, words) for key, words in stated if key in {"privacy", "visibility"} or words not in _DENIED]
    opened = {words for key, words in stated if key == "privacy"}
    privacy = "private" if any(words not in OPEN for _, words in stated) or len(opened) > 1 else "".join(opened)
    return ", ".join(names), privacy


def _list_owner_marks(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of the marks in a head, at any depth; the item `private` is a mark under any key."""
    for key, value in fields.items():
        name, is_text = _words(key).replace(" ", ""), isinstance(value, str)
        texts = [value[:_MAX_TEXT_CHARS]] if is_text else [*list_texts(value)]
        if name in _MARK_KEYS:
            yield from ((name, text) for text in texts)
        elif name != "keywords" and any(_MAY_BE_PRIVATE.search(text) and _words(text) == "private" for text in texts):
            yield "private", "private"
        for item in () if is_text else value if isinstance(value, list) else [value]:
            yield from _list_owner_marks(item) if isinstance(item, Mapping) else ()


def _list_owner_lines(text: str) -> Iterator[tuple[str, str]]:
    lines = "\n".join(unicodedata.normalize("NFKC", text[:_MAX_CHARS]).splitlines())
    for found in _LINE.finditer(lines):
        for value in (found["value"].split(" #", 1)[0], *found["more"].split("\n")):
            for part in [value] if "[[" in value else re.split(r"[,\[\]]", value):
                yield found["key"].casefold(), part
                if files.may_state_owner(part.encode("utf-8", "replace")):  # `owner: Bob privacy: private` in one line
                    yield "private", part
    if _PRIVATE_ITEM.search(lines):
        yield "private", "private"


@lru_cache(maxsize=1024)
def _words(value: str) -> str:
    return re.sub(r"[\W_]+", " ", _fold(value)).strip()


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
