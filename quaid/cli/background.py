"""The programs that embed and exchange in the background; see background.py in sync/ and remotes/."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from quaid.errors import LockedError, QuaidError
from quaid.local import locks
from quaid.memory import Memory
from quaid.place import DOCS_FILE, state_folder
from quaid.remotes.contact import EXCHANGE, PAUSE
from quaid.sync.derived_index import SyncOptions
from quaid.sync.embedding import MARKER


def run_embedding(root: Path) -> None:
    """Embed what has no vector yet, unless another process does."""
    state = state_folder(root)
    with locks.try_lock(state / locks.EMBEDDING_LOCK) as is_ours:
        if not is_ours:
            return
        try:
            with Memory.open(root) as memory:
                memory.sync(SyncOptions(fetch_weights=False))
                if (state / DOCS_FILE).exists():
                    with suppress(QuaidError):  # the next search of documents goes on with them
                        memory.documentation.sync()
        except LockedError:
            return  # another process is indexing: the next command starts this one again
        except BaseException:
            _forget(state)
            raise
        _forget(state)


def run_exchange(root: Path) -> None:
    """Do with the remotes of a vault what is due, and see to what is written in the moments after it."""
    with Memory.open(root) as memory:
        memory.remotes.exchange()
        time.sleep(PAUSE.total_seconds())


def _forget(state: Path) -> None:
    with suppress(OSError):
        (state / MARKER).unlink(missing_ok=True)


if __name__ == "__main__":
    os.chdir("/")  # the folder that it was started in may be removed or unmounted
    os.nice(10)
    run_exchange(Path(sys.argv[1])) if sys.argv[2:] == [EXCHANGE] else run_embedding(Path(sys.argv[1]))
