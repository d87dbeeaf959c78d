"""A program that opens the databases of the state folder with a plain SQLite takes nothing away from them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime

import pytest
from vaults import Vault, assert_verified

from quaid.embed.cache import EmbeddingCache
from quaid.local.session_notes import SessionNotes
from quaid.place import state_folder
from quaid.recall.records import RecallRecords
from quaid.settings import Settings

DATABASES = ("local.db", "index.db", "cache.db")
OPEN = """
import contextlib, sqlite3, sys
def count_rows(connection):
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        with contextlib.suppress(sqlite3.Error):  # of a module that it does not have
            connection.execute(f'SELECT count(*) FROM "{table}"').fetchall()
for path in sys.argv[1:]:
    connection = sqlite3.connect(path)
"""
PROGRAMS = {
    "reads": "count_rows(connection)",
    "sets WAL mode": "connection.execute('PRAGMA journal_mode = WAL'); count_rows(connection)",
    "checkpoints": "connection.execute('PRAGMA wal_checkpoint(TRUNCATE)')", "vacuums": "connection.execute('VACUUM')",
    "analyses": "connection.execute('ANALYZE'); connection.commit()",
    "writes nothing": "connection.execute('BEGIN IMMEDIATE'); connection.rollback()",
    "copies and restores": "copy = sqlite3.connect(path + '.copy'); connection.backup(copy); copy.backup(connection); copy.close()",
    "leaves WAL mode": "connection.execute('PRAGMA journal_mode = DELETE')",
}  # fmt: skip


def _run(program: str, vault: Vault) -> None:
    code = f"{OPEN}    {program}\n    connection.close()\n"
    paths = [str(state_folder(vault.root) / name) for name in DATABASES]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=False)
    # One that wants the file for itself alone is turned away.
    assert done.returncode == 0 or done.stderr.endswith("database is locked\n"), done.stderr


@pytest.fixture
def used(vault: Vault) -> Vault:
    vault.write_fact("a", "Maya keeps a quokka.")
    with vault.memory() as memory:
        for _ in range(3):
            memory.recall("quokka")
    SessionNotes(state_folder(vault.root) / "local.db").add("call Maya", None, datetime.now(UTC))
    with closing(EmbeddingCache(state_folder(vault.root) / "cache.db")) as cache:
        cache.put_many("model", [("key", b"1234")])
    return vault


def _assert_nothing_is_lost(vault: Vault, recalls: int) -> None:
    state = state_folder(vault.root)
    with vault.memory() as memory:
        answer = memory.recall("quokka")
        assert [hit.text for hit in answer.hits] == ["Maya keeps a quokka."]
        assert "usage" not in answer.degraded
        with closing(RecallRecords(vault.root, Settings())) as records:
            assert records.strengths(["01a"])["01a"].accesses == recalls + 1
        assert_verified(memory)
    assert SessionNotes(state / "local.db").count() == 1
    with closing(EmbeddingCache(state / "cache.db")) as cache:
        assert cache.get_many("model", ["key"]) == {"key": b"1234"}
    assert not list(state.glob("*.damaged*"))


@pytest.mark.matrix
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_memory_has_it_open(used: Vault, program: str) -> None:
    cache = EmbeddingCache(state_folder(used.root) / "cache.db")
    with closing(cache), used.memory() as memory:
        memory.recall("quokka")
        cache.put_many("model", [("other", b"1234")])
        _run(PROGRAMS[program], used)
        assert memory.recall("quokka").hits
        assert cache.get_many("model", ["key", "other"]) == {"key": b"1234", "other": b"1234"}
        memory.remember("Maya keeps a wombat")
        _run(PROGRAMS[program], used)
        assert len(memory.recall("quokka wombat").hits) == 2
    _assert_nothing_is_lost(used, 6)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_copy_of_its_file_takes_its_place(used: Vault, is_open: bool) -> None:
    state = state_folder(used.root)
    _run("copy = sqlite3.connect(path + '.copy'); connection.backup(copy); copy.close()", used)

    def restore() -> None:
        for name in DATABASES:
            for suffix in ("-wal", "-shm"):
                (state / f"{name}{suffix}").unlink(missing_ok=True)
            shutil.copy(state / f"{name}.copy", state / "draft")
            (state / "draft").replace(state / name)

    with used.memory() as memory:
        memory.recall("quokka")
        if is_open:
            restore()
            memory.recall("quokka")
    if not is_open:
        restore()
    _assert_nothing_is_lost(used, 4 if is_open else 3)
