"""A read-only connection that notices when the index file was replaced under it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import apsw

from quaid.index import database


class IndexReader:
    """Opens index.db when asked, again when it is another file than before; with `owners` as these may see it."""

    def __init__(self, path: Path, owners: Callable[[], Collection[str]] | None = None) -> None:
        self._path = path
        self._owners = owners
        self._connection: apsw.Connection | None = None
        self._inode = 0

    def open(self) -> apsw.Connection | None:
        """The connection, None when there is no index (yet)."""
        inode = database.inode(self._path)
        if not inode:
            self.close()
            return None
        if self._connection is None or inode != self._inode:
            self.close()
            try:
                self._connection = database.connect_reader(self._path, self._owners() if self._owners else None)
            except apsw.Error:
                return None
            self._inode = inode
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
