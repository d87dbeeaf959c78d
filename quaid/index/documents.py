"""Notes in the index: put in, taken out, looked up."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from quaid.index import contents, fulltext, vectors
from quaid.index.port import IndexConnection
from quaid.index.reading import GIVEN, Reading, Steps, query
from quaid.index.scope import EVERYTHING, Scope
from quaid.model import Kind, Note, Passage, name_key, note_name, without_ending
from quaid.text import endings
from quaid.text.dates import find_dates
from quaid.text.instructions import is_instruction


class KnownFile(NamedTuple):
    """A file as the index knows it: a hint (size, times, inode) and the proof (`content_hash`)."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    read_ns: int
    content_hash: str


class Document(NamedTuple):
    """A row of `documents` and, where one was read with it, the chunk that was found. A tuple, because every question
    makes hundreds.
    """

    doc_id: int
    path: str
    id: str
    kind: str
    type: str | None
    title: str
    status: str | None
    owner: str
    project: str | None
    confidence: float | None
    durability: str | None
    speaker: str | None
    source: str | None
    session: str | None
    technical: bool
    pinned: bool
    verified: bool
    confirmations: int
    created: str | None
    valid_from: str | None
    valid_until: str | None
    superseded_by: str | None
    text_hash: str | None
    content_hash: str
    chunk_id: int = 0
    ordinal: int = 0
    text: str = ""
    turn: int | None = None
    turn_speaker: str | None = None
    said_at: str | None = None
    passage: int | None = None
    days: str = ""
    """The windows of days that the text names: `2026-03-01/2026-03-31 …`."""
    is_whole: bool = True
    """Whether the chunk is all of the document; only `list_living` says so."""

    @property
    def is_replaced(self) -> bool:
        """Whether it says that another note has replaced it."""
        return self.superseded_by is not None

    @property
    def is_protected(self) -> bool:
        """Whether its owner has pinned or verified it."""
        return bool(self.pinned or self.verified)


_OF_CHUNK = Document._fields.index("chunk_id")
_DOCUMENT = ", ".join(f"d.{name}" for name in Document._fields[:_OF_CHUNK])
WITH_CHUNK = f"{_DOCUMENT}, c.chunk_id, c.ordinal, c.text, c.turn, c.speaker, c.said_at, c.passage, c.days"
"""The columns of a document d and a chunk c that make a `Document`."""
IDS, NAMES = "(SELECT CAST(value AS INTEGER) FROM json_each(?))", "(SELECT value FROM json_each(?))"
"""The numbers, or the texts, of a list in JSON."""
_MAY_BE_REPEATED = "(valid_until IS NULL OR superseded_by IS NULL AND durability = 'immutable')"
"""A fact that a new one without an end may repeat: of two with ends, equal words may be about two occasions. One that
is superseded and has no end was merged into another fact.
"""
_USERS = frozenset({"user", "human"})
"""What the one is called who talks with an assistant."""
_NOTE_COLUMNS = (
    "content_hash, id, type, title, text_hash, status, owner, privacy, confidence, durability, speaker, source, "
    "session, project, technical, pinned, verified, confirmations, created, valid_from, valid_until, superseded_by"
)
"""The columns of `documents` that a note has as fields."""
_CHUNK_COLUMNS = "doc_id, ordinal, text, context, keywords, turn, speaker, said_at, passage, days, instructs, text_key"


def list_known(connection: IndexConnection, only: Collection[str] | None = None) -> Iterator[tuple[str, KnownFile]]:
    """Yield what the index knows of every file, or of the paths in `only`: (path, file)."""
    columns = f"SELECT path, {', '.join(KnownFile._fields)} FROM documents"
    if only is None:
        rows = connection.execute(columns)
    else:
        rows = connection.execute(f"{columns} WHERE path IN {NAMES}", (json.dumps(list(only)),))
    return ((path, KnownFile(*known)) for path, *known in rows)


def list_sized_texts(connection: IndexConnection, path: str) -> list[tuple[int, str]]:
    """Return the size of a file and a text, for each chunk that the index has of it."""
    wanted = "SELECT size, text FROM documents JOIN chunks USING (doc_id) WHERE path = ?"
    return connection.execute(wanted, (path,)).fetchall()


