"""Opening index.db: one writer (sync), any number of read-only readers."""

import json
import os
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import apsw

from quaid.index.scope import NOTE_TABLES, seen_by
from quaid.index.sqlite.connection import SqliteIndex, enable_vectors
from quaid.sqlite import BUSY_MS, connect, open_database

_WRITERS = (
    "synchronous = NORMAL", "foreign_keys = ON", "temp_store = MEMORY",
    # In kB. The rows of one note go to pages all over the file: with SQLite's usual 2 MB a first sync of 40,000 notes
    # writes and reads each page several times, a third more work.
    "cache_size = -64000",
    # Shrink the log after a first sync; otherwise it stays that large while any process has the index open.
    "journal_size_limit = 64000000",
)  # fmt: skip

DatabaseError = apsw.Error
"""The errors of the index, under a name for callers that do not import the SQLite library."""


def connect_writer(path: Path, wait_ms: int = BUSY_MS) -> tuple[SqliteIndex, bool]:
    """Return the one connection that may write, for sync alone. Makes the schema when the file is new.

    An index of another schema version is emptied, to be filled again; the second value says so.
    """
    connection = open_database(path, SqliteIndex, wait_ms)
    enable_vectors(connection)
    for pragma in _WRITERS:
        connection.execute(f"PRAGMA {pragma}")
    return connection, connection.is_outdated


def make_in_memory() -> SqliteIndex:
    """Return an empty index that is gone with the connection."""
    connection = SqliteIndex(":memory:")
    for pragma in _WRITERS:
        connection.execute(f"PRAGMA {pragma}")
    with connection.transaction():
        connection.begin()
    return connection


def copy_in_memory(index: SqliteIndex, owners: Collection[str]) -> SqliteIndex:
    """Return a copy of `index` that shows what `owners` may see, and no more."""
    connection = SqliteIndex(":memory:")
    enable_vectors(connection)
    with connection.backup("main", index, "main") as backup:
        backup.step()
    restrict_to(connection, owners)
    return connection


def connect_reader(path: Path, owners: Collection[str] | None = None) -> SqliteIndex:
    """Return a connection SQLite itself keeps from writing; with `owners` it shows what these may see, and no more.

    Raises:
        apsw.CantOpenError: there is no index yet.
        apsw.NotADBError: it is something else.
    """
    try:
        return _open_reader(path, owners)
    except apsw.CantOpenError:
        # A WAL index that its last writer has closed needs a place for its lock files. On a disk that takes no writes
        # there is none, and nobody who would change it.
        if os.path.exists(f"{path}-wal") or os.access(path.parent, os.W_OK):  # noqa: PTH110 - on the path of every recall
            raise
        return _open_reader(path, owners, "immutable=1")


def _open_reader(path: Path, owners: Collection[str] | None, options: str = "") -> SqliteIndex:
    connection = connect(path, apsw.SQLITE_OPEN_READONLY, options, SqliteIndex)
    try:
        connection.execute("PRAGMA cache_size = -16000")
        # No mmap: a file that somebody cuts short under a mapping kills the process (SIGBUS).
        connection.execute("PRAGMA temp_store = MEMORY")  # first of all: it drops whatever is temporary
        # The file is opened by the first read.
        connection.check_application()
        connection.is_current()
        if owners is not None:
            restrict_to(connection, owners)
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def copy(source: Path, target: Path) -> None:
    """Copy the index at `source`, as it is in one moment, to `target`.

    Raises:
        apsw.Error: as SQLite says, also when `source` is damaged.
    """
    writer, _ = connect_writer(target)
    with closing(writer), closing(connect_reader(source)) as reader, writer.backup("main", reader, "main") as backup:
        backup.step()


def find_inconsistencies(connection: SqliteIndex) -> list[str]:
    """Return sentences about what is wrong inside the index itself: SQLite's own check, words and vectors without a
    chunk.
    """
    found = [str(row[0]) for row in connection.execute("PRAGMA quick_check") if row[0] != "ok"]
    ready = "SELECT chunk_id FROM chunks WHERE embedded = 'ready'"
    derived = [("words", "id FROM fulltext_docsize", "SELECT chunk_id FROM chunks")]
    if newest := connection.execute("SELECT max(embedder_id) FROM embedders").get:
        derived.append(("vectors", f"rowid FROM vectors_{newest}_rowids", ready))
    for label, rows, owners in derived:
        orphans, missing = connection.execute(
            f"SELECT (SELECT count(*) FROM (SELECT {rows} EXCEPT SELECT chunk_id FROM chunks)),"
            f"(SELECT count(*) FROM ({owners} EXCEPT SELECT {rows}))"
        ).fetchone()  # type: ignore[misc]
        if orphans:
            found.append(f"{orphans} rows of {label} belong to no chunk")
        if missing:
            found.append(f"{missing} chunks have no {label}")
    return found


def restrict_to(connection: SqliteIndex, owners: Collection[str]) -> None:
    """Leave only what `owners` may see: temporary views hide the tables of notes, so no lookup of a connection
    names, counts or joins what another keeps private. Words and vectors have numbers alone, which lead nowhere.
    """
    names = "'" + json.dumps(sorted(owners)).replace("'", "''") + "'"
    seen = seen_by("d", names)
    connection.execute(f"CREATE TEMP VIEW documents AS SELECT * FROM main.documents d WHERE {seen}")
    for table in NOTE_TABLES:
        connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT * FROM main.{table} r WHERE EXISTS "
            f"(SELECT 1 FROM main.documents d WHERE d.doc_id = r.doc_id AND {seen})"
        )


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
                self._connection = connect_reader(self._path, self._owners)
            except apsw.Error:
                return None
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
