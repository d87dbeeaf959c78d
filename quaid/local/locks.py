"""Lock files in the state folder. The system releases a lock when its process ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

EXTRACTION_LOCK = "extracting.lock"
EMBEDDING_LOCK = "embedding.lock"
"""Held by the process that embeds in the background."""


@contextmanager
def try_lock(path: Path, how: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> Iterator[bool]:
    """Hold the lock file `path`, and yield whether it could be taken: no other process holds it, and it can be made."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False
        return
    try:
        is_locked = False
        with suppress(OSError):
            fcntl.flock(lock, how)
            is_locked = True
        yield is_locked
    finally:
        os.close(lock)


@contextmanager
def extracting(state: Path) -> Iterator[None]:
    """Tell other processes that an extraction is under way; several may be. `state` is the vault's state folder.

    Where the lock cannot be made, nothing can be written either, and the writer reports that.
    """
    with suppress(OSError):
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with try_lock(state / EXTRACTION_LOCK, fcntl.LOCK_SH):
        yield


def is_extracting(state: Path) -> bool:
    """Return whether any process is within `extracting`."""
    return is_held(state / EXTRACTION_LOCK)


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock file `path`."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