def find_protected(connection: IndexConnection, among: Collection[str]) -> set[str]:
    """Return those of the paths `among` whose facts their owner has pinned or verified."""
    wanted = f"SELECT path FROM documents WHERE kind = 'fact' AND (pinned OR verified) AND path IN {NAMES}"
    return {path for (path,) in connection.execute(wanted, (json.dumps(list(among)),))}


def find_paths(connection: IndexConnection, among: Collection[str]) -> dict[str, int]:
    """Return those of the paths `among` that are in the index, each with its doc_id, in alphabetical order."""
    wanted = f"SELECT path, doc_id FROM documents WHERE path IN {NAMES} ORDER BY path"
    return dict(connection.execute(wanted, (json.dumps(list(among)),)))


def list_called(connection: IndexConnection, names: Collection[str]) -> list[str]:
    """Return the paths of the notes whose files are called one of `names`, as links have them."""
    wanted = f"doc_id IN (SELECT doc_id FROM names WHERE position = 0 AND name_key IN {NAMES})"
    return [each.path for each in find_documents(connection, wanted, (json.dumps([*map(name_key, names)]),))]


def replace_document(connection: IndexConnection, note: Note, known: KnownFile) -> int:
    """Put a note in the place of what its path held before. Its vectors come later (`embedded` = pending)."""
    remove_document(connection, note.rel_path)
    return add_document(connection, note, known)


def add_document(connection: IndexConnection, note: Note, known: KnownFile) -> int:
    """Put in a note whose path the index does not know."""
    row = {"path": note.rel_path, **known._asdict()}
    row |= {name: getattr(note, name) for name in _NOTE_COLUMNS.split(", ")}
    row |= {"kind": str(note.kind), "problems": json.dumps(list(note.problems), ensure_ascii=False)}
    doc_id = connection.insert("documents", ", ".join(row), list(row.values()))
    for chunk in note.chunks:
        key = vectors.text_key(chunk.embedded_text)
        searched, spoken = (chunk.text, chunk.context, chunk.keywords), (chunk.turn, chunk.speaker, chunk.said_at)
        days = list_days(chunk.text, chunk.said_at or note.created)
        is_owners = (
            note.kind in {Kind.FACT, Kind.CORE} if chunk.turn is None else name_key(chunk.speaker or "") in _USERS
        )
        instructs = is_owners and is_instruction(chunk.text)
        values = (doc_id, chunk.ordinal, *searched, *spoken, chunk.passage, days, instructs, key)
        fulltext.insert(connection, [(connection.insert("chunks", _CHUNK_COLUMNS, values), *searched)])
    # Its title is the last of its names.
    called: dict[str, str] = {}
    for name in (*note.names, note.title):
        called.setdefault(name_key(name), name)
    targets = dict.fromkeys(
        name_key(key) for target in note.links for key in (note_name(target), target if "/" in target else "") if key
    )
    of_note: Mapping[str, Sequence[tuple[Any, ...]]] = {
        "passages (doc_id, ordinal, heading, text, first_line, last_line)": [
            (doc_id, one.ordinal, json.dumps(one.heading, ensure_ascii=False), one.text, one.first_line, one.last_line)
            for one in note.passages
        ],
        "names": [(key, doc_id, position, name) for position, (key, name) in enumerate(called.items())],
        "edges": [
            (doc_id, name_key(e.subject), e.relation, name_key(e.object), e.subject, e.object) for e in note.edges
        ],
        "links": [(doc_id, key) for key in targets],
        "tags": [(doc_id, tag) for tag in note.tags],
        "pending": [
            (doc_id, *(name_key(note_name(each)) for each in (e.subject, e.object)), e.relation) for e in note.pending
        ],
        "citations": [(doc_id, c.episode, c.turn) for c in note.citations],
    }
    for table, rows in of_note.items():
        if rows:
            connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
    return doc_id


