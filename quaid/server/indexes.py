"""The indexes of all vaults, in the database that all servers share."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from quaid.config import settings_for_reading
from quaid.errors import QuaidError
from quaid.index.postgres.server import IndexServer
from quaid.memory import Memory
from quaid.place import CONFIG_FILE, write_private
from quaid.server.catalogue import ServedVault
from quaid.server.database import UNREACHABLE, DatabaseUnreachableError
from quaid.server.folders import VaultFolder
from quaid.server.served_memory import ServedMemory
from quaid.server.tokens import Caller
from quaid.settings import Settings
from quaid.sync.commits import index_commit
from quaid.sync.embedding import Embedding

MAX_OPEN = 256
"""Vaults, each as one owner sees it, whose words and vectors are in memory; the least recently used is dropped."""


class NotIndexedError(QuaidError):
    """A vault that was added has not been fetched yet, or cannot be."""

    exit_code = 75
    code = "not_indexed"

    def __init__(self) -> None:
        super().__init__("This vault has not been read yet. Try again in a moment.")


class Indexes:
    """The indexes of all vaults. Safe to use from several threads."""

    def __init__(self, address: str, size: int) -> None:
        self._address = address
        self._size = size
        self._server: IndexServer | None = None
        self._opened: OrderedDict[tuple[int, int, str, str], ServedMemory] = OrderedDict()
        self._mutex = threading.Lock()

    def open(self) -> None:
        """Connect. Raises DatabaseUnreachableError."""
        with _explaining():
            self._server = IndexServer(self._address, self._size)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def update(self, folder: VaultFolder, vault: ServedVault, commit: str) -> str:
        """Index `commit` of a vault, which its mirror has, and return its quaid.toml.

        Raises:
            DatabaseUnreachableError, LockedError, RevisionError, GitError
        """
        config = (folder.mirror.read(commit, CONFIG_FILE) or b"").decode("utf-8", "replace")
        root, settings = _read_settings(folder.path, config)
        with _explaining():
            index = self._connect().open(vault.key)
            index_commit(index, folder.mirror.folder, commit, settings, Embedding(root, settings.embedding))
        return config

    def forget(self, vault: ServedVault) -> None:
        """Remove all rows of a vault. Raises DatabaseUnreachableError."""
        with _explaining():
            index = self._connect().open(vault.key)
            with index.transaction():
                index.clear()

    @contextmanager
    def memory(self, folder: VaultFolder, vault: ServedVault, caller: Caller) -> Iterator[Memory]:
        """Yield a vault as of the last indexed commit, as `caller` may see it.

        Raises:
            NotIndexedError: no commit is indexed yet.
            DatabaseUnreachableError
        """
        if vault.indexed is None:
            raise NotIndexedError
        with _explaining():
            yield cast("Memory", self._open(folder, vault, caller))

    def _open(self, folder: VaultFolder, vault: ServedVault, caller: Caller) -> ServedMemory:
        # Each thread has its own, so that none waits for another's question.
        key = (threading.get_ident(), vault.vault, caller.owner, hashlib.sha256(vault.config.encode()).hexdigest())
        with self._mutex:
            memory = self._opened.get(key)
            if memory is not None:
                self._opened.move_to_end(key)
                return memory
        root, settings = _read_settings(folder.path, vault.config)
        settings = replace(settings, owner=caller.owner)
        memory = ServedMemory(root, settings, folder, self._connect(), vault.key, Embedding(root, settings.embedding))
        with self._mutex:
            self._opened[key] = memory
            if len(self._opened) > MAX_OPEN:
                self._opened.popitem(last=False)
        return memory

    def _connect(self) -> IndexServer:
        assert self._server is not None, "it is opened first"
        return self._server


def _read_settings(folder: Path, config: str) -> tuple[Path, Settings]:
    """Return a folder with nothing but this quaid.toml, and the settings in it."""
    root = folder / "config" / hashlib.sha256(config.encode()).hexdigest()[:16]
    if not (root / CONFIG_FILE).exists():
        write_private(root / CONFIG_FILE, config)
    settings, _ = settings_for_reading(root)
    quiet = replace(settings.notifications, channels="", retrieval="off", webhook="")
    return root, replace(settings, notifications=quiet, models=replace(settings.models, provider="none"))


@contextmanager
def _explaining() -> Iterator[None]:
    """Raise DatabaseUnreachableError if the database does not answer."""
    try:
        yield
    except UNREACHABLE as error:
        raise DatabaseUnreachableError from error
