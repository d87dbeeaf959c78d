"""The file system's change notifications, and reads that are never stale without a sweep.

A long-lived process that keeps asking "has anything changed?" listens instead of sweeping: a read then costs one
touched cookie file, whose own notification proves that all earlier ones have arrived (the kernel delivers them in
order). Where notifications are not to be had, the sweep stays.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.vault import layout

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

COOKIE_WAIT_S = 1.0
_EVERYTHING = "/"
"""Stands among the changed paths for "a folder came, went or moved": no note is called that."""


def observe(root: Path, notice: Callable[[str], None], *, poll_s: float | None = None) -> BaseObserver:
    """Call `notice` with every path that changed under `root`.

    Raises:
        OSError: the system has no watches left; poll instead (`poll_s`).
    """
    from watchdog import events
    from watchdog.observers import Observer
    from watchdog.observers.polling import PollingObserver

    # Its threads say that they were stopped in mid-work; that is no news to whoever stopped them.
    logging.getLogger("watchdog").setLevel(logging.ERROR)
    logging.getLogger("fsevents").setLevel(logging.ERROR)
    # git makes and removes folders in .git quicker than they can be watched; nothing in there is a note.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"watchdog\.observers\.inotify")

    class Handler(events.FileSystemEventHandler):
        def on_any_event(self, event: events.FileSystemEvent) -> None:
            notice(os.fsdecode(event.src_path))
            if event.dest_path:
                notice(os.fsdecode(event.dest_path))

    wanted: list[Any] = [
        events.FileCreatedEvent, events.FileModifiedEvent, events.FileDeletedEvent, events.FileMovedEvent,
        events.DirCreatedEvent, events.DirDeletedEvent, events.DirMovedEvent,
    ]  # fmt: skip
    observer: BaseObserver = PollingObserver(timeout=poll_s) if poll_s is not None else Observer()
    observer.schedule(Handler(), str(root), recursive=True, event_filter=wanted)
    observer.daemon = True
    observer.start()
    return observer


class ChangeListener:
    """The system's change notifications for one vault, with a way to know that they are complete."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cookie = root / layout.STATE_DIR / f"cookie-{os.getpid()}-{id(self):x}"
        self._changed: set[str] = set()
        self._lock = threading.Lock()
        self._cookie_seen = threading.Event()
        self._observer: Any = None

    def start(self) -> bool:
        """Listen from now on; False where the system cannot (no watches left, no such facility)."""
        try:
            self._observer = observe(self._root, self._notice)
        except OSError:
            return False
        return self.is_complete()

    def stop(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(timeout=2)
            self._observer = None
        self._cookie.unlink(missing_ok=True)

    def take_changed(self) -> frozenset[str] | None:
        """The notes that may have changed since the last call; None when only a sweep can tell."""
        if not self.is_complete():
            return None
        with self._lock:
            changed = frozenset(self._changed)
            self._changed.clear()
        return None if _EVERYTHING in changed else changed

    def is_complete(self) -> bool:
        """Touch the cookie and wait for its notification. False: some may be lost, do not trust the silence."""
        if self._observer is None or not self._observer.is_alive():
            return False
        self._cookie_seen.clear()
        try:
            self._cookie.write_bytes(b"")
        except OSError:
            return False
        try:
            return self._cookie_seen.wait(COOKIE_WAIT_S)
        finally:
            self._cookie.unlink(missing_ok=True)

    def _notice(self, path: str) -> None:
        if path == str(self._cookie):
            self._cookie_seen.set()
        elif concerns_notes(self._root, path):
            name = os.path.relpath(path, self._root) if layout.is_note_name(Path(path).name) else _EVERYTHING
            with self._lock:
                self._changed.add(name.replace(os.sep, "/"))


def concerns_notes(root: Path, path: str) -> bool:
    """Whether a notification is about a note or a folder of notes (a moved folder names only itself)."""
    *folders, name = Path(os.path.relpath(path, root)).parts or (".",)
    if any(layout.skips_folder(folder) for folder in folders) or (layout.skips_folder(name) and name != "."):
        return False
    return layout.is_note_name(name) or "." not in name or Path(path).is_dir()
