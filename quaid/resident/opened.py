"""A memory that one thread keeps open, and opens again when a new one would answer otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from quaid.config import user_config_path
from quaid.history import vault_guard
from quaid.memory import Memory
from quaid.place import CONFIG_FILE

Result = TypeVar("Result")


class OpenedMemory:
    """Opens the memory of the vault at `root` when it is first used; belongs to the thread that uses it."""

    def __init__(self, root: Path, owner: str | None = None) -> None:
        self._root = root
        self._owner = owner
        self._memory: Memory | None = None
        self._settings: tuple[object, ...] = ()

    def use(self, job: Callable[[Memory], Result]) -> Result:
        """Return what `job` makes of the memory, with the settings as their files are now."""
        return job(self.open())

    def open(self) -> Memory:
        """Return the memory. It is a new one when the settings have changed, or the last one went without something
        that may be there by now: a new process would look for it again. Raises as `Memory.open`, each time.
        """
        vault_guard.check(self._root)
        settings = tuple(_stamp(path) for path in (self._root / CONFIG_FILE, user_config_path()))
        memory = self._memory
        is_whole = memory is not None and not (memory.embedding.problem or memory.is_index_unwritable)
        if not is_whole or settings != self._settings:
            self.close()
        if self._memory is None:
            self._memory, self._settings = Memory.open(self._root, owner=self._owner), settings
        return self._memory

    def close(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        about = os.stat(path)  # noqa: PTH116 - at every call
    except OSError:
        return ()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
