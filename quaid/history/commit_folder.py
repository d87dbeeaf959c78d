"""The private git directory in which one commit is made, and the lock of the user's index that goes with it.

`git commit` writes its message, its index and more into fixed places of the git directory: two at the same time, the
user's and ours, can end up with each other's message, and an editor the user has open would find ours in it. So ours
runs in a separate folder, which shares objects, refs, configuration and hooks as a linked worktree does.

The lock is taken the way git takes it, by making the file index.lock. It holds the name of the folder, whose liveness
lock shows whether its maker is still running: a lock that a kill left is recognised if it is ours, and removed. A lock
of anybody else never is.
"""

import fcntl
import os
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from quaid.errors import LockedError
from quaid.history.repository import NEXT_STEPS, POLL_S, Repository, describe_lock, read_operation
from quaid.vault import files

PREFIX = "quaid-commit-"
ALIVE = "alive"
ORIGINAL_INDEX = "index.begun"
"""A hard link to the user's index as it was in the beginning, where the file system has hard links."""
MAX_COMMIT_S = 3600.0
REF_LOCK_S = 2.0
"""git holds the lock of a branch for a blink: one that is older and empty was left by a kill."""
_NEW_S = 10.0
_CLAIM = "claim"
_MAX_NAME = 200
_UNBORN = "unborn"
_NAME = re.compile(rf"{PREFIX}\d+-([0-9a-f]+|{_UNBORN})-[0-9a-f]+")
_BRANCH = re.compile(r"refs/[^\0]+")
_COPIED = ("HEAD", "index", "config.worktree", "info/sparse-checkout")


@dataclass(frozen=True)
class CommitFolder:
    """The folder of one commit. A process that inherits `handle` keeps it in use."""

    repository: Repository
    path: Path
    handle: int = -1

    @property
    def is_named(self) -> bool:
        """Return whether the folder's name is one that we give."""
        return _NAME.fullmatch(self.path.name) is not None

    @property
    def base(self) -> str | None:
        """The commit that HEAD was at, from the folder's name; None before the first one."""
        named = _NAME.fullmatch(self.path.name)
        return named[1] if named and named[1] != _UNBORN else None

    @property
    def index(self) -> Path:
        return self.path / "index"

    def has_original_index(self) -> bool:
        """Return whether the user's index is still the file that ours is a copy of; git writes a new one."""
        with suppress(OSError):
            return (self.path / ORIGINAL_INDEX).samefile(self.repository.git_dir / "index")
        return False

    def copy_index(self) -> None:
        """Make ours the user's index again."""
        self.index.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            # With its time, by which git tells which files may have changed since within the same second.
            shutil.copy2(self.repository.git_dir / "index", self.index)

    def claim(self) -> None:
        """Write the content of the lock, to be linked to its place whole."""
        (self.path / _CLAIM).write_text(f"{self.path.name}\n", encoding="ascii")

    def try_lock_index(self) -> bool:
        """Lock the user's index, also if a killed commit of ours has it locked. Return True if it is locked for us."""
        lock = self.repository.index_lock
        if lock.exists():
            if is_abandoned(self.repository):
                self.claim()
                (self.path / _CLAIM).replace(lock)
            return self.is_index_locked()
        with suppress(FileExistsError):
            try:
                os.link(self.path / _CLAIM, lock)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                with lock.open("x", encoding="ascii") as file:
                    file.write(f"{self.path.name}\n")
        return self.is_index_locked()

    def lock_index(self, wait_s: float) -> None:
        """Lock the user's index as soon as nobody else has it locked.

        Raises:
            LockedError: somebody had it locked for longer than `wait_s` seconds.
        """
        until = time.monotonic() + wait_s
        while not self.try_lock_index():
            if time.monotonic() > until:
                raise LockedError(*describe_lock(self.repository.index_lock))
            time.sleep(POLL_S)

    def lock_command(self) -> str:
        """Return `try_lock_index` for a shell."""
        claim, lock = (shlex.quote(str(path)) for path in (self.path / _CLAIM, self.repository.index_lock))
        is_held = f'test "$(cat {lock} 2>/dev/null)" = {shlex.quote(self.path.name)}'
        return f"{{ ln {claim} {lock} 2>/dev/null || {is_held} || (set -C; cat {claim} >{lock}) 2>/dev/null; }}"

    def is_index_locked(self) -> bool:
        return _read_lock_owner(self.repository) == self.path.name

    def unlock_index(self) -> None:
        if self.is_index_locked():
            self.repository.index_lock.unlink(missing_ok=True)

    def unlock_refs(self) -> None:
        """Remove the locks of the branch that a git left which was killed with its maker, while it committed here."""
        head = (files.read_note(self.path, "HEAD") or b"").decode("utf-8", "surrogateescape")
        ref = head.removeprefix("ref:").strip()
        names = [self.repository.git_dir / "HEAD.lock"]
        if _BRANCH.fullmatch(ref) and ".." not in ref:
            names.append(self.repository.common_dir / f"{ref}.lock")
        for lock in names:
            with suppress(OSError):  # it is gone
                while (made := lock.stat().st_mtime) >= (self.path / ALIVE).stat().st_mtime:
                    if time.time() - made > REF_LOCK_S:
                        lock.unlink()
                    else:
                        time.sleep(REF_LOCK_S / 20)


