"""`quaid watch` follows whatever edits the files, and says so when it cannot."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from vaults import Vault, assert_verified, copy_vault, wait_for
from watchdog.observers.api import BaseObserver

from quaid import Memory
from quaid.errors import LockedError
from quaid.index import documents
from quaid.index.sqlite import database
from quaid.place import state_folder
from quaid.report.checks import check_watcher
from quaid.report.status import status_of
from quaid.sync import watcher
from quaid.sync.derived_index import SyncReport
from quaid.sync.indexer import Indexer
from quaid.sync.watcher import HEARTBEAT_FILE, Heartbeat, observe, read_heartbeat, why_incomplete

pytestmark = pytest.mark.usefixtures("calm")


class Watched:
    """A vault that is being followed, seen through a connection that never syncs by itself."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.reports: list[SyncReport] = []
        self.said: list[str] = []

    def knows(self, rel_path: str) -> str | None:
        """What the index says of a note, without looking at the files."""
        try:
            connection = database.connect_reader(state_folder(self.vault.root) / "index.db")
        except database.DatabaseError:
            return None
        try:
            row = connection.execute(
                "SELECT group_concat(text, ' ') FROM chunks JOIN documents USING (doc_id) WHERE path = ?", (rel_path,)
            ).fetchone()
            return row[0] if row else None
        except database.DatabaseError:
            return None
        finally:
            connection.close()

    def wait_until(self, rel_path: str, text: str | None, within_s: float = 20.0) -> float:
        def holds() -> bool:
            known = self.knows(rel_path)
            return known is None if text is None else known is not None and text in known

        return wait_for(holds, f"{rel_path} to say {text}", within_s)


@contextmanager
def following(vault: Vault) -> Iterator[Watched]:
    watched = Watched(vault)
    with vault.memory() as memory:
        memory.report_to(None, watched.said.append)
        follower = memory.follow(watched.reports.append)
        failed: list[BaseException] = []

        def run() -> None:
            try:
                follower.run()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            wait_for(
                lambda: failed or getattr(read_heartbeat(state_folder(vault.root)), "last_sync", None), "the first sync"
            )
            yield watched
        finally:
            follower.stop()
            thread.join(20)
        assert not thread.is_alive()
        assert failed == []


@pytest.fixture
def watched(vault: Vault) -> Iterator[Watched]:
    vault.write("garden.md", "The roses are red.\n")
    vault.save()
    with following(vault) as followed:
        followed.wait_until("garden.md", "red")
        yield followed


def test_a_save_makes_it_look_at_that_note_alone(vault, monkeypatch):
    looked: list[object] = []
    listing = Indexer.list_files
    monkeypatch.setattr(
        Indexer, "list_files", lambda self, only, *rest: looked.append(only) or listing(self, only, *rest)
    )
    with following(vault) as watched:
        looked.clear()
        vault.write("facts/one.md", "A fact about quinces\n")
        watched.wait_until("facts/one.md", "quinces")
        wait_for(lambda: looked[-2:] == [None, None], "the sweeps of a new folder")
        vault.write("facts/two.md", "A fact about medlars\n")
        watched.wait_until("facts/two.md", "medlars")
    assert looked[-1] == frozenset({"facts/two.md"})


def test_what_could_not_be_indexed_is_swept_for(vault, monkeypatch):
    with following(vault) as watched:
        sync, refusals = Indexer.sync, iter([True])

        def refuse_once(self, *asked, **options):  # type: ignore[no-untyped-def]
            if next(refusals, False):
                raise LockedError("Another Quaid process is updating the index")
            return sync(self, *asked, **options)

        monkeypatch.setattr(Indexer, "sync", refuse_once)
        vault.write("facts/one.md", "A fact about quinces\n")
        watched.wait_until("facts/one.md", "quinces")


def test_the_dance_of_vim_is_followed_and_leaves_no_trace(watched):
    root = watched.vault.root
    (root / "4913").write_bytes(b"")
    (root / "4913").unlink()
    (root / "garden.md").rename(root / "garden.md~")
    (root / ".garden.md.swp").write_bytes(b"b0VIM")
    (root / "garden.md").write_text("The roses are blue.\n")
    (root / "garden.md~").unlink()
    watched.wait_until("garden.md", "blue")
    with watched.vault.memory() as memory:
        assert documents.list_problems(memory.index()) == []
        assert_verified(memory)


def test_folders_that_come_and_go_are_followed(watched, tmp_path):
    outside = tmp_path / "v1.2"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "one.md").write_text("A moved-in quokka.\n")
    outside.rename(watched.vault.root / "v1.2")
    watched.wait_until("v1.2/deep/one.md", "quokka")
    watched.vault.write("v1.2/deep/one.md", "A moved-in wombat.\n")
    watched.wait_until("v1.2/deep/one.md", "wombat")
    (watched.vault.root / "v1.2").rename(watched.vault.root / "v1.3")
    watched.wait_until("v1.3/deep/one.md", "wombat")
    watched.wait_until("v1.2/deep/one.md", None)
    watched.vault.write("v1.3/deep/one.md", "A moved-in numbat.\n")
    watched.wait_until("v1.3/deep/one.md", "numbat")
    (watched.vault.root / "v1.3").rename(outside)
    watched.wait_until("v1.3/deep/one.md", None)


def test_reads_that_listen_see_folders_come_and_go(vault, tmp_path):
    outside = tmp_path / "v1.2"
    vault.write("v1.2/one.md", "A quokka.\n")
    with vault.memory() as memory:
        for _ in range(3):
            assert len(memory.recall("quokka").hits) == 1
        (vault.root / "v1.2").rename(outside)
        assert memory.recall("quokka").hits == ()
        outside.rename(vault.root / "v1.2")
        assert len(memory.recall("quokka").hits) == 1
        shutil.rmtree(vault.root / "v1.2")
        assert memory.recall("quokka").hits == ()


def test_a_vault_behind_a_link_is_followed(tmp_path):
    real = copy_vault(tmp_path / "real")
    (tmp_path / "link").symlink_to(real.root, target_is_directory=True)
    with following(Vault(tmp_path / "link")) as watched:
        real.write("garden.md", "The roses are red.\n")
        watched.wait_until("garden.md", "red", within_s=5)
    with Memory.open(tmp_path / "link") as memory:
        for word in ("white", "blue", "pink"):
            real.write("garden.md", f"The roses are {word}.\n")
            assert len(memory.recall(word).hits) == 1


def test_a_checkout_of_another_branch_is_followed(watched):
    vault = watched.vault
    vault.git("checkout", "-q", "-b", "other")
    for number in range(30):
        vault.write(f"notes/n{number}.md", f"Note number {number}.\n")
    vault.write("garden.md", "The roses are yellow.\n")
    vault.save()
    watched.wait_until("notes/n29.md", "number 29")
    vault.git("checkout", "-q", "main")
    watched.wait_until("garden.md", "red")
    watched.wait_until("notes/n29.md", None)
    assert watched.said == []


def test_temporary_files_and_conflict_copies_are_never_notes(watched):
    copy = "garden.sync-conflict-20261120-101010-ABCDEFG.md"
    for name in (".garden.md.swp", "garden.md~", "#garden.md#", ".#garden.md", "~$garden.md", "garden.md.tmp", ".obsidian/x.md",
                 "garden.tmp", copy):  # fmt: skip
        watched.vault.write(name, "The roses are forged.\n")
    watched.vault.write("garden.md", "The roses are real.\n")
    watched.wait_until("garden.md", "real")
    connection = database.connect_reader(state_folder(watched.vault.root) / "index.db")
    known = {path for path, _ in documents.list_known(connection)}
    problems = dict(documents.list_problems(connection))
    connection.close()
    assert known == {"AGENTS.md", "MEMORY.md", "SOUL.md", "USER.md", "garden.md"}
    assert "sync tool" in problems[copy]


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "HEARTBEAT_S", 0.3)


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_vault_that_vanishes_is_waited_for(brisk, watched, tmp_path, how):
    root, away = watched.vault.root, tmp_path / "away"
    if how == "moved":
        root.rename(away)
        wait_for(lambda: any("gone" in said for said in watched.said), "the news")
        away.rename(root)
    else:
        shutil.copytree(root, away, symlinks=True)
        shutil.rmtree(root)
        away.rename(root)
    watched.vault.write("garden.md", "The roses are back.\n")
    watched.wait_until("garden.md", "back")
    watched.vault.write("garden.md", "The roses are here to stay.\n")
    watched.wait_until("garden.md", "stay")


def test_a_heartbeat_is_there_while_somebody_follows_and_gone_afterwards(vault):
    with following(vault):
        beat = read_heartbeat(state_folder(vault.root))
        assert beat is not None
        assert beat.pid == os.getpid()
        assert beat.is_alive(datetime.now(UTC))
        assert not beat.is_alive(datetime.now(UTC) + timedelta(seconds=4 * watcher.HEARTBEAT_S))
    assert read_heartbeat(state_folder(vault.root)) is None
    assert vault.strays() == []
    assert vault.status() == ""


@pytest.mark.parametrize(("what", "is_missed"), [("quaid watch", True), ("quaid mcp", False)])
def test_only_a_watcher_is_missed_when_it_was_killed(vault, what, is_missed):
    with vault.memory() as memory:
        memory.sync()
        ended = subprocess.Popen(["true"])
        ended.wait()
        now = datetime.now(UTC).isoformat()
        beat = Heartbeat(ended.pid, "notifications", now, now, now, None, what)
        vault.write_state(HEARTBEAT_FILE, json.dumps(asdict(beat)))
        status = status_of(memory)
        assert (status.watcher is not None) == is_missed
        assert any("died" in each.what for each in status.attention) == is_missed
        assert (next(check_watcher(memory)).level == "warning") == is_missed


