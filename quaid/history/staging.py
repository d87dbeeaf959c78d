"""The content of Quaid's commit, worked out on a private copy of the index; git runs through a callable.

Four versions of a note matter: the one in HEAD, the one in the user's index, and the edit's before and after.
Where the first three agree, the note on disk is committed as it is. Where they do not, the user has changes of
their own in it; then only the difference from before to after is applied, to HEAD and to the index separately.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from quaid.errors import GitError
from quaid.history.commit_hook import BY_QUAID
from quaid.history.git_output import Version, hash_blob, join_items, parse_raw, split_items
from quaid.history.git_process import GitCall, RunCall
from quaid.history.index_lock import IndexLock
from quaid.history.repository import Repository
from quaid.model import Edit
from quaid.vault import files

NEW_FILE = "100644"
EXECUTABLE = "100755"
BEGUN = "index.begun"
MADE = "made"
_GUARD_REFUSED = "guard-refused"
_COMMIT_MADE = re.compile(r"^\[\S++.*? ([0-9a-f]{4,64})\] ")
MAX_ARGUMENTS = 200
"""More paths than this are looked up by listing everything: a command line has an end."""


Changes = Mapping[str, tuple[Version | None, Version | None]]
"""What a commit changed: path to (old, new)."""


class RunGit(Protocol):
    """Runs git in the work tree and returns (exit code, stdout); raises GitError for codes not in `accept`."""

    def __call__(
        self, doing: str, *args: str, stdin: bytes = b"", index: Path | None = None, accept: Sequence[int] = (0,)
    ) -> tuple[int, bytes]: ...


@dataclass(frozen=True)
class IndexEntry:
    """A path's line in an index. `hidden` is skip-worktree or assume-unchanged: git does not look at the disk."""

    version: Version
    hidden: bool = False
    unmerged: bool = False


@dataclass(frozen=True)
class CommitPart:
    """One path's part of the commit. Without a `blob` it is the edit's `after`, as found on disk."""

    path: str
    edit: Edit
    mode: str = NEW_FILE
    blob: str | None = None


class Skip(Enum):
    """The reason why an edit has no part in the commit."""

    DONE = "HEAD already has it"
    LEFT = "it cannot be told apart from the user's own uncommitted work"


