"""The conversations that taught nothing, in local.db: no commit tells of them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from quaid.local.tables import Tables
from quaid.redaction import admit

_KEPT_DAYS = 90


class EmptyReading(NamedTuple):
    """On `day` (ISO, UTC) `turns` turns of a session taught nothing; without a `model` none was asked."""

    day: str
    session: str
    turns: int
    model: str | None


class EmptyReadings(Tables):
    """What was read in vain during the last 90 days."""

    SCHEMA = (
        "CREATE TABLE IF NOT EXISTS empty_readings "
        "(day TEXT NOT NULL, session TEXT NOT NULL, turns INTEGER NOT NULL, model TEXT) STRICT"
    )

    def add(self, found: EmptyReading) -> None:
        """Note a conversation, and delete the notes that are too old."""
        oldest = (date.fromisoformat(found.day) - timedelta(days=_KEPT_DAYS)).isoformat()
        with self._open() as connection:
            row = (found.day, admit(found.session).text, found.turns, found.model)
            connection.execute("INSERT INTO empty_readings VALUES (?,?,?,?)", row)
            connection.execute("DELETE FROM empty_readings WHERE day < ?", (oldest,))

    def since(self, day: str) -> list[EmptyReading]:
        """Return what was noted on `day` or later, oldest first."""
        query = "SELECT day, session, turns, model FROM empty_readings WHERE day >= ? ORDER BY day, rowid"
        return [EmptyReading(*row) for row in self._rows(query, day)]
