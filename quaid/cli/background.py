"""Embedding in the background: `quaid init` leaves a large folder to a process that outlives it.

A marker in the state folder says that it is under way. The process removes it when it ends; after one that was killed
the next command finds it and starts another, which goes on where that one stopped.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from quaid.errors import LockedError
from quaid.local import locks
from quaid.place import LOG_DIR, state_folder

MARKER = "embedding.todo"


def start_embedding(root: Path) -> bool:
    """Start a process that embeds what has no vector yet; return whether it could be started."""
    from quaid.local.processes import start_detached

    state = state_folder(root)
    try:
        (state / MARKER).touch(mode=0o600)
        start_detached("quaid.cli.background", [str(root)], state / LOG_DIR / "embedding.log")
    except OSError:
        return False
    return True


def resume_embedding(root: Path) -> None:
    """Start the process again if it was killed."""
    state = state_folder(root)
    if (state / MARKER).exists() and not locks.is_held(state / locks.EMBEDDING_LOCK):
        start_embedding(root)


def run_embedding(root: Path) -> None:
    """Embed what has no vector yet, unless another process does."""
    from quaid.memory import Memory
    from quaid.sync.derived_index import SyncOptions

    state = state_folder(root)
    with locks.try_lock(state / locks.EMBEDDING_LOCK) as is_ours:
        if not is_ours:
            return
        try:
            with Memory.open(root) as memory:
                memory.sync(SyncOptions(fetch_weights=False))
        except LockedError:
            return  # another process is indexing: the next command starts this one again
        except BaseException:
            _forget(state)
            raise
        _forget(state)


def _forget(state: Path) -> None:
    with suppress(OSError):
        (state / MARKER).unlink(missing_ok=True)


if __name__ == "__main__":
    os.chdir("/")  # the folder that it was started in may be removed or unmounted
    os.nice(10)
    run_embedding(Path(sys.argv[1]))
