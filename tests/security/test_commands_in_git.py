"""A command that somebody plants in a repository is run by no door of Quaid before the owner has seen it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable

import pytest
from command_line import quaid
from machines import make_machines
from vaults import Vault, refused

from quaid.history import steering, vault_guard
from quaid.history.repository import find_repository
from quaid.history.steering import SteeringChangedError
from quaid.hooks import entry
from quaid.resident.worker import Worker

pytestmark = pytest.mark.usefixtures("calm")

KEYS = [
    "core.sshCommand", "core.fsmonitor", "core.editor", "core.pager", "core.askPass", "core.gitProxy",
    "core.hooksPath", "core.attributesFile", "core.worktree", "core.alternateRefsCommand", "credential.helper",
    "credential.https://example.org.helper", "filter.x.clean", "filter.x.smudge", "filter.x.process",
    "diff.external", "diff.x.command", "diff.x.textconv", "merge.x.driver", "merge.quaid.driver", "gpg.program",
    "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "remote.origin.uploadpack", "remote.origin.receivepack",
    "remote.origin.proxy", "remote.origin.vcs", "remote.origin.promisor", "extensions.partialClone",
    "url.ext::sh.insteadOf", "http.proxy", "http.sslVerify", "http.sslCAInfo", "http.cookieFile",
    "http.extraHeader", "http.https://example.org.proxy", "protocol.ext.allow", "alias.status",
    "uploadpack.packObjectsHook", "receive.procReceiveRefs", "submodule.x.update", "sequence.editor",
    "interactive.diffFilter", "trailer.x.command", "trailer.x.cmd", "browser.x.cmd", "man.x.cmd", "init.templateDir",
    "safe.directory", "gc.recentObjectsHook", "hook.x.command", "branch.main.mergeOptions", "pull.twohead",
    "core.protectNTFS", "core.sharedRepository", "lfs.customtransfer.x.path", "maintenance.repo", "a.key.nobody.knows",
]  # fmt: skip


def write_hook(vault: Vault, path: str, command: str) -> None:
    vault.write(path, f"#!/bin/sh\n{command}\n").chmod(0o755)


def plant_key(key: str) -> Callable[[Vault, str], object]:
    def plant(vault: Vault, command: str) -> None:
        path = vault.root / ".git/config"  # not --local: git refuses all where core.worktree is no folder
        subprocess.run(["git", "-C", "/", "config", "-f", str(path), key, command], check=True)

    return plant


def plant_text(path: str, text: str) -> Callable[[Vault, str], object]:
    def plant(vault: Vault, command: str) -> None:
        target = vault.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a") as file:
            file.write(text.replace("COMMAND", json.dumps(command)))

    return plant


def plant_include(vault: Vault, command: str) -> None:
    vault.git("config", "--local", "include.path", "one.inc")
    vault.write(".git/one.inc", '[includeIf "gitdir:/nowhere/"]\n\tpath = ../two.inc\n')
    vault.write("two.inc", f"[core]\n\tsshCommand = {json.dumps(command)}\n")


def plant_linked_repository(vault: Vault, command: str) -> None:
    (vault.root / ".git").rename(vault.root.parent / "elsewhere.git")
    vault.write(".git", f"gitdir: {vault.root.parent / 'elsewhere.git'}\n")


def plant_common_directory(vault: Vault, command: str) -> None:
    subprocess.run(["cp", "-r", str(vault.root / ".git"), str(vault.root.parent / "common")], check=True)
    vault.write(".git/commondir", f"{vault.root.parent / 'common'}\n")


def plant_worktree(vault: Vault, command: str) -> None:
    vault.git("worktree", "add", "-q", str(vault.root.parent / "tree"))
    plant_text(".git/worktrees/tree/config.worktree", "[core]\n\tsshCommand = COMMAND\n")(vault, command)


FILES: dict[str, Callable[[Vault, str], object]] = {
    "config.worktree": plant_text(".git/config.worktree", "[core]\n\tsshCommand = COMMAND\n"),
    "config.worktree of a worktree": plant_worktree,
    "one line": plant_text(".git/config", "[core]sshCommand=COMMAND"),
    "other case": plant_text(".git/config", "[CORE]\n\tSSHCOMMAND = COMMAND # harmless\n"),
    "continued line": plant_text(".git/config", "[user]\n\tname = Maya ; \\\n[core]\\\n\n[core]\n sshCommand = COMMAND\n"),
    "old subsection": plant_text(".git/config", "[filter.x]\n\tclean = COMMAND\n"),
    "behind text that git refuses": plant_text(".git/config", "\n= [core]\n\tsshCommand = COMMAND\n"),
    "include of an include": plant_include,
    "attributes": plant_text(".git/info/attributes", "*.md filter=lfs diff=x merge=x\n"),
    "alternates": plant_text(".git/objects/info/alternates", "/elsewhere/objects\n"),
    "another git directory": plant_linked_repository,
    "another common directory": plant_common_directory,
    **{
        f"hook {name}": lambda vault, command, name=name: write_hook(vault, f".git/hooks/{name}", command)
        for name in ("pre-commit", "commit-msg", "post-commit", "pre-push", "post-checkout", "reference-transaction",
                     "post-index-change", "fsmonitor-watchman", "pre-auto-gc", "post-rewrite", "quaid-made-up")
    },
}  # fmt: skip
PLANTS = {**{key: plant_key(key) for key in KEYS}, **FILES}
COMMANDS = [
    ("status",), ("recall", "kayak"), ("remember", "Ana planted a greenhouse at home"), ("log",), ("sync",), ("watch",),
    ("janitor", "run"), ("push",), ("pull",), ("remote", "list"), ("purge", "--text", "blue kayak", "--yes"),
    ("context",), ("undo", "--last"), ("install", "git-hook"), ("mcp",),
]  # fmt: skip


def knock_on_every_door(vault: Vault, worker: Worker | None, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what each door said."""
    said = []
    for command in COMMANDS:
        code, _, err = quaid("--vault", str(vault.root), *command)
        assert code == 1, (command, err)
        said.append(err)
    event = json.dumps({"session_id": "s", "prompt": "Where is the kayak?", "cwd": str(vault.root)}).encode()
    for name in ("session-start", "user-prompt-submit", "stop", "work"):
        assert entry.main([name, "--vault", str(vault.root)], event) == 0
        said.append(capsys.readouterr().err)
    if worker is not None:
        for job in (lambda memory: memory.recall("kayak"), lambda memory: memory.remember("Jon sold the office")):
            said.append(str(refused(lambda job=job: worker.submit(job).result(20))))
    return said


