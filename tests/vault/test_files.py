"""Every write is atomic and guarded; nothing outside the vault is touched through a link."""

from __future__ import annotations

import errno
import os
import stat
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples

from quaid.errors import DiskFullError, NoteChangedError, QuaidError, VaultReadOnlyError
from quaid.vault import files, layout
from quaid.vault.files import list_notes, list_some, read_note, walk_files, write_note

NOTE = b"one\r\ntwo\n"


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_new_note_is_written_with_its_folders(tmp_path):
    write_note(tmp_path, "facts/2026/11/a.md", None, NOTE)
    assert (tmp_path / "facts/2026/11/a.md").read_bytes() == NOTE
    assert tree(tmp_path) == ["facts/2026/11/a.md"]


def test_a_note_is_replaced_and_keeps_its_mode(tmp_path):
    path = tmp_path / "a.md"
    path.write_bytes(NOTE)
    path.chmod(0o640)
    write_note(tmp_path, "a.md", NOTE, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert tree(tmp_path) == ["a.md"]


def test_a_new_note_has_the_mode_any_new_file_has(tmp_path):
    (tmp_path / "other").touch()
    write_note(tmp_path, "a.md", None, b"x")
    assert (tmp_path / "a.md").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_removing_a_note_takes_the_folders_it_leaves_empty(tmp_path):
    write_note(tmp_path, "facts/2026/11/a.md", None, NOTE)
    write_note(tmp_path, "facts/b.md", None, NOTE)
    write_note(tmp_path, "facts/2026/11/a.md", NOTE, None)
    assert tree(tmp_path) == ["facts/b.md"]
    assert not (tmp_path / "facts/2026").exists()
    write_note(tmp_path, "facts/b.md", NOTE, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("there", "before", "after"), [
    (b"theirs", NOTE, b"new"), (b"theirs", None, b"new"), (b"theirs", NOTE, None), (None, NOTE, b"new"), (None, NOTE, None), (b"", None, b"x"),
])  # fmt: skip
def test_a_note_that_is_not_what_the_plan_saw_is_left_alone(tmp_path, there, before, after):
    if there is not None:
        (tmp_path / "a.md").write_bytes(there)
    with pytest.raises(NoteChangedError):
        write_note(tmp_path, "a.md", before, after)
    assert read_note(tmp_path, "a.md") == there
    assert tree(tmp_path) == (["a.md"] if there is not None else [])


@settings(max_examples=examples(50))
@given(before=st.none() | st.binary(max_size=20), after=st.none() | st.binary(max_size=20))
def test_whatever_bytes_are_written_are_read(tmp_path_factory, before, after):
    root = tmp_path_factory.mktemp("vault")
    if before is not None:
        write_note(root, "a b/é😀.md", None, before)
    if before is None and after is None:
        assert read_note(root, "a b/é😀.md") is None
        return
    write_note(root, "a b/é😀.md", before, after)
    assert read_note(root, "a b/é😀.md") == after


def test_a_reader_sees_the_old_note_or_the_new_one(tmp_path):
    versions = [bytes([65 + n]) * 200_000 for n in range(12)]
    write_note(tmp_path, "a.md", None, versions[0])
    seen, done = set(), threading.Event()

    def read():
        while not done.is_set():
            data = read_note(tmp_path, "a.md")
            seen.add((len(data), len(set(data))) if data is not None else None)

    reader = threading.Thread(target=read)
    reader.start()
    for old, new in pairwise(versions):
        write_note(tmp_path, "a.md", old, new)
    done.set()
    reader.join()
    assert seen == {(200_000, 1)}


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_note_and_nothing_else(tmp_path, monkeypatch, step):
    (tmp_path / "a.md").write_bytes(NOTE)

    def refuse(*_args, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "exchange", lambda *_: False)  # as where the system cannot exchange two files
    monkeypatch.setattr(files.Path if step != "fsync" else files.os, step, refuse)
    with pytest.raises(DiskFullError):
        write_note(tmp_path, "a.md", NOTE, b"new")
    monkeypatch.undo()
    assert (tmp_path / "a.md").read_bytes() == NOTE
    assert tree(tmp_path) == ["a.md"]


def test_a_save_between_the_last_check_and_the_rename_is_not_lost(tmp_path, monkeypatch):
    (tmp_path / "a.md").write_bytes(NOTE)
    swap = files.exchange

    def save_first(one, other):
        monkeypatch.setattr(files, "exchange", swap)
        (tmp_path / ".a.new").write_bytes(b"saved meanwhile")
        (tmp_path / ".a.new").replace(other)
        return swap(one, other)

    monkeypatch.setattr(files, "exchange", save_first)
    (tmp_path / ".other").write_bytes(NOTE)
    if not swap(tmp_path / ".other", tmp_path / "a.md"):
        pytest.skip("this system cannot exchange two files in one step")
    (tmp_path / ".other").unlink()
    with pytest.raises(NoteChangedError):
        write_note(tmp_path, "a.md", NOTE, b"ours")
    assert (tmp_path / "a.md").read_bytes() == b"saved meanwhile"
    assert tree(tmp_path) == ["a.md"]


def test_without_hard_links_a_new_note_still_overwrites_nothing(tmp_path, monkeypatch):
    def refuse(*_args):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(files.os, "link", refuse)
    write_note(tmp_path, "a.md", None, b"new")
    assert (tmp_path / "a.md").read_bytes() == b"new"
    with pytest.raises(NoteChangedError):
        write_note(tmp_path, "a.md", None, b"newer")
    assert (tmp_path / "a.md").read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts").chmod(0o500)
    with pytest.raises(VaultReadOnlyError, match="facts"):
        write_note(tmp_path, "facts/a.md", None, b"x")
    (tmp_path / "facts").chmod(0o700)


def test_a_file_where_a_folder_must_be_is_an_expected_failure(tmp_path):
    (tmp_path / "facts").write_text("mine")
    with pytest.raises(QuaidError):
        write_note(tmp_path, "facts/2026/a.md", None, b"x")
    with pytest.raises(QuaidError):
        write_note(tmp_path, "facts/a.md", None, b"x")
    assert (tmp_path / "facts").read_text() == "mine"


# --- links


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_bytes(NOTE)
    return folder


@pytest.fixture
def vault(tmp_path):
    root = tmp_path / "vault"
    root.mkdir()
    return root


@pytest.mark.parametrize(("before", "after"), [(NOTE, b"new"), (None, b"new"), (NOTE, None)])
def test_a_linked_note_is_neither_read_nor_written(vault, outside, before, after):
    (vault / "a.md").symlink_to(outside / "secret.md")
    assert read_note(vault, "a.md") is None
    with pytest.raises(QuaidError):
        write_note(vault, "a.md", before, after)
    assert (vault / "a.md").is_symlink()
    assert tree(outside) == ["secret.md"]
    assert (outside / "secret.md").read_bytes() == NOTE


@pytest.mark.parametrize(("before", "after"), [(NOTE, b"new"), (NOTE, None)])
def test_nothing_is_written_through_a_linked_folder(vault, outside, before, after):
    (vault / "facts").symlink_to(outside)
    with pytest.raises(QuaidError):
        write_note(vault, "facts/secret.md", before, after)
    with pytest.raises(QuaidError):
        write_note(vault, "facts/2026/new.md", None, b"new")
    assert tree(outside) == ["secret.md"]
    assert (outside / "secret.md").read_bytes() == NOTE


def test_a_link_to_nowhere_is_not_made_real(vault, outside):
    (vault / "a.md").symlink_to(outside / "absent.md")
    with pytest.raises(QuaidError):
        write_note(vault, "a.md", None, b"new")
    assert tree(outside) == ["secret.md"]


def test_a_vault_may_itself_be_reached_by_a_link(vault, tmp_path):
    (tmp_path / "link").symlink_to(vault)
    write_note(tmp_path / "link", "facts/a.md", None, NOTE)
    write_note(tmp_path / "link", "facts/a.md", NOTE, b"new")
    assert list(list_notes(tmp_path / "link").notes) == ["facts/a.md"]
    assert (vault / "facts/a.md").read_bytes() == b"new"


# --- listing


def test_a_listing_has_every_note_and_says_what_it_passed_over(vault, outside):
    for rel_path in (
        "a.md",
        "deep/er/b.md",
        "no head.md",
        "x (conflicted copy).md",
        ".obsidian/c.md",
        "node_modules/d.md",
        ".e.md",
        "f.txt",
    ):
        (vault / rel_path).parent.mkdir(parents=True, exist_ok=True)
        (vault / rel_path).write_bytes(NOTE)
    (vault / "linked.md").symlink_to(outside / "secret.md")
    (vault / "linked folder").symlink_to(outside)
    (vault / "loop").symlink_to(vault)
    (vault / "folder.md").mkdir()
    os.mkfifo(vault / "pipe.md")
    listed = list_notes(vault)
    assert sorted(listed.notes) == ["a.md", "deep/er/b.md", "no head.md"]
    assert sorted(listed.passed_over) == ["linked.md", "pipe.md", "x (conflicted copy).md"]
    assert "link" in listed.passed_over["linked.md"]
    assert listed.notes["a.md"].size == len(NOTE)
    some = list_some(vault, ["a.md", "gone.md", "linked.md", "linked folder/secret.md", "folder.md"])
    assert sorted(some.notes) == ["a.md"]
    assert some.notes["a.md"] == listed.notes["a.md"]
    assert sorted(some.passed_over) == ["linked.md"]


def test_a_name_that_is_not_unicode_is_passed_over(vault):
    try:
        (vault / os.fsdecode(b"caf\xe9.md")).write_bytes(NOTE)
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    listed = list_notes(vault)
    assert listed.notes == {}
    assert len(listed.passed_over) == 1
    next(iter(listed.passed_over)).encode()


def test_a_vanished_vault_is_not_an_empty_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        list_notes(tmp_path / "gone")


def test_reading_what_is_no_file_gives_nothing(vault):
    (vault / "folder.md").mkdir()
    os.mkfifo(vault / "pipe.md")
    (vault / "a.md").write_bytes(NOTE)
    assert [read_note(vault, path) for path in ("folder.md", "pipe.md", "gone.md", "a.md/b.md")] == [None] * 4
    assert read_note(vault, "a.md", limit=3) == b"one"


def test_only_our_own_leftovers_are_found(vault):
    ours = [vault / layout.temporary_name("a.md"), vault / "facts" / layout.temporary_name("b.md")]
    theirs = [vault / ".theirs.tmp", vault / ".git" / layout.temporary_name("c.md"), vault / "notes.tmp"]
    for path in (*ours, *theirs):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert sorted(path for path in walk_files(vault) if layout.is_temporary_name(path.name)) == sorted(ours)
