"""The notes that point at a note: facts that cite its turns, notes that link to it, and its predecessors and
successors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from quaid.index import documents
from quaid.index.documents import Document
from quaid.index.port import IndexConnection
from quaid.model import name_key, note_name

ASSISTANT = "Assistant"
"""The speaker of what an agent said, where it has no name of its own."""
MAX_STEPS = 20
"""The length to which a chain of replaced facts is followed."""


@dataclass(frozen=True, slots=True)
class Related:
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
    rows = connection.execute("SELECT DISTINCT episode, turn FROM citations WHERE doc_id = ? ORDER BY 1, 2", (doc_id,))
    return [(str(episode), int(turn)) for episode, turn in rows]


def all_citations(connection: IndexConnection) -> dict[int, set[tuple[str, int]]]:
    """Return (episode's note name, turn) of every turn that each document cites, by doc_id."""
    cited: dict[int, set[tuple[str, int]]] = {}
    for doc_id, episode, turn in connection.execute("SELECT doc_id, episode, turn FROM citations"):
        cited.setdefault(doc_id, set()).add((episode, turn))
    return cited


def turns_of_people(connection: IndexConnection) -> set[tuple[str, int]]:
    """Return (episode's note name, turn) of every turn that somebody else than the assistant has said."""
    rows = connection.execute(
        "SELECT DISTINCT path, turn FROM chunks JOIN documents USING (doc_id) "
        "WHERE kind = 'episode' AND turn IS NOT NULL AND coalesce(chunks.speaker, '') <> ?",
        (ASSISTANT,),
    )
    return {(note_name(path), turn) for path, turn in rows}


def find_episode(connection: IndexConnection, name: str) -> Document | None:
    """Return the episode whose note is called `name`."""
    found = documents.find_documents(
        connection,
        "kind = 'episode' AND doc_id IN (SELECT doc_id FROM names WHERE name_key = ? AND position = 0)",
        (name_key(name),),
    )
    return found[0] if found else None


def find_session(connection: IndexConnection, session: str) -> Document | None:
    """Return the episode that keeps `session`."""
    found = documents.find_documents(connection, "kind = 'episode' AND session = ?", (session,))
    return found[0] if found else None


def count_turns(connection: IndexConnection, doc_id: int) -> int:
    row = connection.execute("SELECT count(DISTINCT turn) FROM chunks WHERE doc_id = ?", (doc_id,)).fetchone()
    return int(row[0]) if row else 0


def turn_at(connection: IndexConnection, doc_id: int, turn: int) -> tuple[str | None, str | None, str] | None:
    """Return (speaker, when it was said, text) of one turn; None for one that is forgotten or never was."""
    rows: list[Any] = connection.execute(
        "SELECT speaker, said_at, text FROM chunks WHERE doc_id = ? AND turn = ? ORDER BY ordinal", (doc_id, turn)
    ).fetchall()
    return (rows[0][0], rows[0][1], "\n\n".join(str(row[2]) for row in rows)) if rows else None


def turns_beside(connection: IndexConnection, doc_id: int, turn: int) -> tuple[int | None, int | None]:
    """Return the numbers of the turns before and after, whatever is missing between."""
    row = connection.execute(
        "SELECT (SELECT max(turn) FROM chunks WHERE doc_id = ?1 AND turn < ?2), "
        "(SELECT min(turn) FROM chunks WHERE doc_id = ?1 AND turn > ?2)",
        (doc_id, turn),
    ).fetchone()
    return (row[0], row[1]) if row else (None, None)


def facts_from(connection: IndexConnection, episode: Document, turn: int | None = None) -> list[Related]:
    """Return facts that cite the episode (or this turn of it); of the whole episode also those that name its
    session.
    """
    key = name_key(PurePosixPath(episode.path).stem)
    cites = "doc_id IN (SELECT doc_id FROM citations WHERE lower(episode) = ?1 AND (?2 IS NULL OR turn = ?2))"
    session = episode.session if turn is None else None
    return _related(connection, f"kind = 'fact' AND ({cites} OR session = ?3)", (key, turn, session))


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
        f"doc_id IN ({linking}) AND doc_id <> ?2 AND ({leads.format('?3')} OR NOT {leads.format('?4')})",
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
    return [str(row[0]) for row in rows]


def list_paths(connection: IndexConnection, paths: Iterable[str]) -> list[tuple[int, str]]:
    """Return (doc_id, path) of those of `paths` that are in the index."""
    rows = connection.execute(
        "SELECT doc_id, path FROM documents WHERE path IN (SELECT value FROM json_each(?)) ORDER BY path",
        (json.dumps(list(paths)),),
    )
    return [(int(row[0]), str(row[1])) for row in rows]


def replaced_by(connection: IndexConnection, document: Document) -> list[Related]:
    """Return what took the document's place, then what took the place of that."""
    found: list[Document] = []
    for _ in range(MAX_STEPS):
        newest = found[-1] if found else document
        later = documents.find_by_reference(connection, newest.superseded_by) if newest.superseded_by else []
        if not later or later[0] in found or later[0] == document:
            break
        found.append(later[0])
    return _in_order(connection, found)


def replaces(connection: IndexConnection, document: Document) -> list[Related]:
    """Return what the document took the place of, then what those had replaced."""
    found: list[Document] = []
    newest = [document]
    for _ in range(MAX_STEPS):
        names = [
            name for later in newest for name in (later.id, later.path, later.path[:-3], PurePosixPath(later.path).stem)
        ]
        before = documents.find_documents(
            connection, "superseded_by IN (SELECT value FROM json_each(?))", (json.dumps(names),)
        )
        newest = [earlier for earlier in before if earlier not in found and earlier != document]
        if not newest:
            break
        found += newest
    return _in_order(connection, found)


def _in_order(connection: IndexConnection, found: Sequence[Document]) -> list[Related]:
    doc_ids = json.dumps([document.doc_id for document in found])
    among = "doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))"
    related = {one.path: one for one in _related(connection, among, (doc_ids,))}
    return [related[document.path] for document in found]


def _related(connection: IndexConnection, where: str, values: Iterable[Any]) -> list[Related]:
    rows = connection.execute(
        "SELECT id, path, kind, coalesce((SELECT text FROM chunks c WHERE c.doc_id = d.doc_id AND d.kind = 'fact' "
        f"ORDER BY ordinal LIMIT 1), title), superseded_by IS NOT NULL FROM documents d WHERE {where}",
        tuple(values),
    )
    return sorted((Related(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows), key=lambda one: one.path)