@pytest.fixture
def machine(tmp_path) -> Vault:
    made = make_machines(tmp_path, 1)[0]
    with made.memory() as memory:
        memory.remember("Maya bought a blue kayak")
    return made


@pytest.mark.matrix
@pytest.mark.parametrize("name", PLANTS)
def test_what_is_planted_after_trust_runs_at_no_door(machine, tmp_path, name, capsys):
    canary = tmp_path / "canary"
    worker = Worker("reading", machine.root)  # a server that has the vault open
    assert worker.submit(lambda memory: memory.recall("kayak").hits).result(20)
    head = machine.head()
    PLANTS[name](machine, f"touch {canary}; cat")
    said = knock_on_every_door(machine, worker, capsys)
    worker.close()
    assert [each for each in said if f"quaid trust {machine.root}" not in each] == []
    assert not canary.exists()
    assert machine.run("-c", "core.fsmonitor=", "rev-parse", "HEAD", check=False).stdout.decode().strip() in {head, ""}


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["all keys", *FILES])
def test_what_is_planted_before_trust_runs_at_no_door_and_is_shown(machine, tmp_path, name, capsys):
    canary = tmp_path / "canary"
    quaid("trust", str(machine.root), "--remove")
    planted = KEYS if name == "all keys" else [name]
    for each in planted:
        PLANTS[each](machine, f"touch {canary}; cat")
    said = knock_on_every_door(machine, None, capsys)
    assert [each for each in said if f"quaid trust {machine.root}" not in each] == []
    code, _, err = quaid("trust", str(machine.root))
    assert (code, canary.exists()) == (0, False)
    assert "What git may run in" in err
    if name == "all keys":  # where git can still write, Quaid mends its own driver
        assert {key for key in KEYS if key not in err} <= {"merge.quaid.driver"}
    vault_guard.check(machine.root)


