"""A folder that was renamed is no mass removal, and while one stops the sync everything else goes on being indexed."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import FACT, Vault, assert_verified, paths, refused

from quaid import Memory
from quaid.errors import MassRemovalError
from quaid.sync import diff
from quaid.sync.derived_index import SyncOptions

COUNT = 60


@pytest.fixture
def filled(vault: Vault) -> Vault:
    """A vault with a folder of 60 committed notes."""
    for number in range(COUNT):
        vault.write(f"n/n{number}.md", f"# N{number}\nbase text lynxword {number}\n")
    vault.save()
    vault.sync()
    return vault


def move(vault: Vault, new: str = "m") -> Path:
    (vault.root / "n").rename(vault.root / new)
    return vault.root / new


def assert_moved(memory: Memory, new: str = "m") -> None:
    found = {path for (path,) in memory.index().execute("SELECT path FROM documents WHERE path LIKE '%/n%.md'")}
    assert found == {f"{new}/n{number}.md" for number in range(COUNT)}
    assert_verified(memory)


@pytest.mark.parametrize("edited", [0, 1, 8, COUNT])
def test_a_renamed_folder_is_a_rename_however_many_notes_were_edited(filled: Vault, edited: int) -> None:
    folder = move(filled)
    for number in range(edited):
        with (folder / f"n{number}.md").open("a") as file:
            file.write("more\n")
    with filled.memory() as memory:
        report = memory.sync()
        assert (len(report.renamed), report.added, report.removed) == (COUNT, (), ())
        assert_moved(memory)


def test_notes_of_equal_text_move_too(vault: Vault) -> None:
    for number in range(COUNT):
        vault.write(f"n/n{number}.md", "")
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        move(vault)
        renamed = memory.sync().renamed
    assert sorted(renamed) == sorted((f"n/n{number}.md", f"m/n{number}.md") for number in range(COUNT))


def test_a_copy_that_was_indexed_before_the_original_went_holds_what_it_said(filled: Vault) -> None:
    shutil.copytree(filled.root / "n", filled.root / "m")
    with filled.memory() as memory:
        memory.sync()
        shutil.rmtree(filled.root / "n")
        assert len(memory.sync().removed) == COUNT
        assert_moved(memory)


def test_a_listening_reader_finds_the_notes_where_they_are(filled: Vault) -> None:
    with filled.memory() as memory:
        for _ in range(3):
            memory.recall("lynxword")
        move(filled)
        answer = memory.recall("lynxword 7")
        assert "removals" not in answer.degraded
        assert answer.hits[0].path.startswith("m/")


@pytest.mark.parametrize("text", ["the same in all", "note {}"])
@pytest.mark.parametrize("left", [0, 1, 30])
def test_a_true_mass_removal_still_stops(vault: Vault, text: str, left: int) -> None:
    for number in range(COUNT):
        vault.write(f"n/n{number}.md", text.format(number))
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        for number in range(left, COUNT):
            (vault.root / f"n/n{number}.md").unlink()
        for _ in range(2):
            refused(memory.sync, MassRemovalError)
        assert len(memory.sync(SyncOptions(accept_removals=True)).removed) == COUNT - left


def test_a_checkout_under_way_is_waited_for(filled: Vault) -> None:
    filled.git("checkout", "-q", "-b", "bare")
    filled.git("rm", "-q", "-r", "n")
    filled.git("commit", "-q", "-m", "No notes")
    filled.git("checkout", "-q", "main")
    lock = filled.root / ".git/index.lock"

    def end() -> None:  # as git does: it moves HEAD when all files are there
        filled.git("symbolic-ref", "HEAD", "refs/heads/bare")
        lock.unlink()

    with filled.memory() as memory:
        memory.sync()
        lock.touch()
        shutil.rmtree(filled.root / "n")
        timer = threading.Timer(0.3, end)
        timer.start()
        assert len(memory.sync().removed) == COUNT
        timer.join()


def test_new_and_changed_notes_are_found_while_a_mass_removal_stops(filled: Vault) -> None:
    garden = filled.write("garden.md", "Here are roses.\n")
    with filled.memory() as memory:
        memory.sync()
        shutil.rmtree(filled.root / "n")
        garden.write_text("Here are tulips.\n")
        filled.write("boat.md", "The mast is oak.\n")
        refused(memory.sync, MassRemovalError)
        assert "boat.md" in paths(memory, "mast oak")
        memory.remember("The kingfisher nests at the mill")
        answer = memory.recall("kingfisher mill")
        assert answer.hits[0].text == "The kingfisher nests at the mill"
        assert "removals" in answer.degraded
        assert "garden.md" in paths(memory, "tulips")
        assert "n/n7.md" in paths(memory, "lynxword 7")
        filled.git("checkout", "-q", "--", "n")
        memory.sync()
        assert_verified(memory)


def test_only_what_is_gone_is_counted_when_some_moved(filled: Vault) -> None:
    for number in range(40):
        filled.write(f"k/k{number}.md", f"kept {number}\n")
    filled.save()
    with filled.memory() as memory:
        memory.sync()
        move(filled)
        shutil.rmtree(filled.root / "k")
        message = str(refused(memory.sync, MassRemovalError))
        assert message.startswith("40 of ")
        assert paths(memory, "lynxword 3") >= {"m/n3.md"}
        assert not any(path.startswith("n/") for path in paths(memory, "lynxword 3"))


def test_facts_that_move_keep_their_ids(vault: Vault) -> None:
    for number in range(COUNT):
        vault.write(f"facts/f{number}.md", FACT.format(id=f"01f{number:03}", text=f"Maya has read book {number}."))
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        (vault.root / "facts").rename(vault.root / "later")
        (vault.root / "facts").mkdir()
        (vault.root / "later").rename(vault.root / "facts/2026")
        assert len(memory.sync().renamed) == COUNT
        assert memory.get("01f007").document.path == "facts/2026/f7.md"


NAMES = st.sampled_from(["a/x.md", "a/y.md", "b/x.md", "b/y.md", "c/x.md", "c/z.md"])
FILES = st.dictionaries(NAMES, st.sampled_from("123"))


@given(FILES, FILES)
def test_every_move_has_one_source_and_one_target(added: dict[str, str], removed: dict[str, str]) -> None:
    pairs = diff.pair_renames(added, removed)
    assert pairs.keys() <= removed.keys()
    assert len(set(pairs.values())) == len(pairs)
    assert set(pairs.values()) <= added.keys()
    left = {added[path] for path in added.keys() - set(pairs.values())}
    assert left.isdisjoint(removed[path] for path in removed.keys() - pairs.keys())
