"""Processes that outlive the command that starts them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from quaid.local import state_files

_MAX_LOG = 1_000_000


def start_detached(module: str, arguments: Sequence[str], log: Path) -> None:
    """Start `python -m MODULE ARGUMENTS` without waiting for it; its stderr is appended to `log`, whose folder is made.

    Raises:
        OSError: it cannot be started, or `log` cannot be written.
    """
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_files.rotate(log, _MAX_LOG)
    # -P: the working folder may hold a quaid/ or a json.py of its own.
    argv = [sys.executable, "-P", "-m", module, *arguments]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
    ]
    # A session of its own: a terminal that is closed ends the program in it, but not this process.
    os.posix_spawn(sys.executable, argv, os.environ, file_actions=files, setsid=True)
