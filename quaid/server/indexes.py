"""The indexes that questions to served vaults are answered from, in working copies on this server's disk."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from quaid.errors import QuaidError
from quaid.history.mirrors import WorkingCopy
from quaid.server.catalogue import ServedVault
from quaid.server.folders import VaultFolder
from quaid.server.tokens import Caller
from quaid.server.writing import open_memory

if TYPE_CHECKING:
    from quaid.memory import Memory

T = TypeVar("T")
MAX_OPEN = 32
"""Memories that a thread keeps open; the least recently used is closed."""


class NotIndexedError(QuaidError):
    """A vault was added and has not been fetched yet, or cannot be."""

    exit_code = 75
    code = "not_indexed"

    def __init__(self) -> None:
        super().__init__("This vault has not been read yet. Try again in a moment.")


class Indexes:
    """The indexes of this server. Safe to use from several threads."""

    def __init__(self) -> None:
        self._opened = threading.local()
        self._mutexes: dict[int, threading.Lock] = {}

    def bring_to(self, folder: VaultFolder, vault: ServedVault, commit: str) -> None:
        """Have the index of a vault hold `commit`, which its mirror has."""
        copy = WorkingCopy(folder.path / "read", folder.mirror)
        with self._mutexes.setdefault(vault.vault, threading.Lock()):
            if copy.head() != commit:
                copy.bring_to(commit)
            with open_memory(copy.root, Caller("server", "default")) as memory:
                memory.whole_index()

    def ask(self, folder: VaultFolder, vault: ServedVault, caller: Caller, question: Callable[[Memory], T]) -> T:
        """Return the answer of a vault as of the commit that it was last indexed at, as `caller` may see it.

        Raises:
            NotIndexedError: there is none yet.
        """
        if vault.indexed is None:
            raise NotIndexedError
        copy = WorkingCopy(folder.path / "read", folder.mirror)
        if copy.head() != vault.indexed:
            if folder.mirror.resolve(vault.indexed) is None:
                folder.mirror.fetch()
            self.bring_to(folder, vault, vault.indexed)
        return question(self._open(copy, caller))

    def _open(self, copy: WorkingCopy, caller: Caller) -> Memory:
        opened: OrderedDict[tuple[str, str], Memory] = self._opened.__dict__.setdefault("memories", OrderedDict())
        key = (str(copy.root), caller.owner)
        if key not in opened:
            opened[key] = open_memory(copy.root, caller)
            if len(opened) > MAX_OPEN:
                opened.popitem(last=False)[1].close()
        opened.move_to_end(key)
        return opened[key]
