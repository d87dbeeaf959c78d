"""Results of reading documents and their sources, in local.db: a file is not read again until it has changed."""

import json
from collections.abc import Collection, Mapping

from quaid.local.tables import Tables

_MAX_BLOBS = 20_000


class DocChecks(Tables):
    """The last check of each document (JSON). Each has a key, which names everything that it depends on."""

    SCHEMA = """
-- The last check of one document: `key` names all that it rests on, `found` is JSON.
CREATE TABLE IF NOT EXISTS doc_checks (
    doc TEXT PRIMARY KEY, key TEXT NOT NULL, found TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""

    def read(self) -> dict[str, tuple[str, str]]:
        """Return document -> (key, check)."""
        return {doc: (key, found) for doc, key, found in self._rows("SELECT doc, key, found FROM doc_checks")}

    def store(self, checks: Mapping[str, tuple[str, str]], gone: Collection[str] = ()) -> None:
        """Store document -> (key, check), and delete the checks of the documents that are `gone`."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO doc_checks (doc, key, found) VALUES (?,?,?)",
                [(doc, *check) for doc, check in checks.items()],
            )
            connection.executemany("DELETE FROM doc_checks WHERE doc = ?", [(doc,) for doc in gone])


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
