"""The worker threads of a server, one each for quick reads, writes, slow jobs and documents, and what runs beside them.

A recall never waits behind a commit, an extraction or documents that are indexed: those have workers of their own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import QuaidError
from quaid.federation import Federation
from quaid.local.locks import is_extracting, try_lock
from quaid.place import state_folder
from quaid.resident.call import ANSWER_S, Answer
from quaid.resident.listener import DeclinedError, Listener, Run
from quaid.resident.worker import POLL_S, Reporter, Worker
from quaid.text.invisible import escaped

if TYPE_CHECKING:
    from quaid.memory import Memory
    from quaid.sync.follow import Follower

MAX_WAIT_S = 60.0
"""A recall waits so long for an extraction under way."""
SERVER = "quaid mcp"
WATCH_LOCK = "following.lock"
WATCH_EVERY_S = 5.0
"""The interval at which a server looks whether another process follows the vault."""
CLOSE_S = 1.0


class Workers:
    """The workers of one vault, the thread that follows it, and the one that answers calls of other processes by
    `run_call`. Where `vaults` names others beside it they are only asked, with it as a `federation`.
    """

    def __init__(self, root: Path, run_call: Run | None = None, vaults: Mapping[str, Path] | None = None) -> None:
        self.root = root
        self.state = state_folder(root)
        self.reading = Worker("reading", root)
        self.writing = Worker("writing", root)
        self.slow = Worker("slow", root)
        self.documents = Worker("documents", root)
        self._watch = _Watch(root)
        self._listener = run_call and Listener(root, run_call, SERVER, use=self._lend)
        self._is_warm = False
        self._gave_up = False
        named = vaults or {}
        self._others = {name: Worker("reading", other) for name, other in named.items() if other != root}
        self._states = (self.state, *(state_folder(other) for other in named.values() if other != root))
        home = {name: self.reading for name, other in named.items() if other == root}
        self.federation = Federation({**home, **self._others}) if self._others else None

    def warm(self) -> None:
        """Load the embedding model, bring the index up to date, answer other processes, see that the vault is followed;
        once. What fails here fails again, and is told, when somebody asks.
        """

        def warm(memory: Memory) -> None:
            memory.warm()
            memory.index()

        if not self._is_warm:
            self._is_warm = True
            self.reading.submit(warm)
            if self._listener is not None:
                self._listener.start()
            self._watch.start()

    async def wait_for_extractions(self, report: Reporter) -> bool:
        """Wait for extractions under way, only once for one that never ends. Return whether none is left."""
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
        """Stop everything; what is under way has a second to end."""
        self._is_warm = True  # from here on it must not begin
        if self._listener is not None:
            self._listener.close()
        self._watch.stop()
        others = self._others.values()
        wait([worker.close() for worker in (self.writing, self.slow, self.documents, self.reading, *others)], CLOSE_S)
        self._watch.join()

    def _lend(self, job: Callable[[Memory], Answer]) -> Answer:
        future = self.reading.submit(job)
        try:
            return future.result(ANSWER_S)
        except TimeoutError:  # its caller waits no longer
            future.cancel()
            raise DeclinedError from None


class _Watch:
    """Follows the vault while no other process does: of many servers one, and another when that one ends."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stop = threading.Event()
        self._follower: Follower | None = None
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="quaid-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._follower is not None:
            self._follower.stop()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(CLOSE_S / 2)

    def _run(self) -> None:
        while not self._stop.is_set():
            with try_lock(state_folder(self._root) / WATCH_LOCK) as is_alone:
                if is_alone and not self._is_followed():
                    self._follow()
            self._stop.wait(WATCH_EVERY_S)

    def _is_followed(self) -> bool:
        from quaid.sync.follow import read_heartbeat

        heartbeat = read_heartbeat(state_folder(self._root))
        return heartbeat is not None and heartbeat.pid != os.getpid() and heartbeat.is_alive(datetime.now(UTC))

    def _follow(self) -> None:
        from quaid.memory import Memory

        try:
            with Memory.open(self._root) as memory:
                memory.report_to(None, self._say)
                self._follower = memory.follow(lambda _: None, SERVER)
                if not self._stop.is_set():
                    self._follower.run()
        except (QuaidError, OSError) as error:  # the vault may be gone for now; every read looks for itself anyway
            self._say(f"cannot follow {self._root}: {error}")

    def _say(self, text: str) -> None:
        if text != self._said:
            print(escaped(f"quaid: {text}"), file=sys.stderr)
        self._said = text
