"""The uses of memories in local.db: counts, two processes at once, and a damaged file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from quaid.errors import StateDamagedError
from quaid.local.database import open_in_memory, open_local, translated
from quaid.local.usage import SCHEMA, Usage
from quaid.model import Use
from quaid.sqlite import transaction

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def usage() -> Iterator[Usage]:
    connection = open_in_memory(SCHEMA)
    yield Usage(connection)
    connection.close()


class TestCounting:
    def test_what_was_never_used_is_not_known(self, usage):
        assert usage.of(["a", "b"]) == {}
        assert usage.of([]) == {}

    def test_a_recall_counts_and_a_hard_one_strengthens_more(self, usage):
        usage.record({"easy": 0.0, "hard": 1.0}, NOON)
        usage.record({"easy": 0.0}, NOON + timedelta(minutes=1))
        assert usage.of(["easy", "hard", "other"]) == {
            "easy": Use(2, "2026-11-20T12:01:00Z", 0.1),
            "hard": Use(1, "2026-11-20T12:00:00Z", 0.2),
        }

    def test_a_clock_set_back_does_not_set_back_the_last_access(self, usage):
        usage.record({"a": 0.0}, NOON)
        usage.record({"a": 0.0}, NOON - timedelta(days=1))
        assert usage.of(["a"])["a"].last_access == "2026-11-20T12:00:00Z"

    def test_time_is_kept_in_utc(self, usage):
        from datetime import timezone

        usage.record({"a": 0.0}, NOON.astimezone(timezone(timedelta(hours=9))))
        assert usage.of(["a"])["a"].last_access == "2026-11-20T12:00:00Z"

    def test_the_most_used_come_first(self, usage):
        usage.record({"a": 0.0, "b": 0.0}, NOON)
        usage.record({"b": 0.0}, NOON)
        assert [note_id for note_id, _ in usage.most_used(5)] == ["b", "a"]
        assert usage.most_used(1) == [("b", Use(2, "2026-11-20T12:00:00Z", 0.1))]


class TestFile:
    def test_two_processes_recording_at_once_lose_nothing(self, tmp_path):
        path = tmp_path / "local.db"
        code = (
            "import sys\nfrom datetime import UTC, datetime\nfrom pathlib import Path\n"
            "from quaid.local.database import open_local\n"
            "from quaid.sqlite import transaction\n"
            "from quaid.local.usage import SCHEMA, Usage\n"
            "connection = open_local(Path(sys.argv[1]), SCHEMA, relaxed=True)\n"
            "for _ in range(100):\n"
            "    with transaction(connection):\n"
            "        Usage(connection).record({'a': 0.5, sys.argv[2]: 0.0}, datetime.now(UTC))\n"
        )
        root = str(Path(__file__).parents[2])
        running = [subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=root) for name in "xy"]
        assert [process.wait(30) for process in running] == [0, 0]
        connection = open_local(path, SCHEMA)
        found = Usage(connection).of("axy")
        assert {note_id: use.accesses for note_id, use in found.items()} == {"a": 200, "x": 100, "y": 100}
        assert found["a"].strength == pytest.approx(200 * 0.125)
        connection.close()

    def test_a_file_damaged_while_it_is_used_is_set_aside_and_begun_anew(self, tmp_path):
        path = tmp_path / "local.db"
        connection = open_local(path, SCHEMA)
        with transaction(connection):
            Usage(connection).record({f"{i}": 0.0 for i in range(5000)}, NOON)
        connection.close()
        data = path.read_bytes()
        path.write_bytes(data[:4096] + b"\x5a" * (len(data) - 4096))
        connection = open_local(path)
        with pytest.raises(StateDamagedError, match=r"local\.db\.damaged"), translated(connection):
            connection.execute("SELECT sum(accesses) FROM uses").fetchone()
        connection.close()
        assert path.with_name("local.db.damaged").exists()
        connection = open_local(path, SCHEMA)
        assert Usage(connection).of(["1"]) == {}
        connection.close()

    def test_a_sound_file_is_never_set_aside_for_the_fault_of_its_forerunner(self, tmp_path):
        path = tmp_path / "local.db"
        connection = open_local(path, SCHEMA)
        path.rename(tmp_path / "local.db.damaged")  # as another process does that found it damaged
        for suffix in ("-wal", "-shm"):
            path.with_name(f"local.db{suffix}").unlink()
        successor = open_local(path, SCHEMA)
        Usage(successor).record({"a": 0.0}, NOON)
        (tmp_path / "local.db.damaged").unlink()
        with pytest.raises(StateDamagedError), translated(connection):
            raise apsw.CorruptError
        assert not path.with_name("local.db.damaged").exists()
        connection.close()
        assert path.with_name("local.db-wal").exists()
        assert Usage(successor).of("a")["a"].accesses == 1
        successor.close()
