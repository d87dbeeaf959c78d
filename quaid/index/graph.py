"""Entities and the edges between them, stored as written and joined by name in queries."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING, Scope
from quaid.model import Edge, Note, name_key, note_name
from quaid.text.words import list_spans


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One hop: the edge that was walked and the document that says it."""

    doc_id: int
    subject: str
    relation: str
    object: str
    from_key: str
    to_key: str


class CalledEntity(NamedTuple):
    """One name of an entity that has a note: `name` is the file's, `name_key` that of any of its names, of which the
    one at `position` 0 is the file's.
    """

    name_key: str
    position: int
    name: str
    path: str
    type: str | None


class StatedEdge(NamedTuple):
    """An edge with the note that states it, of which `text` is the beginning; times are ISO 8601."""

    doc_id: int
    subject_key: str
    relation: str
    object_key: str
    subject: str
    object: str
    id: str
    kind: str
    type: str | None
    text: str
    durability: str | None
    created: str | None
    valid_from: str | None
    valid_until: str | None
    is_replaced: bool


MAX_NAME = 80
"""Characters of a name that is looked for in a text."""
_IS_SPOKEN_OF = (
    "EXISTS (SELECT 1 FROM names called WHERE called.doc_id = d.doc_id AND ("
    "EXISTS (SELECT 1 FROM edges WHERE subject_key = called.name_key) "
    "OR EXISTS (SELECT 1 FROM edges WHERE object_key = called.name_key) "
    "OR EXISTS (SELECT 1 FROM links JOIN documents f ON f.doc_id = links.doc_id AND f.kind = 'fact' "
    "WHERE target_key = called.name_key)))"
)
"""The owner's own note of a thing at an end of an edge, or of the target of a link in a fact."""
_IS_ENTITY = f"(d.kind = 'entity' OR d.kind = 'note' AND {_IS_SPOKEN_OF})"


def insert(connection: IndexConnection, doc_id: int, note: Note) -> None:
    """Insert the names, edges, links and citations of one document. Its title is the last of its names."""
    called: dict[str, str] = {}
    for name in (*note.names, note.title):
        called.setdefault(name_key(name), name)
    names = [(key, doc_id, position, name) for position, (key, name) in enumerate(called.items())]
    connection.executemany("INSERT INTO names VALUES (?,?,?,?)", names)
    connection.executemany(
        "INSERT INTO edges VALUES (?,?,?,?,?,?)",
        [(doc_id, name_key(e.subject), e.relation, name_key(e.object), e.subject, e.object) for e in note.edges],
    )
    targets = dict.fromkeys(
        name_key(key) for target in note.links for key in (note_name(target), target if "/" in target else "") if key
    )
    connection.executemany("INSERT INTO links VALUES (?,?)", [(doc_id, key) for key in targets])
    connection.executemany(
        "INSERT INTO citations VALUES (?,?,?)", [(doc_id, c.episode, c.turn) for c in note.citations]
    )


def find_entities(connection: IndexConnection, keys: Collection[str], scope: Scope = EVERYTHING) -> dict[str, set[str]]:
    """Return those of `keys` that name an entity, each with all keys of the same one: key -> {canonical and alias
    keys}.

    An entity has an entity note, or is at an end of an edge, within `scope`. The owner's own note of such a thing, or
    of the target of a link in a fact, supplies its other names. `anna` names `Anna (sister of Maya)` too: the words
    in brackets only tell her apart.
    """
    values = {"wanted": json.dumps(list(keys)), **scope.values}
    found: dict[str, set[str]] = {}
    for key, doc_id in connection.execute(
        # CROSS JOIN: from the names to their notes. SQLite would rather look at all notes.
        "SELECT name_key, doc_id FROM json_each(:wanted) AS wanted CROSS JOIN names ON name_key = wanted.value "
        f"CROSS JOIN documents d USING (doc_id) WHERE {_IS_ENTITY} {scope.and_documents} "
        "UNION SELECT wanted.value, doc_id FROM json_each(:wanted) AS wanted "
        "CROSS JOIN names ON (name_key >= wanted.value || ' (' AND name_key < wanted.value || ' )') "
        "OR (name_key >= wanted.value || '\uff08' AND name_key < wanted.value || '\uff09') "
        f"CROSS JOIN documents d USING (doc_id) WHERE kind = 'entity' {scope.and_documents}",
        values,
    ).fetchall():
        same = {str(row[0]) for row in connection.execute("SELECT name_key FROM names WHERE doc_id = ?", (doc_id,))}
        found.setdefault(str(key), set()).update(same)
    for column in ("subject_key", "object_key"):
        for (key,) in connection.execute(
            f"SELECT DISTINCT {column} FROM edges {scope.join_documents('edges')} "
            f"WHERE {column} IN (SELECT value FROM json_each(:wanted)) {scope.and_documents}",
            values,
        ):
            found.setdefault(str(key), {str(key)})
    return found


