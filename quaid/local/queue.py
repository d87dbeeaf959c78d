"""The queue of conversations that hooks have reported and no worker has taken in yet: a JSON file each.

A hook must return at once and may be killed at any time, so it only writes a file here, by a rename. A session has one
file for each reason to take it in: a new report replaces the one before. A report that could not be taken in is never
deleted: it is moved into `failed/`, and stays there until the owner empties it. Files of other names are ignored.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from quaid.local import state_files
from quaid.place import write_private
from quaid.redaction import admit, admit_each

FOLDER = "queue"
FAILED = "failed"
ATTEMPTS = 3
_EDITED = "edited.jsonl"
_TAKEN = f"{_EDITED}.taken"
_ITEM = re.compile(r"[0-9a-f]{16}(-[0-9]{1,8})?\.(now|idle)(\.[0-9]+)?\.json")
_SPOOLED = re.compile(r"[0-9a-f]{16}-[0-9]{1,20}\.jsonl")
"""The names that `spool` gives."""
_MAX_EDITED_BYTES = 4_000_000
"""The maximum size of the list of edited files; a longer one is deleted."""

When = Literal["now", "idle"]


@dataclass(frozen=True, slots=True)
class QueuedItem:
    """A conversation to take in: `now`, or `idle`, when nothing has been added to it for a while.

    `at` is when it was reported or tried last, in seconds. `spooled` says that the transcript is a copy made for the
    queue, named as it is called there, gone when it is done.
    """

    session: str
    transcript: str
    when: When
    reason: str
    at: float
    attempts: int = 0
    problem: str = ""
    spooled: bool = False


def put(state: Path, item: QueuedItem) -> None:
    """Queue `item` in the vault's state folder."""
    folder = state / FOLDER
    _write(folder / _name(item), item)
    if item.when == "now":  # then it need not be looked at again when it has been silent for a while
        (folder / _name(replace(item, when="idle"))).unlink(missing_ok=True)


def spool(state: Path, session: str, messages: Sequence[Mapping[str, object]]) -> str:
    """Write the messages of a program without a transcript file into one (generic JSONL), without secrets; return its
    name in the queue.
    """
    path = state / FOLDER / f"{state_files.file_stem(session)}-{time.time_ns()}.jsonl"
    lines = [json.dumps({"session": session}), *(json.dumps(message) for message in admit_each(messages))]
    write_private(path, "\n".join(lines) + "\n")
    return path.name


def waiting(state: Path) -> list[QueuedItem]:
    """Return the reports that are queued and can be read, oldest first."""
    found = (_read(path) for path in _list(state / FOLDER))
    return sorted((item for item in found if isinstance(item, QueuedItem)), key=lambda item: item.at)


def is_any(state: Path) -> bool:
    """Return whether a conversation is queued; cheap."""
    return any(_list(state / FOLDER))


def failed(state: Path) -> list[QueuedItem]:
    """Return the reports that were given up, each with its problem. One that cannot be read counts as its
    transcript.
    """
    given_up = [(path, _read(path)) for path in _list(state / FOLDER / FAILED)]
    cut = [(path, found) for path in _list(state / FOLDER) if isinstance(found := _read(path), str)]
    return [
        found if isinstance(found, QueuedItem) else QueuedItem("", str(path), "now", "", 0.0, problem=found)
        for path, found in (*given_up, *cut)
    ]


def next_step(state: Path) -> str:
    """Return what the owner may do about the reports that were given up."""
    return f"quaid extract FILE, then empty {state / FOLDER / FAILED}"


def set_aside(state: Path) -> None:
    """Move reports that cannot be read into `failed/`."""
    for path in _list(state / FOLDER):
        if isinstance(_read(path), str):
            _give_up(path)


def done(state: Path, item: QueuedItem) -> None:
    """Take `item` out, unless the session was reported again meanwhile."""
    path = state / FOLDER / _name(item)
    if _read(path) == item:
        path.unlink(missing_ok=True)
    if item.spooled and _SPOOLED.fullmatch(item.transcript):  # no other file, whatever a report says
        (state / FOLDER / item.transcript).unlink(missing_ok=True)


