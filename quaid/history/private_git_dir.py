"""The private git directory in which one commit is made, and what is done about one that a killed process left.

`git commit` writes its message, its index and more into fixed places of the git directory: two at the same time, the
user's and ours, can end up with each other's message, and an editor the user has open would find ours in it. So ours
runs in a folder of its own, which shares objects, refs, configuration and hooks as a linked worktree does.

Killed between its commit and the update of the user's index, a process leaves the user with an index that would undo
that commit with the next one. The folder it leaves behind proves the case: it names the commit, or the tree of its
index is the commit's.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from quaid.errors import GitError
from quaid.history import adoption, index_lock
from quaid.history.index_lock import PREFIX, IndexLock
from quaid.history.repository import Repository
from quaid.history.staging import BEGUN, MADE, RunGit, Stage, read_changes, update_users_index
from quaid.model import Edit
from quaid.vault import files

REF_LOCK_S = 2.0
"""git holds the lock of a branch for a blink: one that is older and empty was left by a kill."""
_NEW_S = 10.0
_UNBORN = "unborn"
_NAME = re.compile(rf"{PREFIX}\d+-([0-9a-f]+|{_UNBORN})-[0-9a-f]+")
_BRANCH = re.compile(r"refs/[^\0]+")
_COPIED = ("HEAD", "index", "config.worktree", "info/sparse-checkout")


@contextmanager
def open_private_git_dir(repository: Repository, base: str | None) -> Iterator[tuple[Path, int]]:
    """A private git directory for one commit on `base`, with the user's HEAD and index, and a handle that tells, in us
    and in each process that inherits it, that it is in use.

    It is not removed when the user interrupts or the process is killed: a git that is still running a hook would take
    a missing index for an empty one, and `recover` needs it.
    """
    folder = repository.git_dir / f"{PREFIX}{os.getpid()}-{base or _UNBORN}-{secrets.token_hex(4)}"
    lock = IndexLock(repository, folder)
    try:
        (folder / "info").mkdir(parents=True)
        with index_lock.hold_alive(folder) as handle:
            try:
                (folder / "commondir").write_bytes(os.fsencode(repository.common_dir) + b"\n")
                with suppress(OSError):  # no index yet, or a file system without hard links
                    os.link(repository.git_dir / "index", folder / BEGUN)
                for name in _COPIED:
                    if (repository.git_dir / name).exists():
                        shutil.copyfile(repository.git_dir / name, folder / name)
                lock.claim()
                yield folder, handle
            finally:
                lock.release()
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def adopt(
    run: RunGit, repository: Repository, base: str | None, commit_id: str, edits: Mapping[str, Edit], wait_s: float
) -> None:
    """Bring the branch, which is at `base`, to `commit_id`. Raises as `adoption.adopt`."""
    with open_private_git_dir(repository, base) as (folder, _):
        adoption.adopt(Stage(run, repository, folder, base), commit_id, edits, wait_s)


def recover(
    run: RunGit,
    repository: Repository,
    head: str | None,
    wait_s: float,
    set_aside: Callable[[Path, GitError], None],
) -> None:
    """Finish what killed processes left half done, and delete what nobody needs any more.

    `set_aside` is given a folder that cannot be finished.

    Raises:
        LockedError: somebody else has the user's index locked for longer than `wait_s`.
    """
    for stray in sorted(repository.git_dir.glob(PREFIX + "*")):
        if stray.is_symlink() or not stray.is_dir() or _is_in_use(stray):
            continue
        lock = IndexLock(repository, stray)
        named = _NAME.fullmatch(stray.name)
        base = named[1] if named and named[1] != _UNBORN else None
        try:
            _unlock_refs(repository, stray)
            if named and head != base and files.is_file_in(stray, "index"):
                _finish(Stage(run, repository, stray, base), lock, wait_s)
        except GitError as error:
            set_aside(stray, error)
        lock.release()
        shutil.rmtree(stray, ignore_errors=True)
    if index_lock.is_abandoned(repository):  # its folder is gone already
        repository.index_lock.unlink(missing_ok=True)


def _is_in_use(stray: Path) -> bool:
    """Return True if its maker lives, or has only just begun it."""
    if (stray / index_lock.ALIVE).exists():
        return index_lock.is_alive(stray)
    try:
        return time.time() - stray.stat().st_mtime < _NEW_S
    except FileNotFoundError:
        return True


def _unlock_refs(repository: Repository, stray: Path) -> None:
    """Remove the locks of the branch that a git left which was killed with its maker, while it committed in `stray`."""
    head = (files.read_note(stray, "HEAD") or b"").decode("utf-8", "surrogateescape")
    ref = head.removeprefix("ref:").strip()
    names = [repository.git_dir / "HEAD.lock"]
    if _BRANCH.fullmatch(ref) and ".." not in ref:
        names.append(repository.common_dir / f"{ref}.lock")
    for lock in names:
        while (age_s := _age_of_lock(lock, stray)) is not None:
            if age_s > REF_LOCK_S:
                lock.unlink(missing_ok=True)
            else:
                time.sleep(REF_LOCK_S / 20)


def _age_of_lock(lock: Path, stray: Path) -> float | None:
    """Seconds; None where there is no lock that was made after `stray`."""
    try:
        made = lock.stat().st_mtime
        return time.time() - made if made >= (stray / index_lock.ALIVE).stat().st_mtime else None
    except OSError:
        return None


def _finish(stage: Stage, lock: IndexLock, wait_s: float) -> None:
    """Make the user's index follow the commit that was made in a folder, or the branch was brought to, if it was."""
    if adopted := adoption.read_adopted(stage):
        adoption.finish(stage, lock, adopted, wait_s)
        return
    since = ["--ancestry-path", f"{stage.base}..HEAD"] if stage.base else ["HEAD"]
    args = ("rev-list", "--first-parent", "--reverse", "--format=%T", *since)
    code, out = stage.run("look for a commit", *args, accept=(0, 128))
    # "commit <id>" and "<tree>" for each: the first of them is the one made on our base.
    words = out.decode().split()
    if code or len(words) < 3:
        return
    if _was_made(stage, words[1], words[2]):
        lock.wait(wait_s)
        update_users_index(stage, read_changes(stage.run, words[1])[1], ())


def _was_made(stage: Stage, commit_id: str, tree: str) -> bool:
    """Return whether a commit with this tree is the one that was made in a folder."""
    if noted := files.read_note(stage.folder, MADE):
        return noted.decode("ascii", "replace").strip() == commit_id
    stage.index.with_name("index.lock").unlink(missing_ok=True)
    return stage.run("write a tree", "write-tree", index=stage.index)[1].decode().strip() == tree
