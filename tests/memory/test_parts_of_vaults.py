"""A vault of which only a part is here: sparse checkouts leave notes out, partial clones leave old versions out."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from vaults import FACT, Vault, trust_vault

from quaid.errors import MassRemovalError
from quaid.history.git import LeftOutError
from quaid.janitor.runner import RunOptions

WORK, PRIVATE = (tuple(f"facts/{name}/{n:02}.md" for n in range(30)) for name in ("work", "private"))


@pytest.fixture
def large(vault: Vault) -> Vault:
    """A vault with facts of work and private ones, all in the index and seen by a night."""
    for path in (*WORK, *PRIVATE):
        vault.write(path, FACT.format(id=path[6:-3].replace("/", ""), text=f"Maya has read the book {path[6:-3]}."))
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        memory.janitor.run(RunOptions())
    return vault


def only_work(vault: Vault) -> None:
    vault.run("sparse-checkout", "set", "--cone", "facts/work", f"facts/{datetime.now(UTC).year}")
    assert not (vault.root / PRIVATE[0]).exists()


def known(memory) -> set[str]:
    return {path for (path,) in memory.whole_index().execute("SELECT path FROM documents WHERE kind = 'fact'")}


def test_what_a_profile_leaves_out_is_not_removed_and_comes_back(large: Vault) -> None:
    only_work(large)
    with large.memory() as memory:
        memory.sync()
        assert known(memory) == set(WORK)
    large.run("sparse-checkout", "disable")
    with large.memory() as memory:
        memory.sync()
        assert known(memory) == {*WORK, *PRIVATE}


def test_the_removal_guard_still_stands_for_what_the_profile_holds(large: Vault) -> None:
    only_work(large)
    with large.memory() as memory:
        memory.sync()
        for path in WORK:
            (large.root / path).unlink()
        with pytest.raises(MassRemovalError):
            memory.sync()


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["--no-sparse-index", "--sparse-index"])
def test_commits_and_nights_keep_what_a_profile_leaves_out(large: Vault, cone: str) -> None:
    only_work(large)
    large.run("sparse-checkout", "reapply", cone)
    with large.memory() as memory:
        told = memory.remember("Maya has moved to Lisbon", status="approved")
        memory.remember("Maya has sold her old bicycle")
        memory.forget(WORK[0])
        report = memory.janitor.run(RunOptions())
    assert report.changed
    tracked = large.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert {*PRIVATE, told.path} <= set(tracked)
    assert WORK[0] not in tracked
    assert large.status() == ""
    assert not (large.root / PRIVATE[0]).exists()


@pytest.fixture
def partial(vault: Vault, tmp_path: Path) -> Vault:
    """A clone without old versions of a note that was edited, of a place that would give them."""
    vault.write("facts/a.md", FACT.format(id="01a", text="Maya has a red bicycle."))
    vault.save()
    vault.write("facts/a.md", FACT.format(id="01a", text="Maya has a blue bicycle."))
    vault.save()
    vault.run("config", "uploadpack.allowFilter", "true")
    clone = Vault(tmp_path / "partial")
    vault.run("clone", "-q", "--filter=blob:none", vault.root.as_uri(), str(clone.root))
    trust_vault(clone.root)
    return clone


def missing(vault: Vault) -> int:
    return vault.git("rev-list", "--objects", "--all", "--missing=print").count("\n?")


def test_a_partial_clone_answers_commits_and_fetches_nothing(partial: Vault) -> None:
    before = missing(partial)
    assert before
    with partial.memory() as memory:
        assert memory.recall("bicycle").hits[0].text == "Maya has a blue bicycle."
        memory.remember("Maya takes oat milk in her coffee")
        assert memory.git.log(limit=1)[0].subject.startswith("remember: ")
        found = memory.why("01a")
        memory.janitor.run(RunOptions())
    assert "git fetch --refetch --no-filter" in found.remarks[-1]
    assert "\n" not in found.remarks[-1]
    assert missing(partial) == before


def test_what_is_missing_is_named_with_the_way_to_fetch_it(partial: Vault) -> None:
    with partial.memory() as memory, pytest.raises(LeftOutError):
        memory.git.read_at("HEAD^", "facts/a.md")
    partial.run("fetch", "-q", "--refetch", "--no-filter")
    with partial.memory() as memory:
        assert b"red" in (memory.git.read_at("HEAD^", "facts/a.md") or b"")
        assert len(memory.why("01a").edits) == 1
