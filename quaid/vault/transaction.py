"""The one order of a write: lock, finish what a killed write left, guard, write the files, commit.

The steps and what a kill at each leaves behind: the intention is written to pending.json in the vault's state, then the
files, then the commit, then the intention is removed. The next writer finds a leftover intention and finishes it,
so the vault ends as if nothing had happened; a repeated call recognises its own `key` and does nothing twice. One that
cannot be finished is undone and set aside: it must not be in the way of every later write. A memory that git refuses to
commit stays in the vault and waits for the next write, and so does one that is worth no commit (uncommitted.py).
"""

import base64
import errno
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, Protocol

from quaid import errors
from quaid.model import Committed, Edit, Message
from quaid.place import LOCK_FILE, state_folder, write_private
from quaid.vault import files, layout

MAX_WATCHED = 16
"""Old files that are held open until a write is over, of which there may be thousands."""
_TEMPORARY = (errors.LockedError, errors.NoteChangedError, errors.DiskFullError, errors.GitMissingError)
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


class History(Protocol):
    """The git side of a vault as a transaction needs it."""

    @property
    def git_dir(self) -> Path:
        """The folder of the repository that belongs to this work tree."""

    def wait_until_ready(self, say: Callable[[str], None] | None = None) -> None:
        """Wait for a rebase, a merge or another program's lock to end."""

    def commit(
        self,
        edits: Sequence[Edit],
        message: Message,
        *,
        author: tuple[str, str] | None = None,
        merged: str | None = None,
    ) -> Committed:
        """Commit the files of `edits`."""

    def adopt(self, edits: Sequence[Edit], commit_id: str) -> Committed:
        """Bring the branch to a commit that was made elsewhere and has the files of `edits`."""

    def has_adopted(self, commit_id: str) -> bool:
        """Return True if the branch has this commit."""

    def recover(self) -> None:
        """Finish a commit that a killed process left half done."""

    def owner(self) -> tuple[str, str] | None:
        """Return the name and e-mail address with which git commits by hand; None where it has none."""

    def read_at(self, revision: str, rel_path: str) -> bytes | None:
        """Return a file as a checkout of `revision` has it."""

    def has_commit(self, commit_id: str) -> bool:
        """Return True if git has this commit."""


