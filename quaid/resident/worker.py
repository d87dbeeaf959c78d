"""A worker: one thread next to the event loop, with a Memory of its own, that runs jobs one after the other."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from quaid.errors import LockedError
from quaid.history import vault_guard
from quaid.memory import Memory
from quaid.place import CONFIG_FILE
from quaid.user_config import user_config_path

Result = TypeVar("Result")
Job = Callable[[Memory], Result]
Reporter = Callable[[str], Awaitable[None]]
"""Shows the caller what is being done."""

TRAILERS: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("trailers", default=())
"""The trailers of each commit that the jobs of this task make, such as the program that has called."""
POLL_S = 0.25
"""The interval at which the progress of a job is checked."""
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
    """Runs jobs one after the other with the memory of the vault at `root`, as its owner or as `owner` sees it. The
    first job opens it.
    """

    def __init__(self, name: str, root: Path, owner: str | None = None) -> None:
        self._root = root
        self._owner = owner
        self._memory: Memory | None = None
        self._settings: list[object] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"quaid-{name}")
        self._running: set[_Progress] = set()

    async def run(self, job: Job[Result], report: Reporter | None = None, attempts: int = 1) -> Result:
        """Return the result of `job`, and `report` its progress meanwhile.

        While another process has the vault locked, the job is tried `attempts` times. A cancelled call stops the job at
        its next report of progress.
        """
        progress = _Progress()
        future = asyncio.wrap_future(self.submit(job, progress, attempts))
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

    def submit(self, job: Job[Result], progress: _Progress | None = None, attempts: int = 1) -> Future[Result]:
        """Queue `job`, for callers outside of the event loop."""
        return self._thread.submit(self._run, job, progress or _Progress(), attempts, TRAILERS.get())

    def close(self) -> Future[None]:
        """Stop the running job, accept no more, and close the Memory as soon as the thread is free."""
        for progress in tuple(self._running):
            progress.is_stopped = True
        closed = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        return closed

    def _run(
        self, job: Job[Result], progress: _Progress, attempts: int, trailers: tuple[tuple[str, str], ...]
    ) -> Result:
        vault_guard.check(self._root)
        settings: list[object] = []
        for path in (self._root / CONFIG_FILE, user_config_path()):
            with suppress(OSError):
                about = os.stat(path)  # noqa: PTH116 - at every call
                settings += [path, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
        memory = self._memory
        # Without something that may exist by now it is opened again: a new process would look for that, too.
        is_whole = memory is not None and not (memory.embedding.problem or memory.is_index_unwritable)
        if memory is None or not is_whole or settings != self._settings:
            self._close()
            memory = self._memory = Memory.open(self._root, owner=self._owner)
            memory.freshness.listen()
            self._settings = settings
        memory.trailers = trailers
        memory.report_to(progress.update, progress.say)
        self._running.add(progress)
        try:
            progress.say("")
            for _ in range(attempts - 1):
                with suppress(LockedError):
                    return job(memory)
            return job(memory)
        finally:
            self._running.discard(progress)

    def _close(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()