def with_aliases(connection: IndexConnection, names: Collection[str], scope: Scope = EVERYTHING) -> tuple[str, ...]:
    """Return the keys of `names` and of all other names of the entities that they name, in alphabetical order."""
    keys = {name_key(name) for name in names if name}
    return tuple(sorted(keys.union(*find_entities(connection, keys, scope).values())))


def find_similar_names(
    connection: IndexConnection, parts: Collection[str], scope: Scope = EVERYTHING, limit: int = 20
) -> set[str]:
    """Return keys of entities of whose name each of `parts` is a whole word: `chen` finds `maya chen`."""
    if not parts:
        return set()
    rows = connection.execute(
        "SELECT name_key FROM names JOIN documents d USING (doc_id), json_each(:parts) AS part "
        "WHERE kind = 'entity' AND instr(' ' || name_key || ' ', ' ' || part.value || ' ') > 0 "
        f"{scope.and_documents} ORDER BY length(name_key), name_key LIMIT :limit",
        {"parts": json.dumps(list(parts)), "limit": limit, **scope.values},
    )
    return {str(row[0]) for row in rows}


def neighbours(
    connection: IndexConnection, keys: Collection[str], scope: Scope = EVERYTHING, limit: int = 200
) -> list[Neighbour]:
    """Return edges that touch any of `keys`, in both directions, from documents in `scope`; first those between two of
    them.
    """
    columns = "edges.doc_id, subject, relation, object"
    source = f"FROM edges {scope.join_documents('edges')}"
    rows = connection.execute(
        f"SELECT * FROM (SELECT {columns}, subject_key, object_key AS to_key {source} "
        f"WHERE subject_key IN (SELECT value FROM json_each(:wanted)) {scope.and_documents} "
        "UNION ALL "
        f"SELECT {columns}, object_key, subject_key {source} "
        f"WHERE object_key IN (SELECT value FROM json_each(:wanted)) {scope.and_documents}) "
        "ORDER BY to_key IN (SELECT value FROM json_each(:wanted)) DESC LIMIT :limit",
        {"wanted": json.dumps(list(keys)), "limit": limit, **scope.values},
    )
    return [Neighbour(*row) for row in rows]


def documents_about(
    connection: IndexConnection, keys: Collection[str], scope: Scope = EVERYTHING, limit: int = 200
) -> list[int]:
    """Return documents in `scope` that are called so, link to or have an edge with one of the named things."""
    # The scope is asked once, around the whole: a condition in each part would be looked at four times.
    visible = f"WHERE doc_id IN (SELECT d.doc_id FROM documents d WHERE {scope.documents})" if scope.documents else ""
    rows = connection.execute(
        "SELECT doc_id FROM ("
        "SELECT doc_id FROM names WHERE name_key IN (SELECT value FROM json_each(:wanted)) "
        "UNION SELECT doc_id FROM links WHERE target_key IN (SELECT value FROM json_each(:wanted)) "
        "UNION SELECT doc_id FROM edges WHERE subject_key IN (SELECT value FROM json_each(:wanted)) "
        "UNION SELECT doc_id FROM edges WHERE object_key IN (SELECT value FROM json_each(:wanted)) "
        f") {visible} LIMIT :limit",
        {"wanted": json.dumps(list(keys)), "limit": limit, **scope.values},
    )
    return [int(row[0]) for row in rows]


def list_ends(connection: IndexConnection, doc_ids: Collection[int]) -> list[tuple[int, str]]:
    """Return (document, key of an entity it is about): ends of its edges, and its own names if it is an entity."""
    rows = connection.execute(
        "SELECT doc_id, subject_key FROM edges WHERE doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted)) "
        "UNION SELECT doc_id, object_key FROM edges "
        "WHERE doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted)) "
        "UNION SELECT doc_id, name_key FROM names JOIN documents USING (doc_id) "
        "WHERE kind = 'entity' AND doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted))",
        {"wanted": json.dumps(list(doc_ids))},
    )
    return [(int(row[0]), str(row[1])) for row in rows]


