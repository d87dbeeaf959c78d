"""Failures are told and change nothing; what a kill leaves is finished by the next call."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from git_vaults import NOTE, SAY, Vault, ours, shim_git, theirs
from vaults import PATIENCE_S

from quaid.errors import DiskFullError, GitError, GitMissingError, LockedError, VaultReadOnlyError
from quaid.history import commit_folder, repository
from quaid.history.commit_folder import CommitFolder
from quaid.model import Edit
from quaid.vault import transaction

HOUR_S = 3600


def test_a_missing_git_is_said_so(vault, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissingError):
        vault.history.log()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "env").symlink_to(shutil.which("env", path="/usr/bin:/bin"))
    with pytest.raises(GitMissingError):
        vault.history.log()


def test_a_missing_git_is_said_so_by_the_first_call_of_a_process(vault):
    script = (
        "import os, pathlib, sys; os.environ['PATH'] = '/nowhere'\n"
        "from quaid.history.vault_history import History; from quaid.settings import GitSettings\n"
        "from quaid.errors import GitMissingError\n"
        "try: History(pathlib.Path(sys.argv[1]), GitSettings()).log()\n"
        "except GitMissingError: print('missing')"
    )
    done = subprocess.run([sys.executable, "-c", script, str(vault.root)], capture_output=True, check=True, text=True)
    assert done.stdout == "missing\n"


@pytest.mark.parametrize(
    "words",
    [
        "fatal: unable to write new index file: No space left on device",
        "fatal: sha1 file '.git/index.lock' write error. Out of diskspace",
    ],
)
@pytest.mark.parametrize("command", ["add", "cat-file", "write-tree", "commit-tree", "update-ref", "commit"])
def test_a_full_disk_is_said_so_and_changes_nothing(vault, monkeypatch, tmp_path, command, words):
    if command == "commit":  # which takes part where a hook is the user's
        vault.hook("post-commit", "true")
    edit = vault.edit("facts/b.md", NOTE)
    before, index = vault.head(), vault.index()
    shim_git(monkeypatch, tmp_path, f'for a in "$@"; do [ "$a" = {command} ] && echo "{words}" >&2 && exit 128; done')
    with pytest.raises(DiskFullError):
        vault.history.commit([edit], SAY)
    assert (vault.head(), vault.index()) == (before, index)
    assert vault.strays() == []


@pytest.mark.parametrize(("number", "error"), [(28, DiskFullError), (30, VaultReadOnlyError), (5, OSError)])
def test_a_private_folder_that_cannot_be_written_is_said_so(vault, monkeypatch, number, error):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(commit_folder.shutil, "copy2", fail)
    with pytest.raises(error):
        vault.commit("facts/b.md", NOTE)
    assert vault.strays() == []


def test_a_broken_repository_is_said_so_in_gits_words(vault):
    (vault.root / ".git/index").write_bytes(b"broken")
    with pytest.raises(GitError, match="index file"):
        vault.commit("facts/b.md", NOTE)
    (vault.root / ".git/HEAD").unlink()
    with pytest.raises(GitError):
        vault.history.state()


KILLED = """
import os, pathlib, sys
from quaid.settings import GitSettings
from quaid.model import Edit
from quaid.history import {module} as module
from quaid.history.vault_history import History
from quaid.model import Message
def die(*_): os._exit(9)
{target} = die
History(pathlib.Path(sys.argv[1]), GitSettings()).commit([Edit("facts/a.md", {before!r}, {after!r})], Message("killed"))
"""


def kill(vault: Vault, module: str, target: str, before: bytes | None = NOTE) -> None:
    vault.write("facts/a.md", ours())
    script = KILLED.format(module=module, target=target, before=before, after=ours())
    done = subprocess.run([sys.executable, "-c", script, str(vault.root)], check=False, cwd=Path.cwd())
    assert done.returncode == 9


def test_killed_before_the_commit_only_a_private_folder_is_left(vault):
    before, index = vault.head(), vault.index()
    kill(vault, "committing", "module.Git.commit_tree")
    assert (vault.head(), vault.index()) == (before, index)
    (stray,) = (vault.root / ".git").glob("quaid-commit-*")
    vault.history.recover()
    assert not stray.exists()
    assert vault.history.commit([Edit("facts/a.md", NOTE, ours())], SAY).id
    vault.assert_sound()


@pytest.mark.matrix
@pytest.mark.parametrize("has_hook", [False, True])
@pytest.mark.parametrize("branch", [["-q", "main"], ["-q", "--detach"]])
def test_killed_after_the_commit_the_index_is_caught_up_by_the_next_call(vault, branch, has_hook):
    if has_hook:
        vault.hook("pre-commit", "true")
    vault.run("checkout", *branch)
    vault.write("other.md", theirs())
    vault.run("add", "other.md")
    kill(vault, "committing", "module.update_users_index")
    assert vault.history.log(limit=1)[0].subject == "killed"
    assert vault.status() == "MM facts/a.md\nM  other.md\n"
    assert b"index.lock" in vault.run("commit", "-m", "would undo it", check=False).stderr
    vault.history.recover()
    assert vault.status() == "M  other.md\n"
    vault.assert_sound()


@pytest.mark.parametrize("step", ["Git.commit_tree", "move_branch", "follow_branch"])
def test_killed_at_each_step_and_run_again_the_answer_is_the_same(vault, step):
    vault.write("staged.md", theirs())
    vault.run("add", "staged.md")
    kill(vault, "committing", f"module.{step}")
    vault.history.recover()
    vault.history.commit([Edit("facts/a.md", NOTE, ours())], SAY)
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.git("rev-list", "--count", "HEAD").strip() == "3"
    assert vault.status() == "A  staged.md\n"
    assert vault.strays() == []
    vault.assert_sound()


def age(vault: Vault) -> None:
    """What a kill left was left hours ago."""
    old = time.time() - 2 * HOUR_S
    for path in [*(vault.root / ".git").glob("quaid-*/*"), *(vault.root / ".git").glob("quaid-*")]:
        os.utime(path, (old, old))


@pytest.mark.parametrize("is_lock_removed", [False, True])
def test_a_commit_that_was_killed_hours_ago_is_finished_as_well(vault, is_lock_removed):
    """Thrown away unfinished, the owner's next commit would undo it."""
    kill(vault, "committing", "module.follow_branch")
    age(vault)
    if is_lock_removed:  # as git told the owner to
        (vault.root / ".git/index.lock").unlink()
    vault.history.wait_until_ready()
    vault.history.recover()
    vault.write("mine.md", b"mine\n")
    vault.run("add", "mine.md")
    vault.run("commit", "-q", "-m", "owner")
    assert vault.show("HEAD:facts/a.md") == ours()
    vault.assert_sound()