def list_days(text: str, said_at: str | None) -> str:
    """Return the windows of days that a text from `said_at` (ISO 8601) names, as `Document.days` has them."""
    with suppress(ValueError):
        spoken = find_dates(text, datetime.fromisoformat(said_at)) if said_at else ()
        return " ".join(f"{each.start}/{each.end}" for each in spoken)
    return ""


def remove_document(connection: IndexConnection, path: str) -> None:
    row = connection.execute("SELECT doc_id FROM documents WHERE path = ?", (path,)).fetchone()
    if row is None:
        return
    chunk_ids = [chunk_id for (chunk_id,) in connection.execute("SELECT chunk_id FROM chunks WHERE doc_id = ?", row)]
    connection.words.remove(chunk_ids)
    vectors.remove(connection, chunk_ids)
    connection.execute("DELETE FROM documents WHERE doc_id = ?", row)


def touch(connection: IndexConnection, path: str, known: KnownFile) -> None:
    """Remember the new times of a file that was read again and has the same content."""
    connection.execute(
        "UPDATE documents SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, read_ns = ? WHERE path = ?",
        (*known[:5], path),
    )


def list_passed_over(connection: IndexConnection, only: Collection[str] | None = None) -> dict[str, str]:
    """Return files that look like notes and are not read, path -> why; of all, or of the paths in `only`."""
    found: dict[str, str] = dict(connection.execute("SELECT path, reason FROM passed_over"))
    return found if only is None else {path: found[path] for path in only if path in found}


def replace_passed_over(
    connection: IndexConnection, passed_over: Mapping[str, str], only: Collection[str] | None = None
) -> None:
    known = list_passed_over(connection, only)
    if known != dict(passed_over):
        connection.executemany("DELETE FROM passed_over WHERE path = ?", [(path,) for path in known])
        connection.executemany("INSERT INTO passed_over VALUES (?, ?)", sorted(passed_over.items()))


@Reading
def fetch_candidates(chunk_ids: Collection[int], scope: Scope = EVERYTHING) -> Steps[dict[int, Document]]:
    """Return those of `chunk_ids` that are in `scope`, but no bare headings of core notes: they ask for a text."""
    if not chunk_ids:
        return {}
    rows = yield query(
        f"SELECT {WITH_CHUNK} FROM chunks c JOIN documents d USING (doc_id) "
        f"WHERE chunk_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted)) {scope.and_chunks} "
        "AND NOT (d.kind = 'core' AND lower(c.text) IN (lower(d.title), lower(c.context)))",
        {"wanted": json.dumps(list(chunk_ids)), **scope.values},
    )
    return {row[_OF_CHUNK]: Document(*row) for row in rows}


def first_chunks(connection: IndexConnection, doc_ids: Collection[int]) -> set[int]:
    """Return the opening chunk of each document, but no turn of an episode: which turn matters is not known."""
    if not doc_ids:
        return set()
    wanted = f"SELECT chunk_id FROM chunks WHERE doc_id IN {IDS} AND ordinal = 0 AND turn IS NULL"
    return {chunk_id for (chunk_id,) in connection.execute(wanted, (json.dumps(list(doc_ids)),))}


def facts_of_sessions(connection: IndexConnection, sessions: Collection[str], scope: Scope, limit: int) -> set[int]:
    """Return the opening chunks of facts in `scope` that were learned in `sessions`, newest first."""
    rows = connection.execute(
        "SELECT c.chunk_id FROM documents d JOIN chunks c ON c.doc_id = d.doc_id AND c.ordinal = 0 "
        "WHERE d.session IN (SELECT value FROM json_each(:sessions)) AND d.kind = 'fact' "
        f"{scope.and_chunks} ORDER BY d.doc_id DESC LIMIT :limit",
        {"sessions": json.dumps(list(sessions)), "limit": limit, **scope.values},
    )
    return {chunk_id for (chunk_id,) in rows}


def fetch_edges(connection: IndexConnection, doc_ids: Collection[int]) -> dict[int, list[tuple[str, str, str]]]:
    wanted = f"SELECT doc_id, subject, relation, object FROM edges WHERE doc_id IN {IDS}"
    found: dict[int, list[tuple[str, str, str]]] = {}
    for doc_id, *edge in connection.execute(wanted, (json.dumps(list(doc_ids)),)):
        found.setdefault(doc_id, []).append((edge[0], edge[1], edge[2]))
    return found


