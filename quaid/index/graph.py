"""Entities and the edges between them, stored as written and joined by name in queries."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from itertools import combinations
from typing import NamedTuple

from quaid.index.documents import IDS, Document, find_documents
from quaid.index.port import IndexConnection
from quaid.index.reading import GIVEN, Reading, Steps, query
from quaid.index.scope import EVERYTHING, Scope
from quaid.model import Edge, name_key
from quaid.text.words import list_spans


class Neighbour(NamedTuple):
    """One hop: the edge that was walked and the document that says it."""

    doc_id: int
    subject: str
    relation: str
    object: str
    from_key: str
    to_key: str


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


@Reading
def find_entities(keys: Collection[str], scope: Scope = EVERYTHING) -> Steps[dict[str, set[str]]]:
    """Return those of `keys` that name an entity, each with all keys of the same one: key -> {canonical and alias
    keys}.

    An entity has an entity note, or is at an end of an edge, within `scope`. The owner's own note of such a thing, or
    of the target of a link in a fact, supplies its other names. `anna` names `Anna (sister of Maya)` too: the words
    in brackets only tell her apart.
    """
    if not keys:
        return {}
    edges = f"FROM edges {scope.join_documents('edges')} WHERE"
    among = f"IN (SELECT value FROM json_each(:wanted)) {scope.and_documents}"
    rows = yield query(
        # CROSS JOIN: from the names to their notes. SQLite would rather look at all notes.
        "SELECT called, name_key, is_end FROM (SELECT named.called, same.name_key, 0 AS is_end FROM ("
        "SELECT name_key AS called, doc_id FROM json_each(:wanted) AS wanted CROSS JOIN names "
        "ON name_key = wanted.value CROSS JOIN documents d USING (doc_id) "
        f"WHERE {_IS_ENTITY} {scope.and_documents} "
        "UNION SELECT wanted.value, doc_id FROM json_each(:wanted) AS wanted "
        "CROSS JOIN names ON (name_key >= wanted.value || ' (' AND name_key < wanted.value || ' )') "
        "OR (name_key >= wanted.value || '\uff08' AND name_key < wanted.value || '\uff09') "
        f"CROSS JOIN documents d USING (doc_id) WHERE kind = 'entity' {scope.and_documents}"
        ") AS named CROSS JOIN names same ON same.doc_id = named.doc_id "
        f"UNION SELECT subject_key, subject_key, 1 {edges} subject_key {among} "
        f"UNION SELECT object_key, object_key, 1 {edges} object_key {among} ORDER BY is_end) asked",
        {"wanted": json.dumps(list(keys)), **scope.values},
    )
    found: dict[str, set[str]] = {}
    for key, name, is_end in rows:
        if not is_end or key not in found:
            found.setdefault(key, set()).add(name)
    return found


@Reading
def with_aliases(names: Collection[str], scope: Scope = EVERYTHING) -> Steps[tuple[str, ...]]:
    """Return the keys of `names` and of all other names of the entities that they name, in alphabetical order."""
    keys = {name_key(name) for name in names if name}
    found = yield from find_entities.steps(keys, scope)
    return tuple(sorted(keys.union(*found.values())))


def find_similar_names(connection: IndexConnection, parts: Collection[str], scope: Scope = EVERYTHING) -> set[str]:
    """Return keys of entities of whose name each of `parts` is a whole word: `chen` finds `maya chen`."""
    if not parts:
        return set()
    rows = connection.execute(
        "SELECT name_key FROM names JOIN documents d USING (doc_id), json_each(:parts) AS part "
        "WHERE kind = 'entity' AND instr(' ' || name_key || ' ', ' ' || part.value || ' ') > 0 "
        f"{scope.and_documents} ORDER BY length(name_key), name_key LIMIT 20",
        {"parts": json.dumps(list(parts)), **scope.values},
    )
    return {key for (key,) in rows}


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
    return [doc_id for (doc_id,) in rows]


def list_mentions(connection: IndexConnection, doc_ids: Collection[int]) -> list[tuple[int, str]]:
    """Return (document, key of an entity that it links to or has an edge with)."""
    among = "doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted))"
    return connection.execute(
        f"SELECT doc_id, subject_key FROM edges WHERE {among} UNION SELECT doc_id, object_key FROM edges WHERE {among} "
        f"UNION SELECT links.doc_id, target_key FROM links JOIN names ON name_key = target_key "
        f"JOIN documents d ON d.doc_id = names.doc_id WHERE d.kind = 'entity' AND links.{among}",
        {"wanted": json.dumps(list(doc_ids))},
    ).fetchall()


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
        found.setdefault(doc_id, []).append((edge[0], edge[1], edge[2]))
    return found


@Reading
def list_disputed() -> Steps[set[tuple[int, int]]]:
    """Return the pairs of facts of which an open question asks which is true."""
    asked: dict[int, set[tuple[int, str]]] = {}
    rows = yield query(
        "SELECT q.doc_id, f.doc_id, l.target_key FROM documents q CROSS JOIN links l ON l.doc_id = q.doc_id "
        "CROSS JOIN names n ON n.name_key = l.target_key AND n.position = 0 "
        "CROSS JOIN documents f ON f.doc_id = n.doc_id AND f.kind = 'fact' "
        "WHERE q.kind = 'review' AND q.path LIKE '%/conflict-%'"
    )
    for question, fact, key in rows:
        asked.setdefault(question, set()).add((fact, key))
    pairs = (pair for facts in asked.values() for pair in combinations(sorted(facts), 2))
    return {(one, other) for (one, key), (other, its_key) in pairs if key != its_key}


def entity_names(connection: IndexConnection, within: str | None = None) -> list[tuple[str, str]]:
    """Return (written name or alias, file name of its note) of all entity notes, then of the owner's own notes that are
    called by several words or spoken of; of these no name in lower case. If `within` is given, return only the names
    that this text contains.
    """
    if within is not None:
        found = _list_names(connection, {name_key(span) for span in list_spans(within, MAX_NAME)})
        return [(name, note) for name, note in found if name in within]
    return _list_names(connection)


def note_of(connection: IndexConnection, name: str) -> str:
    """Return the note that is called `name`; the name itself where none is."""
    return next((note for _, note in _list_names(connection, {name_key(name)})), name)


def _list_names(connection: IndexConnection, keys: Collection[str] | None = None) -> list[tuple[str, str]]:
    """Return what `entity_names` does; with `keys` those that have one of them."""
    named = (
        "json_each(:keys) AS wanted CROSS JOIN names n ON n.name_key = wanted.value "
        "CROSS JOIN documents d USING (doc_id)"
    )
    if keys is None:  # from the few entities to their names: most names are those of facts
        of_kind = "SELECT doc_id, kind FROM documents WHERE kind ="
        named = f"({of_kind} 'entity' UNION ALL {of_kind} 'note') d CROSS JOIN names n USING (doc_id)"
    rows = connection.execute(
        f"SELECT n.name, first.name, d.kind FROM {named} "
        "JOIN names first ON first.doc_id = d.doc_id AND first.position = 0 "
        f"WHERE d.kind = 'entity' OR d.kind = 'note' AND (instr(first.name, ' ') > 0 OR {_IS_SPOKEN_OF}) "
        "ORDER BY d.kind, n.position, n.name",
        {"keys": json.dumps(list(keys or ()))},
    )
    return [(name, note) for name, note, kind in rows if kind == "entity" or not name[:1].islower()]


def entity_types(connection: IndexConnection, names: Collection[str]) -> dict[str, str]:
    """Return the types of the entities whose notes are called `names`."""
    rows = connection.execute(
        "SELECT n.name, d.type FROM names n JOIN documents d USING (doc_id) WHERE d.kind = 'entity' AND n.position = 0 "
        "AND n.name IN (SELECT value FROM json_each(?)) AND d.type IS NOT NULL",
        (json.dumps(list(names)),),
    )
    return dict(rows)


@Reading
def relation_words() -> Steps[dict[str, str]]:
    """Return relation -> the words that a question may use for it, as the vault's list has them."""
    wanted = "d.kind = 'review' AND d.type = 'relations' AND n.position > 0"
    rows = yield query(f"SELECT n.name FROM names n JOIN documents d USING (doc_id) WHERE {wanted}")
    lines = (name.partition(":") for (name,) in rows)
    return {relation.strip(): words for relation, colon, words in lines if colon}


