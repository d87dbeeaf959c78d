"""What was made of the files of projects that a session is told of, in local.db, until the files are others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quaid.local.tables import Tables


class ProjectNotes(Tables):
    """What a session is told of each file."""

    SCHEMA = """
-- What a session is told of one file: `key` names its bytes, `told` is JSON, without secrets.
CREATE TABLE IF NOT EXISTS project_notes (
    path TEXT PRIMARY KEY, key TEXT NOT NULL, told TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
    WAIT_MS = 100  # a session that begins does not wait for another process

    def read(self) -> dict[str, tuple[str, str]]:
        """Path in the vault -> (key, what was made of it)."""
        return {path: (key, told) for path, key, told in self._rows("SELECT path, key, told FROM project_notes")}

    def keep(self, notes: Mapping[str, tuple[str, str]], gone: Collection[str]) -> None:
        """Keep these, and let go of those of the files that are `gone`."""
        with self._transaction() as connection:
            rows = [(path, *note) for path, note in notes.items()]
            connection.executemany("INSERT OR REPLACE INTO project_notes (path, key, told) VALUES (?,?,?)", rows)
            connection.executemany("DELETE FROM project_notes WHERE path = ?", [(path,) for path in gone])