def list_edges_of(
    connection: IndexConnection, doc_ids: Collection[int], relations: Collection[str]
) -> list[tuple[str, str, str]]:
    """Return (subject_key, relation, object_key) of the edges of `doc_ids` whose relation is one of `relations`."""
    rows = connection.execute(
        "SELECT DISTINCT subject_key, relation, object_key FROM edges "
        "WHERE doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted)) "
        "AND relation IN (SELECT value FROM json_each(:relations))",
        {"wanted": json.dumps(list(doc_ids)), "relations": json.dumps(sorted(relations))},
    )
    return [(str(row[0]), str(row[1]), str(row[2])) for row in rows]


def fetch_edges_about(
    connection: IndexConnection, keys: Collection[str], relations: Collection[str], scope: Scope = EVERYTHING
) -> dict[int, list[tuple[str, str, str]]]:
    """Return the edges of facts in `scope` that touch one of `keys` with one of `relations`, by document, as they are
    written; of more than 400 edges those of the newest notes.
    """
    rows = connection.execute(
        "SELECT e.doc_id, subject, relation, object FROM ("
        "SELECT * FROM edges WHERE subject_key IN (SELECT value FROM json_each(:wanted)) "
        "UNION SELECT * FROM edges WHERE object_key IN (SELECT value FROM json_each(:wanted))) e "
        "JOIN documents d ON d.doc_id = e.doc_id WHERE d.kind = 'fact' "
        f"AND relation IN (SELECT value FROM json_each(:relations)) {scope.and_documents} "
        "ORDER BY e.doc_id DESC LIMIT 400",
        {"wanted": json.dumps(list(keys)), "relations": json.dumps(sorted(relations)), **scope.values},
    )
    found: dict[int, list[tuple[str, str, str]]] = {}
    for doc_id, *edge in rows:
        found.setdefault(int(doc_id), []).append((str(edge[0]), str(edge[1]), str(edge[2])))
    return found


def list_called(connection: IndexConnection) -> list[CalledEntity]:
    """Return every name of every entity that has a note; file names first, then by path."""
    rows = connection.execute(
        "SELECT n.name_key, n.position, first.name, d.path, CASE d.kind WHEN 'entity' THEN d.type END "
        "FROM documents d JOIN names n USING (doc_id) "
        "JOIN names first ON first.doc_id = d.doc_id AND first.position = 0 "
        f"WHERE {_IS_ENTITY} ORDER BY n.position, d.path"
    )
    return list(map(CalledEntity._make, rows))


def list_stated(connection: IndexConnection) -> list[StatedEdge]:
    """Return every edge, once for each note that states it, by the note's path."""
    rows = connection.execute(
        "SELECT DISTINCT e.doc_id, subject_key, relation, object_key, subject, object, id, kind, type, "
        "coalesce((SELECT text FROM chunks c WHERE c.doc_id = e.doc_id AND c.ordinal = 0), title), "
        "durability, created, valid_from, valid_until, superseded_by IS NOT NULL "
        "FROM edges e JOIN documents d ON d.doc_id = e.doc_id ORDER BY path"
    )
    return list(map(StatedEdge._make, rows))


def list_mentions(connection: IndexConnection) -> list[tuple[str, int]]:
    """Return (key of a name, doc_id) for every fact that links to the name or has an edge with it."""
    facts = "JOIN documents d ON d.doc_id = {0}.doc_id WHERE d.kind = 'fact'"
    rows = connection.execute(
        f"SELECT target_key, links.doc_id FROM links {facts.format('links')} "
        f"UNION SELECT subject_key, edges.doc_id FROM edges {facts.format('edges')} "
        f"UNION SELECT object_key, edges.doc_id FROM edges {facts.format('edges')}"
    )
    return [(str(key), int(doc_id)) for key, doc_id in rows]


def list_disputed(connection: IndexConnection) -> set[tuple[int, int]]:
    """Return the pairs of facts of which an open question asks which is true."""
    asked: dict[int, set[tuple[int, str]]] = {}
    for question, fact, key in connection.execute(
        "SELECT q.doc_id, f.doc_id, l.target_key FROM documents q CROSS JOIN links l ON l.doc_id = q.doc_id "
        "CROSS JOIN names n ON n.name_key = l.target_key AND n.position = 0 "
        "CROSS JOIN documents f ON f.doc_id = n.doc_id AND f.kind = 'fact' "
        "WHERE q.kind = 'review' AND q.path LIKE '%/conflict-%'"
    ):
        asked.setdefault(int(question), set()).add((int(fact), str(key)))
    pairs = (pair for facts in asked.values() for pair in combinations(sorted(facts), 2))
    return {(one, other) for (one, key), (other, its_key) in pairs if key != its_key}


