"""Caches vectors by the content they were computed from: a damaged file is replaced, and losing it costs only time."""

import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from quaid.errors import UnwritableError
from quaid.sqlite import DamageRetries, Database, VectorCache, open_database, transaction, translated

Result = TypeVar("Result")
TOLERANCE = 0.01
"""How far from 1 the square of a unit vector's length may be."""
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
_CACHED = """
FROM vectors
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


def is_unit(vector: bytes, dimension: int) -> bool:
    """Return whether `vector` is float32 [dimension], finite and of length 1, as every vector has to be."""
    import numpy as np

    if len(vector) != 4 * dimension:
        return False
    numbers = np.frombuffer(vector, "<f4").astype(np.float64)
    return bool(abs(numbers @ numbers - 1.0) < TOLERANCE)


class EmbeddingCache:
    """A SQLite file of little-endian float32 vectors by (fingerprint, key). Safe for several threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._connection: Database | None = None

    def get_many(self, fingerprint: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the vectors that are cached, by key. A file that is missing, unreadable or damaged has none.

        Raises:
            LockedError: another process held the lock for half a minute.
        """
        return dict(self._select("key, vector", fingerprint, keys))

    def count(self, fingerprint: str, keys: Sequence[str]) -> int:
        """Return how many of `keys` are cached."""
        return sum(number for (number,) in self._select("count(*)", fingerprint, keys))

    def put_many(self, fingerprint: str, items: Iterable[tuple[str, bytes]]) -> None:
        """Store (key, vector) pairs, all or none; a pair that exists is replaced.

        Raises:
            UnwritableError: the file cannot be written.
            LockedError: another process held the lock for half a minute.
        """

        def write(connection: Database) -> None:
            with transaction(connection):
                connection.execute("INSERT OR IGNORE INTO models (fingerprint) VALUES (?)", (fingerprint,))
                connection.executemany(_INSERT, rows)

        rows = [(fingerprint, key, vector) for key, vector in items]
        if rows:
            self._use(write)

    def prune(self, fingerprints: Iterable[str], keys: Iterable[str], spare: int) -> int:
        """Delete vectors that are not of these models and keys, except the `spare` newest; return their number.

        Raises: as `put_many`.
        """
        named = (json.dumps(list(fingerprints)), json.dumps(list(keys)), spare)

        def prune(connection: Database) -> int:
            with transaction(connection):
                connection.execute(_PRUNE, named)
                gone = connection.changes()
            if gone > spare:  # else the space is filled again soon
                connection.execute("VACUUM")
            return gone

        return self._use(prune)

    def close(self) -> None:
        """Release the file. The next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _select(self, columns: str, fingerprint: str, keys: Sequence[str]) -> list[tuple[Any, ...]]:
        if not keys or (self._connection is None and not os.path.lexists(self._path)):
            return []
        asked = (fingerprint, json.dumps(list(keys)))
        with suppress(UnwritableError):
            return self._use(lambda connection: connection.execute(f"SELECT {columns} {_CACHED}", asked).fetchall())
        return []

    def _use(self, work: Callable[[Database], Result]) -> Result:
        """Return what `work` returns for the file, or for a new one if it is damaged."""
        retries = DamageRetries(self._path)
        while True:
            with self._lock, translated(self._path), retries:
                if self._connection is not None and not self._connection.is_current():
                    self.close()
                if self._connection is None:
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    self._connection = open_database(self._path, VectorCache)
                    self._connection.execute(f"{_SCHEMA} PRAGMA synchronous = NORMAL")
                return work(self._connection)