@dataclass(frozen=True)
class CommitPlan:
    """`parts` make the commit; the paths in `left` stay uncommitted, those in `ignored` by the rule that it names."""

    parts: list[CommitPart] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """The place where one commit is put together: a private git directory at `folder`, whose index began as the user's.

    `base` is the commit HEAD was at, None before the first one.
    """

    run: RunGit
    repository: Repository
    folder: Path
    base: str | None

    @property
    def index(self) -> Path:
        return self.folder / "index"

    @property
    def begun(self) -> Path:
        """The file itself that was the user's index in the beginning, where the file system has hard links."""
        return self.folder / BEGUN

    def plan(self, edits: Mapping[str, Edit]) -> CommitPlan:
        """Decide for each path what is committed. Paths are git's, relative to the work tree."""
        for path in edits:
            self._check_not_nested(path)
        staged = self._list_staged()
        entries = list_entries(self.run, list(edits), self.index)
        linked = set(filter(self._is_linked, edits))
        ignored = self.find_ignored([path for path in edits if path not in {*entries, *staged, *linked}])
        if self.base is None:
            self.run("begin an index", "read-tree", "--empty", index=self.index)
        elif staged or not self.index.exists():
            self.run("read HEAD", "read-tree", "--reset", self.base, index=self.index)
        plan = CommitPlan(ignored=ignored)
        for path, edit in edits.items():
            entry = entries.get(path)
            head = staged.get(path, entry.version if entry and self.base else None)
            found = Skip.LEFT if path in ignored or path in linked else self._plan_edit(path, edit, head, entry)
            if isinstance(found, CommitPart):
                plan.parts.append(found)
            elif found is Skip.LEFT:
                plan.left.append(path)
        return plan

    def fill(self, parts: Sequence[CommitPart]) -> None:
        """Put the parts into the private index, from disk where they are there, so that git knows the files."""
        on_disk = [part for part in parts if part.blob is None and self.is_on_disk(part)]
        self.put_from_disk([part.path for part in on_disk], self.index)
        # Looked at again, because somebody may have saved over a note while git was reading it.
        read = {part.path for part in on_disk if self.is_on_disk(part)}
        self.put_versions({part.path: self._get_version(part) for part in parts if part.path not in read}, self.index)

    def put_from_disk(self, paths: Sequence[str], index: Path) -> None:
        """Make an index have these files as on disk, or not at all where there is no file."""
        if paths:
            args = ("update-index", "-z", "--add", "--remove", "--stdin")
            self.run("update the index", *args, stdin=join_items(paths), index=index)

    def put_versions(self, versions: Mapping[str, Version | None], index: Path) -> None:
        """Make an index have these versions (None removes the path), whatever is on disk."""
        null = "0" * len(self.base or "")
        lines = [f"{v.mode} {v.blob}\t{path}" if v else f"0 {null}\t{path}" for path, v in versions.items()]
        if lines:
            args = ("update-index", "-z", "--add", "--index-info")
            self.run("update the index", *args, stdin=join_items(lines), index=index)

    def is_on_disk(self, part: CommitPart) -> bool:
        """Return True if the file is byte for byte what the edit made it, with the mode the part wants."""
        path = self.repository.top / part.path
        try:
            mode = path.lstat().st_mode
            if part.edit.after is None or not stat.S_ISREG(mode):
                return False
            return bool(mode & stat.S_IXUSR) == (part.mode == EXECUTABLE) and files.read_file(path) == part.edit.after
        except (FileNotFoundError, NotADirectoryError):
            return part.edit.after is None

    def apply(self, version: Version, old: str, new: str) -> str | None:
        """The blob that `version` becomes when the change from `old` to `new` is made to it; None if they collide."""
        if version.blob in (old, new):
            return new
        names = ("current", "old", "new")
        with tempfile.TemporaryDirectory(prefix="quaid-merge-") as folder:
            for name, blob in zip(names, (version.blob, old, new), strict=True):
                (Path(folder) / name).write_bytes(self.run("read a note", "cat-file", "blob", blob)[1])
            paths = [str(Path(folder) / name) for name in names]
            # Any other code counts conflicts, or says that a side is binary.
            code, merged = self.run("merge a note", "merge-file", "-p", "--quiet", *paths, accept=range(256))
        return self._store(merged) if code == 0 else None

    def is_empty(self) -> bool:
        """Return True if the private index is what HEAD has."""
        if self.base is None:
            return False
        args = ("diff-index", "--cached", "--quiet", self.base)
        return self.run("compare the index with HEAD", *args, index=self.index, accept=(0, 1))[0] == 0

    def _plan_edit(self, path: str, edit: Edit, head: Version | None, entry: IndexEntry | None) -> CommitPart | Skip:
        if head is None:
            return self._plan_creation(path, edit, entry)
        if edit.after is not None and hash_blob(edit.after, head.blob) == head.blob:
            return Skip.DONE
        if edit.before is None or entry is None or entry.unmerged or head.mode not in (NEW_FILE, EXECUTABLE):
            return Skip.LEFT
        is_ours = entry.version == head and self._is_version(path, edit.before, head)
        if edit.after is None:
            return CommitPart(path, edit, head.mode) if is_ours else Skip.LEFT
        if is_ours and not entry.hidden:
            part = CommitPart(path, edit, head.mode)
            if self.is_on_disk(part):
                return part
        return self._plan_merge(path, edit, head, entry)

    def _plan_creation(self, path: str, edit: Edit, entry: IndexEntry | None) -> CommitPart | Skip:
        if edit.before is None and edit.after is None:
            return Skip.DONE
        if edit.before is not None or entry is not None:
            return Skip.LEFT
        return CommitPart(path, edit)

    def _plan_merge(self, path: str, edit: Edit, head: Version, entry: IndexEntry) -> CommitPart | Skip:
        old, new = self._store_both(path, edit, head)
        blob = self.apply(head, old, new)
        if blob is None or (entry.version != head and self.apply(entry.version, head.blob, blob) is None):
            return Skip.LEFT
        return Skip.DONE if blob == head.blob else CommitPart(path, edit, head.mode, blob)

    def _store_both(self, path: str, edit: Edit, head: Version) -> tuple[str, str]:
        """The blobs of before and after, in the form HEAD keeps."""
        before, after = edit.before or b"", edit.after or b""
        if hash_blob(before, head.blob) == head.blob and self._store(before, path) != head.blob:
            # Committed before its filter was configured, say with CRLF. git leaves such files as they are.
            return head.blob, self._store(after)
        return self._store(before, path), self._store(after, path)

    def _is_version(self, path: str, data: bytes, version: Version) -> bool:
        return hash_blob(data, version.blob) == version.blob or self._store(data, path) == version.blob

    def _get_version(self, part: CommitPart) -> Version | None:
        if part.edit.after is None:
            return None
        return Version(part.mode, part.blob or self._store(part.edit.after, part.path))

    def _store(self, data: bytes, path: str | None = None) -> str:
        """Write a blob; `path` is whose filters and line ends apply."""
        how = "--no-filters" if path is None else f"--path={path}"
        return self.run("store a note", "hash-object", "-w", "--stdin", how, stdin=data)[1].decode().strip()

    def _list_staged(self) -> dict[str, Version | None]:
        """Return HEAD's version of each path that the user's index changes."""
        if self.base is None:
            return {}
        # An intent to add has to show, or its empty blob would pass for what HEAD has.
        args = ("--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--ita-visible-in-index", self.base)
        _, out = self.run("compare the index with HEAD", "diff-index", *args, index=self.index)
        return {path: old for path, old, _ in parse_raw(out)}

    def find_ignored(self, paths: Sequence[str]) -> dict[str, str]:
        """Return for each ignored path the rule that ignores it."""
        if not paths:
            return {}
        args = ("--no-literal-pathspecs", "check-ignore", "-v", "-z", "--stdin", "--no-index")
        _, out = self.run("read .gitignore", *args, stdin=join_items(paths), accept=(0, 1))
        fields = out.decode("utf-8", "surrogateescape").split("\0")
        rules = zip(*(iter(fields),) * 4, strict=False)
        return {path: f"{rule!r} in {file}" for file, _, rule, path in rules if not rule.startswith("!")}

    def is_ordinary(self, path: str) -> bool:
        """Return True if no link is on the way to a file, and no other repository around it."""
        return not self._is_linked(path) and not any((parent / ".git").exists() for parent in self._list_parents(path))

    def _is_linked(self, path: str) -> bool:
        return any(place.is_symlink() for place in (self.repository.top / path, *self._list_parents(path)))

    def _check_not_nested(self, path: str) -> None:
        for parent in self._list_parents(path):
            if (parent / ".git").exists():
                raise GitError(f"commit {path}", f"it belongs to another repository, {parent}. Open a vault there.")

    def _list_parents(self, path: str) -> list[Path]:
        """The folders between the work tree's top and the file."""
        top = self.repository.top
        return [top / parent for parent in Path(path).parents if parent != Path()]