@contextmanager
def open_folder(repository: Repository, base: str | None) -> Iterator[CommitFolder]:
    """Make a folder for one commit on `base`, with the user's HEAD and index.

    It is not removed when the user interrupts or the process is killed: a git that is still running a hook would take
    a missing index for an empty one, and the next commit needs it to recover.
    """
    path = repository.git_dir / f"{PREFIX}{os.getpid()}-{base or _UNBORN}-{secrets.token_hex(4)}"
    try:
        (path / "info").mkdir(parents=True)
        with hold_alive(path) as handle:
            folder = CommitFolder(repository, path, handle)
            try:
                (path / "commondir").write_bytes(os.fsencode(repository.common_dir) + b"\n")
                with suppress(OSError):  # no index yet, or a file system without hard links
                    os.link(repository.git_dir / "index", path / ORIGINAL_INDEX)
                for name in _COPIED:
                    if (repository.git_dir / name).exists():
                        shutil.copy2(repository.git_dir / name, path / name)
                folder.claim()
                yield folder
            finally:
                folder.unlock_index()
    except Exception:
        shutil.rmtree(path, ignore_errors=True)
        raise
    shutil.rmtree(path, ignore_errors=True)


def list_abandoned(repository: Repository) -> list[CommitFolder]:
    """Return the folders that killed processes left."""
    found = []
    for path in sorted(repository.git_dir.glob(PREFIX + "*")):
        with suppress(FileNotFoundError):  # it is gone
            # Its maker may have only just begun it.
            is_new = not (path / ALIVE).exists() and time.time() - path.stat().st_mtime < _NEW_S
            if not path.is_symlink() and path.is_dir() and not is_new and not _is_alive(path):
                found.append(CommitFolder(repository, path))
    return found


@contextmanager
def hold_alive(path: Path) -> Iterator[int]:
    """Lock the folder for as long as the caller lives, or a child that was given the handle."""
    handle = os.open(path / ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def is_abandoned(repository: Repository) -> bool:
    """Return True if the index is locked by a commit of ours whose process was killed."""
    owner = _read_lock_owner(repository)
    return owner.startswith(PREFIX) and "/" not in owner and not _is_alive(repository.git_dir / owner)


def _is_alive(path: Path) -> bool:
    """Return True if a process that makes a commit in the folder is running, or one of its git processes."""
    try:
        handle = os.open(path / ALIVE, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks: no commit takes so long
        return time.time() - os.fstat(handle).st_mtime < MAX_COMMIT_S
    finally:
        os.close(handle)
    return False


def _read_lock_owner(repository: Repository) -> str:
    """Return the folder that the lock names, if it is ours; git writes a whole index into its own."""
    data = files.read_note(repository.git_dir, repository.index_lock.name, _MAX_NAME) or b""
    return data.decode("ascii", "replace").strip()


def wait_until_ready(repository: Repository, wait_s: float, say: Callable[[str], None] | None = None) -> None:
    """Wait up to `wait_s` seconds for a rebase, a merge or a lock to end; `say` gets the reason once.

    A lock that a killed commit of ours left is not waited for.

    Raises:
        LockedError: it did not end in time.
    """
    until = time.monotonic() + wait_s
    while True:
        if operation := read_operation(repository.git_dir):
            next_step = f"End it with: {NEXT_STEPS[operation]}. Then try again."
            reason = f"A {operation} is in progress in {repository.top}", next_step
        elif repository.index_lock.exists() and not is_abandoned(repository):
            reason = describe_lock(repository.index_lock)
        else:
            return
        if say is not None:
            say(f"Waiting up to {wait_s:g} s: {reason[0]}")
            say = None
        if time.monotonic() >= until:
            raise LockedError(*reason)
        time.sleep(POLL_S)
