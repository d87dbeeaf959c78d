"""Apply a list of Edits, all or none, as one commit.

The steps and what a kill at each leaves behind: the intention is written to pending.json in the state folder, then
the files, then the commit, then the intention is removed. Whoever writes next finds a leftover intention and finishes
it, so the vault ends as if nothing had happened; a repeated call recognises its own `key` and does nothing twice.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.errors import LockedError, NoteChangedError, QuaidError
from quaid.model import Edit
from quaid.place import state_folder
from quaid.vault import files, layout

if TYPE_CHECKING:
    from quaid.vault.history import Committed, History
    from quaid.vault.messages import Message

PENDING_FILE = "pending.json"


@dataclass(frozen=True, slots=True)
class Change:
    """Edits and the commit that records them.

    `key` names the call that wanted it, `answer` is what that call is told, should it be made again after a crash.
    """

    key: str
    edits: tuple[Edit, ...]
    message: Message
    author: tuple[str, str] | None = None
    answer: str = ""
    merged: str | None = None
    """The commit that this one merges."""


@contextmanager
def writing(root: Path, wait_s: float) -> Iterator[None]:
    """Only one process writes a vault at a time; the lock dies with its holder.

    Raises:
        LockedError: another process kept it longer than `wait_s` seconds.
    """
    from filelock import FileLock, Timeout

    path = state_folder(root) / layout.LOCK_FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path, timeout=wait_s):
            yield
    except Timeout as error:
        raise LockedError(f"Another Quaid is writing to {root}") from error
    except OSError as error:
        raise files.sentence(error, path) from error


def apply(root: Path, change: Change, history: History) -> Committed:
    """Write every file and commit, or leave everything as it was. The caller holds `writing`.

    Raises:
        NoteChangedError: a file is not what its edit was planned on.
        QuaidError: the disk or git refused; the files are as before.
    """
    for edit in change.edits:
        if files.read_note(root, edit.rel_path) != edit.before:
            raise NoteChangedError(edit.rel_path)
    _write_intention(root, change)
    done: list[Edit] = []
    try:
        for edit in change.edits:
            files.write_note(root, edit.rel_path, edit.before, edit.after)
            done.append(edit)
        committed = history.commit(change.edits, change.message, author=change.author, merged=change.merged)
    except BaseException:
        _roll_back(root, done)
        _intention(root).unlink(missing_ok=True)
        raise
    _intention(root).unlink(missing_ok=True)
    return committed


def recover(root: Path, history: History) -> Change | None:
    """Finish what a killed process began, and say what that was. The caller holds `writing`."""
    for draft in state_folder(root).glob(f".{PENDING_FILE}.*.tmp"):
        draft.unlink(missing_ok=True)
    change = _read_intention(root)
    if change is None:
        return None
    history.recover()
    if not all(history.read_at("HEAD", edit.rel_path) == edit.after for edit in change.edits):
        # What somebody has rewritten since then is theirs; the rest is finished.
        ours = [edit for edit in change.edits if files.read_note(root, edit.rel_path) in (edit.before, edit.after)]
        for edit in ours:
            if files.read_note(root, edit.rel_path) != edit.after:
                files.write_note(root, edit.rel_path, edit.before, edit.after)
        if ours:
            history.commit(ours, change.message, author=change.author, merged=change.merged)
    for leftover in files.iterate_leftovers(root):
        leftover.unlink(missing_ok=True)
    _intention(root).unlink(missing_ok=True)
    return change


def needs_recovery(root: Path) -> bool:
    return _intention(root).exists()


def _intention(root: Path) -> Path:
    return state_folder(root) / PENDING_FILE


def _roll_back(root: Path, done: Sequence[Edit]) -> None:
    for edit in reversed(done):
        with suppress(QuaidError, OSError):  # rewritten by somebody else since: theirs now
            files.write_note(root, edit.rel_path, edit.after, edit.before)


def _write_intention(root: Path, change: Change) -> None:
    data = {
        "key": change.key,
        "subject": change.message.subject,
        "body": change.message.body,
        "trailers": change.message.trailers,
        "author": change.author,
        "answer": change.answer,
        "merged": change.merged,
        "edits": [[edit.rel_path, _encode(edit.before), _encode(edit.after)] for edit in change.edits],
    }
    path = _intention(root)
    temporary = path.with_name(layout.temporary_name(path.name))
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise files.sentence(error, path) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _read_intention(root: Path) -> Change | None:
    from quaid.vault.messages import Message

    try:
        data: dict[str, Any] = json.loads(_intention(root).read_text(encoding="utf-8"))
        message = Message(data["subject"], data["body"], tuple((key, value) for key, value in data["trailers"]))
        edits = tuple(Edit(path, _decode(before), _decode(after)) for path, before, after in data["edits"])
        author = tuple(data["author"]) if data["author"] else None
        return Change(data["key"], edits, message, author, data["answer"], data["merged"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):  # written whole or not at all: not by us
        _intention(root).replace(_intention(root).with_suffix(".unreadable"))
        return None


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