def fail(state: Path, item: QueuedItem, problem: str, *, for_good: bool = False) -> None:
    """Try `item` again later, or give it up after `ATTEMPTS`; then it stays in `failed/` with its problem."""
    tried = replace(item, attempts=item.attempts + 1, problem=problem, at=time.time())
    path = state / FOLDER / _name(item)
    if _read(path) != item:
        return
    _write(path, tried)
    if for_good or tried.attempts >= ATTEMPTS:
        _give_up(path)


def note_edited(state: Path, path: str, session: str) -> None:
    """Remember that an agent has edited the file `path`."""
    target = state / FOLDER / _EDITED
    with suppress(OSError):
        if target.stat().st_size > _MAX_EDITED_BYTES:
            target.unlink()
    state_files.append(target, json.dumps({"path": path, "session": session, "at": time.time()}))


def has_edited(state: Path) -> bool:
    """Return whether files were edited that nobody has looked at; cheap."""
    return any((state / FOLDER / name).exists() for name in (_EDITED, _TAKEN))


def take_edited(state: Path) -> dict[str, float]:
    """Return the paths that were edited, with the time of the first edit of each, in seconds.

    They are returned again until `forget_edited`, for their taker may be killed. One process at a time calls this.
    """
    source, taken = state / FOLDER / _EDITED, state / FOLDER / _TAKEN
    with suppress(FileNotFoundError):
        if taken.exists():
            state_files.append(taken, state_files.read(source).decode("utf-8", "replace").rstrip("\n"))
            source.unlink()
        else:
            source.replace(taken)
    return read_edited(state)


def read_edited(state: Path, session: str | None = None) -> dict[str, float]:
    """Return the paths that agents have edited, in one session or all, and that are not forgotten, with the time of the
    first edit of each, in seconds.
    """
    found: dict[str, float] = {}
    for name in (_TAKEN, _EDITED):
        with suppress(OSError):
            for line in state_files.read(state / FOLDER / name).decode("utf-8", "replace").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    noted = json.loads(line)
                    if session in (None, noted["session"]):
                        found.setdefault(str(noted["path"]), float(noted["at"]))
    return found


def forget_edited(state: Path) -> None:
    """Delete the list that `take_edited` has returned."""
    (state / FOLDER / _TAKEN).unlink(missing_ok=True)


def _list(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("*.json") if _ITEM.fullmatch(path.name))


def _read(path: Path) -> QueuedItem | str:
    """Return the report in a file, or why this Quaid cannot read it."""
    try:
        fields = json.loads(state_files.read(path))
    except (OSError, ValueError) as error:
        return f"the report cannot be read ({error})"
    known = QueuedItem.__dataclass_fields__
    if not isinstance(fields, dict) or not fields.keys() <= known.keys():
        return "the report is of another version of Quaid"
    kinds = {"session": str, "transcript": str, "reason": str, "problem": str, "attempts": int, "spooled": bool}
    is_sound = all(isinstance(fields.get(name, kind()), kind) for name, kind in kinds.items())
    if not (is_sound and fields.get("when") in {"now", "idle"} and isinstance(fields.get("at"), (int, float))):
        return "the report is damaged"
    try:
        item = QueuedItem(**fields)
    except TypeError:
        return "the report is damaged"
    if item.spooled and not _SPOOLED.fullmatch(item.transcript):
        return "the report names a copy that is not one of the queue's"
    # Under another name it would be worked off again and again: nobody could take it out.
    is_named = path.parent.name == FAILED or path.name == _name(item)
    return item if is_named else "the report has the name of another"


def _give_up(path: Path) -> None:
    """Move a report into `failed/`, without replacing one that is there already."""
    folder = path.parent / FAILED
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / path.name
    if target.exists() or target.is_symlink():
        target = folder / f"{path.stem}.{time.time_ns()}.json"
    with suppress(FileNotFoundError):
        path.rename(target)


def _write(path: Path, item: QueuedItem) -> None:
    write_private(path, json.dumps(asdict(replace(item, problem=admit(item.problem).text))))


def _name(item: QueuedItem) -> str:
    source = f"-{Path(item.transcript).stem[-8:]}" if item.spooled else ""
    return f"{state_files.file_stem(item.session)}{source}.{item.when}.json"
