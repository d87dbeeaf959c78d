"""Lines queued by `quaid note` until the next extraction of their session takes them along."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import apsw

from quaid.errors import DiskFullError, LockedError, VaultReadOnlyError

_BUSY_MS = 30_000
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS notes_to_self "
    "(note_id INTEGER PRIMARY KEY, session TEXT, text TEXT NOT NULL, created TEXT NOT NULL)"
)


class NotesToSelf:
    """A queue in local.db: what only this machine knows.

    Raises:
        DiskFullError, LockedError, VaultReadOnlyError: from every method, as they say.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._translated():
            path.parent.mkdir(exist_ok=True)
            try:
                self._connection = _open(path)
            except (apsw.CorruptError, apsw.NotADBError):  # what it held is lost; it need not stand in the way
                path.replace(path.with_name(f"{path.name}.damaged"))
                self._connection = _open(path)

    def add(self, text: str, session: str | None, now: datetime) -> None:
        row = (session, text, now.isoformat())
        with self._translated():
            self._connection.execute("INSERT INTO notes_to_self (session, text, created) VALUES (?,?,?)", row)

    def waiting(self, session: str) -> list[tuple[int, str]]:
        """(note_id, text) for `session` and for no session in particular, oldest first."""
        query = "SELECT note_id, text FROM notes_to_self WHERE session = ? OR session IS NULL ORDER BY note_id"
        with self._translated():
            return [(int(row[0]), str(row[1])) for row in self._connection.execute(query, (session,))]

    def remove(self, note_ids: list[int]) -> None:
        with self._translated():
            self._connection.executemany("DELETE FROM notes_to_self WHERE note_id = ?", [(i,) for i in note_ids])

    def count(self) -> int:
        with self._translated():
            row = self._connection.execute("SELECT count(*) FROM notes_to_self").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except apsw.FullError as error:
            raise DiskFullError(self._path.parent) from error
        except apsw.BusyError as error:
            raise LockedError(f"{self._path.name} is in use by another process") from error
        except (apsw.CantOpenError, apsw.ReadOnlyError, OSError) as error:
            raise VaultReadOnlyError(self._path.parent, str(error)) from error


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(_BUSY_MS)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(_SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection
