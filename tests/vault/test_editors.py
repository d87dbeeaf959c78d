"""Editors that save a note in place while Quaid writes it: their text is there afterwards, and what was not committed."""

from __future__ import annotations

import errno
import fcntl
import importlib
import sys
import threading
import time
from pathlib import Path

import pytest
from vaults import Vault, refused

from quaid.errors import GitError, LockedError, NoteChangedError
from quaid.history.vault_history import History
from quaid.model import Edit, Message
from quaid.place import state_folder
from quaid.settings import GitSettings
from quaid.vault import files, transaction

sys.path.insert(0, str(Path(__file__).parents[1] / "torture"))
SAVES = importlib.import_module("editors").SAVES
BEFORE, AFTER, LINE = (
    b"---\nid: 1\n---\nold, not committed\n",
    b"---\nid: 1\n---\nold, not committed\nlink\n",
    b"saved\n",
)
NOTE = "facts/a.md"
PAUSE_S = 0.1

needs_leases = pytest.mark.skipif(sys.platform != "linux", reason="needs read leases")


@pytest.fixture(params=["leases", "no leases"])
def system(request, monkeypatch):
    """Linux's own file systems, and where nobody tells who has a file open."""
    if request.param == "no leases":

        def refuse(*_):
            raise OSError(errno.EINVAL, "Invalid argument")

        monkeypatch.setattr(fcntl, "fcntl", refuse)
        monkeypatch.setattr(files, "QUIET_S", 0.15)
        monkeypatch.setattr(files, "QUIET_EMPTY_S", 0.3)
    elif sys.platform != "linux":
        pytest.skip("needs read leases")
    return request.param


class Writing:
    """A link that Quaid adds to a note, planned anew when the note changed, as every write is."""

    def __init__(self, vault: Vault) -> None:
        self.root, self.path = vault.root, vault.write(NOTE, BEFORE)
        self.history = History(vault.root, GitSettings(wait_s=5))

    def write(self) -> bytes:
        for _ in range(5):
            before = files.read_note(self.root, NOTE)
            change = transaction.VaultChange(
                "link", (Edit(NOTE, before, (before or b"") + b"link\n"),), Message("link")
            )
            try:
                transaction.apply(self.root, change, self.history)
            except NoteChangedError:
                continue
            break
        return self.path.read_bytes()


@pytest.mark.parametrize("save", SAVES)
def test_a_save_in_place_and_what_was_not_committed_survive_a_write(vault: Vault, system: str, save: str) -> None:
    writing = Writing(vault)
    editor = threading.Thread(target=SAVES[save], args=(writing.path, LINE, PAUSE_S))
    editor.start()
    time.sleep(PAUSE_S / 3)
    writing.write()
    editor.join()
    found = writing.path.read_bytes()
    if system == "no leases":  # on a busy machine a save may come so late that it is only kept
        time.sleep(files.QUIET_S)
        transaction.set_aside_saved(vault.root, writing.history.git_dir)
        found += b"\n".join(
            (folder / "files" / NOTE).read_bytes() for folder, _ in transaction.list_unfinished(vault.root)
        )
    assert {b"old, not committed", b"saved"} <= set(found.split(b"\n"))
    assert vault.strays() == []


@needs_leases
@pytest.mark.parametrize("after", [AFTER, None])
def test_a_note_that_an_editor_opens_at_the_last_moment_stays_its_own(tmp_path, monkeypatch, after):
    """Opened for writing between the look before the exchange and the exchange itself."""
    (tmp_path / "a.md").write_bytes(BEFORE)
    look, seen = files.is_untouched, []

    def look_then_open(path, data):
        found = look(path, data)
        if not seen:
            seen.append((tmp_path / "a.md").open("r+b"))
        return found

    monkeypatch.setattr(files, "is_untouched", look_then_open)
    with pytest.raises(NoteChangedError):
        files.write_note(tmp_path, "a.md", BEFORE, after)
    with seen[0] as editor:
        editor.write(b"mine")
    assert (tmp_path / "a.md").read_bytes() == b"mine" + BEFORE[4:]
    assert [path.name for path in tmp_path.iterdir()] == ["a.md"]