@dataclass(frozen=True, slots=True)
class VaultChange:
    """Edits and the commit that records them.

    `key` identifies the call that planned it; `answer` is the result of that call if it is repeated after a crash.
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


@contextmanager
def begin(
    root: Path, history: History, wait_s: float, say: Callable[[str], None] | None = None
) -> Iterator[VaultChange | None]:
    """Hold the vault's write lock while a change is planned and applied; the change that a killed process had begun
    and that was finished first, if any.

    Raises:
        LockedError: another process held the lock, or git was not ready, for longer than `wait_s` seconds.
    """
    from filelock import FileLock, Timeout

    path = state_folder(root) / LOCK_FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path, timeout=wait_s, mode=0o600):  # it dies with its holder
            history.wait_until_ready(say)
            finished = _recover(root, history)
            commit_waiting(root, history)
            yield finished
    except Timeout as error:
        raise errors.LockedError(f"Another Quaid is writing to {root}") from error
    except OSError as error:
        raise files.explain(error, path) from error


def apply(root: Path, change: VaultChange, history: History) -> Committed:
    """Write every file and commit, or leave everything as it was. The caller is within `begin`.

    A change that `stays` is retained if git refuses to commit it: its paths are `left`, and the next write tries again.

    Raises:
        NoteChangedError: a file is not what its edit was planned on.
        LockedError: an editor does not end saving one.
        QuaidError: the disk or git refused; the files are as before.
    """
    set_aside_saved(root, history.git_dir)
    with _holding_old_files(root, change.edits, history.git_dir) as old:
        write_intent(root, change)
        done: list[Edit] = []
        try:
            for edit in change.edits:
                _write(root, change, edit)
                done.append(edit)
            committed = _commit(root, change, history)
        except BaseException:
            _roll_back(root, change, done)
            clear_intent(root)
            _restore_saved(root, old)
            raise
        clear_intent(root)
        _restore_saved(root, old)
    return committed


def _commit(root: Path, change: VaultChange, history: History) -> Committed:
    if change.adopted:
        return history.adopt(change.edits, change.adopted)
    # A file that git has cannot wait for the next commit: `git pull --rebase` refuses while it differs from the last.
    if change.travels and all(history.read_at("HEAD", edit.rel_path) is None for edit in change.edits):
        store_uncommitted(root, change, "")
        return Committed(None)
    own = tuple(edit.rel_path for edit in change.edits)
    travelling = list_deferred(root) if change.stays and change.merged is None else []
    change = join_deferred(root, change, travelling)
    try:
        committed = history.commit(change.edits, change.message, author=change.author, merged=change.merged)
    except REFUSALS as error:
        if not change.stays:
            raise
        store_uncommitted(root, change, str(error))
        discard(travelling)
        return Committed(None, own, own, str(error))
    discard(travelling)
    if change.stays and committed.left:
        reason = store_left(root, change, committed.left, committed.refused, committed.refusal)
        return replace(committed, left=tuple(path for path in committed.left if path in own), refusal=reason)
    return committed


def _recover(root: Path, history: History) -> VaultChange | None:
    """Finish what a killed process began, and say what that was. The caller is within `begin`.

    What cannot be finished is set aside, as `list_unfinished` tells.

    Raises:
        LockedError, NoteChangedError: somebody is at work; the next writer finishes it.
        DiskFullError, VaultReadOnlyError, GitMissingError: nothing can be written.
    """
    change = read_intent(root)
    if change is None:
        return None
    finished: VaultChange | None = change
    try:
        history.recover()
        _finish(root, change, history)
    except errors.QuaidError as error:
        cause = error.__cause__
        if isinstance(error, _TEMPORARY) or (isinstance(cause, OSError) and cause.errno in _REFUSED):
            raise  # the same may go through later
        _roll_back(root, change, change.edits)
        reason = f'"{change.message.subject}" could not be finished: {error}'
        set_aside(root, reason, change.edits, intent_path(root))
        finished = None
    texts = [text for edit in change.edits for text in (edit.before, edit.after) if text is not None]
    for leftover in files.walk_files(root):
        if not layout.is_temporary_name(leftover.name):
            continue
        data = files.read_note(leftover.parent, leftover.name) or b""
        if any(text.startswith(data) for text in texts):
            leftover.unlink(missing_ok=True)
        else:  # it may hold what nobody else has
            set_aside(root, f"A killed write left {leftover.name}", leftover=leftover)
    clear_intent(root)
    return finished


def finish_killed(root: Path, history: History, wait_s: float) -> None:
    """Finish what a killed writer had begun, if anything, and commit what waits for it."""
    if needs_recovery(root) or list_uncommitted(root):
        with begin(root, history, wait_s):
            pass


def needs_recovery(root: Path) -> bool:
    """Return True if a killed write waits to be finished."""
    return os.path.lexists(intent_path(root))


def _finish(root: Path, change: VaultChange, history: History) -> None:
    if change.adopted and history.has_adopted(change.adopted):
        return
    if change.adopted:
        # Go on with what came from elsewhere, or undo it where its owner has gone on since: the next pull brings it
        # again. What its owner has committed since is theirs.
        try:
            for edit in change.edits:
                if files.read_note(root, edit.rel_path) != edit.after:
                    _write(root, change, edit)
            history.adopt(change.edits, change.adopted)
        except errors.QuaidError:
            stale = [edit for edit in change.edits if history.read_at("HEAD", edit.rel_path) == edit.before]
            _roll_back(root, change, stale)
        return
    if all(history.read_at("HEAD", edit.rel_path) == edit.after for edit in change.edits):
        return
    # A file that somebody has rewritten since then is left alone; the rest is finished.
    ours = [edit for edit in change.edits if files.read_note(root, edit.rel_path) in (edit.before, edit.after)]
    missing = [edit for edit in ours if files.read_note(root, edit.rel_path) != edit.after]
    with _holding_old_files(root, missing, history.git_dir) as old:
        for edit in missing:
            files.write_note(root, edit.rel_path, edit.before, edit.after)
        if ours:
            # A merge whose other side git has pruned is a commit like any other.
            merged = change.merged if change.merged and history.has_commit(change.merged) else None
            _commit(root, replace(change, edits=tuple(ours), merged=merged), history)
        _restore_saved(root, old)


@contextmanager
def _holding_old_files(root: Path, edits: Sequence[Edit], git_dir: Path) -> Iterator[list[tuple[int, Edit]]]:
    """Yield the old files of `edits`, open, as soon as no editor is saving one of them.

    Raises:
        NoteChangedError: a file is not what its edit was planned on.
        LockedError: an editor does not end.
    """
    held: list[tuple[int, Edit]] = []
    with ExitStack() as stack:
        for edit in edits:
            if edit.before is None or not files.is_file_in(root, edit.rel_path):
                if files.read_note(root, edit.rel_path) != edit.before:
                    raise errors.NoteChangedError(edit.rel_path)
                continue
            with ExitStack() as opened:
                try:
                    handle = opened.enter_context(files.opened(root / edit.rel_path))
                except FileNotFoundError as error:
                    raise errors.NoteChangedError(edit.rel_path) from error
                if files.read_saved(handle, edit.rel_path) != edit.before:
                    raise errors.NoteChangedError(edit.rel_path)
                if files.is_written(handle) is None:
                    copy_old_version(root, git_dir, edit)
                if len(held) < MAX_WATCHED:
                    stack.push(opened.pop_all())
                    held.append((handle, edit))
        yield held


def _restore_saved(root: Path, old: Sequence[tuple[int, Edit]]) -> None:
    """Look at the old files a last time: text that an editor saved into one belongs to the note."""
    for handle, edit in old:
        is_touched = files.is_written(handle) or files.read_now(handle) != edit.before
        if not is_touched or files.is_at(handle, root / edit.rel_path):
            continue
        try:
            data, now = files.read_saved(handle, edit.rel_path), files.read_note(root, edit.rel_path)
            if data not in (edit.before, now):
                files.write_note(root, edit.rel_path, edit.before if now == edit.before else edit.after, data)
        except errors.QuaidError as error:
            reason = f"An editor saved {edit.rel_path} while Quaid wrote it: {error}"
            set_aside(root, reason, [Edit(edit.rel_path, None, files.read_now(handle))])


def _write(root: Path, change: VaultChange, edit: Edit) -> None:
    # What was committed elsewhere may be a hidden file of the owner's.
    more = {"may_be_hidden": True} if change.adopted else {}
    files.write_note(root, edit.rel_path, edit.before, edit.after, **more)


def _roll_back(root: Path, change: VaultChange, done: Sequence[Edit]) -> None:
    for edit in reversed(done):
        with suppress(errors.QuaidError, OSError):  # rewritten by somebody else since: theirs now
            _write(root, change, replace(edit, before=edit.after, after=edit.before))


# -- the intent log ---------------------------------------------------------------------------------------------------

PENDING_FILE = "pending.json"
UNFINISHED_FOLDER = "unfinished"
REASON_FILE = "reason.txt"
_COMMIT_ID = re.compile(r"[0-9a-f]{40,64}")


def intent_path(root: Path) -> Path:
    """Return the path of the intention."""
    return state_folder(root) / PENDING_FILE


def write_intent(root: Path, change: VaultChange) -> None:
    """Keep the intention until `clear_intent`.

    Raises:
        VaultReadOnlyError, DiskFullError: it could not be stored.
    """
    with files.explaining(intent_path(root)):
        write_private(intent_path(root), json.dumps(describe_change(change)), sync=True)


def describe_change(change: VaultChange) -> dict[str, Any]:
    """Return a change as plain JSON, which `parse_change` reads."""
    fields = {name: getattr(change, name) for name in VaultChange.__slots__}
    message = (change.message.subject, change.message.body, change.message.trailers)
    edits = [[edit.rel_path, _encode(edit.before), _encode(edit.after)] for edit in change.edits]
    return {**fields, "message": message, "edits": edits}


def read_intent(root: Path) -> VaultChange | None:
    """Return the change that a killed process was about to make. One that is not as Quaid writes them is set aside."""
    for draft in state_folder(root).glob(f".{PENDING_FILE}.*.tmp"):
        draft.unlink(missing_ok=True)
    if not os.path.lexists(intent_path(root)):
        return None
    try:
        return parse_change(files.read_note(state_folder(root), PENDING_FILE) or b"")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        set_aside(root, f"The intention of a write could not be understood ({error})", leftover=intent_path(root))
        return None


def clear_intent(root: Path) -> None:
    """Forget the intention."""
    intent_path(root).unlink(missing_ok=True)


def set_aside(root: Path, reason: str, edits: Sequence[Edit] = (), leftover: Path | None = None) -> None:
    """Keep what cannot be finished where nothing acts on it: the files `edits` wanted, and a `leftover` as it is."""
    folder = state_folder(root) / UNFINISHED_FOLDER / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-{os.urandom(3).hex()}"
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


def list_unfinished(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield (folder, reason) of the writes that were set aside, oldest first; the owner deletes their folders."""
    for folder in sorted((state_folder(root) / UNFINISHED_FOLDER).glob("*")):
        reason = files.read_note(folder, REASON_FILE, 1000) or b"a write"
        yield folder, reason.decode("utf-8", "replace").strip()