def find_documents(
    connection: IndexConnection, where: str, values: Sequence[Any] | Mapping[str, Any] = (), *, with_text: bool = False
) -> list[Document]:
    """Return documents that match an SQL condition over `documents d`, by path; with their first chunks, if they have
    one, `with_text`.
    """
    # Sorted here: asked to sort by path, SQLite walks all documents in that order rather than look few up.
    columns, first = _DOCUMENT, ""
    if with_text:
        columns, first = WITH_CHUNK, "LEFT JOIN chunks c ON c.doc_id = d.doc_id AND c.ordinal = 0"
    rows = connection.execute(f"SELECT {columns} FROM documents d {first} WHERE {where}", values)
    return sorted((Document(*row) for row in rows), key=lambda document: document.path)


def read_documents(connection: IndexConnection, doc_ids: Collection[int]) -> dict[int, Document]:
    """Return these documents with their first chunks, by number."""
    found = find_documents(connection, f"d.doc_id IN {IDS}", (json.dumps(list(doc_ids)),), with_text=True)
    return {each.doc_id: each for each in found}


def find_called(connection: IndexConnection, names: Collection[str], ids: Collection[str]) -> list[Document]:
    """Return the notes whose files are called one of `names`, or that have one of `ids`, with their first chunks."""
    values = json.dumps(list_called(connection, names)), json.dumps(list(ids))
    return find_documents(connection, f"d.path IN {NAMES} OR d.id IN {NAMES}", values, with_text=True)


def find_by_text(connection: IndexConnection, text_hash: str, owner: str, until: str | None = None) -> Document | None:
    """Return the fact of `owner` that says exactly this and holds, for good or until the same day, else one that says
    it and was merged into another.
    """
    found = find_documents(
        connection,
        f"text_hash = ? AND owner = ? AND kind = 'fact' AND "
        f"({_MAY_BE_REPEATED} OR superseded_by IS NULL AND valid_until = ?)",
        (text_hash, owner, until),
    )
    return min(found, key=lambda document: document.superseded_by is not None, default=None)


def find_by_reference(connection: IndexConnection, reference: str, scope: Scope = EVERYTHING) -> list[Document]:
    """Return documents in `scope` whose id, path or session (of an episode) is `reference`, else those it is a name,
    title or alias of.
    """
    return find_by_identity(connection, reference, scope) or find_by_name(connection, reference, scope)


def find_by_identity(connection: IndexConnection, called: str, scope: Scope = EVERYTHING) -> list[Document]:
    """Return documents in `scope` whose id, path or session (of an episode) is `called`."""
    return find_documents(
        connection,
        "doc_id IN (SELECT doc_id FROM documents WHERE id = :called UNION "
        "SELECT doc_id FROM documents WHERE path = :called UNION "
        f"SELECT doc_id FROM documents WHERE session = :called AND kind = 'episode') {scope.and_documents}",
        {"called": called, **scope.values},
    )


def find_by_name(connection: IndexConnection, name: str, scope: Scope = EVERYTHING) -> list[Document]:
    """Return documents in `scope` that `name` is the file name, title or alias of, in any case."""
    return find_documents(
        connection,
        f"doc_id IN (SELECT doc_id FROM names WHERE name_key = :called) {scope.and_documents}",
        {"called": name_key(without_ending(name)), **scope.values},
    )


def list_names(connection: IndexConnection, begun: str, limit: int) -> list[str]:
    """Return at most `limit` file names, titles and aliases that begin with `begun`, in any case."""
    key = name_key(begun)
    rows = connection.execute(
        "SELECT name FROM names WHERE substr(name_key, 1, ?) = ? GROUP BY name ORDER BY min(name_key), name LIMIT ?",
        (len(key), key, limit),
    )
    return [name for (name,) in rows]


