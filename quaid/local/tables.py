"""Tables of local.db whose every use opens the file, does its work and closes it."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from quaid.errors import StateDamagedError

if TYPE_CHECKING:
    import apsw

Record = TypeVar("Record")
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)
"""Raised by the parsing of a row that this version of Quaid has not written."""


def parse_rows(make: Callable[[Any], Record], rows: Iterable[Any]) -> Iterator[Record]:
    """Yield `make(row)` for each row, and skip the rows that it cannot parse."""
    for row in rows:
        with suppress(*_UNREADABLE):
            yield make(row)


class Tables:
    """Some tables of local.db at `path`, which is opened by each call. Safe for several threads and processes.

    Raises:
        DiskFullError, StateDamagedError, LockedError, VaultReadOnlyError: every method, when local.db cannot be used.
    """

    SCHEMA: ClassVar[str]
    WAIT_MS: ClassVar[int] = 30_000
    """The time to wait for another process that writes."""
    IS_RELAXED: ClassVar[bool] = False
    """Whether a power failure may take back the last writes, which then need not wait for the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _rows(self, query: str, *values: str | int | None) -> list[tuple[Any, ...]]:
        """Return the rows that `query` finds; none where there is no file yet, or where a damaged one was set aside."""
        if not os.path.lexists(self.path):
            return []
        try:
            with self._open() as connection:
                return list(connection.execute(query, values))
        except StateDamagedError:
            with self._open() as connection:
                return list(connection.execute(query, values))

    @contextmanager
    def _open(self) -> Iterator["apsw.Connection"]:
        from quaid.local.database import open_local, translated

        connection = open_local(self.path, self.SCHEMA, self.WAIT_MS, relaxed=self.IS_RELAXED)
        try:
            with translated(connection):
                yield connection
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator["apsw.Connection"]:
        from quaid.sqlite import transaction

        with self._open() as connection, transaction(connection):
            yield connection
