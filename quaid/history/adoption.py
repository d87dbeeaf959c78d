"""The owner's branch and index brought to a commit that was made elsewhere and has all that the branch has.

The files are written already. The index is locked from before the branch moves until it follows; a kill in between
leaves the private folder with the commit's name in it, from which `private_git_dir.recover` goes on.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress

from quaid.errors import GitError, QuaidError
from quaid.history.git_output import parse_raw
from quaid.history.index_lock import IndexLock
from quaid.history.repository import Repository
from quaid.history.staging import EXECUTABLE, NEW_FILE, Changes, CommitPart, RunGit, Stage, update_users_index
from quaid.model import Edit
from quaid.vault import files

ADOPTED = "adopted"
"""In a private folder: the commit that the branch is brought to."""


class StagedWorkError(QuaidError):
    """What the owner has staged stands in the way of what comes from elsewhere."""

    code = "staged_work"

    def __init__(self, paths: list[str]) -> None:
        named = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        super().__init__(
            f"You have staged {named}, which the remote has changed too: nothing was changed. "
            "Commit it with git commit, then try again."
        )


class NotAheadError(GitError):
    """The branch has moved on meanwhile."""

    def __init__(self) -> None:
        super().__init__("move the branch", "it has commits that the other one has not. Try again")


def adopt(stage: Stage, commit_id: str, edits: Mapping[str, Edit], wait_s: float) -> None:
    """Move the branch and the index on to `commit_id`; `edits` are the files that were written, by git's paths.

    Raises:
        NotAheadError, StagedWorkError: nothing was moved.
        LockedError: somebody else has the index locked for longer than `wait_s` seconds.
    """
    if stage.base is None or not includes(stage.run, commit_id, stage.base):
        raise NotAheadError
    changes = list_changes(stage.run, stage.base, commit_id)
    (stage.folder / ADOPTED).write_text(commit_id, encoding="ascii")
    IndexLock(stage.repository, stage.folder).wait(wait_s)
    users = stage.repository.git_dir / "index"
    if users.exists():
        shutil.copyfile(users, stage.index)  # from here on nobody stages anything
    if in_the_way := list_staged(stage.run, stage.base, changes):
        raise StagedWorkError(in_the_way)
    _set_modes(stage.repository, changes)
    moved = ("update-ref", "-m", "quaid: pulled", "HEAD", commit_id, stage.base)
    if stage.run("move HEAD", *moved, accept=(0, 1, 128))[0]:
        raise NotAheadError
    parts = [CommitPart(path, edit, _mode_of(changes, path)) for path, edit in edits.items()]
    try:
        update_users_index(stage, changes, parts)
    except BaseException:
        back = ("update-ref", "-m", "quaid: the index was locked, taken back", "HEAD", stage.base, commit_id)
        if stage.run("take back a commit", *back, accept=(0, 1, 128))[0] == 0:
            raise


def finish(stage: Stage, lock: IndexLock, commit_id: str, wait_s: float) -> None:
    """Have the index follow a branch that was moved to `commit_id` by a process that was killed then."""
    if stage.base is not None and includes(stage.run, "HEAD", commit_id):
        lock.wait(wait_s)
        update_users_index(stage, list_changes(stage.run, stage.base, commit_id), ())


def includes(run: RunGit, commit: str, older: str) -> bool:
    """Return whether `commit` has `older` among what it was made from, or is it."""
    found = run("compare commits", "merge-base", "--is-ancestor", older, commit, accept=(0, 1, 128))
    return found[0] == 0


def list_changes(run: RunGit, old: str, new: str) -> Changes:
    """Path -> (old, new) of what makes one commit's tree of the other's."""
    shape = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames")
    return {
        path: (before, after) for path, before, after in parse_raw(run("compare", "diff-tree", *shape, old, new)[1])
    }


def list_staged(run: RunGit, base: str, changes: Changes) -> list[str]:
    """Return those paths of `changes` that the owner has staged otherwise."""
    args = ("--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--ita-visible-in-index", base)
    staged = parse_raw(run("compare the index with HEAD", "diff-index", *args)[1])
    return [path for path, _, theirs in staged if path in changes and theirs != changes[path][1]]


def read_adopted(stage: Stage) -> str | None:
    """Return the commit that a killed process was bringing the branch to in this folder; None if it did not."""
    data = files.read_note(stage.folder, ADOPTED, 100)
    return data.decode("ascii", "replace").strip() if data else None


def _mode_of(changes: Changes, path: str) -> str:
    new = changes[path][1] if path in changes else None
    return new.mode if new else NEW_FILE


def _set_modes(repository: Repository, changes: Changes) -> None:
    """Make files executable, or not, as the commit has them."""
    for path, (old, new) in changes.items():
        if new is None or new.mode not in (NEW_FILE, EXECUTABLE) or (old is None and new.mode == NEW_FILE):
            continue
        place = repository.top / path
        with suppress(OSError):
            mode = place.lstat().st_mode
            wanted = mode | 0o111 if new.mode == EXECUTABLE else mode & ~0o111
            if stat.S_ISREG(mode) and wanted != mode and (old is None or old.mode != new.mode):
                place.chmod(wanted & 0o7777)