def text_of(connection: IndexConnection, doc_id: int, turn: int | None = None) -> str:
    """Return the text of a document, or of one turn of it; empty when there is no such turn."""
    rows = connection.execute(
        "SELECT text, turn, speaker FROM chunks WHERE doc_id = ?1 AND (turn = ?2 OR ?2 IS NULL) ORDER BY ordinal",
        (doc_id, turn),
    )
    return "\n\n".join(f"{speaker}: {text}" if turn is None and speaker else text for text, _, speaker in rows)


@Reading
def list_headings(chunk_ids: Collection[int]) -> Steps[dict[int, tuple[str, str]]]:
    """Return of each chunk that is no turn the headings over it, or what else is its context, and its keywords."""
    rows = yield query(
        "SELECT chunk_id, context, keywords "
        "FROM chunks WHERE chunk_id IN (SELECT chunk_id FROM given WHERE turn IS NULL)",
        {GIVEN: json.dumps(list(chunk_ids))},
    )
    return {chunk_id: (context, keywords) for chunk_id, context, keywords in rows}


def list_adjacent(
    connection: IndexConnection, chunk_ids: Collection[int], turns: int, sections: int
) -> list[tuple[int, int]]:
    """Return (chunk, adjacent chunk) pairs within a note, at most `turns` places apart for a piece of a turn and
    `sections` for any other.
    """
    return connection.execute(
        "SELECT c.chunk_id, b.chunk_id FROM chunks c JOIN chunks b ON b.doc_id = c.doc_id AND b.chunk_id <> c.chunk_id "
        "AND abs(b.ordinal - c.ordinal) <= CAST(CASE WHEN c.turn IS NULL THEN :sections ELSE :turns END AS INTEGER) "
        "WHERE c.chunk_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted))",
        {"wanted": json.dumps(list(chunk_ids)), "turns": turns, "sections": sections},
    ).fetchall()


def list_repeatable(connection: IndexConnection, chunk_ids: Collection[int], owner: str) -> list[Document]:
    """Return those of the chunks that are facts of `owner` and hold or were merged."""
    rows = connection.execute(
        # From the chunks to their documents: SQLite would rather look at all documents of the owner.
        f"SELECT {WITH_CHUNK} FROM chunks c CROSS JOIN documents d USING (doc_id) "
        f"WHERE chunk_id IN {IDS} AND kind = 'fact' AND owner = ? "
        f"AND {_MAY_BE_REPEATED}",
        (json.dumps(list(chunk_ids)), owner),
    )
    return [Document(*row) for row in rows]


def list_beginnings(
    connection: IndexConnection, references: Collection[str], scope: Scope = EVERYTHING
) -> dict[str, str]:
    """Return when each of the notes in `scope` that `references` (ids, paths or names) name began to hold: reference ->
    ISO date.
    """
    rows = connection.execute(
        "SELECT value, coalesce(d.valid_from, d.created) FROM json_each(:wanted) JOIN documents d "
        "ON d.doc_id IN (SELECT doc_id FROM documents WHERE id = value UNION SELECT doc_id FROM documents "
        "WHERE path IN (value, value || '.md') UNION SELECT doc_id FROM names WHERE name_key = lower(value)) "
        f"WHERE true {scope.and_documents}",
        {"wanted": json.dumps(list(references)), **scope.values},
    )
    return {reference: began for reference, began in rows if began is not None}


def count_by(connection: IndexConnection, column: str) -> dict[str, int]:
    rows = connection.execute(f"SELECT {column}, count(*) FROM documents GROUP BY 1 ORDER BY 2 DESC, 1")
    return {value: number for value, number in rows if value is not None}


def count(connection: IndexConnection) -> int:
    return int(connection.execute("SELECT count(*) FROM documents").get)


@Reading
def count_chunks(state: str | None = None) -> Steps[int]:
    """Return the number of chunks, with `state` only of those whose embedding is in it."""
    where, values = ("", {}) if state is None else ("WHERE embedded = :state", {"state": state})
    ((number,),) = yield query(f"SELECT number FROM (SELECT count(*) AS number FROM chunks {where}) n", values)
    return int(number)


def list_problems(connection: IndexConnection) -> list[tuple[str, str]]:
    """Return (path, sentence) for each problem of a note, including copies and ids that are used twice."""
    rows = connection.execute("SELECT path, problems FROM documents WHERE problems <> '[]'")
    found = [(path, problem) for path, problems in rows for problem in json.loads(problems)]
    return sorted([*found, *list_passed_over(connection).items(), *contents.list_copies(connection)])


