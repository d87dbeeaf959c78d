"""A database of many vaults: made once by its owner, opened by servers."""

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool

from quaid.errors import QuaidError
from quaid.index.postgres.connection import TABLES, Place, PostgresIndex, Raw
from quaid.index.scope import NOTE_TABLES

SHARDS = 16
"""Partitions of each table. A vault is in one of them for good."""


class UnguardedRoleError(QuaidError):
    """Row-level security does not hold for the role."""

    code = "unguarded_role"

    def __init__(self, role: str) -> None:
        super().__init__(f"The role {role} sees the rows of all vaults. Connect as the one given to install().")


def install(uri: str, server: str) -> None:
    """Make the schema in the database at `uri`, as the role that will own it, for servers with the role `server`.

    Raises:
        psycopg.Error: it has been made, or pgvector is missing.
    """
    with psycopg.connect(uri) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        script = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
        script = script.format(
            server=sql.Identifier(server).as_string(connection), extensions=find_extensions(connection), shards=SHARDS,
            tables=f"{{{','.join(TABLES)}}}", of_a_note=f"{{{','.join(NOTE_TABLES)}}}",
        )  # fmt: skip
        connection.execute(cast("Any", script))


class IndexServer:
    """The indexes of many vaults, through a pool of connections of the role of servers.

    Raises:
        UnguardedRoleError: the role may see the rows of all vaults.
        psycopg.Error: the database cannot be reached.
    """

    def __init__(self, uri: str, max_connections: int = 8) -> None:
        self._pool: ConnectionPool[Raw] = ConnectionPool(
            uri, min_size=1, max_size=max_connections, open=True,
            kwargs={"autocommit": True, "cursor_factory": psycopg.ClientCursor, "prepare_threshold": None},
        )  # fmt: skip
        try:
            with self._pool.connection() as connection:
                unguarded = connection.execute(
                    "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
                ).fetchone()
                self._extensions = find_extensions(connection)
        except BaseException:
            self._pool.close()
            raise
        if unguarded is not None:
            self._pool.close()
            raise UnguardedRoleError(unguarded[0])

    def open(self, name: str, owners: Collection[str] | None = None) -> PostgresIndex:
        """Return the index of the vault called `name`, empty when it is new; with `owners` it shows what these may see,
        and no more. Reuse it: it holds no connection, and its answers are cached per instance.
        """
        with self._pool.connection() as connection:
            place = find_place(connection, name, self._extensions)
            if place is None:
                connection.execute("SELECT quaid.add_vault(%s)", (name,))
                place = find_place(connection, name, self._extensions)
        assert place is not None, "a vault that was added is there"
        return PostgresIndex(self._pool, place if owners is None else replace(place, owners=json.dumps(sorted(owners))))

    def close(self) -> None:
        self._pool.close()


def find_place(connection: Raw, name: str, extensions: str) -> Place | None:
    """Return where the rows of the vault called `name` are; None where there is no such vault."""
    found = connection.execute("SELECT vault, shard FROM quaid.find_vault(%s)", (name,)).fetchone()
    return Place(found[0], name, f"quaid_{found[1]}, quaid, pg_catalog, {extensions}") if found else None


def find_extensions(connection: Raw) -> str:
    """Return the schema that pgvector is in, quoted."""
    row = connection.execute(
        "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    ).fetchone()
    assert row is not None, "pgvector is not installed"
    return str(sql.Identifier(row[0]).as_string(connection))
