"""Small files of the state folder: locks that die with their holder, lines that are added, logs that do not grow."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Whether this process alone holds the lock file `path`; not where it cannot be made. The system ends it with the
    process.
    """
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            is_alone = False
        else:
            is_alone = True
        yield is_alone
    finally:
        os.close(lock)


def append(path: Path, line: str) -> None:
    """Add `line` in one write, so that those of several processes do not mix; its folder is made."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, f"{line}\n".encode("utf-8", "backslashreplace"))
    finally:
        os.close(handle)


def read(path: Path) -> bytes:
    """The bytes of a regular file that is not a link.

    Raises:
        OSError: it is another thing, or cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:  # noqa: PTH123 - of a handle
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        return file.read()


def begin_anew(path: Path, longest: int) -> None:
    """Keep a file of more than `longest` bytes as `NAME.1`, in the place of the one before."""
    with suppress(FileNotFoundError):
        if path.stat().st_size > longest:
            path.replace(path.with_name(f"{path.name}.1"))


def name_of(session: str) -> str:
    """A file name for any session id, however it was chosen."""
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:16]
