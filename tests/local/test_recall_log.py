"""The log of questions, its summary, the gaps, and the uses of memories, for two processes and in a damaged file too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.errors import StateDamagedError
from quaid.local import recall_log
from quaid.local.database import open_local, translated
from quaid.local.recall_log import (
    SCHEMA,
    Gap,
    RecallEntry,
    add_entry,
    count_gaps,
    count_uses,
    find_uses,
    list_entries,
    list_gaps,
    list_most_used,
    normalise,
    question_key,
    record_gap,
)  # fmt: skip
from quaid.local.recall_summary import Bar, Latency, RecallDay, measure, summarise
from quaid.model import Use
from quaid.sqlite import transaction

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def connection() -> Iterator[object]:
    opened = apsw.Connection(":memory:")
    opened.execute(SCHEMA)
    yield opened
    opened.close()


def entry(query: str = "oat milk?", took_ms: float = 12.5, **fields: object) -> RecallEntry:
    known = {"at": "2026-11-20T12:00:00Z", "door": "cli", "depth": "quick", "stages": {}, "hits": (("a", 0.9),)}
    return RecallEntry(query=query, took_ms=took_ms, **{**known, **fields})


class TestLog:
    def test_an_entry_comes_back_as_it_was(self, connection):
        kept = entry(
            stages={"keyword": 1.5}, degraded=("vectors", "pending: 3 chunks"), limit=5, session="2f1c9a",
            hits=(("a", 0.5), ("b#t3", 0.7)),
        )  # fmt: skip
        add_entry(connection, kept)
        add_entry(connection, entry("later"))
        assert list_entries(connection, 10) == [entry("later"), kept]
        assert list_entries(connection, 1) == [entry("later")]
        assert connection.execute("SELECT best FROM recall_log").fetchall() == [(0.7,), (0.9,)]

    def test_only_a_hash_is_kept_where_the_owner_wants_that(self, connection):
        add_entry(connection, entry("A secret?"), "hashes")
        assert connection.execute("SELECT query_key FROM recall_log").fetchone() == (question_key("a SECRET"),)
        assert "ecret" not in str(connection.execute("SELECT * FROM recall_log").fetchall())

    def test_nothing_is_kept_when_it_is_off(self, connection):
        add_entry(connection, entry(), "off")
        assert list_entries(connection, 1) == []

    def test_the_newest_stay(self, connection, monkeypatch):
        monkeypatch.setattr(recall_log, "MAX_ENTRIES", 5)
        for number in range(12):
            add_entry(connection, entry(f"{number}"))
        assert [one.query for one in list_entries(connection, 100)] == ["11", "10", "9", "8", "7"]


class TestNumbers:
    def test_an_empty_log_comes_to_nothing(self):
        assert summarise([]).recalls == 0
        assert summarise([]).latency is None

    def test_what_a_log_comes_to(self):
        numbers = summarise([
            entry(took_ms=5.0, stages={"keyword": 1.0, "vector": 3.0}),
            entry(took_ms=7.0, stages={"keyword": 2.0}, degraded=("vectors", "vectors: twice", "pending: 3"), door="mcp"),
            entry(took_ms=6000.0, hits=(), at="2026-11-19T23:59:59Z"),
        ])  # fmt: skip
        assert (numbers.recalls, numbers.answered, numbers.unanswered, numbers.degraded_recalls) == (3, 2, 1, 1)
        assert (numbers.first, numbers.last) == ("2026-11-19T23:59:59Z", "2026-11-20T12:00:00Z")
        assert numbers.latency == Latency(3, 7.0, 6000.0)
        assert numbers.stages == {"keyword": Latency(2, 1.0, 2.0), "vector": Latency(1, 3.0, 3.0)}
        assert numbers.degraded == {"vectors": 1, "pending": 1}
        assert numbers.doors == {"cli": 2, "mcp": 1}
        assert [bar for bar in numbers.histogram if bar.count] == [Bar(5.0, 1), Bar(10.0, 1), Bar(None, 1)]
        assert numbers.days == (
            RecallDay("2026-11-19", 1, 0, 0, 6000.0, 6000.0),
            RecallDay("2026-11-20", 2, 2, 1, 5.0, 7.0),
        )

    @given(st.lists(st.floats(0, 1e5), min_size=1))
    def test_every_recall_is_in_one_bar_and_percentiles_are_measurements(self, took):
        numbers = summarise([entry(took_ms=one) for one in took])
        assert sum(bar.count for bar in numbers.histogram) == len(took)
        assert min(took) - 0.01 <= numbers.latency.p50_ms <= numbers.latency.p95_ms <= max(took) + 0.01

    def test_percentiles_are_the_nearest_rank(self):
        assert measure(range(1, 101)) == Latency(100, 50, 95)


class TestGaps:
    def test_a_question_is_the_same_however_it_is_typed(self):
        assert normalise("  What's  MAYA's number? ") == normalise("what s maya s number")
        assert question_key("What?") == question_key("what") != question_key("who")

    def test_a_gap_is_counted_by_its_hash_alone(self, connection):
        record_gap(connection, "Maya's number?", NOON, is_answered=False)
        record_gap(connection, "mayas number", NOON, is_answered=False)
        record_gap(connection, "MAYA'S NUMBER", NOON + timedelta(hours=1), is_answered=False)
        key = question_key("Maya's number")
        assert list_gaps(connection, 1) == [Gap(key, 2, "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z")]
        assert count_gaps(connection) == 2
        assert "aya" not in str(connection.execute("SELECT * FROM gaps").fetchall())

    def test_a_gap_whose_question_is_answered_disappears(self, connection):
        record_gap(connection, "Maya's number?", NOON, is_answered=False)
        record_gap(connection, "something else", NOON, is_answered=True)
        assert count_gaps(connection) == 1
        record_gap(connection, "maya's number", NOON, is_answered=True)
        assert count_gaps(connection) == 0

    def test_the_text_is_kept_where_the_owner_wants_it_and_goes_when_not(self, connection):
        for storage, text in (("text", "Maya's number?"), ("hashes", None)):
            record_gap(connection, "Maya's  number?", NOON, is_answered=False, storage=storage)
            assert list_gaps(connection, 1)[0].text == text

    def test_nothing_is_kept_when_it_is_off_or_nothing_was_asked(self, connection):
        record_gap(connection, "Maya's number?", NOON, is_answered=False, storage="off")
        record_gap(connection, "?!", NOON, is_answered=False)
        assert count_gaps(connection) == 0

    def test_what_was_asked_last_stays(self, connection, monkeypatch):
        monkeypatch.setattr(recall_log, "MAX_GAPS", 3)
        for number in range(6):
            when = NOON + timedelta(minutes=number)
            record_gap(connection, f"question {number}", when, is_answered=False, storage="text")
        assert [gap.text for gap in list_gaps(connection, 10)] == ["question 5", "question 4", "question 3"]


class TestUses:
    def test_what_was_never_used_is_not_known(self, connection):
        assert find_uses(connection, ["a", "b"]) == {}
        assert find_uses(connection, []) == {}

    def test_a_recall_counts_and_a_hard_one_strengthens_more(self, connection):
        count_uses(connection, {"easy": 0.0, "hard": 1.0}, NOON)
        count_uses(connection, {"easy": 0.0}, NOON + timedelta(minutes=1))
        assert find_uses(connection, ["easy", "hard", "other"]) == {
            "easy": Use(2, "2026-11-20T12:01:00Z", 0.1),
            "hard": Use(1, "2026-11-20T12:00:00Z", 0.2),
        }

    def test_the_last_access_is_in_utc_and_a_clock_set_back_does_not_set_it_back(self, connection):
        count_uses(connection, {"a": 0.0}, NOON.astimezone(timezone(timedelta(hours=9))))
        count_uses(connection, {"a": 0.0}, NOON - timedelta(days=1))
        assert find_uses(connection, ["a"])["a"].last_access == "2026-11-20T12:00:00Z"

    def test_the_most_used_come_first(self, connection):
        count_uses(connection, {"a": 0.0, "b": 0.0}, NOON)
        count_uses(connection, {"b": 0.0}, NOON)
        assert [note_id for note_id, _ in list_most_used(connection, 5)] == ["b", "a"]
        assert list_most_used(connection, 1) == [("b", Use(2, "2026-11-20T12:00:00Z", 0.1))]


class TestFile:
    def test_two_processes_recording_at_once_lose_nothing(self, tmp_path):
        path = tmp_path / "local.db"
        code = (
            "import sys\nfrom datetime import UTC, datetime\nfrom pathlib import Path\n"
            "from quaid.local.database import open_local\n"
            "from quaid.sqlite import transaction\n"
            "from quaid.local.recall_log import SCHEMA, count_uses\n"
            "connection = open_local(Path(sys.argv[1]), SCHEMA, relaxed=True)\n"
            "for _ in range(100):\n"
            "    with transaction(connection):\n"
            "        count_uses(connection, {'a': 0.5, sys.argv[2]: 0.0}, datetime.now(UTC))\n"
        )
        root = str(Path(__file__).parents[2])
        running = [subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=root) for name in "xy"]
        assert [process.wait(30) for process in running] == [0, 0]
        connection = open_local(path, SCHEMA)
        found = find_uses(connection, "axy")
        assert {note_id: use.accesses for note_id, use in found.items()} == {"a": 200, "x": 100, "y": 100}
        assert found["a"].strength == pytest.approx(200 * 0.125)
        connection.close()

    def test_a_file_damaged_while_it_is_used_is_set_aside_and_begun_anew(self, tmp_path):
        path = tmp_path / "local.db"
        connection = open_local(path, SCHEMA)
        with transaction(connection):
            count_uses(connection, {f"{i}": 0.0 for i in range(5000)}, NOON)
        connection.close()
        data = path.read_bytes()
        path.write_bytes(data[:4096] + b"\x5a" * (len(data) - 4096))
        connection = open_local(path)
        with pytest.raises(StateDamagedError, match=r"local\.db\.damaged"), translated(connection):
            connection.execute("SELECT sum(accesses) FROM uses").fetchone()
        connection.close()
        assert path.with_name("local.db.damaged").exists()
        connection = open_local(path, SCHEMA)
        assert find_uses(connection, ["1"]) == {}
        connection.close()

    def test_a_sound_file_is_never_set_aside_for_the_fault_of_its_forerunner(self, tmp_path):
        path = tmp_path / "local.db"
        connection = open_local(path, SCHEMA)
        path.rename(tmp_path / "local.db.damaged")  # as another process does that found it damaged
        for suffix in ("-wal", "-shm"):
            path.with_name(f"local.db{suffix}").unlink()
        successor = open_local(path, SCHEMA)
        count_uses(successor, {"a": 0.0}, NOON)
        (tmp_path / "local.db.damaged").unlink()
        with pytest.raises(StateDamagedError), translated(connection):
            raise apsw.CorruptError
        assert not path.with_name("local.db.damaged").exists()
        connection.close()
        assert path.with_name("local.db-wal").exists()
        assert find_uses(successor, "a")["a"].accesses == 1
        successor.close()
