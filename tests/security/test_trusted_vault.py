"""A path is trusted for the vault that was there, and only while nobody else can write to that vault."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import quaid
from vaults import Vault, copy_vault, mounted, refused

from quaid import Memory
from quaid.history import vault_guard
from quaid.history.vault_guard import OpenVaultError
from quaid.place import state_folder
from quaid.resident.worker import Worker

pytestmark = pytest.mark.usefixtures("calm")
STRANGER = 4321
KAYAK = "Maya bought a blue kayak"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def run(vault: Path, *arguments: str) -> tuple[int, str]:
    code, out, err = quaid("--vault", str(vault), *arguments)
    return code, out + err


@pytest.fixture
def own(vault: Vault) -> Path:
    """A trusted vault with a memory and something in its state."""
    with vault.memory() as memory:
        memory.remember(KAYAK)
        memory.note("call Maya back")
    return vault.root


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another vault of the same user, made by hand in the place of a stranger."""
    made, _ = Memory.create(tmp_path / "other")
    with made:
        made.remember("The password is swordfish, says the other vault")
    return tmp_path / "other"


def assert_asked(root: Path) -> None:
    for command in (("recall", "kayak password"), ("status",), ("remember", "Ana likes tea"), ("push",), ("watch",)):
        code, said = run(root, *command)
        assert (code, "is not the vault that you trusted there" in said, "swordfish" in said) == (1, True, False), said
        assert f"quaid trust {root}" in said


def test_another_vault_in_its_place_is_not_believed(own, other, tmp_path):
    worker = Worker("reading", own)  # a server that has the first one open
    assert worker.submit(lambda memory: memory.recall("kayak").hits).result(20)
    own.rename(tmp_path / "away")
    other.rename(own)
    assert_asked(own)
    refusal = refused(lambda: worker.submit(lambda memory: memory.recall("password")).result(20))
    assert "is not the vault that you trusted there" in str(refusal)
    worker.close()
    before = json.loads((state_folder(own) / "vault.json").read_text())
    assert run(own, "trust", str(own))[0] == 0
    assert "swordfish" in run(own, "recall", "password")[1]
    put_aside = [path for path in state_folder(own).parent.glob("*.old") if (path / "vault.json").exists()]
    assert before in [json.loads((path / "vault.json").read_text()) for path in put_aside]


def test_another_vault_mounted_there_is_not_believed(own, other):
    with mounted(own, "--bind", str(other)):
        assert_asked(own)
    assert run(own, "recall", "kayak")[0] == 0


def test_a_new_repository_under_the_same_notes_is_not_believed(own):
    shutil.rmtree(own / ".git")
    assert run(own, "recall", "kayak")[0] == 0  # the folder is the same, and git has nothing to run
    subprocess.run(["git", "init", "-q", str(own)], check=True)
    Vault(own).save()
    shutil.rmtree(own / ".git/hooks", ignore_errors=True)
    assert "is not the vault that you trusted there" in run(own, "recall", "kayak")[1]


def restore_backup(own: Path) -> None:
    backup = own.with_name("backup")
    shutil.copytree(own, backup, symlinks=True)
    shutil.rmtree(own)
    shutil.copytree(backup, own, symlinks=True)


