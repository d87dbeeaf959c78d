"""The notes that a question may see, as conditions that SQLite applies before anything is found.

A filter that is applied afterwards would leave an answer empty when all that was found belongs to others, and could
leak through whatever looked at it in between. So every channel, the graph and its names included, searches in a scope.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from quaid.index.port import IndexConnection


@dataclass(frozen=True, slots=True)
class Scope:
    """Conditions over `documents d` and, where a chunk may differ from its note, over `chunks c`.

    `values` are the named parameters of both. Empty conditions match everything.
    """

    documents: str = ""
    chunks: str = ""
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """True if all of the index is in it."""
        return not self.documents and not self.chunks

    @property
    def and_documents(self) -> str:
        return f"AND {self.documents}" if self.documents else ""

    @property
    def and_chunks(self) -> str:
        both = " AND ".join(part for part in (self.documents, self.chunks) if part)
        return f"AND {both}" if both else ""

    def join_documents(self, table: str) -> str:
        """Return the join that `and_documents` needs, for rows of `table` that have a `doc_id`."""
        return f"JOIN documents d ON d.doc_id = {table}.doc_id" if self.documents else ""

    def __hash__(self) -> int:
        return hash((self.documents, self.chunks, *self.values))

    def narrowed(self, documents: str, chunks: str = "", **values: object) -> "Scope":
        """Return this scope with one condition more."""
        return Scope(
            " AND ".join(part for part in (self.documents, documents) if part),
            " AND ".join(part for part in (self.chunks, chunks) if part),
            {**self.values, **values},
        )


EVERYTHING = Scope()


def compare_time(made: str, sign: str, name: str, bound: date) -> tuple[str, str]:
    """Return (the condition that the time `made` of a memory is on this side of a day or a moment, the value of its
    parameter `name`). A memory without a time of day is compared by its day, one without a date is on either side.
    """
    day = f"substr({made}, 1, 10)"
    if not isinstance(bound, datetime):
        return f"coalesce({day}, :{name}) {sign} :{name}", bound.isoformat()
    # Times of turns are stored to the minute.
    is_within = f"coalesce(substr(datetime({made}), 1, 16), :{name}) {sign} :{name}"
    by_day = f"length({made}) = 10 AND {day} {sign} '{bound:%Y-%m-%d}'"
    return f"({by_day} OR coalesce(length({made}), 0) <> 10 AND {is_within})", f"{bound.astimezone(UTC):%Y-%m-%d %H:%M}"


def list_chunks(connection: IndexConnection, scope: Scope) -> frozenset[int]:
    """Return the chunk_ids in `scope`."""
    rows = connection.execute(
        f"SELECT c.chunk_id FROM chunks c JOIN documents d USING (doc_id) WHERE true {scope.and_chunks}", scope.values
    )
    return frozenset(row[0] for row in rows)


PRIVATE = "private"
NOTE_TABLES = ("chunks", "passages", "names", "edges", "links", "tags", "pending", "citations")
"""The tables whose rows say what one note says."""


def is_visible(owner: str, privacy: str, owners: Collection[str]) -> bool:
    """Return whether one of `owners` may see a note of `owner`. The SQL below has the same rule."""
    return privacy != PRIVATE or owner in owners


def seen_by(document: str, owners: str) -> str:
    """Return the condition under which a row of documents is visible to the JSON list `owners`."""
    return f"({document}.privacy <> '{PRIVATE}' OR {document}.owner IN (SELECT value FROM json_each({owners})))"


def list_hidden(connection: IndexConnection, owners: Collection[str]) -> frozenset[str]:
    """Return the ids and paths of the notes that others than `owners` keep private."""
    hidden = f"SELECT id, path FROM documents d WHERE d.privacy = '{PRIVATE}' AND NOT {seen_by('d', ':owners')}"
    return frozenset(name for row in connection.execute(hidden, {"owners": json.dumps([*owners])}) for name in row)


def list_unclaimed(connection: IndexConnection, owners: Collection[str]) -> list[tuple[str, str]]:
    """Return (owner, path) of the notes not made by Quaid that are hidden from `owners` and may be theirs all the same:
    the name differs in case alone or, for the vault's own owner, nobody of this name has a memory here.
    """
    made = "('fact', 'entity', 'episode')"
    return connection.execute(
        f"SELECT owner, path FROM documents d WHERE d.privacy = '{PRIVATE}' AND NOT {seen_by('d', ':owners')} AND kind "
        f"NOT IN {made} AND (lower(owner) IN (SELECT lower(value) FROM json_each(:owners)) OR :is_own AND NOT EXISTS "
        f"(SELECT 1 FROM documents k WHERE k.owner = d.owner AND k.kind IN {made})) ORDER BY owner, path",
        {"owners": json.dumps([*owners]), "is_own": "default" in owners},
    ).fetchall()


def visible_to(connection: IndexConnection, owners: Collection[str]) -> Scope:
    """Return the scope without the private notes of others; `owners` are the names of the caller."""
    # From one owner to the next through the index: asked for DISTINCT, SQLite reads all of it.
    others = connection.execute(
        "WITH RECURSIVE found (owner) AS (SELECT min(owner) FROM documents UNION ALL "
        "SELECT (SELECT min(owner) FROM documents WHERE owner > found.owner) FROM found WHERE owner IS NOT NULL) "
        "SELECT owner FROM found WHERE owner IS NOT NULL AND EXISTS "
        f"(SELECT 1 FROM documents d WHERE d.owner = found.owner AND d.privacy = '{PRIVATE}')"
    )
    if all(owner in owners for (owner,) in others):
        return EVERYTHING
    return EVERYTHING.narrowed(seen_by("d", ":owners"), owners=json.dumps([*owners]))
