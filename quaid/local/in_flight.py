"""Whether a conversation is being learned from just now, by any process: who recalls may wait for it.

A shared lock on one file of the state folder, which the system lets go of when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_FILE = "extracting.lock"
_STEP_S = 0.1


@contextmanager
def extracting(state: Path) -> Iterator[None]:
    """Held while an extraction is under way; several may be. `state` is the vault's state folder. Where the lock
    cannot be made, nothing can be written either, and who writes says so.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(state / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


def is_extracting(state: Path) -> bool:
    """Whether any process holds `extracting`."""
    try:
        lock = os.open(state / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def wait_until_learned(state: Path, timeout_s: float, pause: Callable[[float], object] = time.sleep) -> bool:
    """Wait for extractions under way, `timeout_s` at most; whether none is left."""
    end = time.monotonic() + timeout_s
    while is_extracting(state):
        if time.monotonic() >= end:
            return False
        pause(_STEP_S)
    return True