def restore_from_remote(own: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--no-local", str(own), str(own.with_name("second"))], check=True)
    shutil.rmtree(own)
    own.with_name("second").rename(own)


def lose_the_id(own: Path) -> None:
    (own / ".git/quaid.id").unlink()


def rewrite_history(own: Path) -> None:
    Vault(own).git("checkout", "-q", "--orphan", "new")
    Vault(own).git("commit", "-q", "-m", "all in one")
    Vault(own).git("branch", "-q", "-f", "main")


def change_device(own: Path) -> None:
    about = state_folder(own) / "vault.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"device": 1, "inode": 2}))


def purge(own: Path) -> None:
    assert run(own, "purge", "--text", "blue kayak", "--yes")[0] == 0
    lose_the_id(own)


@pytest.mark.parametrize(
    "change", [restore_backup, restore_from_remote, lose_the_id, rewrite_history, change_device, purge]
)
def test_the_same_vault_is_known_again(own, change):
    change(own)
    code, said = run(own, "recall", "kayak")
    assert code == 0, said
    with Memory.open(own) as memory:
        assert memory.note("and Tom") == 2  # its state is still its own


def test_a_moved_vault_keeps_its_state_and_a_clone_at_its_place_is_trusted(own, tmp_path):
    own.rename(tmp_path / "memory")
    assert quaid("trust", str(tmp_path / "memory"))[0] == 0
    with Memory.open(tmp_path / "memory") as memory:
        assert memory.note("and Tom") == 2
    assert quaid("clone", str(tmp_path / "memory"), str(own))[0] == 0
    shutil.rmtree(own)
    assert quaid("clone", str(tmp_path / "memory"), str(own))[0] == 0
    assert run(own, "recall", "kayak")[0] == 0


def test_a_vault_that_is_gone_and_had_the_same_inode_gives_a_moved_one_no_state(own, tmp_path):
    about = json.loads((state_folder(own) / "vault.json").read_text())
    for number in range(5):
        gone = state_folder(tmp_path / f"gone-{number}")
        gone.mkdir()
        (gone / "vault.json").write_text(json.dumps({"device": about["device"], "inode": about["inode"]}))
    own.rename(tmp_path / "memory")
    assert quaid("trust", str(tmp_path / "memory"))[0] == 0
    with Memory.open(tmp_path / "memory") as memory:
        assert memory.note("and Tom") == 2


INSIDE = [".", "quaid.toml", ".git", ".git/config", ".git/objects", ".git/refs", ".git/hooks"]


@pytest.mark.matrix
@pytest.mark.parametrize("name", [*INSIDE, "above"])
@pytest.mark.parametrize("mode", [0o777, 0o772])
def test_what_others_can_write_to_is_refused_until_they_are_shut_out(own, name, mode):
    path = own.parent if name == "above" else own / name
    path.mkdir(exist_ok=True) if name == ".git/hooks" else None
    kept = path.stat().st_mode
    path.chmod(mode)
    code, said = run(own, "recall", "kayak")
    assert (code, f"{path} can be changed by other users" in said, f"chmod go-w {path}" in said) == (1, True, True), (
        said
    )
    assert KAYAK not in said
    assert run(own, "trust", str(own))[0] == 1
    subprocess.run(["chmod", "go-w", str(path)], check=True)
    assert run(own, "recall", "kayak")[0] == 0
    path.chmod(kept)


@needs_root
@pytest.mark.parametrize("name", [*INSIDE[1:], "above"])
def test_what_belongs_to_another_is_refused(own, name):
    path = own.parent if name == "above" else own / name
    path.mkdir(exist_ok=True) if name == ".git/hooks" else None
    os.chown(path, STRANGER, -1)
    code, said = run(own, "remember", "Ana likes tea")
    assert (code, f"{path} belongs to another user" in said) == (1, True), said
    assert run(own, "trust", str(own))[0] == 1
    os.chown(path, os.geteuid(), -1)
    assert run(own, "remember", "Ana likes tea")[0] == 0


@needs_root
def test_a_git_directory_elsewhere_that_belongs_to_another_is_refused(own, tmp_path):
    (own / ".git").rename(tmp_path / "theirs.git")
    (own / ".git").write_text(f"gitdir: {tmp_path / 'theirs.git'}\n")
    os.chown(tmp_path / "theirs.git", STRANGER, -1)
    assert f"{tmp_path / 'theirs.git'} belongs to another user" in run(own, "recall", "kayak")[1]


@needs_root
def test_the_main_repository_of_a_linked_worktree_is_looked_at(own, tmp_path):
    Vault(own).git("worktree", "add", "-q", str(tmp_path / "tree"))
    assert quaid("trust", str(tmp_path / "tree"))[0] == 0
    os.chown(own / ".git", STRANGER, -1)
    assert "belongs to another user" in run(tmp_path / "tree", "recall", "kayak")[1]


def test_a_sticky_folder_above_is_like_tmp(own):
    own.parent.chmod(0o1777)
    assert run(own, "recall", "kayak")[0] == 0
    own.chmod(0o1777)
    assert run(own, "recall", "kayak")[0] == 1


@pytest.mark.parametrize(
    ("group", "members", "is_private"),
    [("maya", [], True), ("maya", ["maya"], True), ("maya", ["maya", "tom"], False), ("users", [], False)],
)
def test_the_private_group_of_a_user_lets_nobody_in(own, monkeypatch, group, members, is_private):
    """Debian, Ubuntu and Fedora give each user a group of their own, and folders the mode 775."""
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="maya"))
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name=group, gr_mem=members))
    if os.geteuid() == 0:
        os.chown(own, -1, 1000)
    own.chmod(0o775)
    assert (run(own, "recall", "kayak")[0] == 0) == is_private


@pytest.mark.skipif(shutil.which("setfacl") is None, reason="needs setfacl")
def test_an_access_list_lets_others_in_through_a_private_group(own):
    if subprocess.run(["setfacl", "-m", f"u:{STRANGER}:rwx", str(own)], check=False).returncode:
        pytest.skip("this disk has no access lists")
    refused(lambda: vault_guard.check(own), OpenVaultError)


def test_a_vault_made_under_an_open_umask_is_shut_to_others(tmp_path):
    copy = copy_vault(tmp_path / "first").root
    before = os.umask(0)
    try:
        assert quaid("init", str(tmp_path / "made"), "--yes", "--no-fetch")[0] == 0
        assert quaid("clone", str(copy), str(tmp_path / "cloned"))[0] == 0
    finally:
        os.umask(before)
    for name in ("made", "cloned"):
        assert run(tmp_path / name, "status")[0] == 0