def relations(connection: IndexConnection) -> list[str]:
    """Return all relations in use, the most frequent first."""
    rows = connection.execute("SELECT relation FROM edges GROUP BY relation ORDER BY count(*) DESC, relation")
    return [relation for (relation,) in rows]


def cited_turns(connection: IndexConnection, doc_ids: Collection[int]) -> list[tuple[int, int]]:
    """Return (citing document, chunk of the turn it cites)."""
    if not doc_ids:
        return []
    return connection.execute(
        "SELECT c.doc_id, ch.chunk_id FROM citations c "
        "JOIN names n ON n.name_key = lower(c.episode) AND n.position = 0 "
        f"JOIN chunks ch ON ch.doc_id = n.doc_id AND ch.turn = c.turn WHERE c.doc_id IN {IDS}",
        (json.dumps(list(doc_ids)),),
    ).fetchall()


End = tuple[str, str | None, str, str, str]
"""The key of an entity that a note is about and, of an edge, the relation, the key of its object, and the subject and
object as written; of a name without a relation, the rest is empty.
"""
Citing = tuple[int, int | None, bool]
"""A document that cites a turn, its opening chunk, and whether another note has replaced it."""
_CITING_TURNS = (
    "(SELECT DISTINCT doc_id, turn FROM given WHERE turn IS NOT NULL) t "
    "JOIN names n ON n.doc_id = t.doc_id AND n.position = 0 "
    "JOIN citations ci ON ci.episode = n.name AND ci.turn = t.turn"
)