def test_what_is_planted_while_a_job_runs_is_not_run_by_it(machine, tmp_path):
    with machine.memory() as memory:
        memory.remember("Ana planted a greenhouse at home")
        write_hook(machine, ".git/hooks/pre-commit", f"touch {tmp_path}/canary")
        assert "hook pre-commit" in str(refused(lambda: memory.remember("Jon sold the office"), SteeringChangedError))
        machine.git("config", "filter.x.clean", f"touch {tmp_path}/canary; cat")
        machine.write(".gitattributes", "*.md filter=x\n")
        refused(memory.git.uncommitted, SteeringChangedError)
        refused(memory.remotes.push, SteeringChangedError)
    assert not (tmp_path / "canary").exists()


def test_a_hook_or_an_included_file_that_changes_is_asked_about_again(machine):
    write_hook(machine, ".git/hooks/post-commit", "true")
    plant_include(machine, "true")
    assert quaid("trust", str(machine.root))[0] == 0
    assert quaid("--vault", str(machine.root), "recall", "kayak")[0] == 0
    write_hook(machine, ".git/hooks/post-commit", "fals")
    assert "hook post-commit = 15 bytes" in quaid("--vault", str(machine.root), "recall", "kayak")[2]
    write_hook(machine, ".git/hooks/post-commit", "true")
    assert quaid("--vault", str(machine.root), "recall", "kayak")[0] == 0
    machine.write("two.inc", "[core]\n\tsshCommand = false\n")
    assert "core.sshCommand = false" in quaid("--vault", str(machine.root), "recall", "kayak")[2]
    machine.write("two.inc", "")
    assert "core.sshCommand is gone" in quaid("--vault", str(machine.root), "recall", "kayak")[2]


HARMLESS = [
    ("config", "user.name", "Maya Chen"), ("config", "commit.gpgSign", "false"), ("config", "core.autocrlf", "input"),
    ("config", "pull.rebase", "true"), ("config", "branch.main.description", "mine"), ("config", "color.ui", "always"),
    ("config", "core.fsmonitor", "true"), ("config", "push.default", "current"), ("config", "gc.auto", "0"),
    ("config", "maintenance.auto", "false"), ("config", "merge.conflictStyle", "diff3"),
    ("remote", "add", "backup", "git@example.org:maya/memory.git"), ("remote", "rename", "backup", "copy"),
    ("remote", "remove", "copy"), ("branch", "side"), ("branch", "-u", "origin/main", "main"), ("tag", "v1"),
    ("worktree", "add", "-q", "../tree"), ("worktree", "remove", "../tree"), ("stash",), ("gc", "-q"),
    ("fetch", "-q", "origin"), ("push", "-q", "origin", "HEAD:refs/heads/side"), ("notes", "add", "-m", "x"),
    ("config", "extensions.worktreeConfig", "true"), ("config", "--worktree", "core.ignoreCase", "false"),
    ("sparse-checkout", "set", "--no-cone", "/*"), ("maintenance", "run", "--task=commit-graph"),
]  # fmt: skip


@pytest.mark.slow
def test_what_an_owner_does_every_day_asks_nothing(machine):
    for command in HARMLESS:
        machine.run(*command, check=False)
        machine.write("note.md", f"{command}\n")
        machine.save(" ".join(command))
        vault_guard.check(machine.root)
    with machine.memory() as memory:
        memory.remember("Ana planted a greenhouse at home")
        memory.remotes.push()


@pytest.mark.slow
def test_what_quaid_itself_writes_asks_nothing(machine):
    for command in (("doctor",), ("install", "git-hook"), ("remember", "Jon likes tea"), ("janitor", "run"),
                    ("purge", "--text", "Jon likes tea", "--yes"), ("uninstall", "git-hook"),
                    ("remote", "add", "/elsewhere.git", "--name", "stick")):  # fmt: skip
        quaid("--vault", str(machine.root), *command)
        vault_guard.check(machine.root)
    assert machine.git("config", "merge.quaid.driver")


