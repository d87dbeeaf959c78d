"""The worker threads of a server, one each for quick reads, writes, slow jobs and documents, and what runs beside them.

A recall never waits behind a commit, an extraction or documents that are indexed: those have workers of their own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import wait
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.agents.standby import ANSWER_S, Standby
from quaid.errors import QuaidError
from quaid.local.in_flight import is_extracting
from quaid.local.state_files import alone
from quaid.mcp.worker import POLL_S, Reporter, Worker
from quaid.place import state_folder
from quaid.text.invisible import escaped

if TYPE_CHECKING:
    from quaid.memory import Memory
    from quaid.sync.follow import Follower

MAX_WAIT_S = 60.0
"""A recall waits this long for an extraction under way."""
WATCH_LOCK = "following.lock"
WATCH_EVERY_S = 5.0
"""So often a server looks whether somebody follows the vault."""
CLOSE_S = 1.0


class Workers:
    """The workers of one vault."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = state_folder(root)
        self.reading = Worker("reading", self._open)
        self.writing = Worker("writing", self._open)
        self.slow = Worker("slow", self._open)
        self.documents = Worker("documents", self._open)
        self._watch = _Watch(root)
        self._standby = Standby(root, self._answer_hook)
        self._is_warm = False
        self._gave_up = False

    def warm(self) -> None:
        """Load the embedding model, bring the index up to date, stand by for hooks and see to it that somebody follows
        the vault; once. What fails here is told to whoever asks.
        """
        if not self._is_warm:
            self._is_warm = True
            self.reading.submit(_warm)
            self._standby.start()
            self._watch.start()

    async def wait_for_extractions(self, tell: Reporter) -> bool:
        """Wait for extractions under way, for one that never ends only once; whether none is left."""
        waited_s = 0.0
        while is_extracting(self.state):
            if self._gave_up or waited_s >= MAX_WAIT_S:
                self._gave_up = True
                return False
            if waited_s % 1.0 == 0:
                await tell(f"Waiting for a conversation that is being learned from, {waited_s:.0f} s so far")
            await asyncio.sleep(POLL_S)
            waited_s += POLL_S
        self._gave_up = False
        return True

    def close(self) -> None:
        """What is under way has a second to come to an end."""
        self._is_warm = True  # too late for that
        self._standby.close()
        self._watch.stop()
        wait([desk.close() for desk in (self.writing, self.slow, self.documents, self.reading)], CLOSE_S)
        self._watch.join()

    def _answer_hook(self, asked: dict[str, Any]) -> dict[str, str]:
        """The context of a session that begins, or what goes before a prompt: its hook has no time to load a model."""

        def answer(memory: Memory) -> dict[str, str]:
            from quaid.agents.prompt_context import build_prompt_context

            if "context" in asked:
                return {"text": memory.context(asked["context"], asked["longest"], asked.get("cwd"))}
            is_kept = bool(asked.get("is_kept", True))
            return build_prompt_context(
                memory.root,
                memory.settings,
                memory.recall,
                str(asked["prompt"]),
                str(asked.get("session")),
                is_kept=is_kept,
            )._asdict()

        return self.reading.submit(answer).result(ANSWER_S)

    def _open(self) -> Memory:
        from quaid.memory import Memory

        return Memory.open(self.root)


class _Watch:
    """Follows the vault while nobody else does: of many servers one, and when it goes another."""

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
            with alone(state_folder(self._root) / WATCH_LOCK) as is_alone:
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
                self._follower = memory.follow(lambda _: None)
                if not self._stop.is_set():
                    self._follower.run()
        except (QuaidError, OSError) as error:  # the vault may be gone for now; every read looks for itself anyway
            self._say(f"cannot follow {self._root}: {error}")

    def _say(self, text: str) -> None:
        if text != self._said:
            print(escaped(f"quaid: {text}"), file=sys.stderr)
        self._said = text


def _warm(memory: Memory) -> None:
    memory.warm()
    memory.index()
