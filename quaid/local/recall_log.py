"""The log of recalls, and the gaps: the questions that found nothing. Texts are kept only as the settings allow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from unicodedata import normalize

from quaid.local.tables import parse_rows
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
-- A question without an answer. `key` is SHA-256 of the normalised question, `text` NULL unless it may be kept.
CREATE TABLE IF NOT EXISTS gaps (
    key TEXT PRIMARY KEY, asked INTEGER NOT NULL, first_asked TEXT NOT NULL, last_asked TEXT NOT NULL, text TEXT
) STRICT, WITHOUT ROWID;
"""
MAX_ENTRIES = 10_000
MAX_GAPS = 10_000
_COLUMNS = "at, query, door, depth, took_ms, hits, stages, degraded, hit_limit, session, query_key"

Keep = Literal["text", "hashes", "off"]
"""The form in which a question is kept."""


class RecallEntry(NamedTuple):
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
    """The log in local.db, on a connection opened with `SCHEMA`."""

    def __init__(self, connection: apsw.Connection, keep: Keep = "text") -> None:
        self._connection = connection
        self._keep = keep

    def add(self, entry: RecallEntry) -> None:
        """Add `entry` as `recall.log` allows, and delete all but the newest 10,000."""
        if self._keep == "off":
            return
        is_text = self._keep == "text"
        query = _safe(entry.query) if is_text else None
        key = None if is_text or entry.query is None else question_key(entry.query)
        texts = map(json.dumps, (entry.hits, entry.stages, entry.degraded))
        self._connection.execute(
            f"INSERT INTO recall_log ({_COLUMNS}, best) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            (entry.at, query, *entry[2:5], *texts, entry.limit, _safe(entry.session), key, entry.best),
        )
        newest = self._connection.last_insert_rowid()
        self._connection.execute("DELETE FROM recall_log WHERE entry_id <= ?", (newest - MAX_ENTRIES,))

    def recent(self, limit: int) -> list[RecallEntry]:
        """Return the last `limit` entries, newest first."""
        rows = self._connection.execute(f"SELECT {_COLUMNS} FROM recall_log ORDER BY entry_id DESC LIMIT ?", (limit,))
        return list(parse_rows(_entry, rows))

    def unanswered(self) -> list[str]:
        """Return the questions without a hit, each once, oldest first, where their words are kept."""
        rows = self._connection.execute(
            "SELECT query FROM recall_log WHERE hits = '[]' AND query IS NOT NULL GROUP BY query ORDER BY max(entry_id)"
        )
        return [str(row[0]) for row in rows]


class Gap(NamedTuple):
    """A question that found nothing: how often it was asked, and when (ISO 8601, UTC)."""

    key: str
    asked: int
    first_asked: str
    last_asked: str
    text: str | None = None


class Gaps:
    """The gaps in local.db, on a connection opened with `SCHEMA`."""

    def __init__(self, connection: apsw.Connection, keep: Keep = "hashes") -> None:
        self._connection = connection
        self._keep = keep

    def record(self, question: str, now: datetime, *, answered: bool) -> None:
        """Count a question that found nothing; delete one that has found something at last."""
        if answered:
            if self._connection.execute("SELECT 1 FROM gaps LIMIT 1").fetchone():  # hashing is slow in a cold start
                self.close(question_key(question))
            return
        asked = normalise(question)
        if self._keep == "off" or not asked:  # a question without a word asks for nothing
            return
        when = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = " ".join(admit(question).text.split()) if self._keep == "text" else None
        self._connection.execute(
            "INSERT INTO gaps (key, asked, first_asked, last_asked, text) VALUES (?1, 1, ?2, ?2, ?3) "
            "ON CONFLICT (key) DO UPDATE SET "
            "asked = asked + 1, last_asked = max(last_asked, excluded.last_asked), text = excluded.text",
            (question_key(question), when, text),
        )
        self._connection.execute(
            "DELETE FROM gaps WHERE key IN (SELECT key FROM gaps ORDER BY last_asked DESC LIMIT -1 OFFSET ?)",
            (MAX_GAPS,),
        )

    def close(self, key: str) -> bool:
        """Delete a gap; return whether there was one."""
        return self._connection.execute("DELETE FROM gaps WHERE key = ? RETURNING key", (key,)).fetchone() is not None

    def recent(self, limit: int) -> list[Gap]:
        """Return the gaps asked last, newest first."""
        rows = self._connection.execute(
            "SELECT key, asked, first_asked, last_asked, text FROM gaps "
            "ORDER BY last_asked DESC, asked DESC, key LIMIT ?",
            (limit,),
        )
        return [Gap(*row) for row in rows]

    def count(self) -> int:
        """Return the number of gaps."""
        row = self._connection.execute("SELECT count(*) FROM gaps").fetchone()
        return int(row[0]) if row else 0


def normalise(question: str) -> str:
    """Return the words of `question` without case, spacing and punctuation: by them questions are told apart."""
    return " ".join(re.findall(r"\w+", normalize("NFKC", question).casefold()))


def question_key(question: str) -> str:
    """Return SHA-256 of the normalised question, in hex."""
    import hashlib

    return hashlib.sha256(normalise(question).encode()).hexdigest()


def _safe(text: str | None) -> str | None:
    return None if text is None else admit(text).text


def _entry(row: tuple[Any, ...]) -> RecallEntry:
    entry = RecallEntry(*row)
    hits, stages, degraded = map(json.loads, row[5:8])
    return entry._replace(
        hits=tuple((str(hit_id), float(score)) for hit_id, score in hits),
        stages={str(name): float(took) for name, took in stages.items()},
        degraded=tuple(map(str, degraded)),
    )
