"""The file system's change notifications, and reads that are never stale without a sweep.

A long-lived process that keeps asking "has anything changed?" listens instead of sweeping: a read then costs one
touched cookie file, whose own notification proves that all earlier ones have arrived (the kernel delivers them in
order). Where there are no notifications, the sweep stays.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from quaid.place import CONFIG_FILE, process_exists
from quaid.vault import layout

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

COOKIE_WAIT_S = 1.0
MAX_CHANGED = 1_000
"""More changed paths are a burst, in which the system may have dropped some: then only a sweep can tell."""
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
LOCAL_FILE_SYSTEMS = frozenset({
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs",
    "tmpfs", "ramfs", "vfat", "exfat", "ntfs3",
})  # fmt: skip
"""File systems whose changes all come from this machine, so that its notifications are complete. They do not report
what somebody changes at the other end of a network, behind a FUSE daemon, or below an overlay.
"""
_MOUNTS = Path("/proc/self/mountinfo")
_EVERYTHING = "/"
"""Stands among the changed paths for "a folder came, went or moved": no note is called that."""


class Notice(Protocol):
    """Called with a path that changed, and whether it is a folder's."""

    def __call__(self, path: str, *, is_folder: bool) -> None: ...


def observe(root: Path, notice: Notice, *, poll_s: float | None = None) -> BaseObserver:
    """Call `notice` with every path that changed under `root`.

    Raises:
        OSError: the system has no watches left; poll instead (`poll_s`).
    """
    import logging
    import warnings

    from watchdog import events
    from watchdog.observers import Observer
    from watchdog.observers.polling import PollingObserver

    # Its threads log that they were stopped in mid-work, which their stopper knows.
    logging.getLogger("watchdog").setLevel(logging.CRITICAL)
    logging.getLogger("fsevents").setLevel(logging.CRITICAL)
    # git makes and removes folders in .git quicker than they can be watched; nothing in there is a note.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.observers\.inotify")

    # The system would watch a link itself instead of the folder behind it.
    watched = root.resolve()

    class Handler(events.FileSystemEventHandler):
        def on_any_event(self, event: events.FileSystemEvent) -> None:
            for path in (event.src_path, event.dest_path):
                if path:
                    rel_path = os.path.relpath(os.fsdecode(path), watched)
                    notice(os.path.normpath(root / rel_path), is_folder=event.is_directory)

    wanted: list[Any] = [
        events.FileCreatedEvent, events.FileModifiedEvent, events.FileDeletedEvent, events.FileMovedEvent,
        events.DirCreatedEvent, events.DirDeletedEvent, events.DirMovedEvent,
        events.FileClosedEvent,  # the one notification of what was written by way of a mapping, when that ends
    ]  # fmt: skip
    observer: BaseObserver = PollingObserver(timeout=poll_s) if poll_s is not None else Observer()
    observer.schedule(Handler(), str(watched), recursive=True, event_filter=wanted)
    observer.daemon = True
    observer.start()
    return observer


def _make_cookie(path: Path) -> int:
    """Make a file in the vault's folder of cookies, which git ignores and which may not be a link; return its
    handle.
    """
    if not (path.parents[1] / CONFIG_FILE).is_file():
        raise FileNotFoundError(path.parents[1])  # an unmounted disk leaves an empty folder behind
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if not stat.S_ISDIR(path.parent.lstat().st_mode):
        raise NotADirectoryError(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path.parent / ".gitignore", _NEW_FILE, 0o600))
        (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
    return os.open(path, _NEW_FILE, 0o600)


def why_incomplete(root: Path) -> str | None:
    """Return why notifications of the folder `root` may be incomplete; None where they are complete, as they are taken
    to be on other systems than Linux.
    """
    try:
        mounts = [line.split(" - ", 1) for line in _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()]
    except OSError:
        return None
    unescaped = partial(re.sub, r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)))
    kinds = {unescaped(left.split()[4]): right.split()[0] for left, right in mounts}
    top = root.resolve()
    holding = next((folder for folder in (top, *top.parents) if str(folder) in kinds), Path("/"))
    for folder in (str(holding), *(mount for mount in kinds if top in Path(mount).parents)):
        if kinds.get(folder) not in LOCAL_FILE_SYSTEMS:
            return f"{folder} has a {kinds.get(folder)} file system, which does not report every change"
    return None


