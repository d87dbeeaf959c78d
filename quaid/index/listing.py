"""Notes by what is known of them: kind, status, time, owner, project, and what they are about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from quaid.index import backlinks, documents, fulltext, graph, references
from quaid.index.documents import Document
from quaid.index.scope import Scope
from quaid.model import name_key

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

Sort = Literal["date", "title", "path", "kind"]
SORTS: tuple[str, ...] = get_args(Sort)
SUPERSEDED = "superseded"
"""Stands among the statuses for what was replaced."""
_ALL = 1_000_000
DATE = "coalesce(d.created, strftime('%Y-%m-%dT%H:%M:%SZ', d.mtime_ns / 1000000000, 'unixepoch'))"
_TEXT = "CASE WHEN d.kind = 'fact' THEN (SELECT text FROM chunks c WHERE c.doc_id = d.doc_id AND c.ordinal = 0) END"


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Which notes are listed: those that fit each field that is set. `since` and `until` are included."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    owner: str | None = None
    project: str | None = None
    since: date | None = None
    until: date | None = None


class ListedNote(NamedTuple):
    """A note, its date (when it was created, else when its file was last changed) and its text or title."""

    document: Document
    date: str
    text: str


def list_notes(connection: IndexConnection, wanted: NoteFilter, sort: Sort = "date") -> list[ListedNote]:
    """Return the notes that fit, the newest first or in the order of `sort`."""
    conditions, values = _conditions(connection, wanted)
    where = " AND ".join(conditions) or "true"
    found = documents.find_documents(connection, where, values)
    shown = {
        int(row[0]): (str(row[1] or ""), row[2])
        for row in connection.execute(f"SELECT d.doc_id, {DATE}, {_TEXT} FROM documents d WHERE {where}", values)
    }
    listed = [
        ListedNote(each, shown[each.doc_id][0], str(shown[each.doc_id][1] or each.title))
        for each in found
        if each.doc_id in shown
    ]
    if sort == "date":
        return sorted(listed, key=lambda note: note.date, reverse=True)
    if sort == "path":
        return listed
    return sorted(listed, key=lambda note: name_key(note.text if sort == "title" else note.document.kind))


def newest_chunks(connection: IndexConnection, scope: Scope, limit: int) -> list[int]:
    """Return the turns and the opening chunks of notes in `scope` that were said or made last, newest first."""
    rows = connection.execute(
        "SELECT chunk_id FROM chunks c JOIN documents d USING (doc_id) WHERE (c.turn IS NOT NULL OR c.ordinal = 0) "
        f"{scope.and_chunks} ORDER BY coalesce(c.said_at, d.created) DESC NULLS LAST, d.id DESC, c.ordinal DESC "
        "LIMIT :limit",
        {**scope.values, "limit": limit},
    )
    return [int(row[0]) for row in rows]


def list_values(connection: IndexConnection, column: Literal["owner", "project"]) -> list[str]:
    """Return the owners or projects that notes have, by name."""
    rows = connection.execute(f"SELECT DISTINCT {column} FROM documents WHERE {column} <> '' ORDER BY 1")
    return [str(row[0]) for row in rows]


def list_turns(connection: IndexConnection, doc_id: int) -> list[int]:
    """Return the numbers of the turns of an episode."""
    rows = connection.execute("SELECT DISTINCT turn FROM chunks WHERE doc_id = ? AND turn IS NOT NULL", (doc_id,))
    return [int(row[0]) for row in rows]


def _conditions(connection: IndexConnection, wanted: NoteFilter) -> tuple[list[str], dict[str, Any]]:
    among, numbered = "IN (SELECT value FROM json_each(:{}))", "IN (SELECT CAST(value AS INTEGER) FROM json_each(:{}))"
    values: dict[str, Any] = {}
    conditions = []
    for column, chosen in (("kind", wanted.kinds), ("type", wanted.types)):
        if chosen:
            conditions.append(f"d.{column} {among.format(column)}")
            values[column] = json.dumps(chosen)
    if wanted.statuses:
        replaced = "d.superseded_by IS NOT NULL"
        has_status = f"d.status {among.format('status')} AND NOT ({replaced})"
        conditions.append(f"({has_status}{f' OR {replaced}' if SUPERSEDED in wanted.statuses else ''})")
        values["status"] = json.dumps(wanted.statuses)
    for number, name in enumerate(wanted.about):
        conditions.append(f"d.doc_id {numbered.format(f'about{number}')}")
        values[f"about{number}"] = json.dumps(sorted(_list_about(connection, name)))
    for column, value in (("owner", wanted.owner), ("project", wanted.project)):
        if value is not None:
            conditions.append(f"d.{column} = :{column}")
            values[column] = value
    for name, sign, day in (("since", ">=", wanted.since), ("until", "<=", wanted.until)):
        if day is not None:
            conditions.append(f"substr({DATE}, 1, 10) {sign} :{name}")
            values[name] = day.isoformat()
    return conditions, values


def _list_about(connection: IndexConnection, name: str) -> set[int]:
    """Return the documents that are called so, link to it, have an edge with it, or have one of its names in a text. A
    path with a folder means that note alone.
    """
    if "/" in name and (meant := references.resolve(connection, name)):
        linking = (one.path for each in meant for one in backlinks.links_to(connection, each.document))
        return {each.document.doc_id for each in meant} | {one for one, _ in backlinks.list_paths(connection, linking)}
    key = name_key(name)
    keys = graph.find_entities(connection, [key]).get(key, set()) | {key}
    found = set(graph.documents_about(connection, keys, limit=_ALL))
    match = fulltext.match_any([phrase for phrase in map(fulltext.as_phrase, keys) if phrase])
    chunks = [chunk_id for chunk_id, _ in fulltext.search(connection, match, _ALL)]
    return found | {candidate.doc_id for candidate in documents.fetch_candidates(connection, chunks).values()}
