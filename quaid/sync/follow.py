"""`quaid watch`: notifications wake it, the files decide.

Whatever they say (vim's write-and-rename, a folder moved in that names none of its files, a checkout of five thousand),
the answer is the same: wait until it is quiet, then run the one sync there is, over the notes that were named or, where
they do not tell them all, over everything. Once a minute it is everything in any case.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import LockedError, QuaidError, VaultNotFoundError
from quaid.place import folder_identity, process_exists, state_folder, write_private
from quaid.settings import SyncSettings
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.indexer import Indexer
from quaid.sync.watcher import ChangedNotes, observe, why_incomplete
from quaid.vault import files

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

HEARTBEAT_FILE = "watch.json"
WATCH = "quaid watch"
HEARTBEAT_S = 5.0
FULL_SWEEP_S = 60.0
POLL_INTERVAL_S = 1.0
DEBOUNCE_S = 0.2
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
    """The command that follows; for any other than `quaid watch` this is beside its work."""

    def is_alive(self, now: datetime) -> bool:
        age_s = (now - datetime.fromisoformat(self.beat)).total_seconds()
        return age_s < 3 * HEARTBEAT_S and process_exists(self.pid)


def read_heartbeat(state: Path) -> Heartbeat | None:
    """Return the last heartbeat of the watcher whose vault has the state folder `state`; None when none runs."""
    try:
        return Heartbeat(**json.loads(files.read_note(state, HEARTBEAT_FILE) or b""))
    except (OSError, ValueError, TypeError):
        return None


def find_watcher(state: Path, now: datetime) -> Heartbeat | None:
    """Return the last heartbeat, of a watcher that died too; None where none runs, or what followed beside its work has
    ended, however: nobody waits for it.
    """
    heartbeat = read_heartbeat(state)
    return heartbeat if heartbeat and (heartbeat.what == WATCH or heartbeat.is_alive(now)) else None


class Follower:
    """Keeps the index up to date until told to stop. One call of `run` is one `quaid watch`."""

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
        self._said: set[str] = set()
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
                    self._wait_for_vault()
                if self._observer is None or not self._observer.is_alive() or self._watched != folder_identity(root):
                    self._listen()
                    is_due = True
                if is_due:
                    self._settle()
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
        if text not in self._said:
            self._said.add(text)
            self._say(text)

    def _notice(self, path: str, *, is_folder: bool) -> None:
        if self._changed.add(path, is_folder=is_folder):
            self._last_event = time.monotonic()
            self._wake.set()

    def _settle(self) -> None:
        """Wait until nothing has happened for the debounce time, but no longer than `MAX_WAIT_S`."""
        quiet_s = DEBOUNCE_S
        deadline = time.monotonic() + MAX_WAIT_S
        while (now := time.monotonic()) < deadline and now - self._last_event < quiet_s:
            self._stop.wait(min(quiet_s, 0.05))
        self._wake.clear()

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

    def _wait_for_vault(self) -> None:
        self._say(f"{self._indexer.root} is gone; waiting for it to come back")
        while not self._stop.wait(1.0):
            if self._indexer.is_there():
                self._say(f"{self._indexer.root} is back")
                return

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