def test_a_lock_of_our_own_that_a_kill_left_is_known_and_not_waited_for(vault):
    patient = Vault(vault.root, wait_s=300)
    kill(vault, "committing", "module.follow_branch")
    assert commit_folder.is_abandoned(vault.history.runner.repository)
    began = time.monotonic()
    assert patient.commit("facts/b.md", NOTE).id
    assert time.monotonic() - began < PATIENCE_S
    assert vault.status() == ""
    vault.assert_sound()


def test_a_lock_whose_folder_is_gone_is_removed(vault):
    (vault.root / ".git/index.lock").write_text(f"quaid-commit-1-{vault.head()}-ab\n")
    assert vault.commit("facts/b.md", NOTE).id
    assert vault.status() == ""


@pytest.mark.parametrize("content", [b"", b"DIRC\0\0\0\2", b"quaid-commit-/../..", b"../quaid-commit-1-2-3"])
def test_a_lock_of_anybody_else_is_never_removed(vault, content):
    (vault.root / ".git/index.lock").write_bytes(content)
    with pytest.raises(LockedError):
        vault.commit("facts/b.md", NOTE)
    assert (vault.root / ".git/index.lock").read_bytes() == content


def test_a_commit_whose_git_outlived_its_maker_is_waited_for_and_finished(vault):
    """The process is killed in the commit-msg hook, behind the guard; its git goes on."""
    vault.hook("commit-msg", "touch .git/reached; sleep 0.5")
    vault.write("facts/a.md", ours())
    script = KILLED.format(module="committing", target="module.unused", before=NOTE, after=ours())
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(vault.root)], cwd=Path.cwd(), stderr=subprocess.DEVNULL
    )
    while not (vault.root / ".git/reached").exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not commit_folder.is_abandoned(vault.history.runner.repository)
    assert Vault(vault.root, wait_s=20).commit("facts/b.md", NOTE).id
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "killed"]
    assert vault.status() == ""
    vault.assert_sound()