def remove_stale_cookies(root: Path) -> None:
    """Remove the cookies of processes that were killed."""
    for cookie in (root / layout.COOKIE_DIR).glob("cookie-*-*"):
        pid = cookie.name.split("-")[1]
        if pid.isdigit() and not process_exists(int(pid)):
            with suppress(OSError):
                cookie.unlink(missing_ok=True)


class ChangedNotes:
    """The notes that notifications were about, from several threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths: set[str] = set()
        self._lock = threading.Lock()

    def add(self, path: str, *, is_folder: bool) -> bool:
        """Take a notification; return whether it is about notes."""
        if not concerns_notes(self._root, path, is_folder=is_folder):
            return False
        name = _EVERYTHING if is_folder else os.path.relpath(path, self._root).replace(os.sep, "/")
        with self._lock:
            self._paths.add(name)
        return True

    def take(self) -> frozenset[str] | None:
        """Return the notes that may have changed since the last call; None when only a sweep can tell."""
        with self._lock:
            changed = frozenset(self._paths)
            self._paths.clear()
        return None if _EVERYTHING in changed or len(changed) > MAX_CHANGED else changed


class ChangeListener:
    """The system's change notifications for one vault, with a way to know that they are complete: before `changed` is
    taken, ask `is_complete`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cookie = root / layout.COOKIE_DIR / f"cookie-{os.getpid()}-{id(self):x}-{os.urandom(4).hex()}"
        self.changed = ChangedNotes(root)
        self._cookie_seen = threading.Event()
        self._cookie_file: int | None = None
        self._observer: Any = None

    def start(self) -> bool:
        """Listen from now on; return False where the system cannot (no watches left, no such facility), or where the
        file system does not report every change.
        """
        try:
            if why_incomplete(self._root) is not None:
                return False
            self._cookie_file = _make_cookie(self._cookie)
            self._observer = observe(self._root, self._notice)
        except OSError:
            return False
        return self.is_complete()

    def stop(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(timeout=2)
            self._observer = None
        if self._cookie_file is not None:
            os.close(self._cookie_file)
            self._cookie_file = None
        with suppress(OSError):
            self._cookie.unlink(missing_ok=True)

    def is_complete(self) -> bool:
        """Touch the cookie and wait for its notification; return False when it does not come: others may be lost."""
        if self._observer is None or not self._observer.is_alive() or self._cookie_file is None:
            return False
        self._cookie_seen.clear()
        try:
            if not os.path.samestat(os.stat(self._cookie), os.fstat(self._cookie_file)):  # noqa: PTH116 - every recall
                return False  # another folder has this path by now
            # One byte into an open file is one notification; making and removing a file would be four.
            os.pwrite(self._cookie_file, b".", 0)
        except OSError:
            return False
        return self._cookie_seen.wait(COOKIE_WAIT_S)

    def _notice(self, path: str, *, is_folder: bool) -> None:
        if path == str(self._cookie):
            self._cookie_seen.set()
        else:
            self.changed.add(path, is_folder=is_folder)


def concerns_notes(root: Path, path: str, *, is_folder: bool) -> bool:
    """Return whether a notification is about a note or a folder of notes (a moved folder names only itself)."""
    *folders, name = Path(os.path.relpath(path, root)).parts or ("",)
    if any(layout.skips_folder(folder) for folder in folders):
        return False
    return not layout.skips_folder(name) if is_folder else layout.is_note_name(name)
