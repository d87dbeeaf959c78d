"""Opening local.db, which holds what only this machine knows. Losing it costs statistics, never a memory.

Each module of this room brings the tables it needs as `CREATE … IF NOT EXISTS`, opens the file with `open_local` and
does its work inside `translated`, so that the same error has the same message everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from quaid import sqlite
from quaid.sqlite import BUSY_MS, Database, Format

_FORMAT = Format(0x51754C6F, 1)
_MAX_LOG_BYTES = 1_000_000
"""Bytes of a write-ahead log that may stay behind when a process ends: the next one reads it in a millisecond."""


def open_local(
    path: Path,
    schema: str = "",
    wait_ms: int = BUSY_MS,
    *,
    relaxed: bool = False,
    report: Callable[[str], None] | None = None,
) -> Database:
    """Return a connection to local.db at `path`, made when it is missing, with the tables of `schema` in it.

    A damaged file is set aside as `local.db.damaged` and a new one begun; `report` is told. A lock is waited for
    `wait_ms`. `relaxed` never waits for the disk: a power cut may lose the last few writes, a killed process none.

    Raises:
        DiskFullError, DiskFailedError, LockedError, VaultReadOnlyError: it cannot be used.
    """

    def opened(again: bool) -> Database:
        if again and report is not None:
            report(f"{path.name} was damaged and is kept as {path.name}.damaged; a new one is begun")
        connection: Database = sqlite.open_database(path, _FORMAT, lambda _: None, wait_ms)
        try:
            if schema:
                connection.execute(schema)
            if relaxed:
                connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    with sqlite.translated(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return sqlite.retry_after_damage(path, opened)


def close_relaxed(connection: apsw.Connection, path: Path) -> None:
    """Close what `open_local` opened `relaxed`: the write-ahead log goes into the file only when it has grown long.

    SQLite's own close does that every time, and waits for the disk.
    """
    with suppress(OSError):
        if os.stat(f"{path}-wal").st_size < _MAX_LOG_BYTES:  # noqa: PTH116 - at the end of every recall
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def open_in_memory(schema: str) -> apsw.Connection:
    """Return a connection to the same tables without a file, for where none can be written."""
    connection = apsw.Connection(":memory:")
    connection.execute(schema)
    return connection


@contextmanager
def translated(connection: apsw.Connection) -> Iterator[None]:
    """Raise SQLite's errors about the local.db that `connection` has open as Quaid's own.

    Raises:
        DiskFullError, DiskFailedError, LockedError, VaultReadOnlyError: it cannot be used.
        StateDamagedError: the file was damaged; it is set aside now and the next `open_local` begins a new one.
    """
    if isinstance(connection, Database):
        with sqlite.translated(connection.path, connection.inode):
            yield
    else:
        yield
