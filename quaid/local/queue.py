"""What agents' programs have reported and nobody has worked off yet: `.quaid/queue/`, a JSON file each.

A hook must return at once and may be killed at any time, so it only leaves a file here, written aside and renamed. A
session has one file for each reason to take it in: the newest report replaces the one before.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from quaid.gate import admit, admit_each
from quaid.local import state_files

FOLDER = "queue"
FAILED = "failed"
ATTEMPTS = 3
_EDITED = "edited.jsonl"
_TAKEN = f"{_EDITED}.taken"
_LONGEST_EDITED = 4_000_000
"""Bytes; then the list of edited files is begun anew."""
_MOST_FAILED = 100

When = Literal["now", "idle"]


@dataclass(frozen=True, slots=True)
class Item:
    """A conversation to take in: `now`, or `idle`, when nothing has been added to it for a while.

    `at` is when it was reported or tried last, in seconds. `spooled` says that the transcript is a copy made for the
    queue, gone when it is done.
    """

    session: str
    transcript: str
    when: When
    reason: str
    at: float
    attempts: int = 0
    problem: str = ""
    spooled: bool = False


def put(state: Path, item: Item) -> None:
    """Queue `item` in the vault's `.quaid`."""
    folder = state / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / _name(item), item)
    if item.when == "now":  # then it need not be looked at again when it has been silent for a while
        (folder / _name(replace(item, when="idle"))).unlink(missing_ok=True)


def spool(state: Path, session: str, messages: Sequence[Mapping[str, object]]) -> Path:
    """Keep the messages of a program without a transcript file as one (generic JSONL), without secrets; its path."""
    folder = state / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{state_files.name_of(session)}-{time.time_ns()}.jsonl"
    lines = [json.dumps({"session": session}), *(json.dumps(message) for message in admit_each(messages))]
    _write_text(path, "\n".join(lines) + "\n")
    return path


def waiting(state: Path) -> list[Item]:
    """What is queued, oldest first. A file that cannot be read is taken away: nobody could work it off."""
    return sorted((item for _, item in _list(state / FOLDER)), key=lambda item: item.at)


def is_any(state: Path) -> bool:
    """Whether a conversation is queued; cheap."""
    return any((state / FOLDER).glob("*.json"))


def failed(state: Path) -> list[Item]:
    """What was given up, with its problem."""
    return [item for _, item in _list(state / FOLDER / FAILED)]


def done(state: Path, item: Item) -> None:
    """Take `item` out, unless the session was reported again meanwhile."""
    path = state / FOLDER / _name(item)
    if _read(path) == item:
        path.unlink(missing_ok=True)
    if item.spooled:
        Path(item.transcript).unlink(missing_ok=True)


def fail(state: Path, item: Item, problem: str, *, for_good: bool = False) -> None:
    """Try `item` again later, or give it up after `ATTEMPTS`; then it stays in `failed/` with its problem."""
    tried = replace(item, attempts=item.attempts + 1, problem=problem, at=time.time())
    path = state / FOLDER / _name(item)
    if _read(path) != item:
        return
    if not (for_good or tried.attempts >= ATTEMPTS):
        _write(path, tried)
        return
    folder = state / FOLDER / FAILED
    folder.mkdir(exist_ok=True)
    _write(folder / path.name, tried)
    path.unlink(missing_ok=True)
    for old in sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-_MOST_FAILED]:
        with suppress(OSError):
            old.unlink()


def note_edited(state: Path, path: str, session: str) -> None:
    """Remember that an agent has edited the file `path`."""
    target = state / FOLDER / _EDITED
    with suppress(OSError):
        if target.stat().st_size > _LONGEST_EDITED:
            target.unlink()
    state_files.append(target, json.dumps({"path": path, "session": session, "at": time.time()}))


def has_edited(state: Path) -> bool:
    """Whether files were edited that nobody has looked at; cheap."""
    return any((state / FOLDER / name).exists() for name in (_EDITED, _TAKEN))


def take_edited(state: Path) -> list[str]:
    """The paths that were edited, each once, in the order they were edited first. They are taken again until
    `forget_edited`: whoever takes them may be killed. One process at a time asks.
    """
    source, taken = state / FOLDER / _EDITED, state / FOLDER / _TAKEN
    with suppress(FileNotFoundError):
        if taken.exists():
            state_files.append(taken, source.read_text("utf-8", errors="replace").rstrip("\n"))
            source.unlink()
        else:
            source.replace(taken)
    try:
        lines = taken.read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    found: dict[str, None] = {}
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            found[str(json.loads(line)["path"])] = None
    return list(found)


def forget_edited(state: Path) -> None:
    """What was taken is done with."""
    (state / FOLDER / _TAKEN).unlink(missing_ok=True)


def _list(folder: Path) -> Iterator[tuple[Path, Item]]:
    for path in folder.glob("*.json"):
        item = _read(path)
        if item is None:
            path.unlink(missing_ok=True)
        else:
            yield path, item


def _read(path: Path) -> Item | None:
    try:
        return Item(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _write(path: Path, item: Item) -> None:
    _write_text(path, json.dumps(asdict(replace(item, problem=admit(item.problem).text))))


def _write_text(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.{time.time_ns()}")
    aside.write_text(text, "utf-8", errors="backslashreplace")
    aside.replace(path)


def _name(item: Item) -> str:
    source = f"-{Path(item.transcript).stem[-8:]}" if item.spooled else ""
    return f"{state_files.name_of(item.session)}{source}.{item.when}.json"
