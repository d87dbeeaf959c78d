"""What hooks leave behind: nothing is lost, nothing is done twice, and no file that is broken holds up the others."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from quaid.hooks.queue_worker import run_worker
from quaid.local import queue, sessions
from quaid.local.queue import QueuedItem
from quaid.place import state_folder
from quaid.report.checks import examine
from quaid.report.status import status_of


def item(session="s1", when="now", at=1.0, **fields):
    return QueuedItem(session, f"/tmp/{session}.jsonl", when, "session", at, **fields)


def test_a_session_is_queued_once_for_each_reason_and_the_newest_report_counts(tmp_path):
    for one in (item(at=3), item(at=4), item(when="idle", at=2), item("s2", at=1), item("../../x", at=5)):
        queue.put(tmp_path, one)
    assert [(one.session, one.when, one.at) for one in queue.waiting(tmp_path)] == [
        ("s2", "now", 1), ("s1", "idle", 2), ("s1", "now", 4), ("../../x", "now", 5),
    ]  # fmt: skip
    assert all(path.parent == tmp_path / "queue" for path in tmp_path.rglob("*") if path.is_file())


def test_what_is_done_is_gone_unless_it_was_reported_again(tmp_path):
    first = item()
    queue.put(tmp_path, first)
    queue.put(tmp_path, replace(first, at=2.0))
    queue.done(tmp_path, first)
    (again,) = queue.waiting(tmp_path)
    queue.done(tmp_path, again)
    assert queue.waiting(tmp_path) == []
    assert not queue.is_any(tmp_path)


def test_what_fails_comes_again_and_is_given_up_with_its_problem(tmp_path):
    queue.put(tmp_path, item())
    for attempt in (1, 2):
        (waiting,) = queue.waiting(tmp_path)
        queue.fail(tmp_path, waiting, "no room")
        (waiting,) = queue.waiting(tmp_path)
        assert (waiting.attempts, waiting.problem) == (attempt, "no room")
        assert time.time() - waiting.at < 60
    queue.fail(tmp_path, waiting, "still no room")
    assert queue.waiting(tmp_path) == []
    assert [given.problem for given in queue.failed(tmp_path)] == ["still no room"]
    queue.put(tmp_path, item("s2"))
    queue.fail(tmp_path, queue.waiting(tmp_path)[0], "gone", for_good=True)
    assert queue.waiting(tmp_path) == []
    assert len(queue.failed(tmp_path)) == 2


CUT = {
    "empty": b"",
    "cut": b'{"session": "s9", "transcr',
    "a list": b"[]",
    "no field": b"{}",
    "no text": b"\xff\xfe",
    "newer": b'{"session": "s9", "transcript": "/t", "when": "now", "reason": "x", "at": 1.0, "mood": "good"}',
    "odd values": b'{"session": 9, "transcript": "/t", "when": "now", "reason": "x", "at": 1.0}',
    "odd time": b'{"session": "s9", "transcript": "/t", "when": "now", "reason": "x", "at": "soon"}',
}


@pytest.mark.parametrize("data", CUT.values(), ids=CUT)
def test_a_report_that_cannot_be_read_is_kept_with_the_reason_and_holds_up_no_other(tmp_path, data):
    queue.put(tmp_path, item())
    broken = tmp_path / "queue" / f"{9:016}.now.json"
    broken.write_bytes(data)
    for _ in range(2):  # looking changes nothing
        assert [one.session for one in queue.waiting(tmp_path)] == ["s1"]
        ((transcript, problem),) = [(given.transcript, given.problem) for given in queue.failed(tmp_path)]
        assert (transcript, broken.read_bytes()) == (str(broken), data)
        assert problem.startswith("the report ")
    queue.set_aside(tmp_path)
    broken.write_bytes(data)  # and once more, under the same name
    queue.set_aside(tmp_path)
    assert not broken.exists()
    kept = [given.transcript for given in queue.failed(tmp_path)]
    assert [Path(path).read_bytes() for path in kept] == [data, data]
    assert {Path(path).parent for path in kept} == {tmp_path / "queue" / "failed"}


def test_nothing_that_was_given_up_is_ever_deleted(tmp_path):
    for number in range(150):
        queue.put(tmp_path, item(f"s{number}"))
        queue.fail(tmp_path, queue.waiting(tmp_path)[0], "gone", for_good=True)
    queue.put(tmp_path, item("s7"))
    queue.fail(tmp_path, queue.waiting(tmp_path)[0], "gone again", for_good=True)
    assert len(queue.failed(tmp_path)) == 151


def test_files_of_other_names_and_links_are_left_alone(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(asdict(item())))
    folder = tmp_path / "queue"
    folder.mkdir()
    (folder / "notes.json").write_text(secret.read_text())
    (folder / f"{1:016}.now.json").symlink_to(secret)
    (folder / f"{2:016}.now.json").mkdir()
    os.mkfifo(folder / f"{3:016}.now.json")
    assert queue.waiting(tmp_path) == []
    assert len(queue.failed(tmp_path)) == 3
    queue.set_aside(tmp_path)
    assert not queue.is_any(tmp_path)
    assert (folder / "notes.json").exists()
    assert secret.exists()


@pytest.mark.parametrize(
    "place", ["outside.jsonl", "queue/../outside.jsonl", "queue/notes.jsonl", f"queue/{1:016}.now.json"]
)
def test_only_a_copy_of_the_queues_own_is_deleted_when_it_is_done(tmp_path, place):
    path = tmp_path / place
    (tmp_path / "queue").mkdir()
    path.write_text("mine")
    told = QueuedItem("s1", str(path), "now", "session", 1.0, spooled=True)
    queue.put(tmp_path, told)
    queue.done(tmp_path, told)
    assert path.read_text() == "mine"


def test_only_its_owner_reads_the_queue_and_no_link_is_followed(tmp_path):
    before = os.umask(0)
    try:
        queue.put(tmp_path, item())
        queue.spool(tmp_path, "s1", [])
        queue.note_edited(tmp_path, "/a", "s1")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes.pop("queue") == 0o700
    assert set(modes.values()) == {0o600}
    target = tmp_path / "bashrc"
    (tmp_path / "queue" / "edited.jsonl").unlink()
    (tmp_path / "queue" / "edited.jsonl").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        queue.note_edited(tmp_path, "/a", "s1")
    assert not target.exists()


def test_status_and_doctor_name_what_could_not_be_taken_in(vault):
    with vault.memory() as memory:
        broken = state_folder(vault.root) / "queue" / f"{9:016}.now.json"
        broken.parent.mkdir()
        broken.write_bytes(b"{")
        (told,) = [found for found in examine(vault.root) if found.name == "queue"]
        assert (told.level, str(broken) in told.sentence) == ("warning", True)
        assert "queue/failed" in told.next_step
        attention = [one for one in status_of(memory).attention if "could not be taken in" in one.what]
        assert str(broken) in attention[0].paths[0]
        assert run_worker(vault.root) == 0
        assert not queue.is_any(state_folder(vault.root))
        assert (broken.parent / "failed" / broken.name).read_bytes() == b"{"


def test_a_report_that_was_cut_off_is_none(tmp_path):
    (tmp_path / "queue").mkdir()
    (tmp_path / "queue" / ".abc.now.json.1.2").write_text("{")
    assert queue.waiting(tmp_path) == []
    assert not queue.is_any(tmp_path)


def test_messages_are_kept_as_a_transcript_until_they_are_done(tmp_path):
    path = queue.spool(tmp_path, "s1", [{"role": "user", "content": "half a \ud83d character"}])
    other = queue.spool(tmp_path, "s1", [{"role": "user", "content": "more"}])
    assert path != other
    for one in (path, other):
        queue.put(tmp_path, QueuedItem("s1", one, "now", "session", 1.0, spooled=True))
    assert len(queue.waiting(tmp_path)) == 2
    for waiting in queue.waiting(tmp_path):
        queue.done(tmp_path, waiting)
    assert not list((tmp_path / "queue").iterdir())


def test_edited_files_are_told_once_in_their_order(tmp_path):
    assert list(queue.take_edited(tmp_path)) == []
    for path in ("/a", "/b", "/a", "/ü\n"):
        queue.note_edited(tmp_path, path, "s1")
    with (tmp_path / "queue" / "edited.jsonl").open("ab") as file:
        file.write(b'{"path"\n[]\n')
    queue.note_edited(tmp_path, "/c", "s1")
    assert list(queue.take_edited(tmp_path)) == ["/a", "/b", "/ü\n", "/c"]
    queue.note_edited(tmp_path, "/d", "s2")
    assert list(queue.take_edited(tmp_path)) == ["/a", "/b", "/ü\n", "/c", "/d"]  # whoever took them was killed
    queue.note_edited(tmp_path, "/e", "s2")
    queue.forget_edited(tmp_path)
    assert queue.has_edited(tmp_path)
    assert list(queue.take_edited(tmp_path)) == ["/e"]
    queue.forget_edited(tmp_path)
    assert not queue.has_edited(tmp_path)
    assert list(queue.take_edited(tmp_path)) == []


def test_a_session_remembers_what_it_was_given_until_it_is_compacted(tmp_path):
    from datetime import UTC, datetime

    assert sessions.read(tmp_path, "s1") == sessions.Given()
    sessions.record(tmp_path, "s1", {"ids": ["a", "b"]})
    sessions.record(tmp_path, "s1", {"ids": ["c"]})
    sessions.record(tmp_path, "../s2", {"ids": ["d"]})
    assert sessions.read(tmp_path, "s1").ids == {"a", "b", "c"}
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    sessions.compact(tmp_path, "s1", now)
    sessions.record(tmp_path, "s1", {"ids": ["e"]})
    with next(iter((tmp_path / "sessions").iterdir())).open("ab") as file:
        file.write(b'{"ids": [1\n{"compacted_at": "soon"}\n[]\n')
    assert sessions.read(tmp_path, "s1").ids in ({"e"}, {"d", "e"})
    assert sessions.read(tmp_path, "s1").compacted_at == now
    assert {path.parent for path in tmp_path.rglob("*.jsonl")} == {tmp_path / "sessions"}


def test_sessions_of_long_ago_are_forgotten(tmp_path):
    sessions.record(tmp_path, "old", {"ids": ["a"]})
    os.utime(next((tmp_path / "sessions").iterdir()), (1, 1))
    sessions.record(tmp_path, "new", {"ids": ["b"]})
    sessions.clear_old(tmp_path)
    assert not sessions.read(tmp_path, "old").ids
    assert sessions.read(tmp_path, "new").ids
