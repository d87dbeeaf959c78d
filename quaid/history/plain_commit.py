"""A commit where nothing of the user's takes part in making it: no hook, no signature, no change of theirs in a note.

`git commit` looks at every file of the work tree, and each step on the way to it reads or writes an index of them all.
Where nobody could tell the difference, the tree is made from that of the last commit instead (trees.py), and git looks
at what it has to know beforehand in processes beside each other. The user's index is written once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from quaid.history import trees
from quaid.history.commit_hook import is_ours
from quaid.history.git_output import Version, hash_blob
from quaid.history.git_process import GitCall, RunCall, quiet_environment
from quaid.history.staging import EXECUTABLE, MADE, NEW_FILE, CommitPart, IndexEntry, Stage, list_entries
from quaid.model import Edit

_SAMPLE = ".sample"


@dataclass(frozen=True)
class PlainPlan:
    """What is committed: the parts, and what each makes of its path in the `folders` of the last commit."""

    parts: Sequence[CommitPart]
    changes: Mapping[str, Version | None]
    folders: trees.Folders


def plan(stage: Stage, edits: Mapping[str, Edit], run_call: RunCall) -> PlainPlan | None:
    """Return the commit of `edits` as they are on disk; None where `git commit` has to make it, or leaves one out."""
    if stage.base is None or _has_hook(stage) or not all(map(stage.is_ordinary, edits)):
        return None
    if any("\n" in path or path.startswith('"') for path in (str(stage.folder), *edits)):  # git reads a line for each
        return None
    with ThreadPoolExecutor() as pool:
        is_ours = pool.submit(_has_settings, stage, run_call)
        reading = pool.submit(trees.read, stage.run, stage.base, edits)
        ignored = pool.submit(stage.find_ignored, [path for path, edit in edits.items() if edit.before is None])
        entries, folders = list_entries(stage.run, list(edits), stage.index), reading.result()
    if is_ours.result() or ignored.result():
        return None
    parts = [_plan_part(path, edit, folders, entries.get(path)) for path, edit in edits.items()]
    if any(part is None or not stage.is_on_disk(part) for part in parts):
        return None
    certain = [part for part in parts if part is not None]
    changes = _store(stage, certain)
    # Looked at again, because somebody may have saved over a note while git was reading it. And what was committed
    # before its filter was configured is left unfiltered by an index, and not by `git hash-object`.
    if not all(stage.is_on_disk(part) and _is_plain(part, changes[part.path]) for part in certain):
        return None
    return PlainPlan(certain, changes, folders)


def create(stage: Stage, planned: PlainPlan, text: bytes, identity: Mapping[str, str], run_call: RunCall) -> str | None:
    """Make the commit, which no branch has yet, have the private index follow, and return the id; None when it would
    change nothing.

    Raises:
        GitError: git refused.
    """
    base = planned.folders.commit
    if all(planned.folders.find(path) == version for path, version in planned.changes.items()):
        return None
    env = {**quiet_environment(stage.repository.top), **identity}
    with ThreadPoolExecutor() as pool:
        following = pool.submit(stage.fill, planned.parts)
        tree = trees.write(stage.run, stage.folder / "trees", planned.folders.change(planned.changes), base)
        args = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", "-p", base, tree)
        made = run_call(GitCall("commit", args, text, env))[1].decode().strip()
        following.result()
    return made


def move_branch(
    stage: Stage, made: str, subject: str, identity: Mapping[str, str], handle: int, run_call: RunCall
) -> None:
    """Have the user's branch at the commit `made`. The caller has their index locked; `handle` keeps the stage's folder
    in use while git runs.

    Raises:
        GitError: git refused, for example because the branch is no longer at the base.
    """
    (stage.folder / MADE).write_text(f"{made}\n", encoding="ascii")  # for the process that finishes it after a kill
    args = ("update-ref", "-m", f"commit: {subject}", "HEAD", made, str(stage.base))
    env = {**quiet_environment(stage.repository.top), **identity}
    run_call(GitCall("commit", args, b"", env, handles=(handle,)))


def _plan_part(path: str, edit: Edit, folders: trees.Folders, entry: IndexEntry | None) -> CommitPart | None:
    """The part that an edit is; None where anything else is in the note, or in its way."""
    head = folders.find(path)
    if folders.has_file_around(path):
        return None
    if head is None or edit.before is None:
        is_new = head is None and edit.before is None and entry is None
        return CommitPart(path, edit) if is_new and edit.after is not None else None
    is_known = entry is not None and entry.version == head and not (entry.hidden or entry.unmerged)
    is_same = hash_blob(edit.before, head.blob) == head.blob and head.mode in (NEW_FILE, EXECUTABLE)
    return CommitPart(path, edit, head.mode) if is_known and is_same else None


def _store(stage: Stage, parts: Sequence[CommitPart]) -> dict[str, Version | None]:
    """Write the files into git as they are on disk, through the user's filters; the version of each part."""
    versions: dict[str, Version | None] = dict.fromkeys(part.path for part in parts)
    kept = [part for part in parts if part.edit.after is not None]
    if kept:
        lines = "".join(f"{part.path}\n" for part in kept).encode("utf-8", "surrogateescape")
        said = stage.run("store a note", "hash-object", "-w", "--stdin-paths", stdin=lines)[1].decode().split()
        versions |= {part.path: Version(part.mode, blob) for part, blob in zip(kept, said, strict=True)}
    return versions


def _is_plain(part: CommitPart, version: Version | None) -> bool:
    if part.edit.before is None or part.edit.after is None or version is None:
        return True
    return hash_blob(part.edit.after, version.blob) == version.blob


def _has_settings(stage: Stage, run_call: RunCall) -> bool:
    """Return whether anything is configured about hooks or signatures; whatever it says, it is rare."""
    env = quiet_environment(stage.repository.top)  # not `Stage.run`, which takes the hooks away
    args = ("config", "-z", "--get-regexp", r"^(commit\.gpgsign|core\.hookspath)$")
    return bool(run_call(GitCall("read the configuration", args, b"", env, accept=(0, 1)))[1])


def _has_hook(stage: Stage) -> bool:
    """Return whether a hook of the owner's may be run; ours has nothing to say of what Quaid commits."""
    hooks = (stage.repository.common_dir / "hooks").glob("*")
    return any(path.suffix != _SAMPLE and os.access(path, os.X_OK) and not is_ours(path) for path in hooks)
