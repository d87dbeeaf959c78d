"""The intention of a write, on disk from before its first file until after its commit; and the writes that could not
be finished.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.model import Edit
from quaid.place import state_folder, write_private
from quaid.vault import files, layout

if TYPE_CHECKING:
    from quaid.model import Message

PENDING_FILE = "pending.json"
UNFINISHED = "unfinished"
REASON_FILE = "reason.txt"
_COMMIT_ID = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class VaultChange:
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
    stays: bool = False
    """True if its files stay in the vault though git refuses to commit them."""
    travels: bool = False
    """True if it is worth no commit of its own and goes along with the next one."""
    adopted: str | None = None
    """The commit, made elsewhere, that has the edits and that the branch is brought to: there is none to make."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A write of a killed process that could not be finished; the rest of it is in `folder`."""

    folder: Path
    reason: str


def locate(root: Path) -> Path:
    """Return the path of the intention."""
    return state_folder(root) / PENDING_FILE


def write(root: Path, change: VaultChange) -> None:
    """Keep the intention until `clear`.

    Raises:
        VaultReadOnlyError, DiskFullError: it could not be kept.
    """
    with files.explaining(locate(root)):
        write_private(locate(root), json.dumps(describe(change)), sync=True)


def describe(change: VaultChange) -> dict[str, Any]:
    """Return a change as plain JSON, which `parse` reads."""
    return {
        "key": change.key,
        "subject": change.message.subject,
        "body": change.message.body,
        "trailers": change.message.trailers,
        "author": change.author,
        "answer": change.answer,
        "merged": change.merged,
        "stays": change.stays,
        "travels": change.travels,
        "adopted": change.adopted,
        "edits": [[edit.rel_path, _encode(edit.before), _encode(edit.after)] for edit in change.edits],
    }


def read(root: Path) -> VaultChange | None:
    """Return the change that a killed process was about to make. One that is not as Quaid writes them is set aside."""
    for draft in state_folder(root).glob(f".{PENDING_FILE}.*.tmp"):
        draft.unlink(missing_ok=True)
    if not os.path.lexists(locate(root)):
        return None
    try:
        return parse(files.read_note(state_folder(root), PENDING_FILE) or b"")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        set_aside(root, f"The intention of a write could not be understood ({error})", leftover=locate(root))
        return None


def clear(root: Path) -> None:
    """Forget the intention."""
    locate(root).unlink(missing_ok=True)


def set_aside(root: Path, reason: str, edits: Sequence[Edit] = (), leftover: Path | None = None) -> None:
    """Keep what cannot be finished where nothing acts on it: the files `edits` wanted, and a `leftover` as it is."""
    folder = state_folder(root) / UNFINISHED / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-{os.urandom(3).hex()}"
    with files.explaining(folder):
        write_private(folder / REASON_FILE, f"{reason}\n", sync=True)
        for edit in edits:
            if edit.after is not None:
                write_private(folder / "files" / edit.rel_path, edit.after, sync=True)
        if leftover is not None:
            target = folder / leftover.name.lstrip(".")
            shutil.move(leftover, target)
            if not target.is_symlink():
                target.chmod(0o700 if target.is_dir() else 0o600)


def list_unfinished(root: Path) -> Iterator[Unfinished]:
    """List the writes that were set aside, oldest first; the owner deletes their folders."""
    for folder in sorted((state_folder(root) / UNFINISHED).glob("*")):
        reason = files.read_note(folder, REASON_FILE, 1000) or b"a write"
        yield Unfinished(folder, reason.decode("utf-8", "replace").strip())


def parse(text: bytes) -> VaultChange:
    """Return the change that `text` describes.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, RecursionError: it is not as Quaid writes them.
    """
    from quaid.model import Message

    data: dict[str, Any] = json.loads(text)
    message = Message(_text(data["subject"]), _text(data["body"]), tuple(map(_pair, data["trailers"])))
    edits = tuple(Edit(_text(path), _decode(before), _decode(after)) for path, before, after in data["edits"])
    merged, adopted = data["merged"], data.get("adopted")
    for edit in edits:
        if not (layout.is_vault_path(edit.rel_path) or (adopted and layout.is_repository_path(edit.rel_path))):
            raise ValueError(f"{edit.rel_path!r} is not a path that Quaid writes")
    author = _pair(data["author"]) if data["author"] else None
    if any(commit is not None and not _COMMIT_ID.fullmatch(commit) for commit in (merged, adopted)):
        raise ValueError("it merges something that is not a commit")
    answer, stays, travels = _text(data["answer"]), data["stays"] is True, data.get("travels") is True
    return VaultChange(_text(data["key"]), edits, message, author, answer, merged, stays, travels, adopted)


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError("a value is not a text")
    value.encode()
    return value


def _pair(values: Any) -> tuple[str, str]:
    one, other = values
    return _text(one), _text(other)


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
