"""The memories that an agent's session has been given already: a file a session, in sessions/ of the state folder.

Lines are only appended. Losing a file costs a repetition.
"""

import json
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from quaid.local import state_files

FOLDER = "sessions"
_MAX_AGE_S = 30 * 86400


class Given(NamedTuple):
    """`ids` are those of the hits that are still in the session's context, which was compacted at `compacted_at`;
    `text` is what it began with since.
    """

    ids: frozenset[str] = frozenset()
    compacted_at: datetime | None = None
    text: str = ""

    def has(self, hit_id: str, text: str) -> bool:
        """Return whether the session has this hit, in the same lines where it began with it."""
        return hit_id in self.ids or f"{_lines_of(text)}\n" in self.text


def read(state: Path, session: str) -> Given:
    """Return what `session` was given since it began or was compacted. `state` is the vault's state folder."""
    ids: set[str] = set()
    compacted_at: datetime | None = None
    text = ""
    for given in read_lines(plan_record(state, session, {})[0]):
        with suppress(ValueError, TypeError, AttributeError):
            if given.get("compacted_at"):
                ids, text, compacted_at = set(), "", datetime.fromisoformat(given["compacted_at"])
            ids |= {str(one) for one in given.get("ids", ())}
            text += f"{_lines_of(given.get('text', ''))}\n"
    return Given(frozenset(ids), compacted_at, text)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a session's file, the oldest first, without those that are damaged."""
    lines = []
    with suppress(OSError):
        for line in state_files.read(path).decode("utf-8", "replace").splitlines():
            with suppress(ValueError):
                lines.append(json.loads(line))
    return [line for line in lines if isinstance(line, dict)]


def read_all(state: Path, askers: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each session's file by the session's id, without those of other owners than `askers`; each
    has the `ids` it gave, its `tokens`, and its `host` where that is known.
    """
    found = {}
    for path in (state / FOLDER).glob("*.jsonl"):
        lines: list[dict[str, Any]] = []
        for given in read_lines(path):
            with suppress(ValueError, TypeError):
                ids = [each for each in given.get("ids") or given.get("shown") or () if isinstance(each, str)]
                lines.append({"host": "", **given, "ids": ids, "tokens": int(given.get("tokens", 0))})
        named = next((line for line in lines if isinstance(line.get("session"), str)), None)
        if named and named.get("asker", "default") in askers:
            found[named["session"]] = lines
    return found


def plan_record(state: Path, session: str, given: Mapping[str, object]) -> tuple[Path, str]:
    """Return the file of `session`, and the line that says what it was `given`: `ids` of hits, or the `text` that it
    began with. The process that delivered it appends the line.
    """
    return state / FOLDER / f"{state_files.file_stem(session)}.jsonl", json.dumps(given)


def record(state: Path, session: str, given: Mapping[str, object]) -> None:
    """Append that line."""
    state_files.append(*plan_record(state, session, given))


def compact(state: Path, session: str, now: datetime) -> None:
    """Remember that the context of `session` was compacted or cleared."""
    record(state, session, {"compacted_at": now.isoformat()})


def clear_old(state: Path) -> None:
    """Delete the files of sessions that nobody has continued for a month."""
    for path in (state / FOLDER).glob("*.jsonl"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _MAX_AGE_S:
                path.unlink()


def _lines_of(text: str) -> str:
    """Return `text` with one space between words and no empty lines."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
