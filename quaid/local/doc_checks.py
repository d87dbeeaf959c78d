"""What the last check of each document found, in local.db: nothing is read again while nothing has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from quaid.local.tables import Tables

_MOST_EDITED = 10_000


class DocChecks(Tables):
    """The last checks, and what agents have edited."""

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

    def read(self) -> dict[str, tuple[str, str]]:
        """Document -> (key, what was found)."""
        return {doc: (key, found) for doc, key, found in self._rows("SELECT doc, key, found FROM doc_checks")}

    def keep(self, checks: Mapping[str, tuple[str, str]], gone: Collection[str] = ()) -> None:
        """Keep these, and let go of those of the documents that are `gone`."""
        with self._transaction() as connection:
            rows = [(doc, *check) for doc, check in checks.items()]
            connection.executemany("INSERT OR REPLACE INTO doc_checks (doc, key, found) VALUES (?,?,?)", rows)
            connection.executemany("DELETE FROM doc_checks WHERE doc = ?", [(doc,) for doc in gone])

    def edited(self) -> list[str]:
        """Files that were edited and not seen to be committed."""
        return [str(row[0]) for row in self._rows("SELECT path FROM edited_sources ORDER BY path")]

    def note_edited(self, paths: Collection[str], at: str) -> None:
        """Remember that these files were edited."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO edited_sources (path, at) VALUES (?,?)", [(path, at) for path in paths]
            )
            newest = "SELECT path FROM edited_sources ORDER BY at DESC LIMIT ?"
            connection.execute(f"DELETE FROM edited_sources WHERE path NOT IN ({newest})", (_MOST_EDITED,))

    def forget_edited(self, paths: Collection[str]) -> None:
        """These are as HEAD has them."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM edited_sources WHERE path = ?", [(path,) for path in paths])
