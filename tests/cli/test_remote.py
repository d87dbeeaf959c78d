"""`quaid remote`, `push`, `pull`, and what `status` and a session's start say of other machines."""

from __future__ import annotations

import json
import re

import pytest
from command_line import quaid, section_of
from machines import KAYAK, make_machines, run_git
from vaults import Vault

pytestmark = pytest.mark.usefixtures("calm")


def shape_in_docs(command: str) -> set[str]:
    return set(re.findall(r'"(\w+)":', section_of(command).split("```json")[1].split("```")[0]))


def run(vault: Vault, *arguments: str) -> str:
    code, out, err = quaid("--vault", str(vault.root), *arguments)
    assert code == 0, err
    return out


@pytest.mark.slow
def test_two_machines_exchange_what_they_know(tmp_path):
    one, other = make_machines(tmp_path)
    run(one, "remember", KAYAK)
    assert "Pushed 1 commit to origin" in run(one, "push")
    pulled = json.loads(run(other, "pull", "--json"))
    assert set(pulled) == shape_in_docs("pull")
    assert (pulled["commits"], pulled["merged"], len(pulled["changed"])) == (1, False, 1)
    run(other, "remember", "Jon sold the harbour office in Lisbon")
    run(one, "remember", "Ana planted a greenhouse at home")
    pushed = json.loads(run(other, "push", "--json"))
    assert shape_in_docs("push") == {"v", "remote", "commits", "pulled"} == set(pushed)
    text = run(one, "push")
    assert re.search(r"Pulled 1 commit and merged \(before that: refs/quaid/backup/\S+\), 1 note changed", text)
    assert "Pushed 2 commits to origin" in text
    assert "Nothing to push" in run(one, "push")
    assert "Nothing to pull" in run(one, "pull")


def test_a_remote_is_added_shown_trusted_and_removed(vault, tmp_path):
    bare = tmp_path / "memory.git"
    run_git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    assert "No remote" in run(vault, "remote")
    assert run(vault, "remote", "add", str(bare), "--name", "stick") == f"Added: stick, {bare}\n"
    run(vault, "push")
    (state,) = json.loads(run(vault, "remote", "--json"))["remotes"]
    assert {"v", "remotes", *state} == shape_in_docs("remote")
    assert "nothing to push or pull" in run(vault, "remote", "list")
    vault.git("remote", "set-url", "stick", f"{bare}/")
    assert "has changed: quaid remote trust stick" in run(vault, "remote")
    status = json.loads(run(vault, "status", "--json"))
    assert any("quaid remote trust stick" in item["next_step"] for item in status["attention"])
    assert run(vault, "remote", "trust", "stick", "--own") == f"Trusted: stick, {bare}/\n"
    assert json.loads(run(vault, "remote", "--json"))["remotes"][0]["own"]
    assert "Removed: stick" in run(vault, "remote", "remove", "stick")
    assert vault.git("remote") == ""


@pytest.mark.parametrize("arguments", [("frobnicate",), ("add",), ("trust",), ("remove",)])
def test_what_makes_no_sense_is_a_usage_error(vault, arguments):
    assert quaid("--vault", str(vault.root), "remote", *arguments)[0] == 2


def test_a_clone_can_push_at_once(tmp_path):
    one = make_machines(tmp_path / "work", 1)[0]
    root = tmp_path / "clone"
    code, out, err = quaid("clone", str(tmp_path / "work" / "remote.git"), str(root))
    assert (code, "Cloned and trusted" in out) == (0, True), err
    run(Vault(root), "remember", KAYAK)
    assert "Pushed 1 commit" in run(Vault(root), "push")
    assert "Pulled 1 commit" in run(one, "pull")


@pytest.mark.slow
def test_status_says_how_far_apart_they_are_and_asks_nobody(tmp_path, monkeypatch):
    one, other = make_machines(tmp_path)
    run(one, "remember", KAYAK)
    run(one, "push")
    run(other, "remember", "Jon sold the harbour office in Lisbon")
    monkeypatch.setenv("QUAID_GIT_SYNC", "ask")
    with other.memory() as memory:
        memory.remotes.exchange()
    (tmp_path / "remote.git").rename(tmp_path / "away")
    assert re.search(r"remote +origin \(ask\), 1 to push and 1 to pull, as of 20\d\d-", run(other, "status"))
    (state,) = json.loads(run(other, "status", "--json"))["remotes"]
    assert (state["ahead"], state["behind"]) == (1, 1)
    assert "origin: 1 commit to pull and 1 commit to push: quaid pull" in run(other, "context")
    assert quaid("--vault", str(other.root), "pull")[0] == 75
    assert "offline since" in run(other, "status")


def test_status_says_what_leaves_by_itself(tmp_path, monkeypatch):
    (one,) = make_machines(tmp_path, 1)
    assert json.loads(run(one, "status", "--json"))["leaves"] == []
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    monkeypatch.setattr("quaid.remotes.contact.start_detached", lambda *_: None)
    assert json.loads(run(one, "status", "--json"))["leaves"] == ["every commit to ../remote.git"]
    monkeypatch.setenv("QUAID_OFFLINE", "true")
    assert json.loads(run(one, "status", "--json"))["leaves"] == []
