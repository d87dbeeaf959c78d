"""Locks, rebases, hooks and odd repositories: a write waits or is refused, and nothing is half-written."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from vaults import Vault, assert_verified, paths, refused

from quaid import Memory
from quaid.errors import (
    GitError,
    LockedError,
)

pytestmark = pytest.mark.usefixtures("calm")


def test_a_git_lock_of_another_program_stops_a_write_with_75(hasty: Vault) -> None:
    before = hasty.notes()
    lock = hasty.write(".git/index.lock", b"")
    with hasty.memory() as memory:
        for write in (
            lambda: memory.remember("Maya bought a lawnmower yesterday"),
            lambda: memory.link("A", "knows", "B"),
        ):
            assert refused(write, LockedError).exit_code == 75
        assert len(memory.recall("quokka").hits) == 1
    assert hasty.notes() == before
    assert lock.exists()
    lock.unlink()
    assert hasty.status() == ""
    hasty.assert_sound()


def test_a_vault_that_another_quaid_writes_stops_a_write_with_75(hasty: Vault) -> None:
    from quaid.vault import transaction

    with hasty.memory() as memory, transaction.begin(hasty.root, memory.git, 1.0):
        caught: list[LockedError] = []

        def write() -> None:
            with hasty.memory() as other:
                caught.append(refused(lambda: other.remember("Maya bought a lawnmower"), LockedError))  # type: ignore[arg-type]

        thread = threading.Thread(target=write)
        thread.start()
        thread.join(10)
        assert caught[0].exit_code == 75
        assert len(memory.recall("quokka").hits) == 1


def test_a_rebase_in_progress_is_waited_for_and_named(filled: Vault) -> None:
    mark = filled.root / ".git" / "rebase-merge"
    mark.mkdir()
    said: list[str] = []

    def end(text: str) -> None:
        said.append(text)
        mark.rmdir()

    with filled.memory() as memory:
        memory.report_to(None, end)
        assert memory.remember("Maya bought a lawnmower yesterday").commit
    assert "rebase" in said[0]
    filled.assert_sound()


def test_a_rebase_that_does_not_end_stops_a_write_and_names_the_way_out(hasty: Vault) -> None:
    before = hasty.notes()
    (hasty.root / ".git" / "rebase-merge").mkdir()
    with hasty.memory() as memory:
        assert "git rebase --continue" in str(refused(lambda: memory.remember("Maya bought a lawnmower"), LockedError))
    assert hasty.notes() == before


def test_a_hook_that_fails_takes_the_files_back(filled: Vault) -> None:
    hook = filled.write(".git/hooks/pre-commit", "#!/bin/sh\necho 'no secrets please' >&2\nexit 1\n")
    hook.chmod(0o755)
    before, head = filled.notes(), filled.head()
    turns = _turns(filled, "User: hello there\nAssistant: hello to you")
    with filled.memory() as memory:
        fact = memory.recall("quokka").hits[0].id
        for write in (
            lambda: memory.remember("Maya bought a lawnmower yesterday"),
            lambda: memory.remember("Maya keeps a quokka in the garden"),
            lambda: memory.link("Maya", "works_at", "Acme"),
            lambda: memory.extract(turns),
            lambda: memory.forget(fact),
        ):
            assert "no secrets please" in str(refused(write, GitError))
            assert (filled.notes(), filled.head(), filled.status()) == (before, head, "")
    hook.unlink()
    filled.assert_sound()


def test_a_vault_without_a_repository_is_read_and_says_why_it_is_not_written(filled: Vault) -> None:
    shutil.rmtree(filled.root / ".git")
    with filled.memory() as memory:
        assert len(memory.recall("quokka").hits) == 1
        assert "git init" in str(refused(lambda: memory.remember("Maya bought a lawnmower"), GitError))
        assert_verified(memory)


@pytest.mark.parametrize("place", ["subfolder", "with_submodule", "detached"])
def test_a_vault_anywhere_in_git_takes_a_memory_and_nothing_else(tmp_path: Path, place: str) -> None:
    outer = Vault(tmp_path / "outer")
    outer.root.mkdir()
    outer.git("init", "-q", "-b", "main")
    outer.write("README.md", "The owner's own.\n")
    outer.save()
    root = outer.root / "memory" if place == "subfolder" else outer.root
    Memory.create(root)[0].close()
    if place == "with_submodule":
        inner = Vault(tmp_path / "inner")
        inner.root.mkdir()
        inner.git("init", "-q", "-b", "main")
        inner.write("inner.md", "The submodule mentions a kookaburra.\n")
        inner.save()
        outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "library")
        outer.save()
    if place == "detached":
        outer.git("checkout", "-q", "--detach")
    outer.write("work.txt", "not yet committed\n")
    with Memory.open(root) as memory:
        made = memory.remember("Maya keeps a quokka in the garden")
        memory.link("Maya", "works_at", "Acme")
        memory.forget(made.id)
        memory.restore(made.id)
        assert len(memory.recall("quokka").hits) == 1
        assert place != "with_submodule" or paths(memory, "kookaburra") == {"library/inner.md"}
        assert_verified(memory)
    assert outer.status() == "?? work.txt"
    assert outer.git("log", "-1", "--format=%an <%ae>") == "Quaid <quaid@localhost>"
    outer.run("fsck", "--strict", "--no-dangling")


def _turns(vault: Vault, text: str) -> Path:
    path = vault.root.parent / "talk.txt"
    path.write_text(text + "\nAssistant: And a good day to you.\n")
    return path
