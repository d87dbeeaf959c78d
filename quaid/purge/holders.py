"""Other processes that have a vault open: an open memory would write back what was purged."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from quaid.errors import LockedError
from quaid.history.maintenance import list_leftovers
from quaid.history.repository import Repository
from quaid.history.rewriting import list_worktrees
from quaid.janitor.worktree import LOCK_FILE as JANITOR_LOCK
from quaid.local.locks import EMBEDDING_LOCK, EXTRACTION_LOCK, try_lock
from quaid.place import make_private_folder
from quaid.remotes.contact import LOCK as EXCHANGE_LOCK
from quaid.resident import call
from quaid.resident.finding import lock_path
from quaid.sync.watcher import find_watcher

WAIT_S = 8.0
_STOP = "Stop it, then try again."
_WAIT = "Try again when it has ended."
_PROCESSES = Path("/proc")


@contextmanager
def hold_alone(repository: Repository, root: Path, state: Path) -> Iterator[None]:
    """Let no other process of Quaid use the vault at `root`, and no git be at work in its repository. The resident
    process ends, and no other one is started. Raises LockedError: another one uses it; the sentence names it.
    """
    with ExitStack() as stack:
        _stop_resident(root, stack)
        for name, what in (
            (JANITOR_LOCK, "The janitor"),
            (EXTRACTION_LOCK, "An extraction"),
            (EMBEDDING_LOCK, "Embedding"),
            (EXCHANGE_LOCK, "An exchange with a remote"),  # it would fetch the old history again
        ):
            if not stack.enter_context(try_lock(state / name)):
                raise LockedError(f"{what} is at work in {root}", _WAIT)
        watcher = find_watcher(state, now := datetime.now(UTC))
        if watcher and watcher.is_alive(now) and watcher.pid != os.getpid():
            raise LockedError(f"Process {watcher.pid} ({watcher.what}) follows {root}", _STOP)
        tops = (tree.top for tree in list_worktrees(repository))
        prefixes = tuple(f"{path}{os.sep}" for path in (state.resolve(), repository.common_dir, *tops))
        for pid, name, opened in _list_processes(prefixes):
            if any(path.startswith(prefixes[0]) and ".db" in path and ".lock" not in path for path in opened):
                raise LockedError(f"Process {pid} has the index or local.db of {root} open", _STOP)
            if name == "git" or name.startswith("git-"):
                raise LockedError(f"Process {pid} ({name}) is at work in {repository.top}", _WAIT)
        if not _PROCESSES.is_dir() and (drafts := list_leftovers(repository)):
            raise LockedError(f"{drafts[0]} may belong to a git that is at work", "Delete it if no git is running.")
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


def _list_processes(prefixes: tuple[str, ...]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield (id, name, files) of each other process with a file or its working folder below one of `prefixes`, as far
    as this user may see it; nothing where /proc is not. git's own watcher of files, which never ends, is left out.
    """
    for folder in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if folder.name == str(os.getpid()) or b"fsmonitor--daemon" in (folder / "cmdline").read_bytes():
                continue
            opened = []
            for link in (*(folder / "fd").iterdir(), folder / "cwd"):
                with suppress(OSError):
                    path = os.readlink(link)  # noqa: PTH115 - thousands of them
                    opened += [path] if f"{path}{os.sep}".startswith(prefixes) else []
            if opened:
                yield int(folder.name), (folder / "comm").read_text().strip(), opened
