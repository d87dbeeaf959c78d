"""A memory for code that awaits, or calls from several threads: one thread has the vault open and does it all."""

import os
from concurrent.futures import wait
from functools import partial
from typing import Any, Self, TypeVar

from quaid.memory import Memory
from quaid.resident.worker import Job, Worker
from quaid.trust import locate_vault

Result = TypeVar("Result")


class AsyncMemory:
    """A vault, opened as `Memory.open` does: `await memory.run(lambda memory: memory.recall("…"))`."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, owner: str | None = None) -> None:
        self._worker = Worker("calls", locate_vault(path)[0], owner)
        self.notes = AsyncNotes(self)

    async def run(self, job: Job[Result]) -> Result:
        """Return the result of `job`, which is given the memory."""
        return await self._worker.run(job)

    def call(self, job: Job[Result]) -> Result:
        """Do the same for a caller that does not await, in any thread."""
        return self._worker.submit(job).result()

    def close(self) -> None:
        wait([self._worker.close()])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncNotes:
    """The methods of `Notes`, awaited: `await memory.notes.create("Trips/Lisbon.md", "…")`."""

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        def job(memory: Memory) -> Any:
            return getattr(memory.notes, name)(*args, **options)

        return await self._memory.run(job)
