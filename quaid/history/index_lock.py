"""The lock of the user's index, held while a branch moves and the index follows: no commit of theirs falls in between.

It is taken the way git takes it: by making the file index.lock. It says whose it is, the name of the private folder
its commit is made in, and that folder's liveness lock tells whether its maker is still at work: what a kill leaves is
known for ours, and removed; a lock of anybody else never is.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from quaid.errors import LockedError
from quaid.history.repository import POLL_S, Repository, describe_lock
from quaid.vault import files

PREFIX = "quaid-commit-"
_CLAIM = "claim"
_MAX_NAME = 200
ALIVE = "alive"
MAX_COMMIT_S = 3600.0


@dataclass(frozen=True)
class IndexLock:
    """The lock for the commit that is made in `folder`."""

    repository: Repository
    folder: Path

    def claim(self) -> None:
        """Write what the lock will hold, to be linked to its place whole."""
        (self.folder / _CLAIM).write_text(f"{self.folder.name}\n", encoding="ascii")

    def take(self) -> bool:
        """Take the lock, also over from a killed commit of ours. Return True if it is ours now, or was before."""
        if self.repository.index_lock.exists():
            if is_abandoned(self.repository):
                self.claim()
                (self.folder / _CLAIM).replace(self.repository.index_lock)
            return self.is_held()
        with suppress(FileExistsError):
            try:
                os.link(self.folder / _CLAIM, self.repository.index_lock)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                with self.repository.index_lock.open("x", encoding="ascii") as file:
                    file.write(f"{self.folder.name}\n")
        return self.is_held()

    def wait(self, wait_s: float) -> None:
        """Take the lock as soon as nobody else has it.

        Raises:
            LockedError: somebody had it for longer than `wait_s` seconds.
        """
        until = time.monotonic() + wait_s
        while not self.take():
            if time.monotonic() > until:
                raise LockedError(*describe_lock(self.repository.index_lock))
            time.sleep(POLL_S)

    def take_command(self) -> str:
        """`take` for a shell."""
        claim, lock = (shlex.quote(str(path)) for path in (self.folder / _CLAIM, self.repository.index_lock))
        is_held = f'test "$(cat {lock} 2>/dev/null)" = {shlex.quote(self.folder.name)}'
        return f"{{ ln {claim} {lock} 2>/dev/null || {is_held} || (set -C; cat {claim} >{lock}) 2>/dev/null; }}"

    def is_held(self) -> bool:
        return _read_owner(self.repository) == self.folder.name

    def release(self) -> None:
        if self.is_held():
            self.repository.index_lock.unlink(missing_ok=True)


@contextmanager
def hold_alive(folder: Path) -> Iterator[int]:
    """Lock `folder` for as long as the caller lives, or a child that was given the handle."""
    handle = os.open(folder / ALIVE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def is_alive(folder: Path) -> bool:
    """Return True if a process that makes a commit in `folder` is running, or one of its git processes."""
    try:
        handle = os.open(folder / ALIVE, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
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


def is_abandoned(repository: Repository) -> bool:
    """Return True if the index is locked by a commit of ours whose process was killed."""
    owner = _read_owner(repository)
    return owner.startswith(PREFIX) and "/" not in owner and not is_alive(repository.git_dir / owner)


def _read_owner(repository: Repository) -> str:
    """The folder that the lock names, should it be ours; git writes a whole index into its own."""
    data = files.read_note(repository.git_dir, repository.index_lock.name, _MAX_NAME) or b""
    return data.decode("ascii", "replace").strip()
