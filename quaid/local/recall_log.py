"""What was asked and how recall did: one row a question, the newest 10,000 of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from quaid.local.gaps import Keep, question_key
from quaid.local.tables import readable
from quaid.redaction import admit

if TYPE_CHECKING:
    import apsw

SCHEMA = """
-- One recall. `query` is NULL when only its hash (`query_key`) may be kept. `hits` is [[id, score], …], best first.
CREATE TABLE IF NOT EXISTS recall_log (
    entry_id INTEGER PRIMARY KEY, at TEXT NOT NULL, query TEXT, query_key TEXT, door TEXT NOT NULL, depth TEXT NOT NULL,
    hit_limit INTEGER, hits TEXT NOT NULL, best REAL, took_ms REAL NOT NULL, stages TEXT NOT NULL,
    degraded TEXT NOT NULL, session TEXT
) STRICT;
"""
MOST_ENTRIES = 10_000
_COLUMNS = "at, query, query_key, door, depth, hit_limit, hits, took_ms, stages, degraded, session"


class Entry(NamedTuple):
    """One recall. `hits` are (memory id, score), best first; `stages` are milliseconds by name.

    `query` or `query_key` is None, as `recall.log` says.
    """

    at: str
    query: str | None
    door: str
    depth: str
    took_ms: float
    hits: tuple[tuple[str, float], ...]
    stages: Mapping[str, float]
    degraded: tuple[str, ...] = ()
    limit: int | None = None
    session: str | None = None
    query_key: str | None = None

    @property
    def best(self) -> float | None:
        return max((score for _, score in self.hits), default=None)


class RecallLog:
    """The log in local.db, behind a connection opened with `SCHEMA`."""

    def __init__(self, connection: apsw.Connection, keep: Keep = "text") -> None:
        self._connection = connection
        self._keep = keep

    def add(self, entry: Entry) -> None:
        """Keep `entry` as `recall.log` allows, and let go of what is older than the newest 10,000."""
        if self._keep == "off":
            return
        is_text = self._keep == "text"
        query = _safe(entry.query) if is_text else None
        key = None if is_text or entry.query is None else question_key(entry.query)
        self._connection.execute(
            f"INSERT INTO recall_log ({_COLUMNS}, best) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                entry.at, query, key, entry.door, entry.depth, entry.limit, json.dumps(entry.hits), entry.took_ms,
                json.dumps(entry.stages), json.dumps(entry.degraded), _safe(entry.session), entry.best,
            ),
        )  # fmt: skip
        newest = self._connection.last_insert_rowid()
        self._connection.execute("DELETE FROM recall_log WHERE entry_id <= ?", (newest - MOST_ENTRIES,))

    def recent(self, limit: int) -> list[Entry]:
        """The last `limit` entries, newest first."""
        rows = self._connection.execute(f"SELECT {_COLUMNS} FROM recall_log ORDER BY entry_id DESC LIMIT ?", (limit,))
        return list(readable(_entry, rows))


def _safe(text: str | None) -> str | None:
    return None if text is None else admit(text).text


def _entry(row: tuple[object, ...]) -> Entry:
    at, query, key, door, depth, limit, hits, took_ms, stages, degraded, session = row
    return Entry(
        at=str(at),
        query=None if query is None else str(query),
        door=str(door),
        depth=str(depth),
        took_ms=float(str(took_ms)),
        limit=None if limit is None else int(str(limit)),
        hits=tuple((str(hit_id), float(score)) for hit_id, score in json.loads(str(hits))),
        stages={str(name): float(took) for name, took in json.loads(str(stages)).items()},
        degraded=tuple(map(str, json.loads(str(degraded)))),
        session=None if session is None else str(session),
        query_key=None if key is None else str(key),
    )