def _guard_command(stage: Stage) -> str:
    """Return a shell command, in the place of the editor, that locks the user's index. It refuses, which
    `is_refused_by_guard` tells, if somebody else has locked it, HEAD moved, a merge or the like began, or its maker is
    dead.
    """
    git_dir = stage.repository.git_dir
    heads = [f"$(cat {shlex.quote(str(folder / 'HEAD'))})" for folder in (stage.folder, git_dir)]
    tests = [f'"{heads[0]}" = "{heads[1]}"', f'"$(git rev-parse -q --verify HEAD)" = "{stage.base or ""}"']
    names = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
    tests += [f"! -e {shlex.quote(str(git_dir / name))}" for name in names]
    # git appends the message's file name; the comment sign takes it away.
    lock = IndexLock(stage.repository, stage.folder).take_command()
    guard = " && ".join([f"kill -0 {os.getpid()}", lock, *(f"test {test}" for test in tests)])
    return f"{{ {guard}; }} || {{ touch {shlex.quote(str(stage.folder / _GUARD_REFUSED))}; false; }} #"


def is_refused_by_guard(stage: Stage) -> bool:
    """Return True if the guard of a commit has refused it, so that somebody else goes first."""
    return (stage.folder / _GUARD_REFUSED).exists()


def commit_by_git(stage: Stage, text: bytes, identity: Mapping[str, str], handle: int, run_call: RunCall) -> str | None:
    """Commit what the stage holds by `git commit`, for the user's hooks or signature, a merge, or work of theirs in a
    note. Return the id as git says it, short; None when it does not say it.

    git takes for parent whatever HEAD is when it starts, and our tree is built on `base`. So the editor, which runs
    later, locks the user's index and checks that HEAD is still `base`; from there on git refuses if it moves. `handle`
    keeps the stage's folder in use while git runs.

    Raises:
        GitError: git, a hook, the signing program or our guard refused, or there was nothing to commit.
    """
    # The user's own language again, for the hooks; an empty value counts as none.
    locale = {name: os.environ.get(name, "") for name in ("LC_ALL", "LANGUAGE")}
    env = {**locale, **identity, "GIT_EDITOR": _guard_command(stage), BY_QUAID: "1"}
    env |= {"GIT_DIR": str(stage.folder), "GIT_WORK_TREE": str(stage.repository.top)}
    settings = (
        # The message is committed byte for byte; a daemon or a collection begun here would outlive its folder.
        *("commit.template=", "core.commentChar=#", "i18n.commitEncoding=UTF-8"),
        *("core.fsmonitor=false", "maintenance.auto=false"),
    )
    config = [word for setting in settings for word in ("-c", setting)]
    args = [*config, "commit", "--edit", "--cleanup=verbatim", "--no-status", "--no-verbose", "--file=-"]
    _, out = run_call(GitCall("commit", args, text, env, handles=(handle,)))
    found = _COMMIT_MADE.match(out.decode("utf-8", "replace"))
    return found[1] if found else None


