"""Opening local.db, which holds what only this machine knows. Losing it costs statistics, never a memory.

Each module of this room brings the tables it needs as `CREATE … IF NOT EXISTS`, opens the file with `open_local` and
does its work inside `translated`, so that the same error has the same message everywhere.
"""

import os
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import apsw

from quaid import sqlite
from quaid.sqlite import BUSY_MS, Database

_DAY_S = 86_400
_MAX_LOG_BYTES = 1_000_000
"""Bytes of a write-ahead log that may stay behind when a process ends: the next one reads it in a millisecond."""


class LocalDatabase(Database):
    """local.db. Each of its modules adds its tables. `notice` reports that a damaged file was set aside to open it."""

    application_id = 0x51754C6F
    notice = ""


def open_local(path: Path, schema: str = "", wait_ms: int = BUSY_MS, *, relaxed: bool = False) -> LocalDatabase:
    """Return a connection to local.db at `path`, made when it is missing, with the tables of `schema` in it.

    A damaged file is set aside as `local.db.damaged`, and its copy of the last day takes its place. A lock is waited
    for `wait_ms`. `relaxed` never waits for the disk: a power cut may lose the last few writes, a killed process none.

    Raises:
        UnwritableError, LockedError: it cannot be used.
    """
    retries = sqlite.DamageRetries(path)
    while True:
        with sqlite.translated(path), retries:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = sqlite.open_database(path, LocalDatabase, wait_ms)
            connection.notice = retries.notice
            try:
                if schema:
                    connection.execute(schema)
                if relaxed:
                    connection.execute("PRAGMA synchronous = NORMAL")
                _copy_daily(connection)
            except BaseException:
                connection.close()
                raise
            return connection


def _copy_daily(connection: Database) -> None:
    """Copy the file once a day, which reads all of it; where there is no room for a copy, the earlier one stays."""
    copy, draft = (Path(f"{connection.path}{sqlite.DAILY}{suffix}") for suffix in ("", ".tmp"))
    with suppress(OSError):
        if abs(time.time() - os.stat(copy).st_mtime) < _DAY_S:  # noqa: PTH116 - at the start of every recall
            return
    try:
        with sqlite.exclusively(connection.path, wait=False):
            draft.unlink(missing_ok=True)
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            connection.execute("VACUUM INTO ?", (str(draft),))
            draft.replace(copy)
    except (apsw.Error, OSError) as error:
        if sqlite.may_be_damage(error):
            raise


def close_relaxed(connection: apsw.Connection, path: Path) -> None:
    """Close what `open_local` opened `relaxed`: the write-ahead log goes into the file only when it has grown long.

    SQLite's own close does that every time, and waits for the disk.
    """
    with suppress(OSError):
        if os.stat(f"{path}-wal").st_size < _MAX_LOG_BYTES:  # noqa: PTH116 - at the end of every recall
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def translated(connection: Database) -> AbstractContextManager[None]:
    """Raise SQLite's errors about the local.db that `connection` has open as Quaid's own.

    Raises:
        UnwritableError, LockedError: it cannot be used.
        StateDamagedError: the file was damaged; the next `open_local` opens its copy or a new one.
    """
    return sqlite.translated(connection.path, connection.inode)
