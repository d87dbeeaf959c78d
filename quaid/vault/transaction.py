"""The one order of a write: lock, finish what a killed write left, guard, write the files, commit.

The steps and what a kill at each leaves behind: the intention is written to pending.json in the vault's state, then the
files, then the commit, then the intention is removed. The next writer finds a leftover intention and finishes it,
so the vault ends as if nothing had happened; a repeated call recognises its own `key` and does nothing twice. One that
cannot be finished is undone and set aside: it must not be in the way of every later write. A memory that git refuses to
commit stays in the vault and waits for the next write, and so does one that is worth no commit (uncommitted.py).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from quaid.errors import DiskFullError, GitMissingError, LockedError, NoteChangedError, QuaidError
from quaid.model import Committed, Edit, Message
from quaid.place import LOCK_FILE, state_folder
from quaid.vault import file_swap, files, intent_log, old_versions, uncommitted
from quaid.vault.intent_log import PENDING_FILE, VaultChange, list_unfinished

__all__ = ["PENDING_FILE", "VaultChange", "apply", "begin", "finish_killed", "list_unfinished", "needs_recovery"]

MAX_WATCHED = 16
"""Old files that are held open until a write is over, of which there may be thousands."""
_TEMPORARY = (LockedError, NoteChangedError, DiskFullError, GitMissingError)
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


@contextmanager
def begin(
    root: Path, history: History, wait_s: float, say: Callable[[str], None] | None = None
) -> Iterator[VaultChange | None]:
    """Hold the vault's write lock while a change is planned and applied; the change that a killed process had begun
    and that was finished first, if any.

    Raises:
        LockedError: another process kept the lock, or git was not ready, for longer than `wait_s` seconds.
    """
    with _locked(root, wait_s):
        history.wait_until_ready(say)
        finished = _recover(root, history)
        uncommitted.commit_waiting(root, history)
        yield finished


def apply(root: Path, change: VaultChange, history: History) -> Committed:
    """Write every file and commit, or leave everything as it was. The caller is within `begin`.

    A change that `stays` is kept where git refuses to commit it: its paths are `left`, and the next write tries again.

    Raises:
        NoteChangedError: a file is not what its edit was planned on.
        LockedError: an editor does not end saving one.
        QuaidError: the disk or git refused; the files are as before.
    """
    old_versions.set_aside_saved(root, history.git_dir)
    with _holding_old_files(root, change.edits, history.git_dir) as old:
        intent_log.write(root, change)
        done: list[Edit] = []
        try:
            for edit in change.edits:
                _write(root, change, edit)
                done.append(edit)
            committed = _commit(root, change, history)
        except BaseException:
            _roll_back(root, change, done)
            intent_log.clear(root)
            _restore_saved(root, old)
            raise
        intent_log.clear(root)
        _restore_saved(root, old)
    return committed


def _commit(root: Path, change: VaultChange, history: History) -> Committed:
    if change.adopted:
        return history.adopt(change.edits, change.adopted)
    if change.travels and not _touches_committed(change, history):
        uncommitted.keep(root, change, "")
        return Committed(None)
    own = tuple(edit.rel_path for edit in change.edits)
    travelling = uncommitted.list_travelling(root) if change.stays and change.merged is None else []
    change = uncommitted.join(root, change, travelling)
    try:
        committed = history.commit(change.edits, change.message, author=change.author, merged=change.merged)
    except uncommitted.REFUSALS as error:
        if not change.stays:
            raise
        uncommitted.keep(root, change, str(error))
        uncommitted.forget(travelling)
        return Committed(None, own, own, str(error))
    uncommitted.forget(travelling)
    if change.stays and committed.left:
        kept = uncommitted.keep_left(root, change, committed.left, committed.refused, committed.refusal)
        return replace(committed, left=tuple(path for path in committed.left if path in own), refusal=kept)
    return committed


def _touches_committed(change: VaultChange, history: History) -> bool:
    """Return whether git has a file of `change`. Such a file cannot wait for the next commit: `git pull --rebase`
    refuses while it differs from the last one.
    """
    return any(history.read_at("HEAD", edit.rel_path) is not None for edit in change.edits)


def _recover(root: Path, history: History) -> VaultChange | None:
    """Finish what a killed process began, and say what that was. The caller is within `begin`.

    What cannot be finished is set aside, as `list_unfinished` tells.

    Raises:
        LockedError, NoteChangedError: somebody is at work; the next writer finishes it.
        DiskFullError, VaultReadOnlyError, GitMissingError: nothing can be written.
    """
    change = intent_log.read(root)
    if change is None:
        return None
    finished: VaultChange | None = change
    try:
        history.recover()
        _finish(root, change, history)
    except QuaidError as error:
        cause = error.__cause__
        if isinstance(error, _TEMPORARY) or (isinstance(cause, OSError) and cause.errno in _REFUSED):
            raise  # the same may go through later
        _roll_back(root, change, change.edits)
        reason = f'"{change.message.subject}" could not be finished: {error}'
        intent_log.set_aside(root, reason, change.edits, intent_log.locate(root))
        finished = None
    for leftover in files.iterate_leftovers(root):
        _remove_leftover(root, leftover, change)
    intent_log.clear(root)
    return finished


def finish_killed(root: Path, history: History, wait_s: float) -> None:
    """Finish what a killed writer had begun, if anything, and commit what waits for it."""
    if needs_recovery(root) or uncommitted.list_uncommitted(root):
        with begin(root, history, wait_s):
            pass


def needs_recovery(root: Path) -> bool:
    """Return True if a killed write waits to be finished."""
    return os.path.lexists(intent_log.locate(root))


@contextmanager
def _locked(root: Path, wait_s: float) -> Iterator[None]:
    """Only one process writes a vault at a time; the lock dies with its holder.

    Raises:
        LockedError: another process kept it longer than `wait_s` seconds.
    """
    from filelock import FileLock, Timeout

    path = state_folder(root) / LOCK_FILE
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path, timeout=wait_s, mode=0o600):
            yield
    except Timeout as error:
        raise LockedError(f"Another Quaid is writing to {root}") from error
    except OSError as error:
        raise files.explain(error, path) from error


def _finish(root: Path, change: VaultChange, history: History) -> None:
    if change.adopted:
        _finish_adopting(root, change, change.adopted, history)
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


def _finish_adopting(root: Path, change: VaultChange, commit_id: str, history: History) -> None:
    """Go on with what came from elsewhere, or take it back where its owner has gone on meanwhile: the next pull brings
    it again.
    """
    if history.has_adopted(commit_id):
        return
    try:
        for edit in change.edits:
            if files.read_note(root, edit.rel_path) != edit.after:
                _write(root, change, edit)
        history.adopt(change.edits, commit_id)
    except QuaidError:
        # What its owner has committed since is theirs.
        stale = [edit for edit in change.edits if history.read_at("HEAD", edit.rel_path) == edit.before]
        _roll_back(root, change, stale)


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
            with ExitStack() as looking:
                handle = _open_old(root, edit, looking)
                if handle is not None and file_swap.is_written(handle) is None:
                    old_versions.keep(root, git_dir, edit)
                if handle is not None and len(held) < MAX_WATCHED:
                    stack.push(looking.pop_all())
                    held.append((handle, edit))
        yield held


def _open_old(root: Path, edit: Edit, stack: ExitStack) -> int | None:
    if edit.before is None or not files.is_file_in(root, edit.rel_path):
        if files.read_note(root, edit.rel_path) != edit.before:
            raise NoteChangedError(edit.rel_path)
        return None
    try:
        handle = stack.enter_context(file_swap.opened(root / edit.rel_path))
    except FileNotFoundError as error:
        raise NoteChangedError(edit.rel_path) from error
    if file_swap.read_saved(handle, edit.rel_path) != edit.before:
        raise NoteChangedError(edit.rel_path)
    return handle


def _restore_saved(root: Path, old: Sequence[tuple[int, Edit]]) -> None:
    """Look at the old files a last time: text that an editor saved into one belongs to the note."""
    for place in file_swap.find_touched([(handle, edit.before or b"") for handle, edit in old]):
        handle, edit = old[place]
        if file_swap.is_at(handle, root / edit.rel_path):
            continue
        try:
            data, now = file_swap.read_saved(handle, edit.rel_path), files.read_note(root, edit.rel_path)
            if data not in (edit.before, now):
                files.write_note(root, edit.rel_path, edit.before if now == edit.before else edit.after, data)
        except QuaidError as error:
            reason = f"An editor saved {edit.rel_path} while Quaid wrote it: {error}"
            intent_log.set_aside(root, reason, [Edit(edit.rel_path, None, file_swap.read_now(handle))])


def _write(root: Path, change: VaultChange, edit: Edit) -> None:
    # What was committed elsewhere may be a hidden file of the owner's.
    more = {"may_be_hidden": True} if change.adopted else {}
    files.write_note(root, edit.rel_path, edit.before, edit.after, **more)


def _roll_back(root: Path, change: VaultChange, done: Sequence[Edit]) -> None:
    for edit in reversed(done):
        with suppress(QuaidError, OSError):  # rewritten by somebody else since: theirs now
            _write(root, change, replace(edit, before=edit.after, after=edit.before))


def _remove_leftover(root: Path, leftover: Path, change: VaultChange) -> None:
    """Remove what a killed write left of a file, unless it holds what nobody else has."""
    data = files.read_note(leftover.parent, leftover.name) or b""
    if any(text is not None and text.startswith(data) for edit in change.edits for text in (edit.before, edit.after)):
        leftover.unlink(missing_ok=True)
    else:
        intent_log.set_aside(root, f"A killed write left {leftover.name}", leftover=leftover)
