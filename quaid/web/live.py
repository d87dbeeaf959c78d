"""Open pages are notified within a second that the memory has changed, whatever has changed it."""

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
from quaid.sync.watcher import concerns_notes, observe, why_incomplete

if TYPE_CHECKING:
    from starlette.requests import Request
    from watchdog.observers.api import BaseObserver

    from quaid.resident.worker import Worker

LIVE = "/live"
"""The address of the events."""
EVENTS = "text/event-stream"
GATHER_S = 0.3
"""Seconds in which changes are gathered before pages are notified: a run, or a pull, writes many notes."""
MAX_STREAMS = 32
"""Pages that listen at the same time. Another page is refused, and shows changes when it is loaded again."""
CHECK_S = 2.0
"""The interval at which it is checked that the watched folder is still the vault: a disk may come and go."""
POLL_S = 1.0
"""The interval at which a file system is scanned that reports no changes."""


class Live:
    """Watches the folder `root` while `run` is entered, and notifies each open page until `ending`."""

    def __init__(self, root: Path, reading: Worker, ending: asyncio.Event) -> None:
        self._root = root
        self._reading = reading
        self._ending = ending
        self._changed = asyncio.Event()
        self._published = asyncio.Event()
        """Set, and replaced, with each new version."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._version = ""
        self._actions = 0
        self.streams = 0
        """Pages that listen now."""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Watch the folder until this is left."""

        async def publish_changes() -> None:
            while True:
                await self._changed.wait()
                await asyncio.sleep(GATHER_S)
                self._changed.clear()
                await self._publish()

        self._loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(publish_changes()), asyncio.create_task(self._watch())]
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

    def notice_action(self) -> None:
        """Notify the pages of an action: it may have changed what is in no note."""
        self._actions += 1
        self._changed.set()

    def _notice(self, path: str, *, is_folder: bool) -> None:
        if self._loop is not None and concerns_notes(self._root, path, is_folder=is_folder):
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._changed.set)

    async def _watch(self) -> None:
        """Watch the folder, and another one that replaces it."""
        while True:
            identity = folder_identity(self._root)
            observer = await run_in_threadpool(self._observe) if identity else None
            try:
                if self._version:  # it may have changed while nothing was watched
                    self._changed.set()
                await asyncio.sleep(CHECK_S)
                while (  # noqa: ASYNC110 - there is no event for it
                    observer is not None
                    and all(each.is_alive() for each in observer.emitters)
                    and folder_identity(self._root) == identity
                ):
                    await asyncio.sleep(CHECK_S)
            finally:
                if observer is not None:
                    observer.stop()

    def _observe(self) -> BaseObserver | None:
        try:
            return observe(self._root, self._notice, poll_s=POLL_S if why_incomplete(self._root) else None)
        except FileNotFoundError:  # gone since
            return None
        except OSError:  # the system has no watches left
            with suppress(FileNotFoundError):
                return observe(self._root, self._notice, poll_s=POLL_S)
            return None

    async def _list_events(self) -> AsyncIterator[str]:
        """Yield the version of the memory, and each new version."""
        self.streams += 1
        ending = asyncio.create_task(self._ending.wait())
        try:
            sent = ""
            if not self._version:
                await self._publish()
            while not ending.done():
                published = self._published
                if sent != self._version:
                    sent = self._version
                    yield f"data: {sent}\n\n"
                changing = asyncio.create_task(published.wait())
                await asyncio.wait({changing, ending}, return_when=asyncio.FIRST_COMPLETED)
                changing.cancel()
        finally:
            self.streams -= 1
            ending.cancel()

    async def _publish(self) -> None:
        try:
            # Of what the owner may see: private notes of others change nothing here.
            version = f"{await self._reading.run(lambda memory: manifest(memory.index()))} {self._actions}"
        except (QuaidError, OSError):  # the next page says what is wrong
            return
        self._version = version
        self._published.set()
        self._published = asyncio.Event()