@Reading
def list_ties(
    chunk_ids: Collection[int], scope: Scope
) -> Steps[tuple[dict[int, list[End]], dict[int, list[int]], dict[tuple[int, int], list[Citing]]]]:
    """Return, by document, what the notes of `chunk_ids` are about, and the chunks of the turns that they cite, or that
    is cited by what in `scope` cites the turns among them; and that, by the document and the number of each turn.
    """
    given, among = {GIVEN: json.dumps(list(chunk_ids))}, "doc_id IN (SELECT doc_id FROM given)"
    about = query(
        "SELECT doc_id, subject_key, relation, object_key, subject, object FROM ("
        f"SELECT doc_id, subject_key, relation, object_key, subject, object FROM edges WHERE {among} "
        "UNION ALL SELECT doc_id, name_key, NULL, '', '', '' FROM names JOIN documents USING (doc_id) "
        f"WHERE kind = 'entity' AND {among}) asked",
        given,
    )
    cited = query(
        "SELECT c.doc_id, ch.chunk_id FROM citations c "
        "JOIN names called ON called.name_key = lower(c.episode) AND called.position = 0 "
        "JOIN chunks ch ON ch.doc_id = called.doc_id AND ch.turn = c.turn WHERE c.doc_id IN "
        f"(SELECT doc_id FROM given UNION SELECT ci.doc_id FROM {_CITING_TURNS})",
        given,
    )
    citing = query(
        "SELECT t.doc_id, t.turn, d.doc_id, ch.chunk_id, d.superseded_by "
        f"FROM {_CITING_TURNS} JOIN documents d ON d.doc_id = ci.doc_id "
        f"LEFT JOIN chunks ch ON ch.doc_id = ci.doc_id AND ch.ordinal = 0 WHERE true {scope.and_documents}",
        {**given, **scope.values},
    )
    ends: dict[int, list[End]] = defaultdict(list)
    turns: dict[int, list[int]] = defaultdict(list)
    citers: dict[tuple[int, int], list[Citing]] = defaultdict(list)
    rows = yield [about, cited, citing]
    for doc_id, *end in rows[0]:
        ends[doc_id].append((end[0], end[1], end[2], end[3], end[4]))
    for doc_id, chunk_id in rows[1]:
        turns[doc_id].append(chunk_id)
    for doc_id, turn, citer, chunk_id, successor in rows[2]:
        citers[doc_id, turn].append((citer, chunk_id, successor is not None))
    return ends, turns, citers


def citing_chunks(
    connection: IndexConnection, turns: Collection[tuple[str, int]], scope: Scope = EVERYTHING
) -> list[tuple[str, int, int]]:
    """Return (episode's note name, turn, chunk of a document in `scope` that cites it) for each of `turns`."""
    if not turns:
        return []
    return connection.execute(
        "SELECT ci.episode, ci.turn, ch.chunk_id FROM json_each(:wanted) AS wanted "
        "JOIN citations ci ON ci.episode = wanted.value ->> 0 AND ci.turn = CAST(wanted.value ->> 1 AS INTEGER) "
        f"JOIN chunks ch ON ch.doc_id = ci.doc_id AND ch.ordinal = 0 {scope.join_documents('ci')} "
        f"WHERE true {scope.and_documents}",
        {"wanted": json.dumps([list(turn) for turn in turns]), **scope.values},
    ).fetchall()


