"""git's maintenance at night: loose objects become packs, and nothing is lost, run, fetched or configured by it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from git_vaults import NOTE, Vault

from quaid.history import maintenance
from quaid.history.maintenance import LEFTOVER_S, MAX_PACKS, list_leftovers, maintain, why_not
from quaid.history.repository import find_repository
from quaid.history.vault_history import History
from quaid.settings import GitSettings

COMMITS = 300


def repository_of(vault):
    return find_repository(vault.root)


def count(vault):
    """What `git count-objects` says: loose objects, packs and more."""
    return {key: int(n) for key, n in (line.split(": ") for line in vault.git("count-objects", "-v").splitlines())}


def age(path):
    then = time.time() - LEFTOVER_S - 60
    os.utime(path, (then, then))


@pytest.fixture(scope="session")
def _written(tmp_path_factory):
    """300 commits as Quaid makes them, by plumbing: every object is a file of its own."""
    vault = Vault(tmp_path_factory.mktemp("written") / "vault")
    vault.root.mkdir()
    vault.run("init", "-q", "-b", "main")
    stream = b"".join(
        b"commit refs/heads/main\ncommitter Quaid <quaid@localhost> %d +0000\ndata 8\nremember\n"
        b"M 644 inline facts/%d.md\ndata %d\n%b\n" % (1_700_000_000 + n, n, len(NOTE) + 3, NOTE + b"%03d" % n)
        for n in range(COMMITS)
    )
    vault.run("-c", "fastimport.unpackLimit=100000", "fast-import", "--quiet", stdin=stream)
    vault.run("reset", "-q", "--hard")
    return vault.root


@pytest.fixture
def written(_written, tmp_path):
    return Vault(Path(shutil.copytree(_written, tmp_path / "written")))


@pytest.mark.slow
def test_loose_objects_become_packs_over_two_nights(written):
    before, config = written.git("rev-list", "--objects", "--all"), (written.root / ".git/config").read_bytes()
    assert count(written)["count"] == 4 * COMMITS
    assert maintain(repository_of(written)) == []
    assert count(written)["prune-packable"] == 4 * COMMITS  # in a pack too: the next night takes the files away
    assert maintain(repository_of(written)) == []
    now = count(written)
    assert (now["count"], now["in-pack"], now["packs"]) == (0, 4 * COMMITS, 1)
    assert (written.root / ".git/objects/info/commit-graphs/commit-graph-chain").is_file()
    assert written.git("rev-list", "--objects", "--all") == before
    assert (written.root / ".git/config").read_bytes() == config
    assert not Path(os.environ["HOME"]).exists()  # no repository was registered for anything
    assert list_leftovers(repository_of(written)) == []
    written.assert_sound()


def test_what_nothing_reaches_is_kept(written):
    lost = written.run("hash-object", "-w", "--stdin", stdin=b"undone long ago\n").stdout.decode().strip()
    age(written.root / ".git/objects" / lost[:2] / lost[2:])
    for _ in range(2):
        maintain(repository_of(written))
    assert written.show(lost) == b"undone long ago\n"


def test_many_packs_become_one_and_a_much_larger_one_stays(written):
    written.run("repack", "-dq")
    (large,) = (written.root / ".git/objects/pack").glob("*.pack")
    for n in range(MAX_PACKS):
        written.commit(f"facts/new{n}.md", NOTE + b"%d" % n)
        written.run("repack", "-q")
    before = written.git("rev-list", "--objects", "--all")
    maintain(repository_of(written))
    assert count(written)["packs"] <= 3
    assert large.exists()
    assert written.git("rev-list", "--objects", "--all") == before
    written.assert_sound()
    for _ in range(MAX_PACKS):
        lost = written.run("hash-object", "-w", "--stdin", stdin=os.urandom(200_000)).stdout.decode().strip()
        written.run("pack-objects", "-q", ".git/objects/pack/pack", stdin=f"{lost}\n".encode())
    maintain(repository_of(written))
    assert not large.exists()
    assert count(written)["packs"] == 1
    assert len(written.show(lost)) == 200_000  # what nothing reaches is kept
    written.assert_sound()


@pytest.mark.matrix
@pytest.mark.parametrize("step", ["commit-graph", "prune-packed", "pack-objects", "multi-pack-index"])
def test_killed_at_a_step_nothing_is_lost_and_a_later_night_goes_on(written, tmp_path, monkeypatch, step):
    commits = written.git("rev-list", "--all")
    real, folder = shutil.which("git"), tmp_path / "git-core"
    folder.mkdir()
    what = f'test "$1" = {step}'
    if step == "multi-pack-index":  # what it starts to join packs
        what = f'test "$1" = pack-objects && grep -qa {step} /proc/$PPID/cmdline'
        for n in range(MAX_PACKS + 1):
            written.commit(f"facts/new{n}.md", NOTE + b"%d" % n)
            written.run("repack", "-q")
        commits = written.git("rev-list", "--all")
    kill = f'{what} && {{ exec 3<&0; "{real}" "$@" <&3 & sleep 0.004; kill -9 $! $PPID; exit 9; }}'
    (folder / "git").write_text(f'#!/bin/sh\nunset GIT_EXEC_PATH\n{kill}\nexec "{real}" "$@"\n')
    (folder / "git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("GIT_EXEC_PATH", str(folder))
        with pytest.raises(Exception, match="maintain the repository"):
            for _ in range(3):
                maintain(repository_of(written))
    assert (written.root / ".git/objects/maintenance.lock").exists() or step == "multi-pack-index"
    written.assert_sound()
    assert written.git("rev-list", "--all") == commits
    written.commit("facts/after.md", NOTE)
    for path in list_leftovers(repository_of(written)):
        age(path)
    told = maintain(repository_of(written))
    assert "Removed what killed processes left" in told[0] if told else step == "multi-pack-index"
    maintain(repository_of(written))
    assert count(written)["count"] < 40
    assert count(written)["packs"] <= MAX_PACKS
    assert list_leftovers(repository_of(written)) == []
    written.assert_sound()


def test_one_that_takes_too_long_is_ended_and_said(written):
    (told,) = maintain(repository_of(written), 0.001)
    assert told == "git's maintenance was ended after 0 s; another night goes on with it."
    written.assert_sound()


@pytest.mark.slow
def test_who_writes_meanwhile_loses_nothing(written, monkeypatch):
    for task in ("loose-objects", "commit-graph"):
        written.run("config", f"maintenance.{task}.auto", "1")
    monkeypatch.setattr(maintenance, "MAX_PACKS", 1)
    made: list[str | None] = []

    def write():
        made.extend(written.commit(f"facts/new{n}.md", NOTE + b"%d" % n).id for n in range(12))

    writer = threading.Thread(target=write)
    writer.start()
    nights = 0
    while writer.is_alive() or nights < 2:
        maintain(repository_of(written))
        nights += 1
    writer.join()
    assert len(made) == 12
    assert None not in made
    assert written.git("rev-list", f"-{len(made)}", "HEAD").split() == made[::-1]
    assert count(written)["in-pack"] >= 4 * COMMITS
    written.assert_sound()


def test_nothing_that_the_repository_configures_runs(written, tmp_path):
    mark = tmp_path / "it-ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-auto-gc", "reference-transaction", "post-rewrite", "post-index-change"):
        shutil.copy(program, hooks / name)
    for key in (
        *("gc.recentObjectsHook", "core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand", "core.pager"),
        *("core.askPass", "core.editor", "remote.origin.uploadpack", "uploadpack.packObjectsHook"),
    ):
        written.run("config", key, str(program))
    for command in ("maintenance", "pack-objects", "prune-packed"):
        written.run("config", f"alias.{command}", f"!{program}")
    written.run("config", "remote.origin.url", str(tmp_path))
    written.run("config", "core.hooksPath", str(hooks))
    config = (written.root / ".git/config").read_bytes()
    for _ in range(2):
        maintain(repository_of(written))
    assert not mark.exists()
    assert count(written)["count"] == 0
    assert (written.root / ".git/config").read_bytes() == config


def test_a_partial_clone_fetches_nothing(written, tmp_path, monkeypatch):
    written.save("facts/0.md", NOTE)
    written.run("config", "uploadpack.allowFilter", "true")
    address = written.root.as_uri()
    subprocess.run(["git", "clone", "-q", "--filter=blob:none", address, str(tmp_path / "part")], check=True)
    part = Vault(tmp_path / "part")
    left_out = part.git("rev-list", "--objects", "--all", "--missing=print").count("\n?")
    assert left_out
    for n in range(40):
        part.run("hash-object", "-w", "--stdin", stdin=b"mine %d" % n)
    part.run("config", "remote.origin.uploadpack", f"touch {tmp_path / 'asked'}; git-upload-pack")
    for task in ("loose-objects", "commit-graph"):
        part.run("config", f"maintenance.{task}.auto", "1")
    monkeypatch.setattr(maintenance, "MAX_PACKS", 0)
    promised = sorted((part.root / ".git/objects/pack").glob("*.promisor"))
    for _ in range(2):
        assert maintain(repository_of(part)) == []
    assert count(part)["count"] == 0
    assert part.git("rev-list", "--objects", "--all", "--missing=print").count("\n?") == left_out
    assert sorted((part.root / ".git/objects/pack").glob("*.promisor")) == promised
    assert not (tmp_path / "asked").exists()
    part.assert_sound()


def test_a_repository_that_holds_more_than_the_vault_is_left_to_its_owner(written, tmp_path):
    (written.root / "notes").mkdir()
    inside = find_repository(written.root / "notes")
    assert why_not(inside) == f"the vault is a part of the larger repository {written.root}"
    written.run("worktree", "add", "-q", str(tmp_path / "second"))
    second = find_repository(tmp_path / "second")
    assert why_not(second).startswith("the vault is one of several worktrees of ")
    for repository in (inside, second):
        assert maintain(repository) == []
    assert count(written)["packs"] == 0


def test_it_can_be_switched_off(written):
    assert History(written.root, GitSettings(maintenance="off")).maintain() == []
    assert count(written)["packs"] == 0
    History(written.root, GitSettings()).maintain()
    assert count(written)["packs"] == 1


def test_while_another_git_is_at_work_nothing_is_done(written):
    lock = written.root / ".git/objects/maintenance.lock"
    lock.touch()
    assert maintain(repository_of(written)) == []
    assert lock.exists()
    assert count(written)["packs"] == 0


def test_a_link_leads_no_removal_out_of_the_repository(written, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    precious = tmp_path / "elsewhere/tmp_precious"
    precious.touch()
    age(precious)
    (written.root / ".git/objects/info/commit-graphs").symlink_to(tmp_path / "elsewhere")
    assert list_leftovers(repository_of(written), LEFTOVER_S) == []
    maintain(repository_of(written))
    assert precious.exists()
