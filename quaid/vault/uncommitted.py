"""Changes that are in the vault and in no commit: kept as they were meant, until a write can commit them.

Git would not commit some: a hook that fails or a missing key must not cost a memory. Each waits in a file of the
vault's state with why and since when, and becomes a commit of its own, so none passes for the owner's work. Others are
worth no commit of their own, such as a conversation that taught nothing: they travel with the next memory's commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import CommitRefusedError, QuaidError, UncommittedError, VaultReadOnlyError
from quaid.model import Edit
from quaid.place import state_folder, write_private
from quaid.vault import files, intent_log
from quaid.vault.intent_log import VaultChange

if TYPE_CHECKING:
    from quaid.model import Message
    from quaid.vault.transaction import History

FOLDER = "uncommitted"
MAX_REFUSED = 3
"""So many refusals in a row, and the rest waits for the next write: a hook may take its time."""
REFUSALS = (CommitRefusedError, VaultReadOnlyError)
"""What keeps a commit from being made and not a file from being written."""
TRAVELLED = "Quaid-Travelled"
"""The trailer that names a path which only came along with a commit."""
_MAX_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class UncommittedChange:
    """A change that waits: why git refused it, and since when (ISO 8601, UTC)."""

    path: Path
    change: VaultChange
    reason: str
    since: str


def keep(root: Path, change: VaultChange, reason: str) -> None:
    """Keep a change whose files are written.

    Raises:
        VaultReadOnlyError, DiskFullError: it could not be kept.
    """
    earlier = next((each for each in _iterate(root) if each.change == change), None)
    name = earlier.path.name if earlier else f"{time.time_ns():020d}-{change.key[:12]}.json"
    since = earlier.since if earlier else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    path = state_folder(root) / FOLDER / name
    with files.explaining(path):
        said = {**intent_log.describe(change), "reason": reason, "since": since}
        write_private(path, json.dumps(said), sync=True)


def list_uncommitted(root: Path) -> list[UncommittedChange]:
    """Return the changes that git refused, the oldest first. One that is not as Quaid writes them is set aside."""
    return [each for each in _iterate(root) if not each.change.travels]


def list_travelling(root: Path) -> list[UncommittedChange]:
    """Return the changes that go along with the next commit, the oldest first."""
    return [each for each in _iterate(root) if each.change.travels]


def join(root: Path, change: VaultChange, travelling: Sequence[UncommittedChange]) -> VaultChange:
    """Return `change` with those that travel with it, as far as what they did still stands."""
    along = [edit for each in travelling for edit in each.change.edits if _is_there(root, edit)]
    edits: dict[str, Edit] = {}
    for edit in (*along, *change.edits):
        edits[edit.rel_path] = replace(edit, before=edits.get(edit.rel_path, edit).before)
    own = {edit.rel_path for edit in change.edits}
    alone = [path for path in edits if path not in own]
    if not alone:
        return replace(change, edits=tuple(edits.values()))
    told = "\n".join(["Along with it:", *(f"- {path}" for path in alone)])
    message = replace(
        change.message,
        body="\n\n".join(filter(None, [change.message.body, told])),
        trailers=(*change.message.trailers, *((TRAVELLED, path) for path in alone)),
    )
    return replace(change, edits=tuple(edits.values()), message=message)


def forget(changes: Iterable[UncommittedChange]) -> None:
    """Let these changes wait no more."""
    for each in changes:
        each.path.unlink(missing_ok=True)


def commit_travelling(root: Path, history: History, rel_path: str | None = None) -> None:
    """Commit what travels, if `rel_path` is part of it where one is given; the caller holds the vault's lock."""
    travelling = list_travelling(root)
    paths = {edit.rel_path for each in travelling for edit in each.change.edits}
    if paths and (rel_path is None or rel_path in paths):
        change = join(root, replace(travelling[0].change, edits=()), travelling)
        history.commit(change.edits, change.message)
        forget(travelling)


def commit_unsaved(history: History, rel_path: str, data: bytes, message: Message) -> None:
    """Commit a note as its owner has left it, in the owner's name, if git has it otherwise.

    Raises:
        UncommittedError: git would not have all of it.
    """
    kept = history.read_at("HEAD", rel_path)
    if kept is not None and kept.splitlines() == data.splitlines():  # how lines end on disk is a setting of git
        return
    if history.commit((Edit(rel_path, kept, data),), message, author=history.owner()).left:
        raise UncommittedError(rel_path)


def _iterate(root: Path) -> Iterator[UncommittedChange]:
    folder = state_folder(root) / FOLDER
    for path in sorted(folder.glob("*.json")):
        try:
            data = files.read_note(folder, path.name, _MAX_BYTES) or b""
            said = json.loads(data)
            yield UncommittedChange(path, intent_log.parse(data), str(said["reason"]), str(said["since"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            intent_log.set_aside(root, f"A change that waited for a commit is damaged ({error})", leftover=path)


def commit_waiting(root: Path, history: History) -> None:
    """Commit each change that waits, as far as git lets it; the caller holds the vault's lock.

    What its owner has undone on disk since, or has committed, waits no more.
    """
    refused = 0
    blocked: set[str] = set()
    for waiting in list_uncommitted(root):
        change = waiting.change
        if not blocked.isdisjoint(edit.rel_path for edit in change.edits):  # it rests on one that waits
            continue
        edits = tuple(edit for edit in change.edits if _is_there(root, edit))
        try:
            committed = history.commit(edits, change.message, author=change.author)
        except REFUSALS as error:
            keep(root, change, str(error))
            blocked |= {edit.rel_path for edit in change.edits}
            refused += 1
            if refused == MAX_REFUSED:
                return
            continue
        except QuaidError:  # somebody else is at work, or the disk is full: the next write tries again
            return
        left = tuple(edit for edit in edits if edit.rel_path in committed.refused)
        blocked |= {edit.rel_path for edit in left}
        if left:
            keep(root, replace(change, edits=left), committed.refusal)
        if left != change.edits:
            waiting.path.unlink(missing_ok=True)


def _is_there(root: Path, edit: Edit) -> bool:
    """Return whether what an edit did to a file still stands: its owner may have removed it or brought it back."""
    return (files.read_note(root, edit.rel_path) is None) == (edit.after is None)


def keep_left(root: Path, change: VaultChange, left: Collection[str], refused: Collection[str], refusal: str) -> str:
    """Keep what of a committed `change` git has left out, `refused` or because an earlier change of the same note
    waits; return why, empty where nothing was kept.
    """
    waiting = {edit.rel_path: each.reason for each in list_uncommitted(root) if left for edit in each.change.edits}
    reasons = {path: waiting.get(path, "") for path in left if path in waiting} | dict.fromkeys(refused, refusal)
    edits = tuple(edit for edit in change.edits if edit.rel_path in reasons)
    if not edits:
        return ""
    reason = reasons[edits[0].rel_path]
    keep(root, replace(change, edits=edits), reason)
    return reason