_SPARE = 3
"""For each fact that is listed this many are looked at, as some of them are over."""


def list_living(connection: IndexConnection) -> list[Document]:
    """Return the facts that nothing has replaced, each with its first chunk, by path.

    Notes that share an id are left out, because the id is ambiguous.
    """
    rows = connection.execute(
        f"SELECT {WITH_CHUNK}, "
        "NOT EXISTS (SELECT 1 FROM chunks more WHERE more.doc_id = d.doc_id AND more.ordinal = 1) "
        "FROM documents d JOIN chunks c ON c.doc_id = d.doc_id AND c.ordinal = 0 "
        "WHERE kind = 'fact' AND superseded_by IS NULL "
        "AND id NOT IN (SELECT id FROM documents GROUP BY id HAVING count(*) > 1) ORDER BY path"
    )
    return [Document(*row) for row in rows]


def list_replaced_by(connection: IndexConnection, names: Collection[str]) -> list[str]:
    """Return paths of facts that say they were replaced by one of the notes called `names`."""
    found = find_documents(connection, f"kind = 'fact' AND superseded_by IN {NAMES}", (json.dumps(list(names)),))
    return [fact.path for fact in found]


REPLACING = "being replaced by"


@Reading
def list_pending() -> Steps[dict[int, tuple[str, int | None]]]:
    """Return the facts that an open question would replace or reject: in words, and the successor, None without one."""
    rows = yield query(
        "SELECT doc_id, reason, successor_key, successor "
        "FROM (SELECT f.doc_id, p.reason, p.successor_key, w.doc_id AS successor FROM pending p "
        "JOIN names n ON n.name_key = p.target_key AND n.position = 0 "
        "JOIN documents f ON f.doc_id = n.doc_id AND f.kind = 'fact' AND f.superseded_by IS NULL "
        "LEFT JOIN names m ON m.name_key = p.successor_key AND m.position = 0 "
        "LEFT JOIN documents w ON w.doc_id = m.doc_id AND w.kind = 'fact' AND w.superseded_by IS NULL "
        "ORDER BY f.doc_id, w.doc_id) asked"
    )
    return {
        doc_id: (REPLACING if successor else f"may be wrong: {reason}", successor)
        for doc_id, reason, key, successor in rows
        if successor or not key
    }


_NEWEST = "datetime(created) DESC, id DESC"
_WEIGHTIEST = f"pinned DESC, verified DESC, confirmations DESC, {_NEWEST}"
_HAS_A_DAY = "kind = 'fact' AND created IS NOT NULL"
_IS_PREFERENCE = f"{_HAS_A_DAY} AND type = 'preference'"


def list_first_paths(connection: IndexConnection, latest: int, preferences: int) -> list[str]:
    """Return the paths of the `latest` newest facts and of as many first preferences, of whatever scope."""
    rows = connection.execute(
        f"SELECT * FROM (SELECT path FROM documents WHERE {_HAS_A_DAY} ORDER BY {_NEWEST} LIMIT ?) UNION "
        f"SELECT * FROM (SELECT path FROM documents WHERE {_IS_PREFERENCE} ORDER BY {_WEIGHTIEST} LIMIT ?)",
        (latest, preferences),
    )
    return [path for (path,) in rows]


