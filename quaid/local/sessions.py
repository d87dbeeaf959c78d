"""The memories that an agent's session has been given already: a file a session, in sessions/ of the state folder.

Lines are only appended. Losing a file costs a repetition.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from quaid.local import state_files

FOLDER = "sessions"
_MAX_AGE_S = 30 * 86400


@dataclass(frozen=True, slots=True)
class Given:
    """`ids` are those of the hits that are still in the session's context, which was compacted at `compacted_at`."""

    ids: frozenset[str] = frozenset()
    compacted_at: datetime | None = None


def read(state: Path, session: str) -> Given:
    """Return what `session` was given since it began or was compacted. `state` is the vault's state folder."""
    ids: set[str] = set()
    compacted_at: datetime | None = None
    try:
        lines = state_files.read(_path(state, session)).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return Given()
    for line in lines:
        with suppress(ValueError, TypeError, AttributeError):
            told = json.loads(line)
            if told.get("compacted_at"):
                ids, compacted_at = set(), datetime.fromisoformat(told["compacted_at"])
            ids |= {str(one) for one in told.get("ids", ())}
    return Given(frozenset(ids), compacted_at)


def record(state: Path, session: str, ids: Iterable[str]) -> None:
    """Remember that `session` was given these hits."""
    _add(state, session, {"ids": list(ids)})


def compact(state: Path, session: str, now: datetime) -> None:
    """Remember that the context of `session` was compacted or cleared."""
    _add(state, session, {"compacted_at": now.isoformat()})


def clear_old(state: Path) -> None:
    """Delete the files of sessions that nobody has continued for a month."""
    for path in (state / FOLDER).glob("*.jsonl"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _MAX_AGE_S:
                path.unlink()


def _add(state: Path, session: str, told: object) -> None:
    state_files.append(_path(state, session), json.dumps(told))


def _path(state: Path, session: str) -> Path:
    return state / FOLDER / f"{state_files.file_stem(session)}.jsonl"
