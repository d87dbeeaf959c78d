"""In a large vault the folders whose listing is as it was are not compared with the index, and nothing is missed by that."""

from __future__ import annotations

import os
import shutil
from contextlib import closing

import pytest
from vaults import Vault, assert_verified, paths, wait_for

from quaid.errors import MassRemovalError
from quaid.index import contents, documents
from quaid.index.sqlite import database
from quaid.place import INDEX_FILE, state_folder
from quaid.sync import derived_index
from quaid.vault import files

FOLDERS = ("a", "a/deep", "b")


@pytest.fixture
def settled(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault that is taken for a large one, whose folders all have digests."""
    monkeypatch.setattr(derived_index, "MANY", 0)
    for folder in FOLDERS:
        for number in range(4):
            vault.write(f"{folder}/n{number}.md", f"lynxword {folder} {number}\n")
    vault.save()

    def is_settled() -> bool:
        vault.sync()
        return len(known_folders(vault)) == len(list_folders(vault))

    wait_for(is_settled, "digests of all folders")
    return vault


def list_folders(vault: Vault) -> set[str]:
    return {path.rpartition("/")[0] for path in vault.notes() if path.endswith(".md") and not path.startswith(".")}


def known_folders(vault: Vault) -> dict[str, str]:
    with closing(database.connect_reader(state_folder(vault.root) / INDEX_FILE)) as reader:
        return contents.list_folders(reader)


def assert_followed(vault: Vault) -> None:
    """A process that asks and one that syncs see the same as one that has never been there."""
    with vault.memory() as memory:
        assert_verified(memory)
        assert memory.sync().changed == 0


def test_a_sweep_lists_only_the_folders_that_changed(settled):
    settled.write("b/n1.md", "lynxword otherwise\n")
    folders = files.FolderDigests(known_folders(settled))
    listed = files.list_notes(settled.root, folders)
    assert set(listed.notes) == {f"b/n{number}.md" for number in range(4)}
    with settled.memory() as memory:
        assert memory.sync().modified == ("b/n1.md",)
        assert folders.unchanged == documents.count(memory.index()) - 4


def edit(vault: Vault) -> None:
    vault.write("a/n1.md", "lynxword edited\n")


def edit_unseen(vault: Vault) -> None:
    """Write in place as many bytes, and set the time of modification back."""
    path = vault.root / "a/deep/n2.md"
    times = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("lynxword", "wolfword"), encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def add(vault: Vault) -> None:
    vault.write("a/new.md", "lynxword new\n")
    vault.write("new/new.md", "lynxword elsewhere\n")


def remove(vault: Vault) -> None:
    (vault.root / "a/n1.md").unlink()


def remove_folder(vault: Vault) -> None:
    shutil.rmtree(vault.root / "a/deep")


def rename(vault: Vault) -> None:
    (vault.root / "a/n1.md").rename(vault.root / "b/other.md")


def rename_folder(vault: Vault) -> None:
    (vault.root / "a").rename(vault.root / "c")


def swap(vault: Vault) -> None:
    for old, new in (("a/n1.md", "t"), ("a/n2.md", "a/n1.md"), ("t", "a/n2.md")):
        (vault.root / old).rename(vault.root / new)


def pass_over(vault: Vault) -> None:
    (vault.root / "a/n1.md").unlink()
    (vault.root / "a/n1.md").symlink_to(vault.root / "a/n2.md")


def link_folder(vault: Vault) -> None:
    shutil.move(vault.root / "a/deep", vault.root.parent / "deep")
    (vault.root / "a/deep").symlink_to(vault.root.parent / "deep")


def check_out(vault: Vault) -> None:
    """Go to a branch with other notes."""
    vault.git("checkout", "-q", "-b", "other")
    for event in (edit, remove_folder, add):
        event(vault)
    vault.save()
    vault.git("checkout", "-q", "-")
    vault.git("checkout", "-q", "other")


EVENTS = [edit, edit_unseen, add, remove, remove_folder, rename, rename_folder, swap, pass_over, link_folder, check_out]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("first", ["read", "sync", "remember"])
@pytest.mark.parametrize("large", [10_000, 0], ids=["one process", "two processes"])
def test_whatever_happens_to_files_is_seen(settled, event, first, large, monkeypatch):
    monkeypatch.setattr(files, "LARGE", large)
    event(settled)
    with settled.memory() as memory:
        if first == "sync":
            memory.sync()
        elif first == "remember":
            memory.remember("Maya sails on Sundays")
        on_disk = {path for path, data in settled.notes().items() if path.endswith(".md") and b"lynxword" in data}
        on_disk = {path for path in on_disk if not (settled.root / path).is_symlink()}
        assert paths(memory, "lynxword", keyword_only=True) == on_disk
    assert_followed(settled)


def test_a_note_that_is_written_by_quaid_takes_the_digest_of_its_folder(settled):
    with settled.memory() as memory:
        memory.recall("lynxword")
        memory.recall("lynxword")
        settled.write("a/n1.md", "lynxword edited\n")
        memory.recall("lynxword")
    assert known_folders(settled).keys() == {f"{each}/" if each else each for each in list_folders(settled)} - {"a/"}
    assert_followed(settled)


def test_a_refused_removal_leaves_no_digest_and_files_that_come_back_are_known(settled):
    away = settled.root.parent / "away"
    many = [settled.root / f"m/n{number}.md" for number in range(60)]
    for number, path in enumerate(many):
        settled.write(f"m/{path.name}", f"lynxword {number}\n")
    settled.save()
    settled.sync()
    (settled.root / "m").rename(away)
    with settled.memory() as memory, pytest.raises(MassRemovalError):
        memory.sync()
    assert "m/" not in known_folders(settled)
    away.rename(settled.root / "m")
    assert_followed(settled)


def test_a_small_vault_has_no_digests(settled, monkeypatch):
    monkeypatch.setattr(derived_index, "MANY", 20_000)
    settled.write("a/n1.md", "lynxword edited\n")
    settled.sync()
    assert known_folders(settled) == {}


def test_a_large_vault_is_listed_by_two_processes(settled, monkeypatch):
    monkeypatch.setattr(files, "LARGE", 0)
    folders, opened, list_folder = files.FolderDigests(known_folders(settled)), [], files.list_folder
    monkeypatch.setattr(
        files, "list_folder", lambda root, prefix, known: opened.append(prefix) or list_folder(root, prefix, known)
    )
    listed = files.list_notes(settled.root, folders)
    assert set(opened) | set(folders.list_half()) >= folders.known.keys()
    assert not set(opened) & set(folders.list_half())
    assert folders.found == folders.known
    assert not listed.notes


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true", "/nowhere"])
def test_without_a_second_process_the_first_lists_all(settled, monkeypatch, program):
    monkeypatch.setattr(files, "LARGE", 0)
    monkeypatch.setattr(files.sys, "executable", program)
    edit(settled)
    folders = files.FolderDigests(known_folders(settled))
    assert set(files.list_notes(settled.root, folders).notes) == {f"a/n{number}.md" for number in range(4)}


def test_a_process_that_stays_sweeps_once(settled, monkeypatch):
    swept, list_notes = [], files.list_notes
    monkeypatch.setattr(files, "list_notes", lambda *given: swept.append(1) or list_notes(*given))
    with settled.memory() as memory:
        memory.freshness.listen()
        assert [len(paths(memory, "lynxword", keyword_only=True)) for _ in range(3)] == [12] * 3
        assert len(swept) == 1
        edit_unseen(settled)
        assert len(paths(memory, "lynxword", keyword_only=True)) == 11
        assert len(swept) == 1