def list_latest_facts(
    connection: IndexConnection, scope: Scope, limit: int, today: str, *, preferences: bool = False
) -> list[tuple[str, str]]:
    """Return (created, text) of the `limit` newest facts in `scope` that hold on `today` (YYYY-MM-DD), newest first; or
    of `preferences`: first what is pinned or verified, then what was confirmed most often. A text ends with the day
    from which it is true, because the latest statement need not have the latest beginning.
    """
    which, order = (_IS_PREFERENCE, _WEIGHTIEST) if preferences else (_HAS_A_DAY, _NEWEST)
    rows = connection.execute(
        # Which they are first, their texts then: asked at once, SQLite fetches the text of every fact.
        f"SELECT {WITH_CHUNK} FROM (SELECT * FROM documents d WHERE {which} AND superseded_by IS NULL "
        f"{scope.and_documents} ORDER BY {order} LIMIT :limit) d "
        f"JOIN chunks c ON c.doc_id = d.doc_id AND c.ordinal = 0 ORDER BY {order}",
        {"limit": limit * _SPARE, **scope.values},
    )
    holding = [fact for fact in (Document(*row) for row in rows) if not endings.is_over(fact, today)]
    pending = list_pending(connection)
    wanted = {successor for fact in holding if (successor := pending.get(fact.doc_id, ("", None))[1])}
    chunks = fetch_candidates(connection, first_chunks(connection, wanted), scope) if wanted else {}
    texts = {each.doc_id: f" “{each.text}”" for each in chunks.values()}
    found = []
    # What is being replaced or has not begun comes last.
    last = [fact for fact in holding if fact.doc_id in pending or endings.is_coming(fact, today)]
    for fact in [*(fact for fact in holding if fact not in last), *last][:limit]:
        about = endings.tell_days(fact) if fact.valid_from else []
        word, successor = pending.get(fact.doc_id, ("", None))
        about += [word + texts.get(successor or 0, "")] if word and (not successor or successor in texts) else []
        found.append((fact.created or "", f"{fact.text} ({', '.join(about)})" if about else fact.text))
    return found


def fetch(
    connection: IndexConnection, wanted: Collection[tuple[str, int]]
) -> dict[tuple[str, int], tuple[Passage, str]]:
    """Return the passages that (path of the document, ordinal) name, each with its document's title."""
    rows = connection.execute(
        "SELECT d.path, p.ordinal, heading, p.text, first_line, last_line, title FROM json_each(?) AS wanted "
        "JOIN documents d ON d.path = wanted.value ->> 0 JOIN passages p USING (doc_id) "
        "WHERE p.ordinal = CAST(wanted.value ->> 1 AS INTEGER)",
        (json.dumps([list(one) for one in wanted]),),
    )
    return {
        (row[0], row[1]): (Passage(row[1], tuple(json.loads(row[2])), row[3], row[4], row[5]), row[6]) for row in rows
    }


class TurnChunks(NamedTuple):
    """A turn of an episode and its chunks, which are numbered one after the other."""

    number: int
    speaker: str | None
    first: int
    last: int

    @property
    def chunks(self) -> range:
        """The ids of its chunks."""
        return range(self.first, self.last + 1)


@Reading
def list_turns(chunk_ids: Collection[int]) -> Steps[dict[int, tuple[int, list[TurnChunks]]]]:
    """Return of each episode that has a turn among `chunk_ids` the size of its file in bytes and its turns in their
    order, by doc_id.
    """
    rows = yield query(
        "SELECT c.doc_id, d.size, c.turn, c.speaker, c.first, c.last "
        "FROM (SELECT doc_id, turn, min(speaker) AS speaker, min(chunk_id) AS first, max(chunk_id) AS last "
        "FROM chunks WHERE doc_id IN (SELECT doc_id FROM given WHERE turn IS NOT NULL) "
        "AND turn IS NOT NULL GROUP BY doc_id, turn) c JOIN documents d ON d.doc_id = c.doc_id",
        {GIVEN: json.dumps(list(chunk_ids))},
    )
    found: dict[int, tuple[int, list[TurnChunks]]] = {}
    for doc_id, size, *turn in sorted(rows, key=lambda row: row[4]):
        found.setdefault(doc_id, (size, []))[1].append(TurnChunks._make(turn))
    return found


@Reading
def list_speakers(scope: Scope) -> Steps[list[str]]:
    """Return who speaks in the conversations in `scope`."""
    documents = "" if scope.is_open else "JOIN documents d USING (doc_id)"
    rows = yield query(
        f"SELECT speaker FROM (SELECT DISTINCT c.speaker FROM chunks c {documents} "
        f"WHERE c.turn IS NOT NULL AND c.speaker IS NOT NULL {scope.and_chunks}) spoken",
        scope.values,
    )
    return [speaker for (speaker,) in rows]