def finish_commit(stage: Stage, made: str, parts: Sequence[CommitPart], subject: str, wait_s: float) -> str | None:
    """Make HEAD and the user's index know of the commit `made`, or take it back and raise.

    Returns the full id, None when a detached HEAD is somewhere else by now.
    """
    commit_id, changes = read_changes(stage.run, made)
    # The commit was made with a private HEAD. If that names a branch, the branch has moved and the user's HEAD with
    # it, all but its reflog; a detached one has yet to move.
    is_detached = not (stage.folder / "HEAD").read_bytes().startswith(b"ref:")
    if is_detached and not _move_head(stage, commit_id, stage.base or commit_id, subject):
        return None
    follow_commit(stage, commit_id, changes, parts, wait_s)
    if not is_detached:
        # Last, with the lock still ours: a git of the user's that has read the old index finds it locked, and gives up.
        _move_head(stage, commit_id, commit_id, subject)
    return commit_id


def follow_commit(
    stage: Stage, commit_id: str, changes: Changes | None, parts: Sequence[CommitPart], wait_s: float
) -> None:
    """Make the user's index follow the commit that HEAD is at, or take it back and raise.

    The lock of the index, taken before the commit, is waited for should somebody have removed it since. Without
    `changes` the private index differs from the user's of the beginning by nothing but the commit: it takes its place,
    if that is still there.
    """
    try:
        IndexLock(stage.repository, stage.folder).wait(wait_s)
        if changes is None and not _is_as_begun(stage):
            changes = read_changes(stage.run, commit_id)[1]
        update_users_index(stage, changes, parts)
    except BaseException:
        # An index that lags behind HEAD would undo the commit with the user's next one. Seconds old and known to
        # nobody, it goes, unless somebody has built on it already.
        target = ["HEAD", stage.base, commit_id] if stage.base else ["-d", "HEAD", commit_id]
        args = ("update-ref", "-m", "quaid: the index was locked, commit taken back", *target)
        if stage.run("take back a commit", *args, accept=(0, 1, 128))[0] == 0:
            raise


