"""The file system's change notifications, and reads that are never stale without a sweep.

A long-lived process that keeps asking "has anything changed?" listens instead of sweeping: a read then costs one
touched cookie file, whose own notification proves that all earlier ones have arrived (the kernel delivers them in
order). Where there are no notifications, the sweep stays.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from quaid.errors import LockedError, QuaidError, VaultNotFoundError
from quaid.place import CONFIG_FILE, folder_identity, process_exists, state_folder, write_private
from quaid.settings import SyncSettings
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.indexer import Indexer
from quaid.vault import files, layout

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

COOKIE_WAIT_S = 1.0
POLL_INTERVAL_S = 1.0
DEBOUNCE_S = 0.2
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
"""Means "a folder came, went or moved" among the changed paths: no note has this name."""


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
            if not (self._root / CONFIG_FILE).is_file():
                return False  # an unmounted disk leaves an empty folder behind
            folder = self._cookie.parent
            folder.mkdir(mode=0o700, exist_ok=True)
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return False
            with suppress(FileExistsError):
                os.close(os.open(folder / ".gitignore", _NEW_FILE, 0o600))
                (folder / ".gitignore").write_text("*\n", encoding="utf-8")
            self._cookie_file = os.open(self._cookie, _NEW_FILE, 0o600)
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


# -- keeping the index up to date -------------------------------------------------------------------------------------

HEARTBEAT_FILE = "watch.json"
WATCH = "quaid watch"
HEARTBEAT_S = 5.0
FULL_SWEEP_S = 60.0
MAX_WAIT_S = 0.7
"""A change waits no longer than this to be indexed, however busy the folder is."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A watcher as `quaid status` shows it. Written every few seconds even when nothing happens."""

    pid: int
    mode: str
    started: str
    beat: str
    last_sync: str | None
    problem: str | None
    what: str = WATCH
    """The command that follows the vault: `quaid watch`, or another one in the background."""

    def is_alive(self, now: datetime) -> bool:
        age_s = (now - datetime.fromisoformat(self.beat)).total_seconds()
        return age_s < 3 * HEARTBEAT_S and process_exists(self.pid)


def read_heartbeat(state: Path) -> Heartbeat | None:
    """Return the last heartbeat of the watcher whose vault has the state folder `state`; None when none runs."""
    with suppress(OSError, ValueError, TypeError):
        return Heartbeat(**json.loads(files.read_note(state, HEARTBEAT_FILE) or b""))
    return None


def find_watcher(state: Path, now: datetime) -> Heartbeat | None:
    """Return the last heartbeat, of a watcher that died too; None where none runs, or a background follower has
    ended, however: nobody waits for it.
    """
    heartbeat = read_heartbeat(state)
    return heartbeat if heartbeat and (heartbeat.what == WATCH or heartbeat.is_alive(now)) else None


