"""Opening index.db: one writer (sync), any number of read-only readers, and what makes two indexes equal."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import apsw

from quaid.index.scope import restrict_to
from quaid.sqlite import BUSY_MS, Database, Format, check_application, connect, open_database, stamp, transaction

SCHEMA_VERSION = 8
SHARED_ATTEMPTS = 3
_FORMAT = Format(0x51754964, SCHEMA_VERSION, is_derived=True)
_WRITERS = (
    "synchronous = NORMAL", "foreign_keys = ON", "temp_store = MEMORY",
    # In kB. The rows of one note go to pages all over the file: with SQLite's usual 2 MB a first sync of 40,000 notes
    # writes and reads each page several times, a third more work.
    "cache_size = -64000",
    # A log as large as a first sync made it is not kept for as long as any process has the index open.
    "journal_size_limit = 64000000",
)  # fmt: skip
# What is compared between two indexes: everything but row numbers, file times and how far embedding has come.
_DUMPED = {
    "documents": "path, content_hash, id, kind, type, title, text_hash, status, owner, privacy, confidence, "
    "durability, speaker, source, session, project, technical, pinned, verified, confirmations, created, "
    "valid_from, valid_until, superseded_by, problems",
    "chunks": "path, ordinal, text, context, keywords, turn, chunks.speaker, said_at, passage, text_key",
    "passages": "path, ordinal, heading, passages.text, first_line, last_line",
    "names": "path, position, name_key, name",
    "edges": "path, subject_key, relation, object_key, subject, object",
    "links": "path, target_key",
    "citations": "path, episode, turn",
}

DatabaseError = apsw.Error
"""The errors of the index, under a name for callers that do not import the SQLite library."""


def connect_writer(path: Path, wait_ms: int = BUSY_MS) -> tuple[Database, bool]:
    """Return the one connection that may write, for sync alone. Makes the schema when the file is new.

    An index of another schema version is emptied, to be filled again; the second value says so.
    """
    connection = open_database(path, _FORMAT, clear, wait_ms, prepare=enable_vectors)
    for pragma in _WRITERS:
        connection.execute(f"PRAGMA {pragma}")
    return connection, connection.is_outdated


def make_in_memory() -> apsw.Connection:
    """Return an empty index that is gone with the connection."""
    connection = apsw.Connection(":memory:")
    enable_vectors(connection)
    for pragma in _WRITERS:
        connection.execute(f"PRAGMA {pragma}")
    with transaction(connection):
        begin(connection)
    return connection


def copy_in_memory(index: apsw.Connection, owners: Collection[str]) -> apsw.Connection:
    """Return a copy of `index` that shows what `owners` may see, and no more."""
    connection = apsw.Connection(":memory:")
    enable_vectors(connection)
    with connection.backup("main", index, "main") as backup:
        backup.step()
    restrict_to(connection, owners)
    return connection


def begin(connection: apsw.Connection) -> None:
    """Make a new file an index."""
    clear(connection)
    stamp(connection, _FORMAT)


def connect_reader(path: Path, owners: Collection[str] | None = None) -> Database:
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


def _open_reader(path: Path, owners: Collection[str] | None, options: str = "") -> Database:
    connection = connect(path, apsw.SQLITE_OPEN_READONLY, options)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("PRAGMA cache_size = -16000")
        # No mmap: a file that somebody cuts short under a mapping kills the process (SIGBUS).
        connection.execute("PRAGMA temp_store = MEMORY")  # first of all: it drops whatever is temporary
        # The file is opened by the first read.
        check_application(connection, _FORMAT)
        if owners is not None:
            restrict_to(connection, owners)
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def enable_vectors(connection: apsw.Connection) -> None:
    """Load sqlite-vec. Readers ask for it only when they search vectors: it costs a cold start 10 ms."""
    connection.enable_load_extension(True)
    connection.load_extension(_extension_path())
    connection.enable_load_extension(False)


def sqlite_version() -> str:
    return apsw.sqlite_lib_version()


def schema_version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def copy(source: Path, target: Path) -> None:
    """Copy the index at `source`, as it is in one moment, to `target`.

    Raises:
        apsw.Error: as SQLite says, also when `source` is damaged.
    """
    # SQLite writes what does not fit into its memory before the first page, and a page gets its checksum only where the
    # first page asks for it: so `target` has one before.
    writer, _ = connect_writer(target)
    with closing(writer), closing(connect_reader(source)) as reader, writer.backup("main", reader, "main") as backup:
        backup.step()


def clear(connection: apsw.Connection) -> None:
    """Drop everything and create the schema again. Inside a transaction, readers keep the old index until COMMIT."""
    connection.execute("PRAGMA defer_foreign_keys = ON")
    rows = list(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
    virtual = [name for name, sql in rows if (sql or "").upper().startswith("CREATE VIRTUAL")]
    for name in virtual:
        connection.execute(f'DROP TABLE "{name}"')
    left = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    for (name,) in sorted(left, key=lambda row: row[0] == "documents"):
        connection.execute(f'DROP TABLE IF EXISTS "{name}"')
    connection.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
    set_meta(connection, "generation", os.urandom(8).hex())


def get_meta(connection: apsw.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(connection: apsw.Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value)
    )


def manifest(connection: apsw.Connection) -> str:
    """Return SHA-256 of the schema version and of every (path, content hash): equal on any two machines with equal
    files.
    """
    import hashlib

    digest = hashlib.sha256(f"quaid index {SCHEMA_VERSION}\n".encode())
    for path, content_hash in connection.execute("SELECT path, content_hash FROM documents ORDER BY path"):
        digest.update(f"{content_hash} {path}\n".encode())
    return digest.hexdigest()


def dump(connection: apsw.Connection) -> Iterator[str]:
    """Return the index as sorted lines of JSON, without row numbers: two indexes are equal when their dumps are."""
    for table, columns in _DUMPED.items():
        source = table if table == "documents" else f"{table} JOIN documents USING (doc_id)"
        picked = columns if table == "documents" else f"documents.{columns}"
        for row in sorted(
            json.dumps(row, ensure_ascii=False) for row in connection.execute(f"SELECT {picked} FROM {source}")
        ):
            yield f"{table} {row}"


def find_inconsistencies(connection: apsw.Connection) -> list[str]:
    """Return sentences about what is wrong inside the index itself: SQLite's own check, words and vectors without a
    chunk.
    """
    found = [str(row[0]) for row in connection.execute("PRAGMA quick_check") if row[0] != "ok"]
    of_turns = "SELECT DISTINCT doc_id FROM chunks WHERE turn IS NOT NULL"
    ready = "SELECT chunk_id FROM chunks WHERE embedded = 'ready'"
    derived = [
        ("words", "id FROM fulltext_docsize", "SELECT chunk_id FROM chunks", "chunk"),
        ("words", "id FROM episode_words_docsize", of_turns, "episode"),
    ]
    if newest := connection.execute("SELECT max(embedder_id) FROM embedders").get:
        derived.append(("vectors", f"rowid FROM vectors_{newest}_rowids", ready, "chunk"))
    for label, rows, owners, owner in derived:
        known = "SELECT chunk_id FROM chunks" if owner == "chunk" else owners
        orphans, missing = connection.execute(
            f"SELECT (SELECT count(*) FROM (SELECT {rows} EXCEPT {known})),"
            f"(SELECT count(*) FROM ({owners} EXCEPT SELECT {rows}))"
        ).fetchone()  # type: ignore[misc]
        if orphans:
            found.append(f"{orphans} rows of {label} belong to no {owner}")
        if missing:
            found.append(f"{missing} {owner}s have no {label}")
    return found


@contextmanager
def snapshot(connection: apsw.Connection) -> Iterator[None]:
    """Let all that is read meanwhile be of one moment: a set of vectors that is found is still there when it is
    searched.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        with suppress(apsw.Error):  # of a damaged database, which is what the body said
            connection.execute("ROLLBACK")


@contextmanager
def shared_snapshot(one: apsw.Connection, other: apsw.Connection) -> Iterator[apsw.Connection]:
    """Let all that is read meanwhile through `one` and through the yielded connection be of one moment. That is
    `other`, or `one` itself where others write too often for two to begin between two writes.
    """
    for _ in range(SHARED_ATTEMPTS):
        before = data_version(other)
        with snapshot(one):
            data_version(one)  # a transaction begins with its first read
            with snapshot(other):
                if data_version(other) == before:  # nobody wrote between the two
                    yield other
                    return
    with snapshot(one):
        yield one


def data_version(connection: apsw.Connection) -> tuple[int, int]:
    """Return what changes when this connection or another one has changed what it reads."""
    return int(connection.pragma("data_version")), connection.total_changes()


@cache
def _extension_path() -> str:
    """Return what `sqlite_vec.loadable_path()` does, without importing it: the import brings numpy along, 50 ms."""
    from importlib.util import find_spec

    found = find_spec("sqlite_vec")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("sqlite_vec")
    return str(Path(found.origin).with_name("vec0"))