def test_a_mass_disappearance_stops_the_sync_and_names_the_way_out(watched):
    vault = watched.vault
    for number in range(40):
        vault.write(f"notes/n{number}.md", f"Note number {number}.\n")
    vault.save()
    watched.wait_until("notes/n39.md", "number 39")
    shutil.rmtree(vault.root / "notes")
    wait_for(lambda: any("--accept-removals" in said for said in watched.said), "the brake")
    known = [number for number in range(40) if watched.knows(f"notes/n{number}.md")]
    assert len(known) >= 20  # on a busy machine the first few are seen to go alone
    with vault.memory() as memory:
        for _ in range(3):
            answer = memory.recall(f"number {known[-1]}")
            assert "removals" in answer.degraded
            assert answer.hits[0].path == f"notes/n{known[-1]}.md"
    beat = read_heartbeat(state_folder(vault.root))
    assert beat is not None
    vault.git("checkout", "-q", "--", ".")
    vault.write("garden.md", "The roses are safe.\n")
    watched.wait_until("garden.md", "safe")
    with vault.memory() as memory:
        assert_verified(memory)


def test_a_listening_reader_is_braked_by_shares_of_the_whole_vault(vault):
    for number in range(100):
        vault.write(f"notes/n{number}.md", f"Note number {number}.\n")
    vault.save()
    with vault.memory() as memory:
        for _ in range(3):
            memory.recall("number")
        for number in range(15):
            (vault.root / f"notes/n{number}.md").unlink()
        assert "removals" not in memory.recall("number").degraded
        assert memory.recall("n14", keyword_only=True).hits == ()
        for number in range(15, 70):
            (vault.root / f"notes/n{number}.md").unlink()
        for _ in range(3):
            assert "removals" in memory.recall("number").degraded
        vault.git("checkout", "-q", "--", ".")
        assert "removals" not in memory.recall("number").degraded
        assert_verified(memory)


def test_a_file_system_that_does_not_tell_of_every_change_is_polled_and_swept(vault, monkeypatch):
    monkeypatch.setattr("quaid.sync.watcher.LOCAL_FILE_SYSTEMS", frozenset())
    before = threading.enumerate()  # an earlier test may have left one
    with following(vault) as watched:
        assert read_heartbeat(state_folder(vault.root)).mode == "polling"
        assert any("does not report every change" in said and "polled" in said for said in watched.said)
        vault.write("late.md", "Maya bought a quokka.")
        watched.wait_until("late.md", "quokka")
    with vault.memory() as memory:
        for number in range(4):
            vault.write("late.md", f"Maya bought {number} wombats.")
            assert [hit.text for hit in memory.recall("wombats").hits] == [f"Maya bought {number} wombats."]
        assert not [each for each in threading.enumerate() if isinstance(each, BaseObserver) and each not in before]


def test_the_kind_of_a_file_system_is_found_behind_links_and_mounts(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    base = tmp_path.resolve()
    (base / "far away" / "vault").mkdir(parents=True)
    (base / "link").symlink_to(base / "far away" / "vault")
    (base / "near" / "inside").mkdir(parents=True)
    escaped = str(base / "far away").replace(" ", "\\040")
    mounts.write_text(
        "1 0 8:1 / / rw shared:1 - ext4 /dev/vda rw\n"
        f"2 1 0:9 / {escaped} rw - nfs4 host:/far rw\n"
        f"3 1 0:9 / {base}/near/inside rw master:2 - fuse.sshfs host: rw\n"
    )
    monkeypatch.setattr("quaid.sync.watcher._MOUNTS", mounts)
    assert "nfs4" in str(why_incomplete(base / "link"))
    assert "fuse.sshfs" in str(why_incomplete(base / "near"))
    assert why_incomplete(base) is not None
    assert why_incomplete(tmp_path.parent / "elsewhere") is None


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EMFILE, errno.EACCES])
def test_without_notifications_watch_polls_and_says_so(vault, monkeypatch, number):
    def refuse(root: Path, notice, poll_s=None):
        if poll_s is None:
            raise OSError(number, os.strerror(number))
        return observe(root, notice, poll_s=0.1)

    monkeypatch.setattr("quaid.sync.watcher.observe", refuse)
    with following(vault) as watched:
        assert read_heartbeat(state_folder(vault.root)).mode == "polling"
        assert sum("polled instead" in said for said in watched.said) == 1
        vault.write("late.md", "Maya bought a quokka.")
        watched.wait_until("late.md", "quokka")


MAPPED = """
import mmap, os, sys
handle = os.open(sys.argv[1], os.O_RDWR)
memory = mmap.mmap(handle, 0)
os.close(handle)
for line in sys.stdin:
    if line.strip() == "end":
        memory.close()
    else:
        memory[-7:-1] = line.strip().encode()
    print(flush=True)
"""


def test_what_was_written_by_way_of_a_mapping_is_seen_when_the_mapping_ends(vault):
    path = vault.write_fact("m", "Maya has a pet called quokka")
    with vault.memory() as memory:
        for _ in range(3):
            assert memory.recall("pet called").hits[0].text.endswith("quokka")
        writer = subprocess.Popen(
            [sys.executable, "-c", MAPPED, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for told in ("wombat", "numbat", "end"):
            writer.stdin.write(f"{told}\n")
            writer.stdin.flush()
            writer.stdout.readline()
            memory.recall("pet called")
        assert memory.recall("pet called").hits[0].text.endswith("numbat")
        writer.communicate()
