"""Pages that are open learn within a second that the memory has changed, whoever changed it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from quaid.errors import QuaidError
from quaid.index.contents import manifest
from quaid.place import folder_identity
from quaid.sync.watcher import Notice, concerns_notes, observe, why_incomplete

if TYPE_CHECKING:
    from starlette.requests import Request
    from watchdog.observers.api import BaseObserver

    from quaid.memory import Memory
    from quaid.resident.worker import Worker

LIVE = "/live"
"""The address of the events."""
EVENTS = "text/event-stream"
GATHER_S = 0.3
"""Seconds in which changes are gathered before pages are told: a night, or a pull, writes many notes."""
MAX_STREAMS = 32
"""Pages that listen at the same time. One more is told so, and learns of changes when it is loaded again."""
CHECK_S = 2.0
"""The interval at which is looked whether the folder is still the one that is listened to: a disk may come and go."""
POLL_S = 1.0
"""The interval at which a file system is looked through that reports no changes."""


class Live:
    """Listens to the folder `root` while `run` is entered, and tells each page that asks until `ending`."""

    def __init__(self, root: Path, reading: Worker, ending: asyncio.Event) -> None:
        self._root = root
        self._reading = reading
        self._ending = ending
        self._changed = asyncio.Event()
        self._told = asyncio.Condition()
        self._version = ""
        self.streams = 0
        """Pages that listen now."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Listen until this is left."""
        loop = asyncio.get_running_loop()

        def notice(path: str, *, is_folder: bool) -> None:
            if concerns_notes(self._root, path, is_folder=is_folder):
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._changed.set)

        tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._listen(notice))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def answer(self, request: Request) -> Response:
        """Answer with an event for each change, as long as the page is open."""
        if request.method == "HEAD":
            return Response(media_type=EVENTS)
        if self.streams >= MAX_STREAMS:
            return PlainTextResponse("Too many pages are open. This one shows changes when it is loaded again.\n", 503)
        return StreamingResponse(self._list_events(), media_type=EVENTS)

    async def _listen(self, notice: Notice) -> None:
        """Listen to the folder, and again to the one that has come in its place."""
        while True:
            observed = folder_identity(self._root)
            observer = await run_in_threadpool(_observe, self._root, notice) if observed else None
            try:
                if self._version:  # it may have changed while nobody listened
                    self._changed.set()
                await asyncio.sleep(CHECK_S)
                while (  # noqa: ASYNC110 - nobody tells
                    observer is not None
                    and all(each.is_alive() for each in observer.emitters)
                    and folder_identity(self._root) == observed
                ):
                    await asyncio.sleep(CHECK_S)
            finally:
                if observer is not None:
                    observer.stop()

    async def _list_events(self) -> AsyncIterator[str]:
        """Yield the version of the memory, and again each time it has another."""
        self.streams += 1
        ending = asyncio.create_task(self._ending.wait())
        try:
            sent = ""
            if not self._version:
                await self._look()
            while not ending.done():
                if sent != self._version:
                    sent = self._version
                    yield f"data: {sent}\n\n"
                waiting = asyncio.create_task(self._wait_for_other_than(sent))
                await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        finally:
            self.streams -= 1
            ending.cancel()

    async def _wait_for_other_than(self, version: str) -> None:
        async with self._told:
            await self._told.wait_for(lambda: self._version != version)

    async def _tell(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_S)
            self._changed.clear()
            await self._look()

    async def _look(self) -> None:
        try:
            version = await self._reading.run(_read_version)
        except (QuaidError, OSError):  # the page that is asked for next says what is wrong
            return
        async with self._told:
            self._version = version
            self._told.notify_all()


def _observe(root: Path, notice: Notice) -> BaseObserver | None:
    with suppress(FileNotFoundError):  # gone meanwhile
        try:
            return observe(root, notice, poll_s=POLL_S if why_incomplete(root) else None)
        except FileNotFoundError:
            raise
        except OSError:  # the system has no watches left
            return observe(root, notice, poll_s=POLL_S)
    return None


def _read_version(memory: Memory) -> str:
    """Return a word for what its owner may see of the memory: what others keep private changes nothing here."""
    return manifest(memory.index())
