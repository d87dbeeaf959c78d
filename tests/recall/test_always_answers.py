"""Recall answers without git, without a repository, without a place to write, and says what is missing."""

from __future__ import annotations

import shutil

import pytest
from vaults import Vault, mounted, refused

from quaid import Memory
from quaid.errors import UnwritableError
from quaid.place import state_folder

TEXT = "Maya's quokka lives in Perth"
GIT_TROUBLE = {
    "no git on the PATH": lambda vault, monkeypatch: monkeypatch.setenv("PATH", "/nowhere"),
    "no repository": lambda vault, _: shutil.rmtree(vault.root / ".git"),
    "a bad HEAD": lambda vault, _: vault.write(".git/HEAD", "rubbish\n"),
    "a HEAD of nothing": lambda vault, _: vault.write(".git/HEAD", "ref: refs/heads/none\n"),
    "a corrupt ref": lambda vault, _: _each_ref(vault, b"\0" * 41),
    "an empty ref": lambda vault, _: _each_ref(vault, b""),
    "no objects": lambda vault, _: (shutil.rmtree(vault.root / ".git/objects"), (vault.root / ".git/objects").mkdir()),
}


def _each_ref(vault: Vault, data: bytes) -> None:
    for ref in (vault.root / ".git/refs/heads").rglob("*"):
        if ref.is_file():
            ref.write_bytes(data)


@pytest.fixture
def filled(vault: Vault) -> Vault:
    for number in range(60):
        vault.write_fact(f"f{number}", f"{TEXT} {number}.")
    vault.save()
    vault.sync()
    return vault


@pytest.mark.parametrize("trouble", GIT_TROUBLE)
@pytest.mark.parametrize("vanished", [0, 55])
def test_whatever_is_wrong_with_git(filled: Vault, monkeypatch, trouble: str, vanished: int) -> None:
    GIT_TROUBLE[trouble](filled, monkeypatch)
    for number in range(vanished):
        (filled.root / f"facts/f{number + 5}.md").unlink()
    with filled.memory() as memory:
        answer = memory.recall("quokka 3")
        assert f"{TEXT} 3." in [hit.text for hit in answer.hits]
        if vanished:
            assert "removals" in answer.degraded
            assert "vanished" in str(answer.trace["degraded"])


def _assert_answers(memory: Memory, vault: Vault) -> None:
    answer = memory.recall("quokka 3", 60)
    assert f"{TEXT} 3." in [hit.text for hit in answer.hits]
    assert "index" in answer.degraded
    assert "wombat" not in str(memory.recall("wombat").hits)
    vault.write_fact("late", "Maya's wombat came late.")
    assert [hit.text for hit in memory.recall("wombat").hits] == ["Maya's wombat came late."]
    assert memory.get("01f3").text == f"{TEXT} 3."
    refused(lambda: memory.remember("Maya bought a lawnmower"), UnwritableError)


def test_with_a_state_folder_that_cannot_be_made(filled: Vault) -> None:
    state = state_folder(filled.root)
    shutil.rmtree(state)
    state.write_text("in the way")
    with filled.memory() as memory:
        _assert_answers(memory, filled)
        state.unlink()
        assert "index" not in memory.recall("quokka 3").degraded


@pytest.mark.parametrize("content", ["nothing", "a damaged index", "damaged pages"])
def test_with_a_state_folder_that_takes_no_writes(filled: Vault, content: str) -> None:
    state = state_folder(filled.root)
    index = (state / "index.db").read_bytes()
    with mounted(state, "-t", "tmpfs", "-o", "size=4m", "none"):
        if content != "nothing":
            damaged = index[:8192] + bytes(len(index) - 8192) if content == "damaged pages" else b"rubbish" * 4000
            (state / "index.db").write_bytes(damaged)
        with mounted(state, "-o", "remount,ro"), filled.memory() as memory:
            _assert_answers(memory, filled)
