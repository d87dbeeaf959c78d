"""A new index that takes over rows of the one there is, so that only what differs has to be made again.

A row says only what its document's file says, and a file is its bytes: where path and content hash agree, the rows of
one index are those of the other.
"""

import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from quaid.index import contents, fulltext
from quaid.index.port import EmbedderRow
from quaid.index.sqlite.connection import SqliteIndex
from quaid.sqlite import connect

# Every table whose rows belong to a document, that of the documents first.
_TABLES = (
    "SELECT tables.name FROM main.sqlite_schema AS tables, pragma_table_info(tables.name, 'main') AS columns "
    "WHERE tables.type = 'table' AND columns.name = 'doc_id' ORDER BY tables.name <> 'documents', tables.name"
)


@contextmanager
def open_new(path: Path, present: Path | None = None) -> Iterator[SqliteIndex]:
    """A new index in a file of its own, on disk when the body ends; SQLite itself keeps `present`, attached under that
    name, from being written. Without an index of this version there, `present` has no rows to give.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    connection = connect(path, flags, kind=SqliteIndex)
    try:
        # Nobody else knows the file, and until it has its name it may be lost.
        for pragma in ("journal_mode = MEMORY", "synchronous = OFF", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
        with connection.transaction():
            connection.begin()
        if present is not None:
            with suppress(apsw.CantOpenError):
                connection.execute("ATTACH ? AS present", (f"{present.absolute().as_uri()}?mode=ro",))
        yield connection
    finally:
        connection.close()
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def list_reusable(connection: SqliteIndex, max_bytes: int) -> dict[str, str]:
    """Return path -> content hash of the documents whose rows can be taken over as they are. Those that were cut off,
    or would be at `max_bytes`, and those with problems are few and not among them.
    """
    if not _has_present(connection):
        return {}
    return dict(
        connection.execute(
            "SELECT path, content_hash FROM present.documents WHERE problems = '[]' AND size <= ?", (max_bytes,)
        )
    )


def reuse_documents(connection: SqliteIndex, paths: Collection[str]) -> None:
    """Take over the documents at `paths`, with no vectors yet, into an index that is still empty."""
    connection.execute("CREATE TEMP TABLE reused (doc_id INTEGER PRIMARY KEY)")
    if not paths:
        return
    connection.execute(
        "INSERT INTO temp.reused SELECT doc_id FROM present.documents WHERE path IN (SELECT value FROM json_each(?))",
        (json.dumps(list(paths)),),
    )
    for (table,) in connection.execute(_TABLES).fetchall():
        connection.execute(
            f"INSERT INTO main.{table} SELECT old.* FROM temp.reused CROSS JOIN present.{table} AS old USING (doc_id)"
        )
    connection.execute("UPDATE main.chunks SET embedded = 'pending'")
    fulltext.insert_again(connection)


def reuse_vectors(connection: SqliteIndex, row: EmbedderRow) -> None:
    """Take over the vectors that the other index has of this embedder for chunks that were carried over, in the same
    transaction as those: after it a number may mean another chunk.
    """
    found = (
        _has_present(connection)
        and connection.execute(
            "SELECT embedder_id FROM present.embedders WHERE fingerprint = ?", (row.fingerprint,)
        ).fetchone()
    )
    if not found:
        return
    connection.execute(
        f"INSERT INTO main.{row.table} (rowid, embedding) SELECT vectors.rowid, embedding FROM temp.reused "
        f"CROSS JOIN main.chunks USING (doc_id) CROSS JOIN present.vectors_{found[0]} vectors "
        "ON vectors.rowid = chunk_id"
    )
    connection.execute(
        f"UPDATE main.chunks SET embedded = 'ready' WHERE chunk_id IN (SELECT rowid FROM main.{row.table})"
    )


def _has_present(connection: SqliteIndex) -> bool:
    attached = any(name == "present" for _, name, _ in connection.execute("PRAGMA database_list"))
    return attached and connection.pragma("user_version", schema="present") == contents.SCHEMA_VERSION
