"""Tables of local.db whose every use opens the file, does its work and closes it."""

from __future__ import annotations

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
"""What taking a row apart raises that is not what this Quaid has written."""


def parse_rows(make: Callable[[Any], Record], rows: Iterable[Any]) -> Iterator[Record]:
    """What `make` makes of each row. A row is data: one that cannot be read is passed over."""
    for row in rows:
        with suppress(*_UNREADABLE):
            yield make(row)


class Tables:
    """Some tables of local.db at `path`. Making one touches nothing. Safe for several threads and processes.

    Raises:
        DiskFullError, StateDamagedError, LockedError, VaultReadOnlyError: from every method, as they say.
    """

    SCHEMA: ClassVar[str]
    WAIT_MS: ClassVar[int] = 30_000
    """For another process that writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _rows(self, query: str, *values: str | int | None) -> list[tuple[Any, ...]]:
        """What `query` finds; nothing where there is no file yet, or where a damaged one was set aside."""
        if not os.path.lexists(self._path):
            return []
        try:
            with self._open() as connection:
                return list(connection.execute(query, values))
        except StateDamagedError:
            with self._open() as connection:
                return list(connection.execute(query, values))

    @contextmanager
    def _open(self) -> Iterator[apsw.Connection]:
        from quaid.local.database import open_local, translated

        connection = open_local(self._path, self.SCHEMA, self.WAIT_MS)
        try:
            with translated(connection):
                yield connection
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        from quaid.sqlite import transaction

        with self._open() as connection, transaction(connection):
            yield connection
