"""The log of questions, what it comes to, and the gaps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.local import recall_log
from quaid.local.database import open_in_memory
from quaid.local.recall_log import Gap, Gaps, RecallEntry, RecallLog, normalise, question_key
from quaid.local.recall_summary import Bar, Latency, RecallDay, measure, summarise

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def connection() -> Iterator[object]:
    opened = open_in_memory(recall_log.SCHEMA)
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
        log = RecallLog(connection)
        log.add(kept)
        log.add(entry("later"))
        assert log.recent(10) == [entry("later"), kept]
        assert log.recent(1) == [entry("later")]
        assert connection.execute("SELECT best FROM recall_log").fetchall() == [(0.7,), (0.9,)]

    def test_only_a_hash_is_kept_where_the_owner_wants_that(self, connection):
        RecallLog(connection, "hashes").add(entry("A secret?"))
        assert RecallLog(connection).recent(1)[0].query_key == question_key("a SECRET")
        assert "ecret" not in str(connection.execute("SELECT * FROM recall_log").fetchall())

    def test_nothing_is_kept_when_it_is_off(self, connection):
        RecallLog(connection, "off").add(entry())
        assert RecallLog(connection).recent(1) == []

    def test_the_newest_stay(self, connection, monkeypatch):
        monkeypatch.setattr(recall_log, "MAX_ENTRIES", 5)
        log = RecallLog(connection)
        for number in range(12):
            log.add(entry(f"{number}"))
        assert [one.query for one in log.recent(100)] == ["11", "10", "9", "8", "7"]


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
        gaps = Gaps(connection)
        gaps.record("Maya's number?", NOON, answered=False)
        gaps.record("mayas number", NOON, answered=False)
        gaps.record("MAYA'S NUMBER", NOON + timedelta(hours=1), answered=False)
        key = question_key("Maya's number")
        assert gaps.recent(1) == [Gap(key, 2, "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z")]
        assert gaps.count() == 2
        assert "aya" not in str(connection.execute("SELECT * FROM gaps").fetchall())

    def test_a_gap_whose_question_is_answered_disappears(self, connection):
        gaps = Gaps(connection)
        gaps.record("Maya's number?", NOON, answered=False)
        gaps.record("something else", NOON, answered=True)
        assert gaps.count() == 1
        gaps.record("maya's number", NOON, answered=True)
        assert gaps.count() == 0
        assert not gaps.close(question_key("maya's number"))

    def test_the_text_is_kept_where_the_owner_wants_it_and_goes_when_not(self, connection):
        Gaps(connection, "text").record("Maya's  number?", NOON, answered=False)
        assert Gaps(connection).recent(1)[0].text == "Maya's number?"
        Gaps(connection, "hashes").record("Maya's number?", NOON, answered=False)
        assert Gaps(connection).recent(1)[0].text is None

    def test_nothing_is_kept_when_it_is_off_or_nothing_was_asked(self, connection):
        Gaps(connection, "off").record("Maya's number?", NOON, answered=False)
        Gaps(connection).record("?!", NOON, answered=False)
        assert Gaps(connection).count() == 0

    def test_what_was_asked_last_stays(self, connection, monkeypatch):
        monkeypatch.setattr(recall_log, "MAX_GAPS", 3)
        gaps = Gaps(connection, "text")
        for number in range(6):
            gaps.record(f"question {number}", NOON + timedelta(minutes=number), answered=False)
        assert [gap.text for gap in gaps.recent(10)] == ["question 5", "question 4", "question 3"]
