"""Vectors already computed, by the content they were computed from.

A cache in the strict sense: a damaged file is set aside and a new one begun, and losing it costs only time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from quaid.errors import DiskFullError, LockedError, VaultReadOnlyError

if TYPE_CHECKING:
    import apsw

_BUSY_MS = 30_000
_VERSION = 1
# A fingerprint is long and there are few of them, so a vector names its model by number.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS models (
    model INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS vectors (
    model INTEGER NOT NULL REFERENCES models,
    key TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (model, key)
);
"""
_SELECT = """
SELECT key, vector FROM vectors
WHERE model = (SELECT model FROM models WHERE fingerprint = ?) AND key IN (SELECT value FROM json_each(?))
"""
_INSERT = """
INSERT OR REPLACE INTO vectors (model, key, vector)
VALUES ((SELECT model FROM models WHERE fingerprint = ?), ?, ?)
"""
_PRUNE = """
DELETE FROM vectors WHERE rowid IN (
    SELECT rowid FROM vectors
    WHERE model NOT IN (SELECT model FROM models WHERE fingerprint IN (SELECT value FROM json_each(?)))
        OR key NOT IN (SELECT value FROM json_each(?))
    ORDER BY rowid DESC LIMIT -1 OFFSET ?
)
"""


class EmbeddingCache:
    """A SQLite file of float32 little-endian vectors by (fingerprint, key). Safe for several threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._inode = 0

    def get_many(self, fingerprint: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The vectors that are there, by key. A file that is absent, unreadable or damaged holds none.

        Raises:
            LockedError: another process kept the file locked for half a minute.
        """
        import apsw

        if not keys or (self._connection is None and not self._path.exists()):
            return {}
        with self._lock, self._guarded():
            try:
                return dict(self._open().execute(_SELECT, (fingerprint, json.dumps(list(keys)))))
            except (apsw.CantOpenError, apsw.ReadOnlyError):
                return {}
        return {}

    def put_many(self, fingerprint: str, items: Iterable[tuple[str, bytes]]) -> None:
        """Keep (key, vector) pairs, all or none; a pair that is there already is replaced.

        Raises:
            DiskFullError: the disk is full.
            VaultReadOnlyError: the file cannot be written.
            LockedError: another process kept the file locked for half a minute.
        """
        import apsw

        rows = [(fingerprint, key, vector) for key, vector in items]
        if not rows:
            return
        with self._lock:
            try:
                for _attempt in range(2):  # a damaged file is set aside by the first
                    with self._guarded():
                        self._write(fingerprint, rows)
                        return
            except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, OSError) as error:
                raise VaultReadOnlyError(self._path, str(error)) from error

    def prune(self, fingerprints: Iterable[str], keys: Iterable[str], spare: int) -> int:
        """Let go of vectors that are not of these models and keys, but for the `spare` newest; how many went.

        Raises: as `put_many`.
        """
        import apsw

        from quaid.sqlite import transaction

        named = (json.dumps(list(fingerprints)), json.dumps(list(keys)), spare)
        with self._lock, self._guarded():
            try:
                connection = self._open()
                with transaction(connection):
                    connection.execute(_PRUNE, named)
                    gone = connection.changes()
                if gone > spare:  # else the room is filled again soon
                    connection.execute("VACUUM")
            except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, OSError) as error:
                raise VaultReadOnlyError(self._path, str(error)) from error
            return gone
        return 0

    def close(self) -> None:
        """Release the file. The next call opens it again."""
        with self._lock:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _write(self, fingerprint: str, rows: list[tuple[str, str, bytes]]) -> None:
        from quaid.sqlite import transaction

        connection = self._open()
        with transaction(connection):
            connection.execute("INSERT OR IGNORE INTO models (fingerprint) VALUES (?)", (fingerprint,))
            connection.executemany(_INSERT, rows)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Sets a damaged file aside, so that the next call begins a new one."""
        import apsw

        try:
            yield
        except (apsw.NotADBError, apsw.CorruptError):
            self._set_aside()
        except apsw.FullError as error:
            raise DiskFullError(self._path) from error
        except apsw.BusyError as error:
            raise LockedError(f"{self._path.name} is in use by another process") from error

    def _open(self) -> apsw.Connection:
        if self._connection is not None:
            return self._connection
        import apsw

        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = apsw.Connection(str(self._path))
        self._connection = connection
        self._inode = self._path.stat().st_ino
        try:
            connection.set_busy_timeout(_BUSY_MS)
            connection.execute("PRAGMA synchronous = NORMAL")
            _prepare(connection)
        except BaseException:  # the next call begins anew, not with a file that has no tables
            self._close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _set_aside(self) -> None:
        """Rename the file, unless another process has done so already and the one that is there now is new."""
        self._close()
        with suppress(OSError):
            if self._path.stat().st_ino != self._inode:
                return
            self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))
            for suffix in ("-wal", "-shm"):
                self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)


def _prepare(connection: apsw.Connection) -> None:
    """Make the tables of a new file; one of another version is as good as damaged."""
    import apsw

    from quaid.sqlite import transaction, use_write_ahead_log

    version = connection.pragma("user_version")
    if version == _VERSION:
        return
    if version:
        raise apsw.CorruptError(f"written by another version ({version})")
    use_write_ahead_log(connection, _BUSY_MS)
    with transaction(connection):
        connection.execute(_SCHEMA)
        connection.pragma("user_version", _VERSION)
