"""A read-only connection that notices when the index file was replaced under it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import apsw

from quaid.index.sqlite import database
from quaid.index.sqlite.connection import SqliteIndex


class IndexReader:
    """Opens index.db when asked, again when it is another file than before; with `owners` as these may see it."""

    def __init__(self, path: Path, owners: Collection[str] | None = None) -> None:
        self._path = path
        self._owners = owners
        self._connection: SqliteIndex | None = None

    def open(self) -> SqliteIndex | None:
        """Return the connection, None when there is no index (yet)."""
        if self._connection is not None and not self._connection.is_current():
            self.close()
        if self._connection is None:
            try:
                self._connection = database.connect_reader(self._path, self._owners)
            except apsw.Error:
                return None
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
