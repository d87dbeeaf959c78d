"""Tables of local.db whose every use opens the file, does its work and closes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import apsw


class Tables:
    """Some tables of local.db at `path`. Making one touches nothing. Safe for several threads and processes.

    Raises:
        DiskFullError, LocalDamagedError, LockedError, VaultReadOnlyError: from every method, as they say.
    """

    SCHEMA: ClassVar[str]
    WAIT_MS: ClassVar[int] = 30_000
    """For another process that writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _rows(self, query: str, *values: str | int | None) -> list[tuple[Any, ...]]:
        """What `query` finds; nothing where there is no file yet."""
        if not self._path.exists():
            return []
        with self._open() as connection:
            return list(connection.execute(query, values))

    @contextmanager
    def _open(self) -> Iterator[apsw.Connection]:
        from quaid.local.database import open_local, translated

        connection = open_local(self._path, self.SCHEMA, self.WAIT_MS)
        try:
            with translated(self._path):
                yield connection
        finally:
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        from quaid.sqlite import transaction

        with self._open() as connection, transaction(connection):
            yield connection
