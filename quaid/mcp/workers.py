"""The worker threads of a server, for quick reads, writes, slow jobs and documents, and the watch of the vault.

A recall never waits behind a commit, an extraction or the indexing of documents: those have their own workers.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import wait
from datetime import UTC, datetime
from pathlib import Path

from quaid.errors import QuaidError
from quaid.federation import Federation
from quaid.local.locks import is_extracting, try_lock
from quaid.local.session_notes import SessionNotes
from quaid.memory import Memory
from quaid.place import LOCAL_FILE, state_folder
from quaid.resident.listener import Listener
from quaid.resident.worker import POLL_S, Reporter, Worker
from quaid.sync.watcher import Follower, read_heartbeat
from quaid.text.invisible import escaped

MAX_WAIT_S = 60.0
"""A recall waits at most so long for an extraction in progress."""
SERVER = "quaid mcp"
WATCH_LOCK = "following.lock"
WATCH_EVERY_S = 5.0
"""The interval at which a server checks whether another process follows the vault."""
CLOSE_S = 1.0


class Workers:
    """The workers of one vault. `vaults` are the vaults that can be queried, with it, as a `federation`."""

    def __init__(self, root: Path, listener: Listener | None = None, vaults: Mapping[str, Path] | None = None) -> None:
        self.root = root
        self.state = state_folder(root)
        self.reading = Worker("reading", root)
        self.writing = Worker("writing", root)
        self.slow = Worker("slow", root)
        self.documents = Worker("documents", root)
        self._watch = _Watch(root)
        self._listener = listener
        self._is_warm = False
        self._gave_up = False
        named = vaults or {}
        self._others = {name: Worker("reading", other) for name, other in named.items() if other != root}
        self._states = (self.state, *(state_folder(other) for other in named.values() if other != root))
        home = {name: self.reading for name, other in named.items() if other == root}
        self.federation = Federation({**home, **self._others}) if self._others else None

    def warm(self) -> None:
        """Once: load the embedding model, update the index, answer other processes and watch the vault. What fails here
        fails again, with a message, at the first query.
        """
        if not self._is_warm:
            self._is_warm = True
            self.reading.submit(Memory.warm)
            self.reading.submit(Memory.index)
            if self._listener is not None:
                self._listener.start(self.reading)
            self._watch.start()
            now = datetime.now(UTC)
            if SessionNotes(self.state / LOCAL_FILE).list_overdue(now):
                self.slow.submit(lambda memory: memory.extractor.store_overdue_notes(now))

    async def wait_for_extractions(self, report: Reporter) -> bool:
        """Wait for extractions in progress, only once for one that never ends. Return whether all have ended."""
        waited_s = 0.0
        while any(map(is_extracting, self._states)):
            if self._gave_up or waited_s >= MAX_WAIT_S:
                self._gave_up = True
                return False
            if waited_s % 1.0 == 0:
                await report(f"Waiting for a conversation that is being learned from, {waited_s:.0f} s so far")
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
        self._gave_up = False
        return True

    def close(self) -> None:
        """Stop everything; jobs in progress have a second to end."""
        self._is_warm = True  # from here on it must not begin
        if self._listener is not None:
            self._listener.close()
        self._watch.end()
        workers = (self.writing, self.slow, self.documents, self.reading, *self._others.values())
        wait([worker.close() for worker in workers], CLOSE_S)
        if self._watch.is_alive():
            self._watch.join(CLOSE_S / 2)


class _Watch(threading.Thread):
    """Follows the vault while no other process does: one of many servers, and another when that one ends."""

    def __init__(self, root: Path) -> None:
        super().__init__(name="quaid-watch", daemon=True)
        self._root = root
        self._state = state_folder(root)
        self._ending = threading.Event()
        self._follower: Follower | None = None
        self._last_message = ""

    def end(self) -> None:
        self._ending.set()
        if self._follower is not None:
            self._follower.stop()

    def run(self) -> None:
        while not self._ending.is_set():
            with try_lock(self._state / WATCH_LOCK) as is_alone:
                beat = read_heartbeat(self._state) if is_alone else None
                is_followed = beat is not None and beat.pid != os.getpid() and beat.is_alive(datetime.now(UTC))
                if is_alone and not is_followed:
                    self._follow()
            self._ending.wait(WATCH_EVERY_S)

    def _follow(self) -> None:
        try:
            with Memory.open(self._root) as memory:
                memory.report_to(None, self._report)
                self._follower = memory.follow(lambda _: None, SERVER)
                if not self._ending.is_set():
                    self._follower.run()
        except (QuaidError, OSError) as error:  # the vault may be gone for now; every read checks that itself anyway
            self._report(f"cannot follow {self._root}: {error}")

    def _report(self, text: str) -> None:
        if text != self._last_message:
            print(escaped(f"quaid: {text}"), file=sys.stderr)
        self._last_message = text
