"""What the janitor remembers on this machine: its runs, its verdicts, what waits for the owner, how the memory was."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples

from quaid.errors import AmbiguousReferenceError, StateDamagedError
from quaid.local.runs import Decision, Decisions, HealthLog, Judgements, Run, Runs, Snapshot
from quaid.model import Edit, SourceEdit
from quaid.place import state_folder

FIRST = Run("01aaa0001", "2026-11-19T03:30:00Z")
SECOND = Run("01aaa0002", "2026-11-20T03:30:00Z")
DONE = SECOND._replace(
    outcome="done", ended="2026-11-20T03:31:00Z", commit="4fea12", cost_usd=None, notes_before=12, notes_after=11,
    decisions=({"task": "duplicates", "kind": "merge", "subject": "merge “ö” \ud800"},), waiting=2,
    degraded=("model",),
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return state_folder(tmp_path) / "local.db"


class TestRuns:
    def test_a_run_comes_back_as_it_was(self, path):
        runs = Runs(path)
        runs.add(SECOND)
        assert runs.list(5) == [SECOND]
        runs.finish(DONE)
        assert runs.list(5) == [DONE]
        assert runs.get(DONE.run) == DONE

    def test_looking_makes_no_file(self, path):
        runs = Runs(path)
        assert (runs.list(5), runs.get("x"), runs.last_success()) == ([], None, None)
        assert not path.parent.exists()

    def test_what_never_ended_was_killed_when_the_next_one_begins(self, path):
        runs = Runs(path)
        runs.add(FIRST)
        runs.add(SECOND)
        assert [(run.run, run.outcome) for run in runs.list(5)] == [(SECOND.run, "running"), (FIRST.run, "killed")]

    def test_the_last_success_is_the_newest_that_was_done(self, path):
        runs = Runs(path)
        for number, outcome in enumerate(("done", "done", "stopped", "failed", "running")):
            runs.add(Run(f"0{number}", f"2026-11-1{number}T03:30:00Z", outcome))
        assert runs.last_success().run == "01"

    def test_a_run_is_found_by_the_beginning_or_the_end_of_its_id(self, path):
        runs = Runs(path)
        runs.add(FIRST)
        runs.add(SECOND)
        assert runs.get("0002").run == SECOND.run
        assert runs.get(" 01AAA0001 ").run == FIRST.run
        assert runs.get("") is None
        assert runs.get("%") is None
        with pytest.raises(AmbiguousReferenceError):
            runs.get("01aaa")

    def test_a_whole_id_is_not_ambiguous(self, path):
        runs = Runs(path)
        runs.add(Run("ab", FIRST.started))
        runs.add(Run("abab", SECOND.started))
        assert runs.get("ab").run == "ab"

    def test_old_runs_go(self, path):
        runs = Runs(path)
        runs.add(FIRST._replace(started="2025-10-01T03:30:00Z"))
        runs.add(SECOND)
        assert [run.run for run in runs.list(5)] == [SECOND.run]


class TestJudgements:
    def test_what_was_judged_is_known(self, path):
        judged = Judgements(path, "2026-11-20")
        assert judged.known(["a"]) == {}
        judged.add("duplicates", {"a": "different", "b": "same"})
        judged.add("duplicates", {"a": "unsure"})
        judged.add("review", {})
        assert judged.known(["a", "b", "c"]) == {"a": "unsure", "b": "same"}
        assert judged.known([]) == {}

    def test_many_keys_at_once(self, path):
        judged = Judgements(path, "2026-11-20")
        keys = {f"{number:016x}": "keep" for number in range(20_000)}
        judged.add("review", keys)
        assert judged.known(keys) == keys

    def test_what_was_of_no_use_for_long_is_forgotten_and_what_is_asked_for_stays(self, path):
        Judgements(path, "2025-09-01").add("review", {"used": "keep", "unused": "keep"})
        assert Judgements(path, "2026-08-01").known(["used"]) == {"used": "keep"}
        now = Judgements(path, "2026-11-20")
        now.add("review", {"new": "keep"})
        assert set(now.known(["used", "unused", "new"])) == {"used", "new"}


WAITING = Decision(
    "resolve", "supersede", "3f0c9a1b2c3d4e5f",
    (Edit("facts/a.md", b"\xff\x00old", "nëw\r\n".encode()), Edit("facts/b.md", None, b""), Edit("c.md", b"x", None)),
    "“Lisbon” replaces “Porto”", "She moved.", ("01a", "01b"), "a-model", "resolve@3f9c", detail="both texts",
    branch=SourceEdit("/src", "a.md", b"\xff", b"", "why"), choices=(("facts/a.md", "Lisbon"), ("facts/b.md", "Porto")),
)  # fmt: skip


class TestDecisions:
    def test_one_comes_back_byte_for_byte(self, path):
        waiting = Decisions(path)
        assert waiting.get(WAITING.key) is None
        waiting.put(WAITING, "2026-11-20")
        assert waiting.get(WAITING.key) == WAITING
        waiting.put(replace(WAITING, why="She said so."), "2026-11-21")
        assert waiting.get(WAITING.key).why == "She said so."

    @settings(max_examples=examples(25))
    @given(
        st.lists(
            st.builds(Edit, st.text(), st.none() | st.binary(), st.none() | st.binary()), max_size=3
        ).map(tuple),
        st.text(st.characters(), max_size=20),
    )  # fmt: skip
    def test_any_edit_and_any_text(self, tmp_path_factory, edits, text):
        waiting = Decisions(tmp_path_factory.getbasetemp() / "any" / "local.db")
        wanted = replace(WAITING, edits=edits, subject=text, why=text)
        waiting.put(wanted, "2026-11-20")
        assert waiting.get(wanted.key) == wanted


class TestTrouble:
    def test_a_file_that_is_no_database_is_set_aside(self, path):
        path.parent.mkdir()
        path.write_bytes(b"no database" * 1000)
        Runs(path).add(FIRST)
        assert Runs(path).list(5) == [FIRST]
        assert (path.parent / "local.db.damaged").read_bytes().startswith(b"no database")

    def test_damage_that_shows_late_is_said(self, path):
        judged = Judgements(path, "2026-11-20")
        judged.add("review", {f"{number:016x}": "keep" * 50 for number in range(2_000)})
        with apsw.Connection(str(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        data = bytearray(path.read_bytes())
        data[8192:] = b"\xa5" * (len(data) - 8192)
        path.write_bytes(data)
        with pytest.raises(StateDamagedError):
            judged.known([f"{number:016x}" for number in range(2_000)])
        assert judged.known(["a"]) == {}

    def test_several_processes_lose_nothing(self, path):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.starmap(_judge_and_propose, [(path, name) for name in ("a", "b")])
        keys = [f"{name}{number}" for name in ("a", "b") for number in range(20)]
        assert len(Judgements(path, "2026-11-20").known(keys)) == 40
        assert all(Decisions(path).get(key) for key in keys)


def _judge_and_propose(path, name):
    for number in range(20):
        Judgements(path, "2026-11-20").add("review", {f"{name}{number}": "keep"})
        Decisions(path).put(replace(WAITING, key=f"{name}{number}"), "2026-11-20")


class TestHealth:
    def test_the_last_of_each_day_with_what_the_day_cost(self, path):
        health = HealthLog(path)
        assert health.by_day("2026-01-01") == []
        one = Snapshot(
            "2026-11-19T03:30:00Z", {"fact": 3, "entity": 1}, {"pending": 2}, 1, 5, 6, 10, 8, 100, 200, 4.5, 1, 2, 0.5
        )
        again = replace(one, at="2026-11-19T13:30:00Z", kinds={"fact": 4}, cost_usd=0.25)
        free = replace(one, at="2026-11-20T03:30:00Z", cost_usd=None, chunks=0)
        for snapshot in (one, free, again):
            health.add(snapshot)
        assert health.by_day("2026-11-01") == [replace(again, cost_usd=0.75), free]
        assert health.by_day("2026-11-20") == [free]
        assert (one.notes, one.pending, one.embedded_share, free.embedded_share) == (4, 2, 0.8, None)

    def test_numbers_of_another_version_are_read_as_far_as_they_are_known(self, path):
        health = HealthLog(path)
        health.add(Snapshot("2026-11-20T03:30:00Z", gaps=7))
        with apsw.Connection(str(path)) as connection:
            connection.execute(
                """UPDATE health SET snapshot = '{"at": "2026-11-20T03:30:00Z", "gaps": 7, "mood": "good"}'"""
            )
        assert health.by_day("2026-11-20") == [Snapshot("2026-11-20T03:30:00Z", gaps=7)]

    def test_old_ones_go(self, path):
        health = HealthLog(path)
        health.add(Snapshot("2025-09-01T03:30:00Z"))
        health.add(Snapshot("2026-11-20T03:30:00Z"))
        assert [one.day for one in health.by_day("2020-01-01")] == ["2026-11-20"]
