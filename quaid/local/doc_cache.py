"""Results of reading documents and project files, in local.db: a file is not read again until it has changed."""

import json
from collections.abc import Collection, Mapping
from typing import ClassVar

from quaid.local.tables import Tables

_MAX_BLOBS = 20_000


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
    """The last check of each document."""

    COLUMNS = ("doc_checks", "doc", "found")
    SCHEMA = """
-- The last check of one document: `key` names all that it rests on, `found` is JSON.
CREATE TABLE IF NOT EXISTS doc_checks (
    doc TEXT PRIMARY KEY, key TEXT NOT NULL, found TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""


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


class BlobDefinitions(Tables):
    """What a version of a source file defines, by its blob and path (JSON). Hashes, and no text of the file."""

    SCHEMA = """
-- What one version of a source file defines: `key` names its blob and path, `found` is JSON.
CREATE TABLE IF NOT EXISTS definitions (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, found TEXT NOT NULL
) STRICT;
"""

    def known(self, keys: Collection[str]) -> dict[str, str]:
        """Return key -> definitions of those of `keys` that are stored."""
        chosen = "SELECT key, found FROM definitions WHERE key IN (SELECT value FROM json_each(?))"
        return {str(row[0]): str(row[1]) for row in self._rows(chosen, json.dumps(list(keys)))}

    def add(self, found: Mapping[str, str]) -> None:
        """Store definitions by key; the oldest make room."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO definitions (key, found) VALUES (?,?)", list(found.items()))
            connection.execute(
                "DELETE FROM definitions WHERE id <= (SELECT max(id) FROM definitions) - ?", (_MAX_BLOBS,)
            )