def entity_names(connection: IndexConnection, within: str | None = None) -> list[tuple[str, str]]:
    """Return (written name or alias, file name of its note) of all entity notes, then of the owner's own notes that are
    called by several words or spoken of; of these no name in lower case. If `within` is given, return only the names
    that this text contains.
    """
    if within is None:
        # From the few entities to their names: most names are those of facts.
        return _list_names(
            connection,
            "(SELECT doc_id, kind FROM documents WHERE kind = 'entity' "
            "UNION ALL SELECT doc_id, kind FROM documents WHERE kind = 'note') d CROSS JOIN names n USING (doc_id)",
        )
    found = _list_called(connection, {name_key(span) for span in list_spans(within, MAX_NAME)})
    return [(name, note) for name, note in found if name in within]


def note_of(connection: IndexConnection, name: str) -> str:
    """Return the note that is called `name`; the name itself where none is."""
    return next((note for _, note in _list_called(connection, {name_key(name)})), name)


def _list_called(connection: IndexConnection, keys: Collection[str]) -> list[tuple[str, str]]:
    """Return those of `entity_names` that have one of `keys`."""
    return _list_names(
        connection,
        "json_each(:keys) AS wanted CROSS JOIN names n ON n.name_key = wanted.value "
        "CROSS JOIN documents d USING (doc_id)",
        keys,
    )


