"""The private git directory in which one commit is made, and what is done about one that a killed process left.

`git commit` writes its message, its index and more into fixed places of the git directory: two at the same time, the
user's and ours, can end up with each other's message, and an editor the user has open would find ours in it. So ours
runs in a folder of its own, which shares objects, refs, configuration and hooks as a linked worktree does.

Killed between its commit and the update of the user's index, a process leaves the user with an index that would undo
that commit with the next one. The folder it leaves behind proves the case: the tree of its index is the commit's.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quaid.vault.repository import Repository
from quaid.vault.staging import RunGit, Stage, catch_up, read_changes

PREFIX = "quaid-commit-"
STRAY_AGE_S = 3600.0
_UNBORN = "unborn"
_COPIED = ("HEAD", "index", "config.worktree", "info/sparse-checkout")


@contextmanager
def open_workshop(repository: Repository, base: str | None) -> Iterator[Path]:
    """A private git directory for one commit on `base`, with the user's HEAD and index.

    It is not removed when the user interrupts or the process is killed: a git that is still running a hook would take
    a missing index for an empty one, and `recover` needs it.
    """
    folder = repository.git_dir / f"{PREFIX}{os.getpid()}-{base or _UNBORN}-{secrets.token_hex(4)}"
    try:
        _furnish(repository, folder)
        yield folder
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def recover(run: RunGit, repository: Repository, head: str | None) -> None:
    """Finish what killed processes left half done, and delete the folders that nobody needs any more."""
    for stray in sorted(repository.git_dir.glob(PREFIX + "*")):
        if _is_spent(run, repository, stray, head):
            shutil.rmtree(stray, ignore_errors=True)


def _furnish(repository: Repository, folder: Path) -> None:
    (folder / "info").mkdir(parents=True)
    (folder / "commondir").write_bytes(os.fsencode(repository.common_dir) + b"\n")
    for name in _COPIED:
        if (repository.git_dir / name).exists():
            shutil.copyfile(repository.git_dir / name, folder / name)


def _is_spent(run: RunGit, repository: Repository, stray: Path, head: str | None) -> bool:
    try:
        age_s = time.time() - stray.stat().st_mtime
    except FileNotFoundError:
        return False
    owner = _parse_owner(stray)
    if age_s > STRAY_AGE_S or owner is None:
        return age_s > STRAY_AGE_S
    pid, base = owner
    # While HEAD is where it was, a git that outlived its killed parent may still be at work in the folder.
    if _is_alive(pid) or head == base:
        return False
    if (stray / "index").exists():
        _finish(Stage(run, repository, stray, base))
    return True


def _finish(stage: Stage) -> None:
    """Make the user's index follow the commit that was made in a folder, if that is what came of it."""
    since = ["--ancestry-path", f"{stage.base}..HEAD"] if stage.base else ["HEAD"]
    args = ("rev-list", "--first-parent", "--reverse", "--format=%T", *since)
    code, out = stage.run("look for a commit", *args, accept=(0, 128))
    # "commit <id>" and "<tree>" for each: the first of them is the one made on our base.
    words = out.decode().split()
    if code or len(words) < 3:
        return
    _, tree = stage.run("write a tree", "write-tree", index=stage.index)
    if tree.decode().strip() == words[2]:
        catch_up(stage, read_changes(stage.run, words[1])[1], ())


def _parse_owner(folder: Path) -> tuple[int, str | None] | None:
    """The process and the base that a folder is named after; None for any other."""
    parts = folder.name.removeprefix(PREFIX).split("-")
    if len(parts) != 3 or not parts[0].isdigit():
        return None
    return int(parts[0]), None if parts[1] == _UNBORN else parts[1]


def _is_alive(pid: int) -> bool:
    """Whether the commit that a folder belongs to may still be going on."""
    # The caller holds the vault's lock: a commit of this very process is over, however it ended.
    return pid != os.getpid() and process_exists(pid)


def process_exists(pid: int) -> bool:
    """Whether a process with this number is running, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