def parse_change(text: bytes) -> VaultChange:
    """Return the change that `text` describes.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, RecursionError: it is not as Quaid writes them.
    """
    data: dict[str, Any] = json.loads(text)
    subject, body, trailers = data["message"]
    message = Message(_text(subject), _text(body), tuple(map(_pair, trailers)))
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


# -- old versions -----------------------------------------------------------------------------------------------------

OLD_VERSIONS_FOLDER = "quaid-displaced"
"""In git's folder: a second name of a file must be on the same disk, and git must not see it."""
MAX_AGE_S = 3600.0
_NAME = re.compile(r"(\d{1,12})-([0-9a-f]{8})-([0-9a-f]{16})")


def copy_old_version(root: Path, git_dir: Path, edit: Edit) -> None:
    """Give the file of `edit` a second name before it is exchanged, where the file system can."""
    name = f"{time.time():.0f}-{os.urandom(4).hex()}-{_digest(edit.before or b'')}"
    second_name = git_dir / OLD_VERSIONS_FOLDER / name / edit.rel_path
    with suppress(OSError):
        second_name.parent.mkdir(mode=0o700, parents=True)
        os.link(root / edit.rel_path, second_name, follow_symlinks=False)


def set_aside_saved(root: Path, git_dir: Path) -> None:
    """Set aside text that editors have written into old versions since, and remove versions that are an hour old."""
    for folder in sorted((git_dir / OLD_VERSIONS_FOLDER).glob("*")):
        named = _NAME.fullmatch(folder.name)
        if named is None or folder.is_symlink():
            continue
        since, token, digest = named.groups()
        for path in [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]:
            rel_path = path.relative_to(folder).as_posix()
            data = files.read_note(folder, rel_path) or b""
            if digest != _digest(data) and _is_lost(root / rel_path, path, data):
                set_aside(root, f"{rel_path} was saved while Quaid wrote it", [Edit(rel_path, None, data)])
                folder.rename(folder.with_name(f"{since}-{token}-{_digest(data)}"))
                break
        else:
            if time.time() - int(since) > MAX_AGE_S:
                shutil.rmtree(folder, ignore_errors=True)


