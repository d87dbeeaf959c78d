"""Opening local.db: what only this machine knows. Losing it costs habits, never a memory.

Each module of this room brings the tables it needs as `CREATE … IF NOT EXISTS`, opens the file with `open_local` and
does its work inside `translated`, so that the same trouble is the same sentence everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from quaid.errors import DiskFullError, LocalDamagedError, LockedError, VaultReadOnlyError
from quaid.sqlite import use_write_ahead_log

BUSY_MS = 30_000
_LONGEST_LOG = 1_000_000
"""Bytes of a write-ahead log that may stay behind when a process ends: the next one reads it in a millisecond."""
_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
_UNWRITABLE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError, OSError)


def open_local(
    path: Path,
    schema: str = "",
    wait_ms: int = BUSY_MS,
    *,
    relaxed: bool = False,
    report: Callable[[str], None] | None = None,
) -> apsw.Connection:
    """A connection to local.db at `path`, made when it is missing, with the tables of `schema` in it.

    A file that is no database is set aside as `local.db.damaged` and a new one begun; `report` is told. A lock is
    waited for `wait_ms`.
    `relaxed` never waits for the disk: a power cut may take the last few writes along, a killed process none.

    Raises:
        DiskFullError, LockedError, VaultReadOnlyError: as they say.
    """
    with translated(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            connection = _open(path, schema, wait_ms)
        except _DAMAGED:  # what it held is lost; it need not stand in the way
            _set_aside(path)
            if report is not None:
                report(f"{path.name} was damaged and is kept as {path.name}.damaged; a new one is begun")
            connection = _open(path, schema, wait_ms)
        if relaxed:
            connection.execute("PRAGMA synchronous = NORMAL")
        return connection


def close_relaxed(connection: apsw.Connection, path: Path) -> None:
    """Close what `open_local` opened `relaxed`: the write-ahead log goes into the file only when it has grown long.

    SQLite's own close does that every time, and waits for the disk.
    """
    with suppress(OSError):
        if os.stat(f"{path}-wal").st_size < _LONGEST_LOG:  # noqa: PTH116 - at the end of every recall
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def open_in_memory(schema: str) -> apsw.Connection:
    """The same tables where no file can be written; gone with the connection."""
    connection = apsw.Connection(":memory:")
    connection.execute(schema)
    return connection


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """What SQLite says about local.db at `path`, as Quaid says it.

    Raises:
        DiskFullError, LockedError, VaultReadOnlyError: as they say.
        LocalDamagedError: the file was damaged; it stands aside now and the next `open_local` begins a new one.
    """
    try:
        yield
    except apsw.FullError as error:
        raise DiskFullError(path.parent) from error
    except apsw.BusyError as error:
        raise LockedError(f"{path.name} is in use by another process") from error
    except _DAMAGED as error:
        _set_aside(path)
        raise LocalDamagedError(path.name) from error
    except _UNWRITABLE as error:
        raise VaultReadOnlyError(path.parent, str(error)) from error


def _open(path: Path, schema: str, wait_ms: int) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(wait_ms)
        use_write_ahead_log(connection, wait_ms)
        if schema:
            connection.execute(schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_aside(path: Path) -> None:
    """Rename the file, unless another process has done so already and the one that is there now is sound."""
    with suppress(OSError):
        if not _is_damaged(path):
            return
        path.replace(path.with_name(f"{path.name}.damaged"))
        for suffix in ("-wal", "-shm"):
            path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _is_damaged(path: Path) -> bool:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            return connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
        finally:
            connection.close()
    except _DAMAGED:
        return True
    except apsw.Error:
        return False