def _list_names(connection: IndexConnection, named: str, keys: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return what `entity_names` does, of the notes d and names n in `named`."""
    rows = connection.execute(
        f"SELECT n.name, first.name, d.kind FROM {named} "
        "JOIN names first ON first.doc_id = d.doc_id AND first.position = 0 "
        f"WHERE d.kind = 'entity' OR d.kind = 'note' AND (instr(first.name, ' ') > 0 OR {_IS_SPOKEN_OF}) "
        "ORDER BY d.kind, n.position, n.name",
        {"keys": json.dumps(list(keys))},
    )
    return [(str(name), str(note)) for name, note, kind in rows if kind == "entity" or not str(name)[:1].islower()]


def entity_types(connection: IndexConnection, names: Collection[str]) -> dict[str, str]:
    """Return the types of the entities whose notes are called `names`."""
    rows = connection.execute(
        "SELECT n.name, d.type FROM names n JOIN documents d USING (doc_id) "
        "WHERE d.kind = 'entity' AND n.position = 0 AND n.name IN (SELECT value FROM json_each(?))",
        (json.dumps(list(names)),),
    )
    return {str(row[0]): str(row[1]) for row in rows if row[1]}


def relations(connection: IndexConnection) -> list[str]:
    """Return all relations in use, the most frequent first."""
    rows = connection.execute("SELECT relation FROM edges GROUP BY relation ORDER BY count(*) DESC, relation")
    return [str(row[0]) for row in rows]


def cited_turns(connection: IndexConnection, doc_ids: Collection[int]) -> list[tuple[int, int]]:
    """Return (citing document, chunk of the turn it cites)."""
    rows = connection.execute(
        "SELECT c.doc_id, ch.chunk_id FROM citations c "
        "JOIN names n ON n.name_key = lower(c.episode) AND n.position = 0 "
        "JOIN chunks ch ON ch.doc_id = n.doc_id AND ch.turn = c.turn "
        "WHERE c.doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))",
        (json.dumps(list(doc_ids)),),
    )
    return [(int(row[0]), int(row[1])) for row in rows]


def citing_chunks(
    connection: IndexConnection, turns: Collection[tuple[str, int]], scope: Scope = EVERYTHING
) -> list[tuple[str, int, int]]:
    """Return (episode's note name, turn, chunk of a document in `scope` that cites it) for each of `turns`."""
    rows = connection.execute(
        "SELECT ci.episode, ci.turn, ch.chunk_id FROM json_each(:wanted) AS wanted "
        "JOIN citations ci ON ci.episode = wanted.value ->> 0 AND ci.turn = CAST(wanted.value ->> 1 AS INTEGER) "
        f"JOIN chunks ch ON ch.doc_id = ci.doc_id AND ch.ordinal = 0 {scope.join_documents('ci')} "
        f"WHERE true {scope.and_documents}",
        {"wanted": json.dumps([list(turn) for turn in turns]), **scope.values},
    )
    return [(str(row[0]), int(row[1]), int(row[2])) for row in rows]


def find_edge_fact(connection: IndexConnection, edge: Edge) -> str | None:
    """Return the path of a fact that holds and says `edge`."""
    row = connection.execute(
        "SELECT path FROM documents WHERE kind = 'fact' AND superseded_by IS NULL AND doc_id IN "
        "(SELECT doc_id FROM edges WHERE subject_key = ? AND relation = ? AND object_key = ?) ORDER BY path LIMIT 1",
        (name_key(edge.subject), edge.relation, name_key(edge.object)),
    ).fetchone()
    return str(row[0]) if row else None


def replaced_turns(
    connection: IndexConnection, turns: Collection[tuple[str, int]], scope: Scope = EVERYTHING
) -> list[tuple[str, int, str]]:
    """Return (episode's note name, turn, what replaced it) for each fact in `scope` that rests on one of `turns` and
    was replaced.
    """
    rows = connection.execute(
        "SELECT ci.episode, ci.turn, d.superseded_by FROM json_each(:wanted) AS wanted "
        "JOIN citations ci ON ci.episode = wanted.value ->> 0 AND ci.turn = CAST(wanted.value ->> 1 AS INTEGER) "
        f"JOIN documents d ON d.doc_id = ci.doc_id WHERE d.superseded_by IS NOT NULL {scope.and_documents}",
        {"wanted": json.dumps([list(turn) for turn in turns]), **scope.values},
    )
    return [(str(row[0]), int(row[1]), str(row[2])) for row in rows]


def counts(connection: IndexConnection) -> dict[str, int]:
    """Return numbers for `quaid stats`: entities (named by a note or an edge), edges, relations."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM (SELECT subject_key FROM edges UNION SELECT object_key FROM edges "
        "UNION SELECT name_key FROM names JOIN documents USING (doc_id) WHERE kind = 'entity' AND position = 0)),"
        "(SELECT count(*) FROM (SELECT DISTINCT subject_key, relation, object_key FROM edges)),"
        "(SELECT count(DISTINCT relation) FROM edges)"
    ).fetchone()
    assert row is not None
    return {"entities": int(row[0]), "edges": int(row[1]), "relations": int(row[2])}


class Entity(NamedTuple):
    """A thing that has a note or is at an end of an edge. `path` is that of its note, `facts` how many mention it,
    `degree` how many edges it has.
    """

    name: str
    keys: frozenset[str]
    type: str
    path: str | None
    facts: int
    degree: int


class Link(NamedTuple):
    """An edge between two entities, by their places among the entities."""

    subject: int
    object: int
    edge: StatedEdge


class EntityGraph(NamedTuple):
    """Entities, those with most edges first, and the links between them."""

    entities: list[Entity]
    links: list[Link]


def read_graph(connection: IndexConnection) -> EntityGraph:
    """Return the graph of all that `connection` may see. A name that several notes have is that of the first file which
    is called so, else of the first note with that alias.
    """
    edges = list_stated(connection)
    owners: dict[str, str] = {}  # a key -> what it names: the path of a note, else the key itself
    notes: dict[str, tuple[str, str]] = {}
    keys: dict[str, set[str]] = defaultdict(set)
    for called in list_called(connection):
        notes[called.path] = (called.name, called.type or "")
        keys[owners.setdefault(called.name_key, called.path)].add(called.name_key)
    written: dict[str, str] = {}
    for edge in edges:
        for key, name in ((edge.subject_key, edge.subject), (edge.object_key, edge.object)):
            keys[owners.setdefault(key, key)].add(key)
            written.setdefault(key, name)
    mentioned: dict[str, set[int]] = defaultdict(set)
    for key, doc_id in list_mentions(connection):
        if key in owners:
            mentioned[owners[key]].add(doc_id)
    degrees = Counter(owner for edge in edges for owner in {owners[edge.subject_key], owners[edge.object_key]})
    entities = {}
    for owner in {**notes, **dict.fromkeys(owners.values())}:
        name, kind = notes.get(owner) or (written[owner], "")
        path = owner if owner in notes else None
        entities[owner] = Entity(name, frozenset(keys[owner]), kind, path, len(mentioned[owner]), degrees[owner])
    ordered = sorted(entities, key=lambda owner: (-degrees[owner], -len(mentioned[owner]), owner))
    places = {owner: place for place, owner in enumerate(ordered)}
    links = [Link(places[owners[edge.subject_key]], places[owners[edge.object_key]], edge) for edge in edges]
    return EntityGraph([entities[owner] for owner in ordered], links)