def read_changes(run: RunGit, commit: str) -> tuple[str, Changes]:
    """A commit's full id, and what it changed: path to (old, new); of a merge, against its first parent."""
    shape = ("--root", "-m", "-r", "-z", "--no-renames", "--no-abbrev", "--format=%H")
    commit_id, _, out = run("read a commit", "diff-tree", *shape, f"{commit}^{{commit}}")[1].partition(b"\0")
    out = out.split(commit_id + b"\0", 1)[0]
    return commit_id.decode(), {path: (old, new) for path, old, new in parse_raw(out)}


def list_entries(run: RunGit, paths: Sequence[str], index: Path | None = None) -> dict[str, IndexEntry]:
    """The lines that an index (None is the user's own) has for `paths`."""
    wanted = ("--", *paths) if len(paths) <= MAX_ARGUMENTS else ()
    args = ("ls-files", "-s", "-v", "-z", *wanted)
    _, out = run("read the index", *args, index=index)
    asked, entries = set(paths), {}
    for line in split_items(out):
        # "H 100644 <blob> <stage>\t<path>": a small letter is assume-unchanged, S skip-worktree.
        head, _, path = line.partition("\t")
        if path in asked:
            tag, mode, blob, stage = head.split(" ")
            entries[path] = IndexEntry(Version(mode, blob), hidden=tag.islower() or tag == "S", unmerged=stage != "0")
    return entries


def update_users_index(stage: Stage, changes: Changes | None, parts: Sequence[CommitPart]) -> None:
    """Make the user's own index follow a commit's `changes`, path to (old, new); what they staged stays staged. With
    None the private index is what theirs is to be.

    Paths the commit changed beyond the parts, by a hook, are followed too: else the next `git commit` undid them. The
    caller holds the lock of the index: a copy is changed and put in its place, as git does.
    """
    users, copy = stage.repository.git_dir / "index", stage.folder / "index.next"
    if changes is None:
        stage.index.replace(users)
        return
    copy.unlink(missing_ok=True)
    copy.with_name("index.next.lock").unlink(missing_ok=True)
    if users.exists():
        shutil.copy2(users, copy)
    entries = list_entries(stage.run, list(changes), copy)
    by_path = {part.path: part for part in parts}
    targets: dict[str, Version | None] = {}
    from_disk = []
    for path, (old, new) in changes.items():
        entry = entries.get(path)
        current = entry.version if entry else None
        if current == new or (entry and entry.unmerged):
            continue
        part = by_path.get(path)
        if current != old:
            if current and old and new and (blob := stage.apply(current, old.blob, new.blob)):
                targets[path] = Version(current.mode, blob)
        elif new and part and not (entry and entry.hidden) and _makes(part, new) and stage.is_on_disk(part):
            from_disk.append(part)
        else:
            targets[path] = new
    # Read from disk rather than set by name where possible: only so git remembers size and time of the file, and
    # need not read it again for every later status and commit.
    gone = {path: None for path, version in targets.items() if version is None}
    stage.put_versions(gone, copy)  # first: the commit may have a file in the place of a folder, or the other way
    stage.put_from_disk([part.path for part in from_disk], copy)
    targets |= {part.path: changes[part.path][1] for part in from_disk if not stage.is_on_disk(part)}
    stage.put_versions(targets, copy)
    if from_disk or targets:
        copy.replace(users)


def _is_as_begun(stage: Stage) -> bool:
    """Return whether the user's index is still the file that the private one is a copy of; git writes a new one."""
    with suppress(OSError):
        return stage.begun.samefile(stage.repository.git_dir / "index")
    return False


def _move_head(stage: Stage, commit_id: str, old: str, subject: str) -> bool:
    how = ("update-ref", "-m", f"commit: {subject}", "HEAD", commit_id, old)
    return stage.run("move HEAD", *how, accept=(0, 1, 128))[0] == 0


def _makes(part: CommitPart, version: Version | None) -> bool:
    if part.edit.after is None or version is None:
        return part.edit.after is None and version is None
    return version.mode == part.mode and version.blob == hash_blob(part.edit.after, version.blob)
