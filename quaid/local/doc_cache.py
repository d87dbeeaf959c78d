"""Results of reading documents and project files, in local.db: a file is not read again until it has changed."""

from collections.abc import Collection, Mapping
from typing import ClassVar

from quaid.local.tables import Tables

_MAX_EDITED = 10_000


class _Cache(Tables):
    """One table of values by name. Each has a key, which names everything that the value depends on."""

    COLUMNS: ClassVar[tuple[str, str, str]]
    """The table, the column of the names, and the column of the values (JSON)."""

    def read(self) -> dict[str, tuple[str, str]]:
        """Return name -> (key, value)."""
        table, name, value = self.COLUMNS
        return {row[0]: (row[1], row[2]) for row in self._rows(f"SELECT {name}, key, {value} FROM {table}")}

    def store(self, values: Mapping[str, tuple[str, str]], gone: Collection[str] = ()) -> None:
        """Store name -> (key, value), and delete the values of the names that are `gone`."""
        table, name, value = self.COLUMNS
        with self._transaction() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO {table} ({name}, key, {value}) VALUES (?,?,?)",
                [(each, *stored) for each, stored in values.items()],
            )
            connection.executemany(f"DELETE FROM {table} WHERE {name} = ?", [(each,) for each in gone])


class DocChecks(_Cache):
    """The last check of each document, and the files that agents have edited."""

    COLUMNS = ("doc_checks", "doc", "found")
    SCHEMA = """
-- The last check of one document: `key` names all that it rests on, `found` is JSON.
CREATE TABLE IF NOT EXISTS doc_checks (
    doc TEXT PRIMARY KEY, key TEXT NOT NULL, found TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- A file that an agent has edited and nobody was seen to commit; `at` is ISO 8601, UTC.
CREATE TABLE IF NOT EXISTS edited_sources (
    path TEXT PRIMARY KEY, at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

    def edited(self) -> list[str]:
        """Return the files that were edited and not seen to be committed."""
        return [str(row[0]) for row in self._rows("SELECT path FROM edited_sources ORDER BY path")]

    def note_edited(self, paths: Collection[str], at: str) -> None:
        """Remember that these files were edited."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO edited_sources (path, at) VALUES (?,?)", [(path, at) for path in paths]
            )
            newest = "SELECT path FROM edited_sources ORDER BY at DESC LIMIT ?"
            connection.execute(f"DELETE FROM edited_sources WHERE path NOT IN ({newest})", (_MAX_EDITED,))

    def forget_edited(self, paths: Collection[str]) -> None:
        """Forget files that are as HEAD has them."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM edited_sources WHERE path = ?", [(path,) for path in paths])


class ProjectNotes(_Cache):
    """The text that a session gets of each file of a project, by its path in the vault."""

    COLUMNS = ("project_notes", "path", "told")
    SCHEMA = """
-- What a session is told of one file: `key` names its bytes, `told` is JSON, without secrets.
CREATE TABLE IF NOT EXISTS project_notes (
    path TEXT PRIMARY KEY, key TEXT NOT NULL, told TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
    WAIT_MS = 100  # a session that begins does not wait for another process
