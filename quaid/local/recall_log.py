"""What local.db records of recalls: their log, the questions that found nothing (gaps), and the uses of memories.

The functions take a connection that was opened with `SCHEMA`. Texts are stored only as the settings allow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from unicodedata import normalize

from quaid.local.tables import parse_rows
from quaid.model import Use
from quaid.redaction import admit

if TYPE_CHECKING:
    import apsw

SCHEMA = """
-- One recall. `query` is NULL when only its hash (`query_key`) may be stored. `hits` is [[id, score], …], best first.
CREATE TABLE IF NOT EXISTS recall_log (
    entry_id INTEGER PRIMARY KEY, at TEXT NOT NULL, query TEXT, query_key TEXT, door TEXT NOT NULL, depth TEXT NOT NULL,
    hit_limit INTEGER, hits TEXT NOT NULL, best REAL, took_ms REAL NOT NULL, stages TEXT NOT NULL,
    degraded TEXT NOT NULL, session TEXT
) STRICT;
-- A question without an answer. `key` is SHA-256 of the normalised question, `text` NULL unless it may be stored.
CREATE TABLE IF NOT EXISTS gaps (
    key TEXT PRIMARY KEY, asked INTEGER NOT NULL, first_asked TEXT NOT NULL, last_asked TEXT NOT NULL, text TEXT
) STRICT, WITHOUT ROWID;
-- The uses of one memory. Strength is in ten-thousandths, so that a sum does not depend on its order.
CREATE TABLE IF NOT EXISTS uses (
    id TEXT PRIMARY KEY, accesses INTEGER NOT NULL, last_access TEXT NOT NULL, strength INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
MAX_ENTRIES = 10_000
MAX_GAPS = 10_000
_COLUMNS = "at, query, door, depth, took_ms, hits, stages, degraded, hit_limit, session"
_USE = "id, accesses, last_access, strength"
BASE_GAIN = 0.05
DIFFICULTY_BONUS = 3.0
_STRENGTH_UNIT = 10_000

Storage = Literal["text", "hashes", "off"]
"""The form in which a question is stored."""


class RecallEntry(NamedTuple):
    """One recall. `hits` are (memory id, score), best first; `stages` are milliseconds by name.

    `query` is None where `recall.log` stores hashes.
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

    @property
    def best(self) -> float | None:
        return max((score for _, score in self.hits), default=None)


class Gap(NamedTuple):
    """A question that found nothing: how often it was asked, and when (ISO 8601, UTC)."""

    key: str
    asked: int
    first_asked: str
    last_asked: str
    text: str | None = None


# -- the log ----------------------------------------------------------------------------------------------------------


def add_entry(connection: apsw.Connection, entry: RecallEntry, storage: Storage = "text") -> None:
    """Add `entry` in the form of `recall.log`, and delete all but the newest 10,000."""
    if storage == "off":
        return
    is_text = storage == "text"
    query = _redact(entry.query) if is_text else None
    key = None if is_text or entry.query is None else question_key(entry.query)
    texts = map(json.dumps, (entry.hits, entry.stages, entry.degraded))
    connection.execute(
        f"INSERT INTO recall_log ({_COLUMNS}, query_key, best) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        (entry.at, query, *entry[2:5], *texts, entry.limit, _redact(entry.session), key, entry.best),
    )
    newest = connection.last_insert_rowid()
    connection.execute("DELETE FROM recall_log WHERE entry_id <= ?", (newest - MAX_ENTRIES,))


def list_entries(connection: apsw.Connection, limit: int) -> list[RecallEntry]:
    """Return the last `limit` entries, newest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM recall_log ORDER BY entry_id DESC LIMIT ?", (limit,))
    return list(parse_rows(_entry, rows))


def list_unanswered(connection: apsw.Connection) -> list[str]:
    """Return the questions without a hit, each once, oldest first, if their text is stored."""
    rows = connection.execute(
        "SELECT query FROM recall_log WHERE hits = '[]' AND query IS NOT NULL GROUP BY query ORDER BY max(entry_id)"
    )
    return [str(row[0]) for row in rows]


# -- the gaps ---------------------------------------------------------------------------------------------------------


def record_gap(
    connection: apsw.Connection, question: str, now: datetime, *, is_answered: bool, storage: Storage = "hashes"
) -> None:
    """Count a question that found nothing, in the form of `recall.gaps`; delete the gap of one that is answered."""
    if is_answered:
        if connection.execute("SELECT 1 FROM gaps LIMIT 1").fetchone():  # hashing is slow in a cold start
            close_gap(connection, question_key(question))
        return
    if storage == "off" or not normalise(question):  # a question without a word asks for nothing
        return
    text = " ".join(admit(question).text.split()) if storage == "text" else None
    connection.execute(
        "INSERT INTO gaps (key, asked, first_asked, last_asked, text) VALUES (?1, 1, ?2, ?2, ?3) "
        "ON CONFLICT (key) DO UPDATE SET "
        "asked = asked + 1, last_asked = max(last_asked, excluded.last_asked), text = excluded.text",
        (question_key(question), render_moment(now), text),
    )
    connection.execute(
        "DELETE FROM gaps WHERE key IN (SELECT key FROM gaps ORDER BY last_asked DESC LIMIT -1 OFFSET ?)", (MAX_GAPS,)
    )


def close_gap(connection: apsw.Connection, key: str) -> None:
    """Delete a gap."""
    connection.execute("DELETE FROM gaps WHERE key = ?", (key,))


def list_gaps(connection: apsw.Connection, limit: int) -> list[Gap]:
    """Return the gaps asked last, newest first."""
    rows = connection.execute(
        "SELECT key, asked, first_asked, last_asked, text FROM gaps ORDER BY last_asked DESC, asked DESC, key LIMIT ?",
        (limit,),
    )
    return [Gap(*row) for row in rows]


def count_gaps(connection: apsw.Connection) -> int:
    """Return the number of gaps."""
    ((number,),) = connection.execute("SELECT count(*) FROM gaps")
    return int(number)


# -- the uses ---------------------------------------------------------------------------------------------------------


def count_uses(connection: apsw.Connection, recalled: Mapping[str, float], now: datetime) -> None:
    """Count a recall of each memory, id -> difficulty in [0, 1]; the harder it was to find, the more it gains: 0.05 *
    (1 + 3 * difficulty).
    """
    connection.executemany(
        "INSERT INTO uses (id, accesses, last_access, strength) VALUES (?, 1, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "accesses = accesses + 1, last_access = max(last_access, excluded.last_access), "
        "strength = strength + excluded.strength",
        [
            (note_id, render_moment(now), round(BASE_GAIN * (1 + DIFFICULTY_BONUS * difficulty) * _STRENGTH_UNIT))
            for note_id, difficulty in recalled.items()
        ],
    )


def find_uses(connection: apsw.Connection, ids: Iterable[str]) -> dict[str, Use]:
    """Return the use of these memories; an id that was never used is left out."""
    query = f"SELECT {_USE} FROM uses WHERE id IN (SELECT value FROM json_each(?))"
    rows = connection.execute(query, (json.dumps(list(ids)),))
    return {note_id: Use(accesses, last, strength / _STRENGTH_UNIT) for note_id, accesses, last, strength in rows}


def list_most_used(connection: apsw.Connection, limit: int) -> list[tuple[str, Use]]:
    """Return the memories recalled most often, most first."""
    query = f"SELECT {_USE} FROM uses ORDER BY accesses DESC, last_access DESC, id LIMIT ?"
    rows = connection.execute(query, (limit,))
    return [(note_id, Use(accesses, last, strength / _STRENGTH_UNIT)) for note_id, accesses, last, strength in rows]


# -- forms ------------------------------------------------------------------------------------------------------------


def render_moment(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def normalise(question: str) -> str:
    """Return the words of `question` without case, spacing and punctuation: they identify a question."""
    return " ".join(re.findall(r"\w+", normalize("NFKC", question).casefold()))


def question_key(question: str) -> str:
    """Return SHA-256 of the normalised question, in hex."""
    import hashlib

    return hashlib.sha256(normalise(question).encode()).hexdigest()


def _redact(text: str | None) -> str | None:
    return None if text is None else admit(text).text


def _entry(row: tuple[Any, ...]) -> RecallEntry:
    entry = RecallEntry(*row)
    hits, stages, degraded = map(json.loads, row[5:8])
    return entry._replace(
        hits=tuple((str(hit_id), float(score)) for hit_id, score in hits),
        stages={str(name): float(took) for name, took in stages.items()},
        degraded=tuple(map(str, degraded)),
    )