def test_the_lock_of_a_branch_that_a_killed_git_left_is_removed(vault, monkeypatch):
    monkeypatch.setattr(commit_folder, "REF_LOCK_S", 0.1)
    kill(vault, "committing", "module.Git.commit_tree")
    (vault.root / ".git/refs/heads/main.lock").touch()
    assert vault.history.commit([Edit("facts/a.md", NOTE, ours())], SAY).id
    vault.assert_sound()


@pytest.mark.parametrize("has_links", [True, False])
def test_only_one_has_the_lock_of_the_index_with_hard_links_or_without(vault, tmp_path, monkeypatch, has_links):
    def refuse(*_args, **_options):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    found = repository.find_repository(vault.root)
    locks = [CommitFolder(found, found.git_dir / f"quaid-commit-{number}") for number in (1, 2)]
    for lock in locks:
        lock.path.mkdir()
        lock.claim()
        (lock.path / "alive").touch()

    def take_by_shell(lock: CommitFolder) -> bool:
        command = lock.lock_command() if has_links else lock.lock_command().replace("ln ", "false ")
        return subprocess.run(["sh", "-c", command], check=False).returncode == 0

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    for take in (CommitFolder.try_lock_index, take_by_shell):
        with commit_folder.hold_alive(locks[0].path):
            assert [take(lock) for lock in (*locks, locks[0])] == [True, False, True]
            locks[1].unlock_index()
            assert locks[0].is_index_locked()
            locks[0].unlock_index()
        assert not found.index_lock.exists()


@pytest.mark.parametrize("head", ["ref: ../../outside/held", "ref: refs/../../../outside/held", "ref: /{outside}/held"])
def test_a_hostile_private_folder_unlocks_nothing_outside(vault, tmp_path, monkeypatch, head):
    monkeypatch.setattr(commit_folder, "REF_LOCK_S", 0.0)
    outside = tmp_path / "outside"
    outside.mkdir()
    stray = vault.root / ".git" / f"quaid-commit-1-{vault.head()}-ab"
    stray.mkdir()
    (stray / "alive").touch()
    (stray / "HEAD").write_text(head.format(outside=outside))
    (outside / "held.lock").touch()
    (vault.root / ".git/quaid-commit-2-3-4").symlink_to(outside)
    vault.history.recover()
    assert (outside / "held.lock").exists()
    assert vault.strays() == ["quaid-commit-2-3-4"]


def test_a_folder_that_cannot_be_finished_is_set_aside_and_named(vault):
    vault.hook("pre-commit", "true")
    kill(vault, "committing", "module.update_users_index")
    (stray,) = (vault.root / ".git").glob("quaid-commit-*")
    (stray / "index").write_bytes(b"no index")
    assert vault.commit("facts/b.md", NOTE).id
    ((folder, reason),) = transaction.list_unfinished(vault.root)
    assert "killed process" in reason
    assert (folder / stray.name / "index").exists()
    assert not commit_folder.is_abandoned(vault.history.runner.repository)


def test_the_first_commit_is_caught_up_with_too(empty):
    empty.write("facts/a.md", NOTE)
    kill(empty, "committing", "module.update_users_index", before=None)
    assert empty.status() == "D  facts/a.md\n?? facts/a.md\n"
    empty.history.recover()
    assert empty.status() == ""


def test_a_stray_folder_of_a_commit_that_was_not_made_changes_nothing(vault):
    vault.write("facts/a.md", ours())
    vault.run("add", "facts/a.md")
    strays = [vault.root / ".git" / f"quaid-commit-999999999-{vault.head()}-{name}" for name in ("ab", "cd")]
    for stray in strays:
        stray.mkdir()
        (stray / "alive").touch()
    shutil.copy(vault.root / ".git/index", strays[0])
    vault.save("other.md", theirs())
    vault.history.recover()
    assert vault.strays() == []
    assert vault.status() == "M  facts/a.md\n"


def test_strays_go_after_an_hour_and_others_files_never(vault):
    git_dir = vault.root / ".git"
    old = time.time() - 2 * HOUR_S
    for name in ("quaid-commit-1", f"quaid-commit-999999999-{vault.head()}-ab", "mine"):
        (git_dir / name).mkdir()
        os.utime(git_dir / name, (old, old))
    (git_dir / "quaid-commit-2").mkdir()
    vault.commit("facts/b.md", NOTE)
    assert vault.strays() == ["quaid-commit-2"]
    assert (git_dir / "mine").exists()
