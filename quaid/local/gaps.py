"""What was asked and not found: knowledge gaps, by the hash of the question unless the owner wants its text."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from unicodedata import normalize

from quaid.redaction import admit

if TYPE_CHECKING:
    import apsw

SCHEMA = """
-- A question without an answer. `key` is SHA-256 of the normalised question, `text` NULL unless it may be kept.
CREATE TABLE IF NOT EXISTS gaps (
    key TEXT PRIMARY KEY, asked INTEGER NOT NULL, first_asked TEXT NOT NULL, last_asked TEXT NOT NULL, text TEXT
) STRICT, WITHOUT ROWID;
"""
MOST_GAPS = 10_000

Keep = Literal["text", "hashes", "off"]


class Gap(NamedTuple):
    """A question that found nothing: how often it was asked, and when (ISO 8601, UTC)."""

    key: str
    asked: int
    first_asked: str
    last_asked: str
    text: str | None = None


class Gaps:
    """The gaps in local.db, behind a connection opened with `SCHEMA`."""

    def __init__(self, connection: apsw.Connection, keep: Keep = "hashes") -> None:
        self._connection = connection
        self._keep = keep

    def record(self, question: str, now: datetime, *, answered: bool) -> None:
        """Note a question that found nothing; forget one that has found something at last."""
        if answered:
            if self._has_any():  # hashing costs a cold start more than all else here
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
            (MOST_GAPS,),
        )

    def close(self, key: str) -> bool:
        """Forget a gap; whether there was one."""
        return self._connection.execute("DELETE FROM gaps WHERE key = ? RETURNING key", (key,)).fetchone() is not None

    def recent(self, limit: int) -> list[Gap]:
        """The gaps asked last, newest first."""
        rows = self._connection.execute(
            "SELECT key, asked, first_asked, last_asked, text FROM gaps "
            "ORDER BY last_asked DESC, asked DESC, key LIMIT ?",
            (limit,),
        )
        return [Gap(*row) for row in rows]

    def count(self) -> int:
        row = self._connection.execute("SELECT count(*) FROM gaps").fetchone()
        return int(row[0]) if row else 0

    def _has_any(self) -> bool:
        return self._connection.execute("SELECT 1 FROM gaps LIMIT 1").fetchone() is not None


def normalise(question: str) -> str:
    """How questions are told apart: their words, whatever the case, spacing and punctuation."""
    return " ".join(re.findall(r"\w+", normalize("NFKC", question).casefold()))


def question_key(question: str) -> str:
    """SHA-256 of the normalised question, in hex."""
    import hashlib

    return hashlib.sha256(normalise(question).encode()).hexdigest()
