"""A reference, as a person or an agent types it -> the notes that it may mean.

Every command that takes a reference asks here: `get`, `forget`, `why`, `edit`, `history`, and the tools of MCP.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from quaid.errors import AmbiguousReferenceError, NoteNotFoundError
from quaid.index import documents
from quaid.index.documents import IDS, NAMES, Document
from quaid.index.known import find_entities, read_known
from quaid.index.port import IndexConnection
from quaid.index.reading import Reading, Steps, query
from quaid.model import Edge, Kind, name_key, note_name, without_ending
from quaid.text.endings import tell_days
from quaid.text.invisible import whole
from quaid.text.quoting import shorten
from quaid.text.zones import local_now

_MAX_ID_LENGTH = 200
"""Longer references are sentences; SQLite would refuse them as a pattern."""
_MIN_ID_PART = 4
_LINK = re.compile(r"!?\[\[(?P<target>[^\[\]]+)\]\]|\[[^\[\]]*\]\((?P<path>[^()]+)\)")
_SHOWN_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]+)\]\]")
_TURN = re.compile(r"\^?t(\d{1,9})")
_MAX_SHOWN = 80
"""Characters of a note's text in a list to choose from."""


class Target(NamedTuple):
    """The target of a reference: a whole note, one turn, or the section under `heading` (`^id` names a block)."""

    document: Document
    turn: int | None = None
    heading: str = ""


@Reading
def has_reference(references: Sequence[str]) -> Steps[bool]:
    """Return whether one of `references` is the id, path, session, file name, title or alias of any document."""
    keys = [name_key(without_ending(name)) for name in references]
    given, among = "SELECT 1 FROM documents WHERE", "IN (SELECT value FROM json_each(:named))"
    wanted = [f"{given} {column} {among}" for column in ("id", "path", "session")]
    wanted.append("SELECT 1 FROM names WHERE name_key IN (SELECT value FROM json_each(:keys))")
    values = {"named": json.dumps(references), "keys": json.dumps(keys)}
    rows = yield query(f"SELECT 1 FROM ({' UNION ALL '.join(wanted)} LIMIT 1) asked", values)
    return bool(rows)


def resolve(connection: IndexConnection, reference: str) -> list[Target]:
    """Return the possible targets of `reference`, by path: several if it is ambiguous, none if nothing fits.

    It is an id or a part of one, a path with or without `.md`, a name, title or alias in any case, the exact text of a
    fact, each also as a link (`[[Note#Heading|shown]]`) and with a turn (`#t3`) or a heading behind it.
    """
    note = text = target_of(whole(reference))
    part, end = "", len(text)
    # What names a note exactly goes before what only resembles it.
    ways = (documents.find_by_identity, _by_path, _by_name, _by_part_of_id, _by_statement, _by_first_heading)
    while not (found := next(filter(None, (find(connection, note) for find in ways if note)), None)):
        # The longest note first: a name may contain `#`.
        if (end := text.rfind("#", 0, end)) <= 0:
            return []
        note, part = text[:end].rstrip(), text[end + 1 :].rpartition("#")[2].strip()
    turn = _TURN.fullmatch(part)
    return [Target(each, int(turn[1])) if turn else Target(each, heading=part) for each in found]


def resolve_one(connection: IndexConnection, reference: str) -> Target:
    """Return the only target of `reference`.

    Raises:
        NoteNotFoundError, AmbiguousReferenceError
    """
    found = resolve(connection, reference)
    if not found:
        raise NoteNotFoundError(reference)
    if len(found) == 1:
        return found[0]
    choices = []  # each as (reference, text); the reference names this note alone
    for document, turn, heading in found:
        text = documents.text_of(connection, document.doc_id) if document.kind == Kind.FACT else document.title
        shown = shorten(" ".join(text.split()), _MAX_SHOWN)
        # An id may be used twice; then the path tells them apart.
        is_unique = len(documents.find_by_identity(connection, document.id)) == 1
        name, part = document.id if is_unique else document.path, heading if turn is None else f"t{turn}"
        choices.append((f"{name}#{part}" if part else name, f"{document.type or document.kind}: {shown}"))
    raise AmbiguousReferenceError(reference, choices)


