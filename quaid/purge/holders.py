"""Other processes that have a vault open: a memory that is kept open would write back what was purged."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from quaid.errors import LockedError
from quaid.janitor.worktree import LOCK_FILE as JANITOR_LOCK
from quaid.local.locks import EMBEDDING_LOCK, EXTRACTION_LOCK, try_lock
from quaid.place import make_private_folder
from quaid.resident import call
from quaid.resident.listener import lock_path
from quaid.sync.follow import find_watcher

WAIT_S = 8.0
_AGAIN = "Stop it, then try again."
_PROCESSES = Path("/proc")


@contextmanager
def hold_alone(root: Path, state: Path) -> Iterator[None]:
    """Let no other process of Quaid use the vault at `root`. The resident process ends and none is started meanwhile.

    Raises:
        LockedError: another one uses it; the sentence names it.
    """
    with ExitStack() as stack:
        _stop_resident(root, stack)
        for name, what in (
            (JANITOR_LOCK, "The janitor"),
            (EXTRACTION_LOCK, "An extraction"),
            (EMBEDDING_LOCK, "Embedding"),
        ):
            if not stack.enter_context(try_lock(state / name)):
                raise LockedError(f"{what} is at work in {root}", "Try again when it has ended.")
        if (
            (watcher := find_watcher(state, datetime.now(UTC)))
            and watcher.is_alive(datetime.now(UTC))
            and watcher.pid != os.getpid()
        ):
            raise LockedError(f"Process {watcher.pid} ({watcher.what}) follows {root}", _AGAIN)
        if (pid := _find_process(state)) is not None:
            raise LockedError(f"Process {pid} has the index or local.db of {root} open", _AGAIN)
        yield


def _stop_resident(root: Path, stack: ExitStack) -> None:
    """End the process that answers for others: it goes when its socket is gone, and nobody else may take its place."""
    try:
        path = Path(call.socket_path(call.identity_of(root)))
        make_private_folder(path.parent)
    except OSError:  # where no socket can be, nobody listens
        return
    until = time.monotonic() + WAIT_S
    while True:
        with suppress(OSError):
            path.unlink()
        attempt = ExitStack()
        if attempt.enter_context(try_lock(lock_path(path))):
            stack.push(attempt)
            return
        attempt.close()
        if time.monotonic() >= until:
            raise LockedError(
                f"A process of Quaid answers for {root}", "End your agents, or wait a minute; then try again."
            )
        time.sleep(0.1)


def _find_process(state: Path) -> int | None:
    """Return a process, not this one, that has a database of the state folder open; None also where /proc is not."""
    prefix = f"{state.resolve()}{os.sep}"
    for folder in _PROCESSES.glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        with suppress(OSError):
            if any(_is_database(link, prefix) for link in (folder / "fd").iterdir()):
                return int(folder.name)
    return None


def _is_database(link: Path, prefix: str) -> bool:
    with suppress(OSError):
        target = os.readlink(link)  # noqa: PTH115 - thousands of them
        return target.startswith(prefix) and ".db" in target[len(prefix) :] and ".lock" not in target
    return False