def _is_lost(note: Path, old: Path, data: bytes) -> bool:
    """Return True if a text that was saved a moment ago or longer is in the old version alone."""
    try:
        is_saved = time.time() - old.stat().st_mtime > files.QUIET_S
        return is_saved and not (note.exists() and (note.samefile(old) or note.read_bytes() == data))
    except OSError:
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


# -- changes without a commit -----------------------------------------------------------------------------------------

UNCOMMITTED_FOLDER = "uncommitted"
MAX_REFUSED = 3
"""So many refusals in a row, and the rest waits for the next write: a hook may take its time."""
REFUSALS = (errors.CommitRefusedError, errors.VaultReadOnlyError)
"""What keeps a commit from being made and not a file from being written."""
DEFERRED_TRAILER = "Quaid-Travelled"
"""The trailer that names a path which only came along with a commit."""
_MAX_BYTES = 64_000_000


class UncommittedChange(NamedTuple):
    """A change that waits: why git refused it, and since when (ISO 8601, UTC)."""

    path: Path
    change: VaultChange
    reason: str
    since: str


def store_uncommitted(root: Path, change: VaultChange, reason: str) -> None:
    """Keep a change whose files are written.

    Raises:
        VaultReadOnlyError, DiskFullError: it could not be stored.
    """
    earlier = next((each for each in _read_uncommitted(root) if each.change == change), None)
    name = earlier.path.name if earlier else f"{time.time_ns():020d}-{change.key[:12]}.json"
    since = earlier.since if earlier else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    path = state_folder(root) / UNCOMMITTED_FOLDER / name
    with files.explaining(path):
        record = {**describe_change(change), "reason": reason, "since": since}
        write_private(path, json.dumps(record), sync=True)


def list_uncommitted(root: Path) -> list[UncommittedChange]:
    """Return the changes that git refused, the oldest first. One that is not as Quaid writes them is set aside."""
    return [each for each in _read_uncommitted(root) if not each.change.travels]


def list_deferred(root: Path) -> list[UncommittedChange]:
    """Return the changes that go along with the next commit, the oldest first."""
    return [each for each in _read_uncommitted(root) if each.change.travels]


