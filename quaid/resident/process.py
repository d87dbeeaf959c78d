"""The process that is started when nobody listens, so that the next call finds somebody."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from quaid.config import read_user_config
from quaid.errors import QuaidError
from quaid.history import vault_guard
from quaid.local.locks import try_lock
from quaid.local.processes import start_detached
from quaid.place import LOG_DIR, make_private_folder, state_folder
from quaid.resident import call as calls
from quaid.resident.listener import IDLE_S, lock_path

MODULE = "quaid.cli.resident"
AGAIN_S = 10.0
"""One that ended at once is not started again before: at every call it would cost more than it saves."""


def start(root: str, idle_s: float = IDLE_S) -> bool:
    """Start a process that answers for the vault at `root`, unless somebody listens, one was started just now or the
    settings forbid it; return whether it was started. It has its own session and outlives this process.
    """
    try:
        if read_user_config().get("resident") == "off":
            return False
        vault_guard.check(Path(root))
        path = lock_path(Path(calls.socket_path(calls.identity_of(root))))
        make_private_folder(path.parent)
        with try_lock(path) as is_free:
            if not is_free or time.time() - _last_start(path) < AGAIN_S:
                return False
            path.with_suffix(".started").touch(mode=0o600)
        start_detached(MODULE, [root, str(idle_s)], state_folder(Path(root)) / LOG_DIR / "resident.log")
    except (QuaidError, OSError):  # nobody waits for it
        return False
    return True


def _last_start(path: Path) -> float:
    with suppress(OSError):
        return os.stat(path.with_suffix(".started")).st_mtime  # noqa: PTH116 - after every call
    return 0.0
