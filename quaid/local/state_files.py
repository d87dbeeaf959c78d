"""Logs and other small files of the state folder."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def append(path: Path, line: str) -> None:
    """Add `line` in one write, so that the lines of several processes do not mix; make the folder."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, f"{line}\n".encode("utf-8", "backslashreplace"))
    finally:
        os.close(handle)


def read(path: Path) -> bytes:
    """Return the bytes of a regular file that is not a link.

    Raises:
        OSError: it is something else, or cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:  # noqa: PTH123 - of a handle
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        return file.read()


def rotate(path: Path, max_bytes: int) -> None:
    """Rename a file of more than `max_bytes` to `NAME.1`, in the place of the one before."""
    with suppress(FileNotFoundError):
        if path.lstat().st_size > max_bytes:
            path.replace(path.with_name(f"{path.name}.1"))


def file_stem(session: str) -> str:
    """Return a file name, without ending, for any session id, however it was chosen."""
    import hashlib  # not above: every recall loads this module

    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:16]