def target_of(reference: str) -> str:
    """Return the target of a link, `Note#Heading` of `[[Note#Heading|shown]]`; what is not a link as it is."""
    text = reference.strip()
    link = _LINK.fullmatch(text)
    if link is None:
        return text
    if link["path"]:
        from urllib.parse import unquote

        return unquote(link["path"].strip("<>"))
    return link["target"].partition("|")[0].rstrip("\\").strip()


def _by_path(connection: IndexConnection, text: str) -> list[Document]:
    """Return notes by path in any case, with or without its ending, or by the end of it, as links give it."""
    given = text.replace("\\", "/").removeprefix("./").strip("/")
    forms = (given, without_ending(given))  # `x.md` names x.md.md too
    keys = {name_key(form) for form in forms}
    called = documents.list_called(connection, [form.rpartition("/")[2] for form in forms])
    paths = {each: name_key(without_ending(each)) for each in called}
    matching = [each for each in called if paths[each] in keys]
    matching = [each for each in matching if without_ending(each) in forms] or matching
    matching = matching or [each for each in called for key in keys if "/" in key and paths[each].endswith(f"/{key}")]
    return documents.find_documents(connection, f"path IN {NAMES}", (json.dumps(matching),))


def _by_name(connection: IndexConnection, text: str) -> list[Document]:
    """Return the notes that are called so: the file name goes before an alias or a title, as it does in a link."""
    name = without_ending(text)
    found = documents.find_by_name(connection, name)
    by_file = [each for each in found if name_key(note_name(each.path)) == name_key(name)]
    return [each for each in by_file if note_name(each.path) == name] or by_file or found


def _by_part_of_id(connection: IndexConnection, text: str) -> list[Document]:
    if not _MIN_ID_PART <= len(text) <= _MAX_ID_LENGTH:
        return []
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return documents.find_documents(
        connection,
        "id <> path AND (lower(id) LIKE ? ESCAPE '\\' OR lower(id) LIKE ? ESCAPE '\\')",
        (f"{escaped}%", f"%{escaped}"),
    )


def find_survivor(connection: IndexConnection, document: Document, *merged: int) -> Document | None:
    """Return the fact that `document` was merged into, itself if it was not; None if that no longer holds. `merged` are
    the documents that led to this one.
    """
    if document.valid_until is not None and (merged or document.superseded_by is not None):
        return None
    if document.superseded_by is None or document.doc_id in merged:
        return document if document.superseded_by is None else None
    for each in documents.find_by_reference(connection, document.superseded_by):
        if each.kind == "fact" and each.owner == document.owner:
            return find_survivor(connection, each, *merged, document.doc_id)
    return None


def _by_statement(connection: IndexConnection, text: str) -> list[Document]:
    """Return the facts that say exactly this; case, white space and a final full stop make no difference."""
    wanted = name_key(_SHOWN_LINK.sub(r"\1", text)).rstrip(".")
    rows = connection.execute(
        "SELECT d.doc_id, c.text FROM documents d JOIN chunks c USING (doc_id) WHERE c.ordinal = 0 AND d.kind = 'fact'"
    )
    doc_ids = [doc_id for doc_id, statement in rows if name_key(statement).rstrip(".") == wanted]
    found = documents.find_documents(connection, f"doc_id IN {IDS}", (json.dumps(doc_ids),))
    return [each for each in found if each.superseded_by is None] or found


