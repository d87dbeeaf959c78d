"""Notes by what is known of them: kind, status, time, owner, project, and what they are about."""

import json
import re
from collections.abc import Collection
from datetime import date
from operator import itemgetter
from typing import Any, Literal, NamedTuple, get_args

from quaid.index import documents, fulltext, graph, references
from quaid.index.documents import Document
from quaid.index.port import IndexConnection
from quaid.index.reading import Reading, Steps, query
from quaid.index.scope import Scope, compare_time
from quaid.model import Kind, name_key, note_name
from quaid.text.endings import list_days
from quaid.text.words import find_words
from quaid.text.zones import local_time, order_key

Sort = Literal["date", "title", "path", "kind"]
SORTS: tuple[str, ...] = get_args(Sort)
SUPERSEDED = "superseded"
"""The status of a replaced note."""
_ALL = 1_000_000
_MAX_INSTRUCTIONS = 400
"""Standing instructions that are read."""
DATE = "coalesce(d.created, strftime('%Y-%m-%dT%H:%M:%SZ', d.mtime_ns / 1000000000, 'unixepoch'))"


class NoteFilter(NamedTuple):
    """Which notes are listed: those that fit each field that is set. `since` and `until` are included."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    owner: str | None = None
    project: str | None = None
    tag: str | None = None
    text: str = ""
    since: date | None = None
    until: date | None = None


def list_notes(connection: IndexConnection, wanted: NoteFilter, sort: Sort = "date") -> list[tuple[str, Document]]:
    """Return the notes that fit, each with its date (when it was created, else when its file was last changed) and its
    text: what a fact says, how a conversation without a title begins, of others the title; the newest first or in the
    order of `sort`.
    """
    where, values = match_notes(connection, wanted)
    dates = dict(connection.execute(f"SELECT d.doc_id, {DATE} FROM documents d WHERE {where}", values))
    listed = [
        (dates[each.doc_id] or "", each if _is_named_by_text(each) else each._replace(text=each.title))
        for each in documents.find_documents(connection, where, values, with_text=True)
        if each.doc_id in dates
    ]
    if sort == "date":
        return sorted(listed, key=lambda note: order_key(note[0]), reverse=True)
    if sort == "path":
        return listed
    return sorted(listed, key=lambda note: name_key(note[1].text if sort == "title" else note[1].kind))


def _is_named_by_text(document: Document) -> bool:
    has_no_title = document.kind == Kind.EPISODE and document.title == note_name(document.path)
    return bool(document.text) and (document.kind == Kind.FACT or has_no_title)


def match_notes(connection: IndexConnection, wanted: NoteFilter) -> tuple[str, dict[str, Any]]:
    """Return the condition over `documents d` that the notes fulfil which fit, and its values."""
    values: dict[str, Any] = {}
    conditions = []
    for column, chosen in (("kind", wanted.kinds), ("type", wanted.types)):
        if chosen:
            conditions.append(f"d.{column} IN (SELECT value FROM json_each(:{column}))")
            values[column] = json.dumps(chosen)
    if wanted.statuses:
        replaced = "d.superseded_by IS NOT NULL"
        has_status = f"d.status IN (SELECT value FROM json_each(:status)) AND NOT ({replaced})"
        conditions.append(f"({has_status}{f' OR {replaced}' if SUPERSEDED in wanted.statuses else ''})")
        values["status"] = json.dumps(wanted.statuses)
    for number, name in enumerate(wanted.about):
        conditions.append(f"d.doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:about{number}))")
        values[f"about{number}"] = json.dumps(sorted(_list_about(connection, name)))
    for number, word in enumerate(find_words(wanted.text)):
        among = f"chunk_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:word{number}))"
        conditions.append(f"d.doc_id IN (SELECT doc_id FROM chunks WHERE {among})")
        chunk_ids, _ = connection.words.list_matches(fulltext.match_any([f"{word}*"]))
        values[f"word{number}"] = json.dumps(chunk_ids)
    given = {name: getattr(wanted, name) for name in ("owner", "project", "tag")}
    values |= {name: value for name, value in given.items() if value is not None}
    compared = {
        "owner": "d.owner = :owner",
        "project": "d.project = :project",
        "tag": "d.doc_id IN (SELECT doc_id FROM tags WHERE tag = :tag)",
    }
    conditions += [condition for name, condition in compared.items() if name in values]
    for name, sign in (("since", ">="), ("until", "<=")):
        if (bound := getattr(wanted, name)) is not None:
            condition, values[name] = compare_time(DATE, sign, name, bound)
            conditions.append(condition)
    return " AND ".join(conditions) or "true", values


def newest_chunks(connection: IndexConnection, scope: Scope, limit: int) -> list[int]:
    """Return the latest turns and opening chunks of notes in `scope`, newest first."""
    rows = connection.execute(
        "SELECT chunk_id FROM chunks c JOIN documents d USING (doc_id) WHERE (c.turn IS NOT NULL OR c.ordinal = 0) "
        f"{scope.and_chunks} ORDER BY datetime(coalesce(c.said_at, d.created)) DESC NULLS LAST, d.id DESC, "
        "c.ordinal DESC LIMIT :limit",
        {**scope.values, "limit": limit},
    )
    return [chunk_id for (chunk_id,) in rows]


@Reading
def list_instructions(scope: Scope) -> Steps[frozenset[int]]:
    """Return the chunks of facts, core notes and turns by a user to an assistant that hold standing instructions; of
    very many the newest.
    """
    rows = yield query(
        "SELECT chunk_id FROM (SELECT c.chunk_id FROM chunks c JOIN documents d USING (doc_id) WHERE c.instructs = 1 "
        f"{scope.and_chunks} ORDER BY c.chunk_id DESC LIMIT {_MAX_INSTRUCTIONS}) asked",
        scope.values,
    )
    return frozenset(chunk_id for (chunk_id,) in rows)


def list_rules(connection: IndexConnection, scope: Scope, limit: int) -> list[tuple[str, str]]:
    """Return (date, text) of standing instructions in `scope` that no fact repeats, the newest first."""
    found = documents.fetch_candidates(connection, list_instructions(connection, scope), scope)
    turns = {(note_name(each.path), each.turn): each for each in found.values() if each.turn is not None}
    for episode, turn, _ in graph.citing_chunks(connection, list(turns), scope):
        turns.pop((episode, turn), None)
    rules = [(each.said_at or each.created or "", each.text) for each in turns.values()]
    return sorted(rules, key=lambda rule: order_key(rule[0]), reverse=True)[:limit]


def list_values(connection: IndexConnection, column: Literal["owner", "project"]) -> list[str]:
    """Return the owners or projects that notes have, by name."""
    rows = connection.execute(f"SELECT DISTINCT {column} FROM documents WHERE {column} <> '' ORDER BY 1")
    return [value for (value,) in rows]


def list_turns(connection: IndexConnection, doc_id: int) -> list[int]:
    """Return the numbers of the turns of an episode, ascending."""
    wanted = "SELECT DISTINCT turn FROM chunks WHERE doc_id = ? AND turn IS NOT NULL ORDER BY turn"
    return [turn for (turn,) in connection.execute(wanted, (doc_id,))]


def _list_about(connection: IndexConnection, name: str) -> set[int]:
    """Return the documents that are called so, link to it, have an edge with it, or have one of its names in a text. A
    path with a folder means that note alone.
    """
    if "/" in name and (targets := references.resolve(connection, name)):
        linking = (one.path for each in targets for one in references.links_to(connection, each.document))
        return {*documents.find_paths(connection, set(linking)).values(), *(each.document.doc_id for each in targets)}
    key = name_key(name)
    keys = graph.find_entities(connection, [key]).get(key, set()) | {key}
    found = set(graph.documents_about(connection, keys, limit=_ALL))
    match = fulltext.match_any([phrase for phrase in map(fulltext.as_phrase, keys) if phrase])
    chunks = [chunk_id for chunk_id, _ in fulltext.search(connection, match, _ALL)]
    return found | {candidate.doc_id for candidate in documents.fetch_candidates(connection, chunks).values()}


class DatedFact(NamedTuple):
    """A fact that was true from the day `first` to the day `last` (ISO 8601)."""

    fact: Document
    first: str
    last: str


class Talk(NamedTuple):
    """A conversation: the path and title of its episode, how it begins, when it was, and how many turns and facts it
    has.
    """

    path: str
    title: str
    opening: str
    started: str
    source: str | None
    turns: int
    facts: int


class TurnText(NamedTuple):
    """A turn of a conversation; `id` is how a fact cites it. `said_at` is ISO 8601 with its offset."""

    id: str
    turn: int
    speaker: str | None
    said_at: str | None
    text: str


def list_learned(connection: IndexConnection, kind: str, timezone: str) -> list[tuple[str, int]]:
    """Return (time, doc_id) of the notes of `kind`, the newest first: when each was created, else when its file was
    last changed, by the clock of this machine, in UTC that of `timezone`.
    """
    rows = connection.execute(f"SELECT {DATE}, doc_id FROM documents d WHERE kind = ? ORDER BY path", (kind,))
    learned = ((local_time(date or "", timezone), doc_id) for date, doc_id in rows)
    return sorted(learned, key=itemgetter(0), reverse=True)


def count_undated(connection: IndexConnection) -> int:
    """Return how many facts hold that have neither a first nor a last day."""
    where = "kind = 'fact' AND superseded_by IS NULL AND coalesce(valid_from, valid_until) IS NULL"
    return int(connection.execute(f"SELECT count(*) FROM documents WHERE {where}").get)


def list_on_days(connection: IndexConnection, days: Collection[str]) -> list[Document]:
    """Return the facts that were created, begin, or name a day on one of `days` (MM-DD) of any year."""
    named = re.compile(f"-(?:{'|'.join(days)})/")
    rows = connection.execute("SELECT doc_id, days FROM chunks WHERE ordinal = 0 AND days <> ''")
    ids = json.dumps([doc_id for doc_id, spans in rows if named.search(spans)])
    where = (
        "d.kind = 'fact' AND (substr(d.created, 6, 5) IN (SELECT value FROM json_each(:days)) "
        "OR substr(d.valid_from, 6, 5) IN (SELECT value FROM json_each(:days)) "
        "OR d.doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:ids)))"
    )
    return documents.find_documents(connection, where, {"days": json.dumps(list(days)), "ids": ids}, with_text=True)


def list_dated(connection: IndexConnection) -> list[DatedFact]:
    """Return the facts that say when they were true; what began last first. Of one that was replaced nobody knows when
    nobody knows it.
    """
    where = "kind = 'fact' AND coalesce(valid_from, valid_until, '') <> '' "
    where += "AND (superseded_by IS NULL OR valid_until IS NOT NULL)"
    found = documents.find_documents(connection, where, with_text=True)
    return sorted((DatedFact(each, *list_days(each)) for each in found), key=lambda each: each.first, reverse=True)


def list_talks(connection: IndexConnection, doc_ids: Collection[int]) -> dict[int, Talk]:
    """Return these conversations."""
    rows: list[Any] = connection.execute(
        "SELECT doc_id, path, title, "
        "coalesce((SELECT text FROM chunks c WHERE c.doc_id = d.doc_id ORDER BY ordinal LIMIT 1), ''), "
        f"{DATE} AS started, source, "
        "(SELECT count(DISTINCT turn) FROM chunks c WHERE c.doc_id = d.doc_id), session "
        f"FROM documents d WHERE doc_id IN {documents.IDS}",
        (json.dumps(list(doc_ids)),),
    ).fetchall()
    keys = [name_key(note_name(path)) for _, path, *_ in rows]
    extracted = _list_extracted_ids(connection, [(key, session) for key, (*_, session) in zip(keys, rows, strict=True)])
    return {row[0]: Talk._make((*row[1:7], len(extracted[key]))) for key, row in zip(keys, rows, strict=True)}


def _list_extracted_ids(connection: IndexConnection, talks: Collection[tuple[str, str | None]]) -> dict[str, set[int]]:
    """Return the facts that cite each of `talks`, given as (key of its note's name, session), or name its session."""
    extracted: dict[str, set[int]] = {key: set() for key, _ in talks}
    for key, doc_id in connection.execute(
        "SELECT DISTINCT lower(episode), ci.doc_id FROM citations ci JOIN documents d ON d.doc_id = ci.doc_id "
        "WHERE d.kind = 'fact' AND lower(episode) IN (SELECT value FROM json_each(?))",
        (json.dumps(list(extracted)),),
    ):
        extracted[key].add(doc_id)
    keys = {session: key for key, session in talks if session}
    for session, doc_id in connection.execute(
        "SELECT session, doc_id FROM documents WHERE kind = 'fact' AND session IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    ):
        extracted[keys[session]].add(doc_id)
    return extracted


def read_turns(connection: IndexConnection, episode: Document, numbers: Collection[int]) -> list[TurnText]:
    """Return turns of an episode, in their order."""
    rows = connection.execute(
        "SELECT turn, speaker, said_at, text FROM chunks WHERE doc_id = ? "
        "AND turn IN (SELECT CAST(value AS INTEGER) FROM json_each(?)) ORDER BY turn, ordinal",
        (episode.doc_id, json.dumps(list(numbers))),
    )
    name = note_name(episode.path)
    turns: dict[int, TurnText] = {}
    for number, speaker, said_at, text in rows:
        first = turns.get(number)
        whole = f"{first.text}\n\n{text}" if first else text
        turns[number] = (
            first._replace(text=whole) if first else TurnText(f"{name}#t{number}", number, speaker, said_at, text)
        )
    return list(turns.values())


def list_extracted(connection: IndexConnection, path: str, session: str | None) -> list[tuple[int | None, Document]]:
    """Return (turn, fact) for each fact that rests on the episode at `path`, once for each turn of it that it cites;
    the turn of a fact that names only the conversation is None.
    """
    key = name_key(note_name(path))
    (doc_ids,) = _list_extracted_ids(connection, [(key, session)]).values()
    rows = connection.execute(
        f"SELECT ci.turn, {documents.WITH_CHUNK} FROM documents d JOIN chunks c ON c.doc_id = d.doc_id "
        "AND c.ordinal = 0 LEFT JOIN (SELECT DISTINCT doc_id, turn FROM citations WHERE lower(episode) = :key) ci "
        "ON ci.doc_id = d.doc_id "
        "WHERE d.doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:wanted)) ORDER BY ci.turn, d.path",
        {"key": key, "wanted": json.dumps(sorted(doc_ids))},
    )
    return [(turn, Document(*row)) for turn, *row in rows]
