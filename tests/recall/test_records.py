"""The records of recall: written beside the record, never in it; never worth a failure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import apsw
import pytest
from vaults import PATIENCE_S, Vault, read_only_state

from quaid.local.database import open_local
from quaid.local.recall_log import list_entries
from quaid.model import ChannelRank, Hit, Recall
from quaid.place import LOCAL_FILE, state_folder
from quaid.recall.hits import EXPANDED
from quaid.recall.records import RecallRecords, difficulty, list_recalled
from quaid.settings import RecallSettings, Settings
from quaid.sqlite import connect

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
RANK = ChannelRank(1, 1.0)


@pytest.fixture
def records(vault: Vault) -> Iterator[RecallRecords]:
    with closing(RecallRecords(vault.root, Settings())) as opened:
        yield opened


def hit(note_id: str, score: float = 1.0, *channels: str) -> Hit:
    return Hit(note_id, "fact", "text", score, "p.md", channels=dict.fromkeys(channels or ("keyword",), RANK))


def answer(*hits: Hit, query: str = "what?", degraded: tuple[str, ...] = ()) -> Recall:
    return Recall(query, hits, degraded, 12.345, {"took_ms": {"keyword": 1.0}, "words": ["what"]})


def note(records: RecallRecords, found: Recall) -> str | None:
    return records.after_recall(found, door="python", depth="quick", session="2f1c9a", limit=10, now=NOON)


def accesses(records: RecallRecords, *ids: str) -> dict[str, int]:
    return {note_id: use.accesses for note_id, use in records.strengths(ids).items()}


class TestRecall:
    def test_a_recall_is_counted_logged_and_changes_no_file_of_the_vault(self, vault, records):
        before, head = vault.notes(), vault.head()
        assert note(records, answer(hit("a"), hit("b", 0.6))) is None
        assert accesses(records, "a", "b", "c") == {"a": 1, "b": 1}
        local = open_local(state_folder(vault.root) / LOCAL_FILE)
        (entry,) = list_entries(local, 5)
        local.close()
        assert (entry.query, entry.door, entry.depth, entry.session, entry.limit) == (
            "what?", "python", "quick", "2f1c9a", 10,
        )  # fmt: skip
        assert (entry.hits, entry.took_ms, entry.stages) == ((("a", 1.0), ("b", 0.6)), 12.35, {"keyword": 1.0})
        assert (vault.notes(), vault.head(), vault.status()) == (before, head, "")

    def test_the_owner_decides_what_is_kept(self, vault):
        settings = replace(Settings(), recall=RecallSettings(log="off", gaps="off"))
        with closing(RecallRecords(vault.root, settings)) as records:
            assert note(records, answer(query="secret")) is None
            assert records.numbers().recalls == 0
            assert records.gaps(5) == ([], 0)

    def test_one_recall_is_one_transaction(self, vault, records, monkeypatch):
        def fail(*_: object, **__: object) -> None:
            raise apsw.FullError

        monkeypatch.setattr("quaid.local.recall_log.record_gap", fail)
        assert note(records, answer(hit("a"))) == "usage: the disk is full, so this recall is not counted"
        monkeypatch.undo()
        assert accesses(records, "a") == {}
        assert records.numbers().recalls == 0


class TestDifficulty:
    def test_a_low_score_the_graph_alone_and_a_second_pass_are_hard(self):
        assert difficulty(hit("a", 1.2)) == 0.0
        assert difficulty(hit("a", 0.6)) == pytest.approx(0.4)
        assert difficulty(hit("a", 1.0, "graph")) == 0.5
        assert difficulty(hit("a", 1.0, "graph", "keyword")) == 0.0
        assert difficulty(hit("a", 1.0, "vector", EXPANDED)) == 0.5
        assert difficulty(hit("a", 1.0, "graph", EXPANDED)) == 0.75

    def test_what_only_fills_the_list_is_not_recalled(self):
        found = list_recalled(answer(hit("a", 0.8), hit("b", 0.41), hit("a", 0.5), hit("c", 0.39), hit("d", 0.0)))
        assert list(found) == ["a", "b"]
        assert list_recalled(answer()) == {}


class TestTrouble:
    def test_a_lock_is_waited_for_a_moment_and_the_record_dropped_by_name(self, vault, records):
        note(records, answer(hit("a")))
        other = connect(state_folder(vault.root) / "local.db", apsw.SQLITE_OPEN_READWRITE)
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        assert accesses(records, "a") == {"a": 1}
        said = note(records, answer(hit("a")))
        assert time.monotonic() - started < PATIENCE_S
        assert said == "usage: local.db is in use by another process, so this recall is not counted"
        other.execute("ROLLBACK")
        other.close()
        assert note(records, answer(hit("a"))) is None
        assert accesses(records, "a") == {"a": 2}

    def test_where_local_db_cannot_be_written_the_loss_is_named(self, vault, records):
        for path in state_folder(vault.root).glob("local.db*"):
            path.unlink()
        (state_folder(vault.root) / "local.db.lock").mkdir()
        assert note(records, answer(hit("a"))) == "usage: local.db cannot be written, so this recall is not counted"
        assert accesses(records, "a") == {}

    def test_state_on_a_disk_that_takes_no_writes_is_read(self, vault, records, tmp_path, monkeypatch):
        note(records, answer(hit("a")))
        records.close()
        with read_only_state(monkeypatch, tmp_path / "view"), closing(RecallRecords(vault.root, Settings())) as reading:
            assert accesses(reading, "a") == {"a": 1}
            assert "cannot be written" in (note(reading, answer(hit("a"))) or "")

    def test_a_damaged_file_is_begun_anew_and_said_once(self, vault, records):
        (state_folder(vault.root) / "local.db").write_bytes(b"no database at all, whatever its name says" * 200)
        assert note(records, answer(hit("a"))) == (
            "usage: local.db was damaged and is preserved as local.db.damaged; a new one is begun"
        )
        assert (state_folder(vault.root) / "local.db.damaged").exists()
        assert note(records, answer(hit("b"))) is None
        assert accesses(records, "a") == {"a": 1}