def _by_first_heading(connection: IndexConnection, text: str) -> list[Document]:
    """Return the notes that begin with this heading: what is their title where files are named by a number."""
    wanted = name_key(text)
    doc_ids = []
    for doc_id, title, context in connection.execute(
        "SELECT d.doc_id, d.title, c.context FROM documents d JOIN chunks c USING (doc_id) "
        "WHERE c.ordinal = 0 AND d.kind NOT IN ('fact', 'entity', 'episode')"
    ):
        headings = name_key(context).removeprefix(f"{name_key(title)} > ")
        if wanted in accumulate(headings.split(" > "), "{} > {}".format):  # ` > ` may be part of the first heading
            doc_ids.append(doc_id)
    return documents.find_documents(connection, f"doc_id IN {IDS}", (json.dumps(doc_ids),))


MAX_STEPS = 20
"""The length to which a chain of replaced facts is followed."""


class Related(NamedTuple):
    """Another note, in one line: what a fact says, of any other note its title. `replaced` says that a later fact took
    its place.
    """

    id: str
    path: str
    kind: str
    text: str
    replaced: bool = False


def list_citations(connection: IndexConnection, doc_id: int) -> list[tuple[str, int]]:
    """Return (episode's note name, turn) of every turn the document cites, found or not, in order."""
    wanted = "SELECT DISTINCT episode, turn FROM citations WHERE doc_id = ? ORDER BY 1, 2"
    return connection.execute(wanted, (doc_id,)).fetchall()


def find_episode(connection: IndexConnection, name: str) -> Document | None:
    """Return the episode whose note is called `name`."""
    wanted = "kind = 'episode' AND doc_id IN (SELECT doc_id FROM names WHERE name_key = ? AND position = 0)"
    return next(iter(documents.find_documents(connection, wanted, (name_key(name),))), None)


def facts_from(connection: IndexConnection, episode: Document, turn: int | None = None) -> list[Related]:
    """Return facts that cite the episode (or this turn of it); of the whole episode also those that name its
    session.
    """
    key = name_key(note_name(episode.path))
    cites = "d.doc_id IN (SELECT doc_id FROM citations WHERE lower(episode) = ?1 AND (turn = ?2 OR ?2 IS NULL))"
    session = episode.session if turn is None else None
    return _related(connection, f"d.kind = 'fact' AND ({cites} OR d.session = ?3)", (key, turn, session))


def links_to(connection: IndexConnection, document: Document) -> list[Related]:
    """Return notes that link to the document by any of its names or its id, or have an edge with it (if it is an
    entity). Of several notes of one name, a folder in a link decides.
    """
    rows = connection.execute("SELECT name_key FROM names WHERE doc_id = ?", (document.doc_id,)).fetchall()
    keys = json.dumps([*(row[0] for row in rows), name_key(document.id)])
    wanted = "(SELECT value FROM json_each(?1))"
    linking = f"SELECT doc_id FROM links WHERE target_key IN {wanted}"
    if document.kind == "entity":
        linking += (
            f" UNION SELECT doc_id FROM edges WHERE subject_key IN {wanted}"
            f" UNION SELECT doc_id FROM edges WHERE object_key IN {wanted}"
        )
    others = [path for path in documents.list_called(connection, [note_name(document.path)]) if path != document.path]
    ends = set(_list_ends(document.path)) - {_list_ends(path)[0] for path in others}
    theirs = {end for path in others for end in _list_ends(path)} - ends
    leads = (
        "EXISTS (SELECT 1 FROM links l WHERE l.doc_id = d.doc_id AND target_key IN (SELECT value FROM json_each({})))"
    )
    return _related(
        connection,
        f"d.doc_id IN ({linking}) AND d.doc_id <> ?2 AND ({leads.format('?3')} OR NOT {leads.format('?4')})",
        (keys, document.doc_id, json.dumps(sorted(ends)), json.dumps(sorted(theirs))),
    )


def _list_ends(path: str) -> list[str]:
    """Return how a link with a folder may give the path of a note, as it is compared: all of it first."""
    parts = name_key(path.removesuffix(".md")).split("/")
    return ["/".join(parts[start:]) for start in range(len(parts) - 1)] + [f"/{'/'.join(parts)}"]


