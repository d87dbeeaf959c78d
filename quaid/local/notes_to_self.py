"""Lines queued by `quaid note` until the next extraction of their session takes them along."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from quaid.local.database import open_local, translated
from quaid.redaction import admit

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS notes_to_self "
    "(note_id INTEGER PRIMARY KEY, session TEXT, text TEXT NOT NULL, created TEXT NOT NULL)"
)


class NotesToSelf:
    """A queue in local.db: what only this machine knows.

    Raises:
        DiskFullError, StateDamagedError, LockedError, VaultReadOnlyError: from every method, as they say.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_local(path, _SCHEMA)

    def add(self, text: str, session: str | None, now: datetime) -> None:
        row = (session and admit(session).text, admit(text).text, now.isoformat())
        with translated(self._connection):
            self._connection.execute("INSERT INTO notes_to_self (session, text, created) VALUES (?,?,?)", row)

    def waiting(self, session: str) -> list[tuple[int, str]]:
        """(note_id, text) for `session` and for no session in particular, oldest first."""
        query = "SELECT note_id, text FROM notes_to_self WHERE session = ? OR session IS NULL ORDER BY note_id"
        with translated(self._connection):
            return [(int(row[0]), str(row[1])) for row in self._connection.execute(query, (session,))]

    def remove(self, note_ids: list[int]) -> None:
        with translated(self._connection):
            self._connection.executemany("DELETE FROM notes_to_self WHERE note_id = ?", [(i,) for i in note_ids])

    def count(self) -> int:
        with translated(self._connection):
            row = self._connection.execute("SELECT count(*) FROM notes_to_self").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        self._connection.close()
