"""Find or start the process that answers for a vault, without the imports of the process itself."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quaid.errors import QuaidError
from quaid.history import vault_guard
from quaid.local.locks import try_lock
from quaid.local.state_files import start_detached
from quaid.place import LOG_DIR, make_private_folder, state_folder
from quaid.resident import call as calls
from quaid.resident.call import ABOUT, Call
from quaid.user_config import read_user_config

IDLE_S = 15 * 60.0
"""A process that does nothing but answer ends after so long without a call."""
RESTART_S = 10.0
"""A process that ended at once is not started again sooner: at every call it would cost more than it saves."""
MODULE = "quaid.cli.resident"


class Listening(NamedTuple):
    """The process that listens for a vault: its number, what it is, since when (ISO 8601), its memory in MB."""

    pid: int
    what: str
    since: str
    memory_mb: int


def start(root: str, idle_s: float = IDLE_S) -> bool:
    """Start a process that answers for the vault at `root`, with its own session: it outlives this process. Return
    whether it was started: not if a process listens, one was started just now, or the settings forbid it.
    """
    try:
        if read_user_config().get("resident") == "off":
            return False
        vault_guard.check(Path(root))
        path = lock_path(Path(calls.socket_path(calls.identity_of(root))))
        make_private_folder(path.parent)
        started = path.with_suffix(".started")
        with try_lock(path) as is_free:
            if not is_free or (started.exists() and time.time() - started.stat().st_mtime < RESTART_S):
                return False
            started.touch(mode=0o600)
        start_detached(MODULE, [root, str(idle_s)], state_folder(Path(root)) / LOG_DIR / "resident.log")
    except (QuaidError, OSError):  # nobody waits for it
        return False
    return True


def lock_path(path: Path) -> Path:
    """Return the lock file of the process that listens at `path`."""
    return path.with_suffix(".lock")


def find_listening(root: Path) -> Listening | None:
    """Return the process that answers for the vault at `root`; None if there is none, or it is busy."""
    answer = Call(str(root), [ABOUT], cwd="/").ask()
    with suppress(ValueError, TypeError):
        return Listening(**json.loads(answer[0][1])) if answer else None
    return None


def why_nobody_can_listen(root: Path) -> str | None:
    """Return what is wrong with the folder of the socket for the vault at `root`; None if nothing is."""
    try:
        folder = Path(calls.socket_path(calls.identity_of(root))).parent
    except OSError as error:
        return f"{error} is too long for the name of a socket"
    if folder.exists() and not calls.is_private(str(folder)):
        return f"others can enter {folder}"
    return None
