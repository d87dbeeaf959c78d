"""The PostgreSQL database that servers share: a pool of connections, and the tables of this package."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from quaid.errors import BadInputError, QuaidError

WAIT_S = 5.0
"""The longest time that a call waits for a connection."""
Row = dict[str, Any]
UNREACHABLE = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)
"""Errors of the driver if the database does not answer."""


class DatabaseUnreachableError(QuaidError):
    """The database does not answer."""

    exit_code = 75
    code = "database_unreachable"

    def __init__(self) -> None:
        super().__init__("The server's database could not be reached. Try again in a moment.")


def install(owner: str, server: str) -> None:
    """Create the tables. Repeated, it changes nothing. `owner` is the address of the database for the role that will
    own them, `server` the address for servers.

    Raises:
        BadInputError: both have the same role, or the role of servers can read more than row-level security allows.
        DatabaseUnreachableError
    """
    from quaid.index.postgres.server import install as install_index

    role = conninfo_to_dict(server).get("user")
    try:
        with psycopg.connect(owner) as connection:
            can_see_all = connection.execute(
                "SELECT rolsuper OR rolbypassrls OR rolname = current_user FROM pg_roles WHERE rolname = %s", (role,)
            ).fetchone()
            if can_see_all is None or can_see_all[0]:
                raise BadInputError(
                    f"The servers' role {role!r} is missing, or is more than a plain one. Make one with: "
                    "CREATE ROLE quaid_server LOGIN PASSWORD '…'"
                )
            schema = (files("quaid.server") / "schema.sql").read_text(encoding="utf-8")
            name = sql.Identifier(str(role)).as_string(connection)
            connection.execute(cast("Any", schema.format(server=name)))
            has_index = connection.execute("SELECT to_regclass('quaid.vaults')").fetchone()
        if has_index is None or has_index[0] is None:
            install_index(owner, str(role))
    except psycopg.OperationalError as error:
        raise DatabaseUnreachableError from error


class Database:
    """A pool of connections to the database at `address`. Each call is its own transaction."""

    def __init__(self, address: str, size: int) -> None:
        self.pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            address,
            min_size=1,
            max_size=size,
            timeout=WAIT_S,
            open=False,
            check=ConnectionPool.check_connection,  # after a restart of the database, old ones fail
            kwargs={"row_factory": dict_row, "connect_timeout": 5},
            num_workers=1,
        )

    def open(self) -> None:
        """Connect. Raises DatabaseUnreachableError, or QuaidError where the tables are not installed."""
        self.pool.open()
        if self.ask("SELECT to_regclass('quaid_server.vaults') AS found")[0]["found"] is None:
            raise QuaidError(
                "The database has no tables of Quaid. Make them, as the role that owns it: quaid serve setup ADDRESS",
                code="not_installed",
            )

    def close(self) -> None:
        self.pool.close(timeout=2.0)

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Row]]:
        """Yield a connection in a transaction, which an error rolls back. Raises DatabaseUnreachableError."""
        try:
            with self.pool.connection() as connection:
                yield connection
        except UNREACHABLE as error:
            raise DatabaseUnreachableError from error

    def ask(self, question: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """Run one statement and return its rows. Raises DatabaseUnreachableError."""
        with self.transaction() as connection:
            cursor = connection.execute(question, values)
            return cursor.fetchall() if cursor.description else []

    def change(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int:
        """Run one statement and return the number of changed rows. Raises DatabaseUnreachableError."""
        with self.transaction() as connection:
            return connection.execute(statement, values).rowcount
