"""Work on the vault beside the event loop: each desk is one thread, and the Memory that belongs to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from quaid.memory import Memory

Done = TypeVar("Done")
Reporter = Callable[[str], Awaitable[None]]
"""Shows whoever waits what is being done."""

POLL_S = 0.25
"""So often is looked at how far a job is."""
REPEAT_S = 5.0
"""A host takes one that is silent for long for dead."""


class StoppedError(BaseException):
    """Nobody waits for the job any more. No handler of ordinary failures may take it for one."""


class _Progress:
    """What a job says of itself in its own thread, and whether it is still wanted."""

    def __init__(self) -> None:
        self.said = ""
        self.is_stopped = False

    def update(self, what: str, done: int, total: int) -> None:
        self.say(f"{what}: {done:,} of {total:,}" if total > 1 else what)

    def say(self, text: str) -> None:
        if self.is_stopped:
            raise StoppedError
        self.said = text


class Worker:
    """Jobs one after the other. The Memory is opened by the first of them."""

    def __init__(self, name: str, open_memory: Callable[[], Memory]) -> None:
        self._open_memory = open_memory
        self._memory: Memory | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"quaid-{name}")
        self._at_work: set[_Progress] = set()

    async def run(self, job: Callable[[Memory], Done], tell: Reporter | None = None) -> Done:
        """What `job` makes of the Memory. Cancelled, it is stopped where it next says how far it is."""
        progress = _Progress()
        future = asyncio.wrap_future(self.submit(job, progress))
        try:
            if tell is not None:
                await _follow(future, progress, tell)
            return await future
        except asyncio.CancelledError:
            progress.is_stopped = True
            future.cancel()
            raise

    def submit(self, job: Callable[[Memory], Done], progress: _Progress | None = None) -> Future[Done]:
        """Have `job` done in its turn; for whoever is in no event loop."""
        return self._thread.submit(self._do, job, progress or _Progress())

    def close(self) -> Future[None]:
        """Stop what can be stopped and close the Memory as soon as the thread comes round to it. No job comes after."""
        for progress in tuple(self._at_work):
            progress.is_stopped = True
        closed = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        return closed

    def _do(self, job: Callable[[Memory], Done], progress: _Progress) -> Done:
        if self._memory is None:
            self._memory = self._open_memory()
        self._memory.report_to(progress.update, progress.say)
        self._at_work.add(progress)
        try:
            progress.say("")
            return job(self._memory)
        finally:
            self._at_work.discard(progress)

    def _close(self) -> None:
        if self._memory is not None:
            self._memory.close()


async def _follow(future: asyncio.Future[Done], progress: _Progress, tell: Reporter) -> None:
    """Pass on what the job says, and that it is still at it, until it is done."""
    told, silent_s = "", 0.0
    while not future.done():
        await asyncio.wait({future}, timeout=POLL_S)
        silent_s += POLL_S
        if progress.said != told or silent_s >= REPEAT_S:
            told, silent_s = progress.said, 0.0
            await tell(told or "Working")
