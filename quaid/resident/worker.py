"""A worker: one thread beside the event loop, with a Memory of its own, that does jobs one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from quaid.resident.opened import OpenedMemory

if TYPE_CHECKING:
    from quaid.memory import Memory

Result = TypeVar("Result")
Reporter = Callable[[str], Awaitable[None]]
"""Shows the one who waits what is being done."""

POLL_S = 0.25
"""The interval at which a job's progress is looked at."""
REPEAT_S = 5.0
"""The longest interval between reports: a host takes a server that is silent for long for dead."""


class StoppedError(BaseException):
    """The job is not wanted any more. Not an `Exception`: no handler of ordinary failures may catch it."""


class _Progress:
    """The progress of a job, written by its own thread, and a flag that stops it."""

    def __init__(self) -> None:
        self.text = ""
        self.is_stopped = False

    def update(self, what: str, done: int, total: int) -> None:
        self.say(f"{what}: {done:,} of {total:,}" if total > 1 else what)

    def say(self, text: str) -> None:
        if self.is_stopped:
            raise StoppedError
        self.text = text


class Worker:
    """Does jobs one after the other. The first of them opens the Memory of the vault at `root`, as its owner or as
    `owner` sees it.
    """

    def __init__(self, name: str, root: Path, owner: str | None = None) -> None:
        self._opened = OpenedMemory(root, owner)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"quaid-{name}")
        self._running: set[_Progress] = set()

    async def run(self, job: Callable[[Memory], Result], report: Reporter | None = None) -> Result:
        """Return what `job` makes of the Memory, and `report` its progress meanwhile.

        A call that is cancelled stops the job where it next says how far it is.
        """
        progress = _Progress()
        future = asyncio.wrap_future(self.submit(job, progress))
        reported, silent_s = "", 0.0
        try:
            while report is not None and not future.done():
                await asyncio.wait({future}, timeout=POLL_S)
                silent_s += POLL_S
                if progress.text != reported or silent_s >= REPEAT_S:
                    reported, silent_s = progress.text, 0.0
                    await report(reported or "Working")
            return await future
        except asyncio.CancelledError:
            progress.is_stopped = True
            future.cancel()
            raise

    def submit(self, job: Callable[[Memory], Result], progress: _Progress | None = None) -> Future[Result]:
        """Queue `job`, for callers outside of the event loop."""
        return self._thread.submit(self._run, job, progress or _Progress())

    def close(self) -> Future[None]:
        """Stop the running job, take no more, and close the Memory as soon as the thread is free."""
        for progress in tuple(self._running):
            progress.is_stopped = True
        closed = self._thread.submit(self._opened.close)
        self._thread.shutdown(wait=False)
        return closed

    def _run(self, job: Callable[[Memory], Result], progress: _Progress) -> Result:
        memory = self._opened.open()
        memory.report_to(progress.update, progress.say)
        self._running.add(progress)
        try:
            progress.say("")
            return job(memory)
        finally:
            self._running.discard(progress)
