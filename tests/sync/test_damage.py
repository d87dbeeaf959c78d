"""Whatever becomes of a database in the state folder, it is set aside once and a new one begun: short forms of
tests/torture/damage.py and tests/torture/disk.py.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

sys.path.append(str(Path(__file__).parents[1] / "torture"))
import damage
from vaults import Vault

from quaid.embed.cache import EmbeddingCache
from quaid.index.sqlite import database
from quaid.local.database import open_local
from quaid.local.session_notes import SessionNotes
from quaid.place import state_folder
from quaid.report.status import status_of
from quaid.sqlite import DamageRetries

TORTURE = Path(__file__).parents[1] / "torture"
HARMS = [how for how in damage.HARMS if how not in {"page", "cut", "gone", "newer", "unreadable"}]


def _make_local(path):
    queue = SessionNotes(path)
    queue.add("call Maya", None, damage_time())
    return min(1, queue.count())


def _make_cache(path):
    with closing(EmbeddingCache(path)) as cache:
        cache.put_many("model", [("key", b"1234")])
        return len(cache.get_many("model", ["key"]))


def _make_index(path):
    connection, retries = None, DamageRetries(path)
    while connection is None:
        with retries:
            connection, _ = database.connect_writer(path)
    with closing(connection), closing(database.connect_reader(path)) as reader:
        return reader.execute("SELECT count(*) FROM meta").get


def damage_time():
    from datetime import UTC, datetime

    return datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize("make", [_make_local, _make_cache, _make_index])
@pytest.mark.parametrize("how", HARMS)
def test_what_is_no_database_of_its_kind_is_set_aside_and_no_link_is_followed(tmp_path, caplog, make, how):
    chance = damage.random.Random(2)
    others = {"a.db": _make_local, "b.db": _make_cache, "c.db": _make_index}
    for name, other in others.items():
        if other is not make:
            other(tmp_path / name)
    path = tmp_path / "x.db"
    assert make(path) == 1
    damage.HARMS[how](path, chance)
    before = {each.name: each.read_bytes() for each in tmp_path.glob("[abc].db")}
    target = tmp_path / "elsewhere"
    linked = target.read_bytes() if target.exists() else None
    assert make(path) == 1
    assert make(path) == 1
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == ["quaid: x.db was damaged"]
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert os.path.lexists(tmp_path / "x.db.damaged")
    assert {each.name: each.read_bytes() for each in tmp_path.glob("[abc].db")} == before
    assert (target.read_bytes() if target.exists() else None) == linked
    for _ in range(2):  # it is kept once
        damage.HARMS["text"](path, chance)
        assert make(path) == 1
    assert len(list(tmp_path.glob("x.db.damaged*"))) <= 3


HEAL = """
import sys, time
from pathlib import Path
from quaid.embed.cache import EmbeddingCache
cache = EmbeddingCache(Path(sys.argv[1]))
time.sleep(max(0, float(sys.argv[2]) - time.time()))
for number in range(20):
    cache.put_many("model", [(f"{sys.argv[3]} {number}", b"1234")])
"""


def test_processes_that_find_a_file_damaged_at_once_heal_it_once(tmp_path):
    import time

    path = tmp_path / "cache.db"
    path.write_bytes(b"rubbish" * 4000)
    start = str(time.time() + 0.7)
    running = [
        subprocess.Popen([sys.executable, "-c", HEAL, str(path), start, name], stderr=subprocess.PIPE) for name in "abc"
    ]
    said = [process.communicate(timeout=60)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said
    assert "".join(said).count("was damaged") == 1
    with closing(EmbeddingCache(path)) as cache:
        assert len(cache.get_many("model", [f"{name} {number}" for name in "abc" for number in range(20)])) == 60


def test_an_open_server_notices_that_its_databases_are_gone(vault: Vault):
    vault.write_fact("a", "Maya keeps a quokka.")
    state = state_folder(vault.root)
    with vault.memory() as memory:
        for _ in range(3):
            memory.recall("quokka")
        for path in state.glob("*.db*"):
            path.unlink()
        for _ in range(2):
            answer = memory.recall("quokka")
            assert [hit.text for hit in answer.hits] == ["Maya keeps a quokka."]
            assert "usage" not in answer.degraded
    with closing(open_local(state / "local.db")) as local:
        assert local.execute("SELECT sum(accesses) FROM uses").get == 2


@pytest.mark.slow
def test_shared_memory_that_is_cut_under_an_open_server_kills_nobody(vault: Vault):
    vault.write_fact("a", "Maya keeps a quokka.")
    code = (
        "import os, sys\nfrom quaid import Memory\nfrom quaid.place import state_folder\n"
        "from pathlib import Path\nfrom quaid.report.status import status_of\n"
        "memory = Memory.open(sys.argv[1])\n"
        "for _ in range(3): memory.recall('quokka')\n"
        "for size in (0, 5000):\n"
        "    for path in state_folder(Path(sys.argv[1])).glob('*-shm'): os.truncate(path, size)\n"
        "    assert len(memory.recall('quokka').hits) == 1\n"
        "    status_of(memory)\n"
        "memory.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(vault.root)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_rows_of_a_newer_quaid_and_rows_that_are_rubbish_are_passed_over(vault: Vault):
    vault.write_fact("a", "Maya keeps a quokka.")
    with vault.memory() as memory:
        memory.recall("quokka")
        memory.note("call Maya")
        state = state_folder(vault.root)
        from quaid.janitor.janitor import take_snapshot  # noqa: F401 - its tables
        from quaid.local.doc_cache import DocChecks
        from quaid.local.runs import Decision, Decisions, HealthLog, Run, Runs, Snapshot

        local = state / "local.db"
        HealthLog(local).add(Snapshot("2026-11-22T01:00:00Z"))
        Runs(local).add(Run("01r", "2026-11-22T01:00:00Z"))
        Decisions(local).put(Decision("review", "x", "k", (), "y", "z"), "2026-11-22")
        DocChecks(local).store({"boat:a.md": ("key", "{}")})
        with closing(apsw.Connection(str(local))) as connection:
            tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            for table in tables:
                if not table.startswith("sqlite_"):
                    connection.execute(f'ALTER TABLE "{table}" ADD COLUMN from_the_future TEXT')
            for rubbish in ("{", "[1]", "null", '{"at": 5, "kinds": [1]}'):
                for table, column in (
                    ("health", "snapshot"), ("janitor_runs", "decisions"), ("proposals", "proposal"),
                    ("recall_log", "hits"), ("recall_log", "stages"), ("doc_checks", "found"),
                ):  # fmt: skip
                    connection.execute(f"UPDATE {table} SET {column} = ?", (rubbish,))
                assert status_of(memory).counts
                assert HealthLog(local).by_day("2026-01-01") == []
                assert Runs(local).list(5) == []
                assert Runs(local).last_success() is None
                assert Decisions(local).get("k") is None
                assert memory.recall("quokka").hits
                assert not any(each.is_stale for each in memory.documentation.known())


@pytest.mark.slow
@pytest.mark.parametrize(("harness", "rounds"), [("damage", 2), ("disk", 1)])
def test_the_short_form_of_a_harness_breaks_nothing(calm, harness, rounds):
    command = [sys.executable, str(TORTURE / f"{harness}.py"), "--short"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["rounds"] == rounds
