"""The files of a served vault: the mirror, and a working copy to write in. Both can be made again."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from quaid.errors import LockedError, QuaidError
from quaid.history.mirrors import Mirror, MirrorLimits, WorkingCopy
from quaid.place import CACHE_FILE, make_private_folder, state_folder
from quaid.server.catalogue import ServedVault
from quaid.vault import transaction, uncommitted

_UNFINISHED = "writing"
_OTHERS_WRITE = "Others keep writing to this vault"


@dataclass(frozen=True)
class VaultFolder:
    """The folder of one vault."""

    path: Path
    mirror: Mirror
    mutex: threading.Lock
    line: threading.Lock

    @contextmanager
    def writing(self) -> Iterator[WorkingCopy]:
        """Yield the working copy. If the process is killed in the block, or it leaves changes that would become part of
        another write, the copy and its state are discarded before the next write: it was never acknowledged.
        """
        copy = WorkingCopy(self.path / "copy", self.mirror)
        mark = self.path / _UNFINISHED
        if mark.exists():
            _discard(copy.root)
        make_private_folder(self.path)
        mark.touch(mode=0o600)
        try:
            yield copy
        except QuaidError:
            if transaction.needs_recovery(copy.root) or uncommitted.list_uncommitted(copy.root):
                raise
            mark.unlink(missing_ok=True)
            raise
        mark.unlink(missing_ok=True)

    @contextmanager
    def alone(self, wait_s: float) -> Iterator[None]:
        """Lock the folder, and the mirror, which servers may share.

        Raises:
            LockedError: they are locked for longer than `wait_s` seconds.
        """
        until = time.monotonic() + wait_s
        with _holding(self.mutex, wait_s):
            make_private_folder(self.mirror.folder.parent)
            lock = FileLock(f"{self.mirror.folder}.lock", mode=0o600)
            try:
                lock.acquire(timeout=max(0.0, until - time.monotonic()))
            except Timeout:
                raise LockedError(_OTHERS_WRITE) from None
            try:
                yield
            finally:
                lock.release()

    def in_line(self, wait_s: float) -> AbstractContextManager[None]:
        """Be the only writer of this process that waits for the vault's lease. Raises as `alone`."""
        return _holding(self.line, wait_s)


class VaultFolders:
    """The folders of the vaults of this server."""

    def __init__(self, place: Path, mirrors: Path, limits: MirrorLimits) -> None:
        self._place = place
        self._mirrors = mirrors
        self._limits = limits
        self._known: dict[tuple[int, str, str], VaultFolder] = {}
        self._mutex = threading.Lock()

    def of(self, vault: ServedVault) -> VaultFolder:
        """Return the folder of a vault; a vault that was added again has another one."""
        key = (vault.vault, vault.address, vault.branch)
        with self._mutex:
            if key not in self._known:
                name = f"{vault.vault}-{vault.name}"
                place = self._mirrors / "vaults" / name / "mirror.git"
                mirror = Mirror(place, vault.address, vault.branch, self._limits)
                path = self._place / "vaults" / name
                self._known[key] = VaultFolder(path, mirror, threading.Lock(), threading.Lock())
            return self._known[key]


@contextmanager
def _holding(mutex: threading.Lock, wait_s: float) -> Iterator[None]:
    if not mutex.acquire(timeout=wait_s):
        raise LockedError(_OTHERS_WRITE)
    try:
        yield
    finally:
        mutex.release()


def _discard(root: Path) -> None:
    """Remove a working copy and its state, except the vectors of texts, which no write can spoil."""
    shutil.rmtree(root, ignore_errors=True)
    for path in state_folder(root).glob("*"):
        if path.name.startswith(CACHE_FILE):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
