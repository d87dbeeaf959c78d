"""Replace or remove a file that an editor may be saving at the same time.

An editor that saves in place opens the file, often empties it, and writes a moment later. If the file were swapped in
between, its text would go into a file without a name. So Quaid waits until nobody has the file open for
writing, checks the old file again after the swap and swaps back if it was touched, and checks a last time when the
write is over.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from quaid.errors import LockedError

MAX_SAVE_S = 5.0
"""The time to wait for an editor."""
POLL_S = 0.02
QUIET_S, QUIET_EMPTY_S = 0.3, 3.0
"""A file that was not written for so long counts as saved, where the system does not tell who has it open."""


def is_written(handle: int) -> bool | None:
    """Return True if somebody has an open file open for writing, or mapped; None where the system does not tell.

    A read lease is granted only where nobody has: https://man7.org/linux/man-pages/man2/fcntl.2.html (F_SETLEASE).
    """
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        # Whoever opens the file while we hold the lease makes the kernel signal us; this signal does nothing.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:  # not our own file, or a file system without leases
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def read_saved(handle: int, name: str) -> bytes:
    """The bytes of an open file as soon as nobody is writing to it.

    Raises:
        LockedError: somebody did for longer than `MAX_SAVE_S`.
    """
    until = time.monotonic() + MAX_SAVE_S
    while _is_busy(handle):
        if time.monotonic() > until:
            raise LockedError(f"Another program is writing to {name}", "Try again when it has saved or closed it.")
        time.sleep(POLL_S)
    return read_now(handle)


def read_now(handle: int) -> bytes:
    """The bytes of an open file."""
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read()


def replace(temporary: Path, path: Path, before: bytes, after: bytes) -> bool:
    """Put `temporary`, which holds `after`, in the place of `path`; False when that is not `before` or being written.

    What stood there is gone, or at `temporary`.
    """
    if not is_untouched(path, before):
        return False
    if not swap(temporary, path):
        temporary.replace(path)
        return True
    if is_untouched(temporary, before):
        return True
    swap(temporary, path)
    if not is_untouched(temporary, after):  # saved once more: the newest stays
        swap(temporary, path)
    return False


def remove(temporary: Path, path: Path, before: bytes) -> bool:
    """Take `path` away by way of the free name `temporary`; False when it is not `before` or being written."""
    if not is_untouched(path, before):
        return False
    path.rename(temporary)
    if is_untouched(temporary, before):
        temporary.unlink()
        return True
    move_to_new(temporary, path)
    temporary.unlink(missing_ok=True)
    return False


def move_to_new(temporary: Path, path: Path) -> None:
    """Give `temporary` the name `path`; the old name may stay.

    Raises:
        FileExistsError: somebody has made a file of that name.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links (exFAT, some network mounts)
        if path.exists():
            raise FileExistsError(path) from None
        temporary.replace(path)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A file open for reading; never a link, and never waiting for the other end of a pipe."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        yield handle
    finally:
        os.close(handle)


def find_touched(handles: Sequence[tuple[int, bytes]]) -> Iterator[int]:
    """The places of those open files, each with the bytes it had, that an editor has written to or still has open."""
    for place, (handle, before) in enumerate(handles):
        if is_written(handle) or read_now(handle) != before:
            yield place


def is_at(handle: int, path: Path) -> bool:
    """Return True if an open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def _is_busy(handle: int) -> bool:
    written = is_written(handle)
    if written is not None:
        return written
    found = os.fstat(handle)
    return abs(time.time() - found.st_mtime) < (QUIET_S if found.st_size else QUIET_EMPTY_S)


def is_untouched(path: Path, data: bytes) -> bool:
    try:
        with opened(path) as handle:
            return not is_written(handle) and read_now(handle) == data
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP}:
            return False
        raise


def swap(one: Path, other: Path) -> bool:
    """Exchange two files in one step; False where the system cannot."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if (call := getattr(library, "renameat2", None)) is not None:
        here = -100  # AT_FDCWD
        return bool(call(here, names[0], here, names[1], 2) == 0)  # RENAME_EXCHANGE
    call = getattr(library, "renamex_np", None)  # macOS
    return call is not None and call(*names, 2) == 0  # RENAME_SWAP
