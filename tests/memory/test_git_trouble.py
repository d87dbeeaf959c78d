"""Locks, rebases, hooks and odd repositories: a write waits or is refused, and nothing is half-written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from vaults import Vault, assert_verified, refused

from quaid.errors import GitError, LockedError
from quaid.report.checks import check_writes
from quaid.report.status import status_of
from quaid.vault.transaction import list_uncommitted

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


def refuse(vault: Vault, words: str = "no secrets please") -> Path:
    hook = vault.write(".git/hooks/pre-commit", f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
    hook.chmod(0o755)
    return hook


@pytest.mark.slow
def test_what_a_hook_refuses_stays_and_is_committed_by_the_next_write(filled: Vault) -> None:
    hook = refuse(filled)
    head = filled.head()
    turns = _turns(filled, "User: the dinghy leaks\nAssistant: I see")
    with filled.memory() as memory:
        made = memory.remember("Maya bought a lawnmower yesterday")
        again = memory.remember("Maya bought a lawnmower yesterday")
        memory.remember("Maya keeps a quokka in the garden")
        memory.link("Maya", "works_at", "Acme")
        memory.extract(turns)
        assert (made.outcome, again.outcome, made.commit, made.left) == ("created", "confirmed", None, (made.path,))
        assert "pre-commit" in str(made.hint)
        assert "no secrets please" in str(made.hint)
        assert [hit.text for hit in memory.recall("lawnmower").hits] == ["Maya bought a lawnmower yesterday"]
        assert filled.head() == head
        on_disk = filled.notes()
        hook.unlink()
        assert memory.remember("Tom sold the dinghy yesterday").commit
    subjects = filled.git("log", "--reverse", "--format=%s", f"{head}..").splitlines()
    assert [subject.partition(":")[0] for subject in subjects] == [
        "remember", "confirm", "confirm", "link", "keep", "remember",
    ]  # fmt: skip
    assert on_disk.items() <= filled.notes().items()
    assert filled.status() == ""
    filled.assert_sound()


def test_status_and_doctor_say_in_red_what_git_refuses_and_since_when(filled: Vault) -> None:
    hook = refuse(filled, "the gate is shut")
    with filled.memory() as memory:
        made = memory.remember("Maya bought a lawnmower yesterday")
        (item,) = [each for each in status_of(memory).attention if each.level == "error"]
        found = next(check_writes(memory))
        since = list_uncommitted(filled.root)[0].since
        assert item.paths == (made.path,)
        assert since in item.what
        assert "the gate is shut" in item.what
        assert found == item
        hook.unlink()
        memory.remember("Tom sold the dinghy yesterday")
        assert not list(check_writes(memory))
        assert not [each for each in status_of(memory).attention if each.level == "error"]


@pytest.mark.matrix
@pytest.mark.parametrize(("trouble", "named"), [
    (["config commit.gpgsign true", "config gpg.program false"], "commit.gpgsign"),
    (["config commit.gpgsign true", "config gpg.format ssh"], "user.signingkey"),
    ([".git/hooks/commit-msg #!/bin/sh\nexit 1\n"], "commit-msg"),
    ([".git/hooks/commit-msg #!/nonexistent\n"], "commit-msg cannot be run"),
    ([".gitignore facts/\n"], "'facts/' in .gitignore"), ([".git/info/exclude *.md\n"], "'*.md' in .git/info/exclude"),
])  # fmt: skip
def test_each_trouble_has_its_sentence_and_loses_nothing(filled: Vault, trouble: list[str], named: str) -> None:
    before = {name: (filled.root / name).read_text() for name in (".gitignore", ".git/info/exclude")}
    for each in trouble:
        name, text = each.split(" ", 1)
        if name == "config":
            filled.git("config", *text.split(" "))
        else:
            filled.write(name, text).chmod(0o755)
    with filled.memory() as memory:
        made = memory.remember("Maya bought a lawnmower yesterday")
        assert named in str(made.hint)
        assert made.left == (made.path,)
        for name, text in before.items():
            filled.write(name, text)
        (filled.root / ".git/hooks/commit-msg").unlink(missing_ok=True)
        filled.git("config", "commit.gpgsign", "false")
        memory.remember("Tom sold the dinghy yesterday")
    assert filled.git("log", "-2", "--format=%s").splitlines() == [
        "remember: Tom sold the dinghy yesterday", "remember: Maya bought a lawnmower yesterday",
    ]  # fmt: skip
    assert list_uncommitted(filled.root) == []


def test_a_vault_without_a_repository_is_read_and_says_why_it_is_not_written(filled: Vault) -> None:
    shutil.rmtree(filled.root / ".git")
    with filled.memory() as memory:
        assert len(memory.recall("quokka").hits) == 1
        assert "git init" in str(refused(lambda: memory.remember("Maya bought a lawnmower"), GitError))
        assert_verified(memory)


def _turns(vault: Vault, text: str) -> Path:
    path = vault.root.parent / "talk.txt"
    path.write_text(text + "\nAssistant: And a good day to you.\n")
    return path