def find_edge_fact(connection: IndexConnection, edge: Edge) -> str | None:
    """Return the path of a fact that holds and says `edge`."""
    path: str | None = connection.execute(
        "SELECT path FROM documents WHERE kind = 'fact' AND superseded_by IS NULL AND doc_id IN "
        "(SELECT doc_id FROM edges WHERE subject_key = ? AND relation = ? AND object_key = ?) ORDER BY path LIMIT 1",
        (name_key(edge.subject), edge.relation, name_key(edge.object)),
    ).get
    return path


def counts(connection: IndexConnection) -> dict[str, int]:
    """Return numbers for `quaid stats`: entities (named by a note or an edge), edges, relations."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM (SELECT subject_key FROM edges UNION SELECT object_key FROM edges "
        "UNION SELECT name_key FROM names JOIN documents USING (doc_id) WHERE kind = 'entity' AND position = 0)),"
        "(SELECT count(*) FROM (SELECT DISTINCT subject_key, relation, object_key FROM edges)),"
        "(SELECT count(DISTINCT relation) FROM edges)"
    )
    return dict(zip(("entities", "edges", "relations"), next(row), strict=True))


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
    """An edge between two entities, by their places among the entities, and the note that states it."""

    subject: int
    object: int
    relation: str
    note: Document


def read_graph(connection: IndexConnection) -> tuple[list[Entity], list[Link]]:
    """Return the graph of all that `connection` may see: entities, those with most edges first, and links. A name that
    several notes have is that of the first file which is called so, else of the first note with that alias.
    """
    edges = connection.execute(
        "SELECT DISTINCT doc_id, subject_key, relation, object_key, subject, object FROM edges "
        "JOIN documents USING (doc_id) ORDER BY path"
    ).fetchall()
    where = "d.doc_id IN (SELECT doc_id FROM edges)"
    stating = {note.doc_id: note for note in find_documents(connection, where, with_text=True)}
    owners: dict[str, str] = {}  # a key -> what it names: the path of a note, else the key itself
    notes: dict[str, tuple[str, str]] = {}
    keys: dict[str, set[str]] = defaultdict(set)
    for key, name, path, kind in connection.execute(
        "SELECT n.name_key, first.name, d.path, CASE d.kind WHEN 'entity' THEN d.type END "
        "FROM documents d JOIN names n USING (doc_id) "
        "JOIN names first ON first.doc_id = d.doc_id AND first.position = 0 "
        f"WHERE {_IS_ENTITY} ORDER BY n.position, d.path"
    ):
        notes[path] = (name, kind or "")
        keys[owners.setdefault(key, path)].add(key)
    written: dict[str, str] = {}
    for _, subject_key, _, object_key, subject, target in edges:
        for key, name in ((subject_key, subject), (object_key, target)):
            keys[owners.setdefault(key, key)].add(key)
            written.setdefault(key, name)
    mentioned: dict[str, set[int]] = defaultdict(set)
    facts = "JOIN documents d USING (doc_id) WHERE d.kind = 'fact'"
    for key, doc_id in connection.execute(
        f"SELECT target_key, doc_id FROM links {facts} UNION SELECT subject_key, doc_id FROM edges {facts} "
        f"UNION SELECT object_key, doc_id FROM edges {facts}"
    ):
        if key in owners:
            mentioned[owners[key]].add(doc_id)
    degrees = Counter(owner for edge in edges for owner in {owners[edge[1]], owners[edge[3]]})
    entities = {}
    for owner in {**notes, **dict.fromkeys(owners.values())}:
        name, kind = notes.get(owner) or (written[owner], "")
        place = owner if owner in notes else None
        entities[owner] = Entity(name, frozenset(keys[owner]), kind, place, len(mentioned[owner]), degrees[owner])
    ordered = sorted(entities, key=lambda owner: (-degrees[owner], -len(mentioned[owner]), owner))
    places = {owner: place for place, owner in enumerate(ordered)}
    links = [
        Link(places[owners[subject_key]], places[owners[object_key]], relation, stating[doc_id])
        for doc_id, subject_key, relation, object_key, _, _ in edges
    ]
    return [entities[owner] for owner in ordered], links
