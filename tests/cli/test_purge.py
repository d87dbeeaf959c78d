"""`quaid purge` and `quaid doctor --secrets`, as they are typed."""

from __future__ import annotations

import json
import os

import pytest
from command_line import quaid, section_of
from vaults import Vault

from quaid.place import state_folder

pytestmark = pytest.mark.usefixtures("calm")
SECRET = "hunter2-swordfish"


def typed(vault: Vault, *arguments: str) -> tuple[int, str, str]:
    return quaid("--vault", str(vault.root), *arguments)


@pytest.mark.slow
def test_a_purge_shows_asks_and_proves(vault: Vault) -> None:
    with vault.memory() as memory:
        memory.remember("Maya rides the green bicycle to work")
        memory.remember(f"Maya logs in with {SECRET} every day")
    head, status = vault.head(), vault.status()
    code, out, _ = typed(vault, "purge", "--text", SECRET, "--dry-run")
    assert code == 0
    assert "Notes that go: 1 (facts/" in out
    assert "Commits that are made again: 1" in out
    assert (vault.head(), vault.status()) == (head, status)
    code, _, err = typed(vault, "purge", "--text", SECRET)
    assert (code, "--yes" in err, vault.head()) == (2, True, head)
    code, out, err = typed(vault, "purge", "--text", SECRET, "--yes", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["purged"]
    assert {*told, *told["proof"]} <= {*section_of("purge").replace('"', " ").split(), "v", "purged"}
    assert SECRET not in vault.git("log", "--all", "-p")
    code, out, _ = typed(vault, "purge", "--text", SECRET, "--yes")
    assert (code, "Purged: 0 commits made again, 0 notes gone" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "Nothing to purge was named"),
        (("7k3qd", "--text", SECRET), 2, "two purges"),
        (("--text", "abc", "--yes"), 2, "at least 4"),
        (("--text", "(", "--regex", "--yes"), 2, "no regular expression"),
        (("7k3qd", "--yes"), 1, "7k3qd"),
    ],
)
def test_what_cannot_be_purged_is_a_sentence(vault: Vault, arguments: tuple[str, ...], code: int, said: str) -> None:
    done, _, err = typed(vault, "purge", *arguments)
    assert (done, said in err) == (code, True), err


def test_another_process_that_has_the_memory_open_is_named(vault: Vault) -> None:
    with vault.memory() as memory:
        memory.remember(f"Maya logs in with {SECRET} every day")
    head, (ready, told), (ended, end) = vault.head(), os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        os.close(end)
        handle = os.open(state_folder(vault.root) / "index.db", os.O_RDONLY)
        os.write(told, b"x")
        os.read(ended, 1)
        os.close(handle)
        os._exit(0)
    os.read(ready, 1)
    try:
        code, _, err = typed(vault, "purge", "--text", SECRET, "--yes")
    finally:
        os.close(end)
        os.waitpid(child, 0)
    assert (code, f"Process {child} has the index" in err, vault.head()) == (75, True, head)


def test_secrets_in_the_history_are_named_by_their_kind_and_place_alone(vault: Vault) -> None:
    code, out, _ = typed(vault, "doctor", "--secrets")
    assert (code, "secrets: 0" in out) == (0, True)
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6"
    path = vault.write("journal/2026-11-20.md", f"token {token}\n")
    first = vault.save()
    path.unlink()
    vault.save("removed")
    code, out, err = typed(vault, "doctor", "--secrets")
    assert code == 1
    assert f"journal/2026-11-20.md  {first[:10]}" in out
    assert "quaid purge" in out
    assert token not in out + err
    assert typed(vault, "purge", "--text", token, "--yes")[0] == 0
    assert typed(vault, "doctor", "--secrets")[0] == 0
