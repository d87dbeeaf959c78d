"""Entities and the edges between them, kept as written and joined by name when asked."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import apsw

from quaid.model import Kind, Note, name_key


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One hop: the edge that was walked and the document that says it."""

    doc_id: int
    subject: str
    relation: str
    object: str
    from_key: str
    to_key: str


def insert(connection: apsw.Connection, doc_id: int, note: Note) -> None:
    """The names, edges, links and citations of one document."""
    connection.executemany(
        "INSERT INTO names VALUES (?,?,?,?)",
        [(name_key(name), doc_id, position, name) for position, name in enumerate(note.names)],
    )
    connection.executemany(
        "INSERT INTO edges VALUES (?,?,?,?,?,?)",
        [(doc_id, name_key(e.subject), e.relation, name_key(e.object), e.subject, e.object) for e in note.edges],
    )
    connection.executemany(
        "INSERT INTO links VALUES (?,?)", [(doc_id, name_key(target.rsplit("/", 1)[-1])) for target in note.links]
    )
    connection.executemany(
        "INSERT INTO citations VALUES (?,?,?)", [(doc_id, c.episode, c.turn) for c in note.citations]
    )


def find_entities(connection: apsw.Connection, keys: Collection[str]) -> dict[str, set[str]]:
    """Which of `keys` name an entity, and all keys that mean the same one: key -> {canonical and alias keys}.

    An entity is a note in entities/ or anything that stands at an end of an edge.
    """
    wanted = json.dumps(list(keys))
    found: dict[str, set[str]] = {}
    for key, doc_id in connection.execute(
        "SELECT name_key, doc_id FROM names JOIN documents USING (doc_id) "
        "WHERE name_key IN (SELECT value FROM json_each(?)) AND kind = ?",
        (wanted, str(Kind.ENTITY)),
    ).fetchall():
        same = {str(row[0]) for row in connection.execute("SELECT name_key FROM names WHERE doc_id = ?", (doc_id,))}
        found.setdefault(str(key), set()).update(same)
    for column in ("subject_key", "object_key"):
        for (key,) in connection.execute(
            f"SELECT DISTINCT {column} FROM edges WHERE {column} IN (SELECT value FROM json_each(?))", (wanted,)
        ):
            found.setdefault(str(key), {str(key)})
    return found


def neighbours(connection: apsw.Connection, keys: Collection[str], limit: int = 200) -> list[Neighbour]:
    """Edges that touch any of `keys`, in both directions."""
    wanted = json.dumps(list(keys))
    rows = connection.execute(
        "SELECT doc_id, subject, relation, object, subject_key, object_key FROM edges "
        "WHERE subject_key IN (SELECT value FROM json_each(?1)) "
        "UNION ALL "
        "SELECT doc_id, subject, relation, object, object_key, subject_key FROM edges "
        "WHERE object_key IN (SELECT value FROM json_each(?1)) LIMIT ?2",
        (wanted, limit),
    )
    return [Neighbour(*row) for row in rows]


def documents_about(connection: apsw.Connection, keys: Collection[str], limit: int = 200) -> list[int]:
    """Documents that are, link to or have an edge with one of the named things; entity notes first."""
    wanted = json.dumps(list(keys))
    rows = connection.execute(
        "SELECT doc_id FROM names JOIN documents USING (doc_id) "
        "WHERE kind = 'entity' AND name_key IN (SELECT value FROM json_each(?1)) "
        "UNION SELECT doc_id FROM links WHERE target_key IN (SELECT value FROM json_each(?1)) "
        "UNION SELECT doc_id FROM edges WHERE subject_key IN (SELECT value FROM json_each(?1)) "
        "UNION SELECT doc_id FROM edges WHERE object_key IN (SELECT value FROM json_each(?1)) LIMIT ?2",
        (wanted, limit),
    )
    return [int(row[0]) for row in rows]


def entity_names(connection: apsw.Connection) -> list[tuple[str, str]]:
    """(written name or alias, file name of its note) of all entity notes."""
    rows = connection.execute(
        "SELECT n.name, first.name FROM names n JOIN names first ON first.doc_id = n.doc_id AND first.position = 0 "
        "JOIN documents d ON d.doc_id = n.doc_id WHERE d.kind = 'entity' ORDER BY n.position, n.name"
    )
    return [(str(row[0]), str(row[1])) for row in rows]


def cited_turns(connection: apsw.Connection, doc_ids: Sequence[int]) -> list[tuple[int, int]]:
    """(citing document, chunk of the turn it cites)."""
    rows = connection.execute(
        "SELECT c.doc_id, ch.chunk_id FROM citations c "
        "JOIN names n ON n.name_key = lower(c.episode) AND n.position = 0 "
        "JOIN chunks ch ON ch.doc_id = n.doc_id AND ch.turn = c.turn "
        "WHERE c.doc_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(doc_ids)),),
    )
    return [(int(row[0]), int(row[1])) for row in rows]


def counts(connection: apsw.Connection) -> dict[str, int]:
    """Numbers for `quaid stats`: entities (named by a note or an edge), edges, relations."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM (SELECT subject_key FROM edges UNION SELECT object_key FROM edges "
        "UNION SELECT name_key FROM names JOIN documents USING (doc_id) WHERE kind = 'entity' AND position = 0)),"
        "(SELECT count(*) FROM (SELECT DISTINCT subject_key, relation, object_key FROM edges)),"
        "(SELECT count(DISTINCT relation) FROM edges)"
    ).fetchone()
    assert row is not None
    return {"entities": int(row[0]), "edges": int(row[1]), "relations": int(row[2])}
