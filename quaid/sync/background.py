"""Embedding in the background: what takes longer than a question waits is left to a process that outlives its caller.

A marker in the state folder says that it is under way. The process removes it when it ends; after one that was killed
whoever opens the memory next finds it and starts another, which goes on where that one stopped.
"""

from __future__ import annotations

from pathlib import Path

from quaid.local import locks
from quaid.place import LOG_DIR, state_folder

MARKER = "embedding.todo"
_PROGRAM = "quaid.cli.background"


def start_embedding(root: Path) -> bool:
    """Start a process that embeds what has no vector yet; return whether it could be started."""
    from quaid.local.processes import start_detached

    state = state_folder(root)
    try:
        (state / MARKER).touch(mode=0o600)
        start_detached(_PROGRAM, [str(root)], state / LOG_DIR / "embedding.log")
    except OSError:
        return False
    return True


def leave_embedding(root: Path) -> None:
    """See that a process embeds what has no vector yet: one that is at it, or another."""
    if not locks.is_held(state_folder(root) / locks.EMBEDDING_LOCK):
        start_embedding(root)
