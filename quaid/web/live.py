"""Pages that are open learn within a second that the memory has changed, whoever changed it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from quaid.errors import QuaidError
from quaid.sync.watcher import Notice, concerns_notes, observe, why_incomplete

if TYPE_CHECKING:
    from starlette.requests import Request
    from watchdog.observers.api import BaseObserver

    from quaid.memory import Memory
    from quaid.resident.worker import Worker

LIVE = "/live"
"""The address of the events."""
GATHER_S = 0.3
"""Seconds in which changes are gathered before pages are told: a night, or a pull, writes many notes."""
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

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Listen until this is left."""
        loop = asyncio.get_running_loop()

        def notice(path: str, *, is_folder: bool) -> None:
            if concerns_notes(self._root, path, is_folder=is_folder):
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._changed.set)

        telling = asyncio.create_task(self._tell())
        observer = await run_in_threadpool(_listen, self._root, notice)
        try:
            yield
        finally:
            telling.cancel()
            if observer is not None:
                await run_in_threadpool(observer.stop)

    async def answer(self, _: Request) -> StreamingResponse:
        """Answer with an event for each change, as long as the page is open."""
        return StreamingResponse(self._list_events(), media_type="text/event-stream")

    async def _list_events(self) -> AsyncIterator[str]:
        """Yield the version of the memory, and again each time it has another."""
        if not self._version:
            await self._look()
        ending = asyncio.create_task(self._ending.wait())
        try:
            sent = ""
            while not ending.done():
                if sent != self._version:
                    sent = self._version
                    yield f"data: {sent}\n\n"
                waiting = asyncio.create_task(self._wait_for_other_than(sent))
                await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        finally:
            ending.cancel()

    async def _wait_for_other_than(self, version: str) -> None:
        async with self._told:
            await self._told.wait_for(lambda: self._version != version)

    async def _tell(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_S)
            self._changed.clear()
            with suppress(QuaidError, OSError):  # the page that is asked for next says what is wrong
                await self._look()

    async def _look(self) -> None:
        version = await self._reading.run(_read_version)
        async with self._told:
            self._version = version
            self._told.notify_all()


def _listen(root: Path, notice: Notice) -> BaseObserver | None:
    try:
        return observe(root, notice, poll_s=POLL_S if why_incomplete(root) else None)
    except OSError:  # the system has no watches left
        return observe(root, notice, poll_s=POLL_S)


def _read_version(memory: Memory) -> str:
    """Return a word for what its owner may see of the memory: what others keep private changes nothing here."""
    rows = memory.index().execute("SELECT path, content_hash FROM documents ORDER BY path")
    found = hashlib.sha256()
    for path, content in rows:
        found.update(f"{path}\0{content}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()[:16]
