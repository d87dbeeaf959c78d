"""What every SQLite file of Quaid's needs, whichever room it belongs to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

_PAUSE_SECONDS = 0.005


def use_write_ahead_log(connection: apsw.Connection, wait_ms: int) -> None:
    """Put the file into WAL mode, where it stays, and have what is deleted overwritten in it.

    When another process is about to do the same to a new file, SQLite does not wait as it does for every other lock:
    it says at once that the file is busy. So waiting is done here.

    Raises:
        apsw.BusyError: the file was busy for `wait_ms`.
    """
    connection.execute("PRAGMA secure_delete = ON")  # what was forgotten is not to be read off the disk
    last = time.monotonic() + wait_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() >= last:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """BEGIN IMMEDIATE … COMMIT: one that begins by reading cannot wait for the lock when it comes to writing, and
    nothing that it read can be overtaken.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(apsw.Error):  # SQLite may have taken it back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