def join_deferred(root: Path, change: VaultChange, travelling: Sequence[UncommittedChange]) -> VaultChange:
    """Return `change` with the deferred ones, as far as they still apply."""
    along = [edit for each in travelling for edit in each.change.edits if _still_applies(root, edit)]
    edits: dict[str, Edit] = {}
    for edit in (*along, *change.edits):
        edits[edit.rel_path] = replace(edit, before=edits.get(edit.rel_path, edit).before)
    own = {edit.rel_path for edit in change.edits}
    alone = [path for path in edits if path not in own]
    if not alone:
        return replace(change, edits=tuple(edits.values()))
    listed = "\n".join(["Along with it:", *(f"- {path}" for path in alone)])
    message = replace(
        change.message,
        body="\n\n".join(filter(None, [change.message.body, listed])),
        trailers=(*change.message.trailers, *((DEFERRED_TRAILER, path) for path in alone)),
    )
    return replace(change, edits=tuple(edits.values()), message=message)


def discard(changes: Iterable[UncommittedChange]) -> None:
    """Let these changes wait no more."""
    for each in changes:
        each.path.unlink(missing_ok=True)


def commit_deferred(root: Path, history: History, rel_path: str | None = None) -> None:
    """Commit what travels, if `rel_path` is part of it where one is given; the caller holds the vault's lock."""
    travelling = list_deferred(root)
    paths = {edit.rel_path for each in travelling for edit in each.change.edits}
    if paths and (rel_path is None or rel_path in paths):
        change = join_deferred(root, replace(travelling[0].change, edits=()), travelling)
        history.commit(change.edits, change.message)
        discard(travelling)


def commit_unsaved(history: History, rel_path: str, data: bytes, message: Message) -> str | None:
    """Commit a note as its owner has left it, in the owner's name, and return the commit; None if git has it already.

    Raises:
        QuaidError: git would not have all of it.
    """
    committed = history.read_at("HEAD", rel_path)
    # How lines end on disk is a setting of git.
    if committed is not None and committed.splitlines() == data.splitlines():
        return None
    done = history.commit((Edit(rel_path, committed, data),), message, author=history.owner())
    if done.left:
        raise errors.QuaidError(
            f"{rel_path} holds changes that git does not have, so forgetting it would lose them. "
            f"Commit it first: git add -- {quote(rel_path)} && git commit -- {quote(rel_path)}",
            code="uncommitted",
        )
    return done.id


def _read_uncommitted(root: Path) -> Iterator[UncommittedChange]:
    folder = state_folder(root) / UNCOMMITTED_FOLDER
    for path in sorted(folder.glob("*.json")):
        try:
            data = files.read_note(folder, path.name, _MAX_BYTES) or b""
            record = json.loads(data)
            yield UncommittedChange(path, parse_change(data), str(record["reason"]), str(record["since"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            set_aside(root, f"A change that waited for a commit is damaged ({error})", leftover=path)


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
        edits = tuple(edit for edit in change.edits if _still_applies(root, edit))
        try:
            committed = history.commit(edits, change.message, author=change.author)
        except REFUSALS as error:
            store_uncommitted(root, change, str(error))
            blocked |= {edit.rel_path for edit in change.edits}
            refused += 1
            if refused == MAX_REFUSED:
                return
            continue
        except errors.QuaidError:  # somebody else is at work, or the disk is full: the next write tries again
            return
        left = tuple(edit for edit in edits if edit.rel_path in committed.refused)
        blocked |= {edit.rel_path for edit in left}
        if left:
            store_uncommitted(root, replace(change, edits=left), committed.refusal)
        if left != change.edits:
            waiting.path.unlink(missing_ok=True)


def _still_applies(root: Path, edit: Edit) -> bool:
    """Return whether an edit still applies: the owner may have removed the file or brought it back."""
    return (files.read_note(root, edit.rel_path) is None) == (edit.after is None)


def store_left(root: Path, change: VaultChange, left: Collection[str], refused: Collection[str], refusal: str) -> str:
    """Keep what of a committed `change` git has left out, `refused` or because an earlier change of the same note
    is pending; return the reason, empty if nothing was stored.
    """
    waiting = {edit.rel_path: each.reason for each in list_uncommitted(root) if left for edit in each.change.edits}
    reasons = {path: waiting.get(path, "") for path in left if path in waiting} | dict.fromkeys(refused, refusal)
    edits = tuple(edit for edit in change.edits if edit.rel_path in reasons)
    if not edits:
        return ""
    reason = reasons[edits[0].rel_path]
    store_uncommitted(root, replace(change, edits=edits), reason)
    return reason