def list_linking(connection: IndexConnection, name: str) -> list[str]:
    """Return the paths of the notes that link to, or cite, the note called `name`, whether or not it is there."""
    rows = connection.execute(
        "SELECT path FROM documents WHERE doc_id IN (SELECT doc_id FROM links WHERE target_key = ?1 "
        "UNION SELECT doc_id FROM citations WHERE lower(episode) = ?1) ORDER BY path",
        (name_key(name),),
    )
    return [path for (path,) in rows]


def replaced_by(connection: IndexConnection, document: Document) -> list[Related]:
    """Return what took the document's place, then what took the place of that."""
    found: list[Document] = []
    newest = document
    while newest.superseded_by and len(found) < MAX_STEPS:
        later = documents.find_by_reference(connection, newest.superseded_by)
        if not later or later[0] in found or later[0] == document:
            break
        found.append(newest := later[0])
    return _in_order(connection, found)


def replaces(connection: IndexConnection, document: Document) -> list[Related]:
    """Return what the document took the place of, then what those had replaced."""
    found: list[Document] = []
    newest = [document]
    for _ in range(MAX_STEPS):
        names = [name for later in newest for name in (later.id, later.path, later.path[:-3], note_name(later.path))]
        before = documents.find_documents(connection, f"superseded_by IN {NAMES}", (json.dumps(names),))
        newest = [earlier for earlier in before if earlier not in found and earlier != document]
        if not newest:
            break
        found += newest
    return _in_order(connection, found)


def _in_order(connection: IndexConnection, found: Sequence[Document]) -> list[Related]:
    doc_ids = json.dumps([document.doc_id for document in found])
    related = {one.path: one for one in _related(connection, f"d.doc_id IN {IDS}", (doc_ids,))}
    return [related[document.path] for document in found]


def _related(connection: IndexConnection, where: str, values: Sequence[Any]) -> list[Related]:
    return [
        Related(
            each.id,
            each.path,
            each.kind,
            each.text if each.kind == Kind.FACT and each.text is not None else each.title,
            each.superseded_by is not None,
        )
        for each in documents.find_documents(connection, where, values, with_text=True)
    ]


@dataclass(frozen=True, slots=True)
class NoteView:
    """One note, or the part of it that was asked for: a turn of an episode, or the section under `heading`.

    `text` is without markup. `source` are the bytes of the file, or of that part. Of an entity, `edges` are all that
    are true now, and `known` are the facts about it that are, newest first.
    """

    document: Document
    text: str
    edges: tuple[Edge, ...] = ()
    turn: int | None = None
    heading: str = ""
    source: bytes = b""
    known: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        """What means just this note, or this turn of it."""
        return self.document.id if self.turn is None else f"{self.document.id}#t{self.turn}"

    @property
    def markdown(self) -> str:
        """The note as it is written, head included."""
        return self.source.decode("utf-8", "replace")


def view_note(index: IndexConnection, reference: str, timezone: str) -> NoteView:
    """Return the note, or the turn, that `reference` names, as known today in the zone `timezone`.

    Raises:
        NoteNotFoundError, AmbiguousReferenceError
    """
    try:
        document, turn, heading = resolve_one(index, reference)
    except NoteNotFoundError:
        if not (called := find_entities(index, reference)):
            raise
        document, turn, heading = Target(called[0])
    text = documents.text_of(index, document.doc_id, turn)
    if turn is not None and not text:
        raise NoteNotFoundError(reference)
    if document.kind == Kind.ENTITY and not heading:
        known = read_known(index, document.path, local_now(timezone).date().isoformat())
        facts = tuple(" ".join([each.text, *(f"({day})" for day in tell_days(each))]) for each in known.facts)
        return NoteView(document, text, known.edges, known=facts)
    edges = documents.fetch_edges(index, [document.doc_id]).get(document.doc_id, [])
    return NoteView(document, text, tuple(Edge(*edge) for edge in edges), turn, heading)