@pytest.mark.slow
def test_the_list_acts_on_no_terminal_and_shows_no_password(machine):
    for key, value in {
        "http.extraHeader": "Authorization: Bearer sesame-token",
        "url.https://maya:sesame@example.org/.insteadOf": "short:",
        "http.proxy": "http://maya:sesame@proxy:1",
        "core.pager": "\x1b]0;sesame\x07\x1b[2Jless\nTrusted: nothing",
        "core.editor": "x" * 5000,
    }.items():
        machine.git("config", key, value)
    _, _, err = quaid("trust", str(machine.root))
    assert "http.extraHeader = …" in err
    assert "maya:sesame" not in err
    assert "sesame-token" not in err
    assert "\x1b" not in err
    assert r"core.pager = \x1b]0;" in err
    assert max(map(len, err.splitlines())) < 300
    assert "\nTrusted: nothing" not in err
    code, _, err = quaid("remote", "trust", "origin", "--vault", str(machine.root))
    assert (code, "http.proxy" in err) == (0, True)


def test_a_trusted_vault_of_an_older_quaid_asks_only_if_something_is_planted(machine):
    from quaid.place import state_folder

    (state_folder(machine.root) / "vault.json").unlink()
    vault_guard.check(machine.root)
    (state_folder(machine.root) / "vault.json").unlink()
    machine.git("config", "core.sshCommand", "true")
    refused(lambda: vault_guard.check(machine.root), SteeringChangedError)


PIECES = [
    "[core]", "[CORE]", '[filter "x"]', '[filter "a\\"b]c"]', "[filter.x]", "[a-b.c]", "\n", "\n", "\n", " ", "\t", "\r\n",
    "sshCommand", "clean", "=", "=", "=", "touch pwned", '"', "\\", "\\\n", "#", ";", "# comment\n", "\\n", "\\t", "bare",
    "fsmonitor", "[", "]", "[core] pager = x\n", "pager=y", "\ufeff", "x.y", "true", "0", "-", "'", "é", "\x0b", "\\\\", "\r",
]  # fmt: skip


@pytest.mark.slow
def test_no_key_that_git_reads_is_overlooked(tmp_path, machine):
    chance = random.Random(7)
    repository = find_repository(machine.root)
    read = 0
    for number in range(400):
        text = chance.choice(("", "[core]\n", '[filter "x"]\n')) + "".join(
            chance.choices(PIECES, k=chance.randint(1, 9))
        )
        path = tmp_path / f"{number}.config"
        path.write_bytes(text.encode())
        listed = subprocess.run(["git", "config", "-f", str(path), "-z", "--list"], capture_output=True, check=False)
        items = [item.partition("\n") for item in listed.stdout.decode("utf-8", "replace").split("\0")[:-1]]
        harmless = {("core.bare", value) for _, _, value in items} | {("core.fsmonitor", v) for v in ("", "true")}
        (machine.root / ".git/config").write_bytes(text.encode())
        found = {name.lower().lstrip(".") for name in steering.list_steering(repository)}
        overlooked = {key for key, _, value in items if key.lower() not in found and (key, value) not in harmless}
        assert overlooked == set() or "text that is not configuration" in found, text
        read += len(items)
    assert read > 40


def test_a_check_starts_no_process(machine):
    code = (
        "import sys; from pathlib import Path; from quaid.history import vault_guard;"
        f"vault_guard.check(Path({str(machine.root)!r})); assert not {{'git', 'subprocess'}} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr.decode()


def test_the_driver_of_another_installation_of_quaid_asks_nothing(machine, monkeypatch, tmp_path):
    """An upgrade may move the program whose path was written into .git/config."""
    machine.git("config", "merge.quaid.driver", steering.own_drivers()[1])
    vault_guard.accept(machine.root)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "new/bin/python"))
    vault_guard.check(machine.root)
