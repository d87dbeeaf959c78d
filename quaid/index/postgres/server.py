"""A database of many vaults: made once by its owner, opened by servers."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool

from quaid.errors import QuaidError
from quaid.index.postgres.connection import TABLES, Place, PostgresIndex, Raw
from quaid.index.scope import NOTE_TABLES, PRIVATE
from quaid.index.sqlite.database import make_in_memory

_TYPES = {"INTEGER": "integer", "TEXT": 'text COLLATE "C"', "REAL": "double precision"}
_LARGE = frozenset({"size", "mtime_ns", "ctime_ns", "inode", "read_ns"})
"""Columns whose numbers do not fit into four bytes."""
_ADDED = {
    "documents": (
        f"private_to {_TYPES['TEXT']} GENERATED ALWAYS AS (CASE privacy WHEN '{PRIVATE}' THEN owner END) STORED",
        "UNIQUE (vault, path)",
    ),
    "chunks": ("stems tsvector NOT NULL", "length integer NOT NULL"),
    "embedders": ("UNIQUE (vault, fingerprint)",),
}  # fmt: skip
_NOT_COPIED = ("documents_counted", "documents_text_hash", "chunks_spread")
"""Indexes for what servers do not ask, or only of the few chunks that wait for a vector."""
_INDEXED, _IN_VAULT = r" ON (\w+) \(", r" ON quaid.\1 (vault, "


def install(uri: str, server: str) -> None:
    """Make the schema in the database at `uri`, as the role that will own it, for servers with the role `server`.

    Raises:
        psycopg.Error: it has been made, or pgvector is missing.
    """
    with psycopg.connect(uri) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        place = connection.execute("SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'")
        script = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
        script = script.format(
            server=sql.Identifier(server).as_string(connection), extensions=(place.fetchone() or ("",))[0],
            tables=f"{{{','.join(TABLES)}}}", of_a_note=f"{{{','.join(NOTE_TABLES)}}}", copied=copy_tables(),
        )  # fmt: skip
        connection.execute(cast("Any", script))


def copy_tables() -> str:
    """Return SQL that makes the tables of an index in SQLite, but those of words and vectors, for many vaults."""
    lite, made = make_in_memory(), []
    for table in (each for each in TABLES if each != "vectors"):
        columns, key = [], ["vault"]
        for _, name, kind, is_required, default, is_key in lite.execute(f"PRAGMA table_info({table})"):
            large = "bigint" if name in _LARGE else _TYPES[kind]
            begin = f" DEFAULT {default}" if default else ""
            columns.append(f"{name} {large}{' NOT NULL' * bool(is_required or is_key)}{begin}")
            key += [name] * bool(is_key)
        columns += [*_ADDED.get(table, ()), "vault bigint NOT NULL DEFAULT quaid.vault()"]
        columns += [f"private_to {_TYPES['TEXT']}"] * (table in NOTE_TABLES)
        columns += [f"PRIMARY KEY ({', '.join(key)})"] * (len(key) > 1)
        made.append(f"CREATE TABLE quaid.{table} ({', '.join(columns)});")
    indexes = lite.execute("SELECT sql FROM sqlite_schema WHERE type = 'index' AND name NOT IN (?, ?, ?)", _NOT_COPIED)
    made += [f"{re.sub(_INDEXED, _IN_VAULT, statement, count=1)};" for (statement,) in indexes if statement]
    lite.close()
    return "\n".join(made)


class IndexServer:
    """The indexes of many vaults, through a pool of connections of the role of servers.

    Raises:
        QuaidError: the role may see the rows of all vaults.
        psycopg.Error: the database cannot be reached.
    """

    def __init__(self, uri: str, max_connections: int = 8) -> None:
        self._pool: ConnectionPool[Raw] = ConnectionPool(
            uri, min_size=1, max_size=max_connections, open=True,
            connection_class=Raw, kwargs={"autocommit": True, "prepare_threshold": None},
        )  # fmt: skip
        try:
            with self._pool.connection() as connection:
                unguarded = connection.execute(
                    "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls "
                    "OR pg_has_role((SELECT relowner FROM pg_class WHERE oid = to_regclass('quaid.vaults')), 'MEMBER'))"
                ).fetchone()
        except BaseException:
            self._pool.close()
            raise
        if unguarded is not None:
            self._pool.close()
            sentence = f"The role {unguarded[0]} sees the rows of all vaults. Connect as the one given to install()."
            raise QuaidError(sentence, code="unguarded_role")

    def open(self, name: str, owners: Collection[str] | None = None) -> PostgresIndex:
        """Return the index of the vault called `name`, empty when it is new; with `owners` it shows what these may see,
        and no more. It holds no connection.
        """
        with self._pool.connection() as connection:
            (vault,) = connection.execute("SELECT quaid.open_vault(%s)", (name,)).fetchone() or (0,)
        return PostgresIndex(self._pool, Place(vault, name, None if owners is None else tuple(owners)))

    def close(self) -> None:
        self._pool.close()
