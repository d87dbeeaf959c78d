"""The PostgreSQL database that servers share: a pool of connections, and the tables of this room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from quaid.errors import QuaidError

WAIT_S = 5.0
"""The longest time that a call waits for a connection."""
Row = dict[str, Any]


class DatabaseUnreachableError(QuaidError):
    """The database does not answer. What a vault holds is in its git repository."""

    exit_code = 75
    code = "database_unreachable"

    def __init__(self) -> None:
        super().__init__("The server's database could not be reached. Try again in a moment.")


class Database:
    """A pool of connections to the database at `address`. Each call is a transaction of its own."""

    def __init__(self, address: str, size: int) -> None:
        self.pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            address,
            min_size=1,
            max_size=size,
            timeout=WAIT_S,
            open=False,
            check=ConnectionPool.check_connection,  # one that a restart of the database has cut is not handed out
            kwargs={"row_factory": dict_row, "connect_timeout": 5},
            num_workers=1,
        )

    def open(self) -> None:
        """Connect, and make the tables where they are missing.

        Raises:
            DatabaseUnreachableError
        """
        self.pool.open()
        schema = (files("quaid.server") / "schema.sql").read_text(encoding="utf-8")
        with self.transaction() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(7113001)")  # servers begin at the same time
            connection.execute(schema)

    def close(self) -> None:
        self.pool.close(timeout=2.0)

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Row]]:
        """Yield a connection in a transaction, which an error takes back.

        Raises:
            DatabaseUnreachableError
        """
        try:
            with self.pool.connection() as connection:
                yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            raise DatabaseUnreachableError from error

    def ask(self, question: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """Run one statement and return its rows, none where it has none. Raises DatabaseUnreachableError."""
        with self.transaction() as connection:
            cursor = connection.execute(question, values)
            return cursor.fetchall() if cursor.description else []

    def change(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int:
        """Run one statement and return the number of rows that it changed. Raises DatabaseUnreachableError."""
        with self.transaction() as connection:
            return connection.execute(statement, values).rowcount

    def is_reachable(self) -> bool:
        """Return whether the database answers."""
        try:
            self.ask("SELECT 1")
        except DatabaseUnreachableError:
            return False
        return True
