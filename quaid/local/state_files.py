"""Logs and other small files of the state folder."""

import errno
import os
import stat
import sys
from collections.abc import Sequence
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


# -- processes that outlive the command that starts them --------------------------------------------------------------

_MAX_LOG_BYTES = 1_000_000


def start_detached(module: str, arguments: Sequence[str], log: Path) -> None:
    """Start `python -m MODULE ARGUMENTS` without waiting for it; its stderr is appended to `log`, whose folder is made.

    Raises:
        OSError: it cannot be started, or `log` cannot be written.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    rotate(log, _MAX_LOG_BYTES)
    # -P: the working folder may hold a quaid/ or a json.py of its own.
    argv = [sys.executable, "-P", "-m", module, *arguments]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
    ]
    # A session of its own: a terminal that is closed ends the program in it, but not this process.
    os.posix_spawn(sys.executable, argv, os.environ, file_actions=files, setsid=True)
