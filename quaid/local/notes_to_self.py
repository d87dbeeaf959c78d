"""Lines queued by `quaid note` until the next extraction of their session takes them along."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import apsw


class NotesToSelf:
    """A queue in local.db: what only this machine knows."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(30_000)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS notes_to_self "
            "(note_id INTEGER PRIMARY KEY, session TEXT, text TEXT NOT NULL, created TEXT NOT NULL)"
        )

    def add(self, text: str, session: str | None, now: datetime) -> None:
        self._connection.execute(
            "INSERT INTO notes_to_self (session, text, created) VALUES (?,?,?)", (session, text, now.isoformat())
        )

    def waiting(self, session: str) -> list[tuple[int, str]]:
        """(note_id, text) for `session` and for no session in particular, oldest first."""
        rows = self._connection.execute(
            "SELECT note_id, text FROM notes_to_self WHERE session = ? OR session IS NULL ORDER BY note_id", (session,)
        )
        return [(int(row[0]), str(row[1])) for row in rows]

    def remove(self, note_ids: list[int]) -> None:
        self._connection.executemany("DELETE FROM notes_to_self WHERE note_id = ?", [(i,) for i in note_ids])

    def count(self) -> int:
        row = self._connection.execute("SELECT count(*) FROM notes_to_self").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        self._connection.close()