class Follower:
    """Keeps the index up to date until `stop`. One call of `run` is one `quaid watch`."""

    def __init__(
        self,
        indexer: Indexer,
        settings: SyncSettings,
        report: Callable[[SyncReport], None],
        say: Callable[[str], None],
        what: str = WATCH,
    ) -> None:
        self._indexer = indexer
        self._settings = settings
        self._report = report
        self._say = say
        self._what = what
        self._wake = threading.Event()
        self._changed = ChangedNotes(indexer.root)
        self._needs_sweep = True
        self._last_sweep = 0.0
        self._stop = threading.Event()
        self._last_event = 0.0
        self._last_beat = 0.0
        self._mode = "notifications"
        self._last_said: set[str] = set()
        self._watched: tuple[int, int] | None = None
        self._observer: BaseObserver | None = None
        self._started = _now()
        self._last_sync: str | None = None
        self._problem: str | None = None

    def stop(self) -> None:
        """Ask `run` to return; safe from a signal handler."""
        self._stop.set()
        self._wake.set()

    def run(self) -> None:
        """Sync, listen, sync again … until `stop`. Survives a vanished vault and a full system."""
        root = self._indexer.root
        try:
            self._listen()
            self._wake.set()
            while not self._stop.is_set():
                self._beat()
                is_due = self._wake.wait(HEARTBEAT_S) or self._is_sweep_due()
                if self._stop.is_set():
                    return
                if not self._indexer.is_there():
                    self._stop_listening()
                    self._say(f"{root} is gone; waiting for it to come back")
                    while not self._indexer.is_there():
                        if self._stop.wait(1.0):
                            return
                    self._say(f"{root} is back")
                if self._observer is None or not self._observer.is_alive() or self._watched != folder_identity(root):
                    self._listen()
                    is_due = True
                if is_due:
                    # Until nothing has happened for the debounce time, but no longer than `MAX_WAIT_S`.
                    deadline = time.monotonic() + MAX_WAIT_S
                    while time.monotonic() < min(deadline, self._last_event + DEBOUNCE_S):
                        self._stop.wait(0.05)
                    self._wake.clear()
                    self._sync()
        finally:
            self._stop_listening()
            (state_folder(root) / HEARTBEAT_FILE).unlink(missing_ok=True)

    def _listen(self) -> None:
        """Listen again: to notifications, else by polling, else not at all, and then each turn sweeps."""
        self._stop_listening()
        self._needs_sweep = True
        root = self._indexer.root
        self._watched = folder_identity(root)  # another folder at the same path sends no notifications
        if not self._settings.poll:
            reason = why_incomplete(root)
            try:
                if reason is None:
                    self._mode = "notifications"
                    self._observer = observe(root, self._notice)
                    return
            except OSError as error:
                is_used_up = error.errno in {errno.ENOSPC, errno.EMFILE, errno.ENFILE}
                reason = "no file watches are left (fs.inotify.max_user_watches)" if is_used_up else str(error.strerror)
            self._say_once(f"{reason}: {root} is polled instead, every {POLL_INTERVAL_S:g} s")
        self._mode = "polling"
        try:
            self._observer = observe(root, self._notice, poll_s=POLL_INTERVAL_S)
        except OSError as error:
            self._say_once(f"{root} cannot be polled ({error.strerror}): it is swept every {HEARTBEAT_S:g} s")

    def _stop_listening(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(timeout=2)
            self._observer = None

    def _say_once(self, text: str) -> None:
        if text not in self._last_said:
            self._last_said.add(text)
            self._say(text)

    def _notice(self, path: str, *, is_folder: bool) -> None:
        if self._changed.add(path, is_folder=is_folder):
            self._last_event = time.monotonic()
            self._wake.set()

    def _sync(self) -> None:
        changed = self._changed.take()
        is_burst = changed is None
        if self._needs_sweep or self._mode != "notifications" or self._is_sweep_due():
            changed = None
        self._needs_sweep = True  # the notifications of these changes are spent: should this fail, sweep next time
        try:
            options = SyncOptions(only=changed, trust_times=changed is None)
            report = self._indexer.sync(options, progress=self._beat_if_due)
        except LockedError:
            self._wake.set()  # somebody else is indexing: look again
            return
        except VaultNotFoundError:
            return
        except QuaidError as error:
            self._set_problem(str(error))
            return
        self._needs_sweep = is_burst
        if is_burst:  # the system may have dropped notifications, and a new folder's first files have none
            self._wake.set()
        self._last_sync = _now()
        if changed is None:
            self._last_sweep = time.monotonic()
        self._set_problem(report.degraded[0] if report.degraded else None)
        if report.changed or report.rebuilt or report.embedded:
            self._report(report)

    def _set_problem(self, problem: str | None) -> None:
        if problem and problem != self._problem:
            self._say(problem)
        self._problem = problem

    def _is_sweep_due(self) -> bool:
        return self._last_sync is None or time.monotonic() - self._last_sweep > FULL_SWEEP_S

    def _beat_if_due(self, _what: str, _done: int, _total: int) -> None:
        """Embedding many notes takes longer than a heartbeat may be old."""
        if time.monotonic() - self._last_beat > HEARTBEAT_S:
            self._beat()

    def _beat(self) -> None:
        self._last_beat = time.monotonic()
        heartbeat = Heartbeat(
            os.getpid(), self._mode, self._started, _now(), self._last_sync, self._problem, self._what
        )
        with suppress(OSError):  # the vault is gone or full; the loop finds out by itself
            write_private(state_folder(self._indexer.root) / HEARTBEAT_FILE, json.dumps(asdict(heartbeat)))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