@pytest.mark.parametrize("pause_s", [0.0, 0.2])
def test_text_written_into_a_file_that_has_given_way_is_brought_back(
    vault: Vault, monkeypatch, system, pause_s
) -> None:
    """The editor is let through between the last look after the exchange and the end of the write."""
    writing = Writing(vault)
    vault.save()
    commit, editor = writing.history.commit, writing.path.open("r+b")
    monkeypatch.setattr(files, "is_written", lambda _: False)
    os_stat = writing.path.stat()
    assert os_stat.st_size == len(BEFORE)

    def commit_while_the_editor_writes(*args, **options):
        done = commit(*args, **options)
        monkeypatch.undo()
        editor.truncate()
        editor.write(b"the owner's text")
        editor.flush()
        threading.Timer(pause_s, editor.close).start()
        return done

    monkeypatch.setattr(writing.history, "commit", commit_while_the_editor_writes)
    writing.write()
    assert writing.path.read_bytes() == b"the owner's text"
    assert vault.git("show", f"HEAD:{NOTE}") == AFTER.decode().strip()


@pytest.mark.parametrize("is_saved_again", [False, True])
def test_a_save_into_the_old_file_of_a_write_that_fails_is_kept(vault: Vault, monkeypatch, is_saved_again) -> None:
    writing = Writing(vault)
    editor = writing.path.open("r+b")
    monkeypatch.setattr(files, "is_written", lambda _: False)

    def refuse_while_the_editor_writes(*_args, **_options):
        editor.write(b"MINE")
        editor.close()
        if is_saved_again:
            writing.path.write_bytes(b"the other")
        raise GitError("commit", "a hook said no")

    monkeypatch.setattr(writing.history, "commit", refuse_while_the_editor_writes)
    refused(writing.write, GitError)
    mine = b"MINE" + BEFORE[4:]
    kept = [(folder / "files" / NOTE).read_bytes() for folder, _ in transaction.list_unfinished(vault.root)]
    assert (writing.path.read_bytes(), kept) == ((b"the other", [mine]) if is_saved_again else (mine, []))


@needs_leases
def test_an_editor_that_never_closes_the_note_is_named_and_nothing_is_written(vault: Vault, monkeypatch) -> None:
    monkeypatch.setattr(files, "MAX_SAVE_S", 0.1)
    writing = Writing(vault)
    with writing.path.open("r+b"):
        assert NOTE in str(refused(writing.write, LockedError))
    assert writing.path.read_bytes() == BEFORE
    assert not transaction.needs_recovery(vault.root)
    assert writing.write() == AFTER


def test_text_that_cannot_be_brought_back_is_kept_and_named(vault: Vault, monkeypatch) -> None:
    writing = Writing(vault)
    vault.save()
    commit, editor = writing.history.commit, writing.path.open("r+b")
    monkeypatch.setattr(files, "is_written", lambda _: False)

    def commit_while_two_write(*args, **options):
        done = commit(*args, **options)
        editor.write(b"one")
        editor.close()
        writing.path.write_bytes(b"the other")
        return done

    monkeypatch.setattr(writing.history, "commit", commit_while_two_write)
    writing.write()
    assert writing.path.read_bytes() == b"the other"
    ((folder, reason),) = transaction.list_unfinished(vault.root)
    assert NOTE in reason
    assert (folder / "files" / NOTE).read_bytes() == b"one" + BEFORE[3:]
    assert folder.is_relative_to(state_folder(vault.root))


def test_a_note_that_nobody_has_open_is_not_waited_for(vault: Vault, monkeypatch) -> None:
    monkeypatch.setattr(files.time, "sleep", lambda _: pytest.fail("waited"))
    writing = Writing(vault)
    with writing.path.open("rb"):  # a reader is no writer
        if sys.platform == "linux":
            assert writing.write() == AFTER


def test_text_saved_long_after_a_write_is_kept_where_nobody_tells_who_has_a_file_open(
    vault: Vault, monkeypatch
) -> None:
    monkeypatch.setattr(files, "is_written", lambda _: None)
    monkeypatch.setattr(files, "QUIET_S", 0.05)
    writing = Writing(vault)
    vault.save()
    time.sleep(0.1)
    with writing.path.open("r+b") as editor:
        assert writing.write() == AFTER
        editor.write(b"MINE")
    time.sleep(0.1)
    assert writing.write() == AFTER + b"link\n"
    ((folder, reason),) = transaction.list_unfinished(vault.root)
    assert NOTE in reason
    assert (folder / "files" / NOTE).read_bytes() == b"MINE" + BEFORE[4:]
    time.sleep(0.1)
    writing.write()
    assert len(list(transaction.list_unfinished(vault.root))) == 1
    monkeypatch.setattr(transaction, "MAX_AGE_S", -1.0)
    transaction.set_aside_saved(vault.root, writing.history.git_dir)
    assert list((vault.root / ".git" / transaction.OLD_VERSIONS_FOLDER).iterdir()) == []
    assert vault.status() == ""
