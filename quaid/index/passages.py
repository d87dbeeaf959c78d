"""Passages of docs in the index: put in with their document, looked up for the hits that show them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from quaid.index.port import IndexConnection
from quaid.model import Passage


def insert(connection: IndexConnection, doc_id: int, passages: Iterable[Passage]) -> None:
    """Add the passages of a document; with it they go."""
    connection.executemany(
        "INSERT INTO passages (doc_id, ordinal, heading, text, first_line, last_line) VALUES (?,?,?,?,?,?)",
        [
            (doc_id, one.ordinal, json.dumps(one.heading, ensure_ascii=False), one.text, one.first_line, one.last_line)
            for one in passages
        ],
    )


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
