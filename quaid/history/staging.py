"""The content of Quaid's commit, prepared in a private copy of the user's index.

Four versions of a note matter: the one in HEAD, the one in the user's index, and the edit's before and after. Where
the first three agree, the note on disk is committed as it is. Where they do not, the user has changes of their own in
it; then only the difference from before to after is applied, to HEAD and to the index separately.
"""

import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quaid.errors import GitError
from quaid.history.commit_folder import CommitFolder
from quaid.history.git import (
    Changes,
    Git,
    ObjectReader,
    Version,
    hash_blob,
    join_items,
    parse_raw,
    parse_tree_object,
    split_items,
)
from quaid.model import Edit
from quaid.vault import files

NEW_FILE = "100644"
EXECUTABLE = "100755"
REGULAR = (NEW_FILE, EXECUTABLE)
MAX_ARGUMENTS = 200
"""More paths than this are looked up by listing everything: a command line has an end."""
_SETTINGS = "commit.gpgsign,core.hookspath,user.email"
_TRACE = "trace"


class IndexEntry(NamedTuple):
    """A path's line in an index. `hidden` is skip-worktree or assume-unchanged: git does not look at the disk."""

    version: Version
    hidden: bool = False
    unmerged: bool = False


class CommitPart(NamedTuple):
    """One path's part of the commit. Without a `blob` it is the edit's `after`, as found on disk."""

    path: str
    edit: Edit
    mode: str = NEW_FILE
    blob: str | None = None

    def makes(self, version: Version) -> bool:
        """Return whether the edit's `after`, unfiltered, is this version."""
        after = self.edit.after
        return after is not None and version == Version(self.mode, hash_blob(after, version.blob))


class Stage:
    """The content of one commit, in the index of a commit folder.

    `parts` are committed. The paths in `left` stay uncommitted because their changes cannot be separated from the
    user's own uncommitted work, those in `ignored` because of the rule that it names. `is_simple` says that the index
    differs from the user's by the parts alone. `settings` are the user's that decide how the commit is made.
    """

    def __init__(self, git: Git, folder: CommitFolder) -> None:
        self.git = git
        self._top = git.repository.top
        self.folder = folder
        self.base = folder.base
        self.parts: list[CommitPart] = []
        self.left: list[str] = []
        self.ignored: dict[str, str] = {}
        self.is_simple = False
        self.tree = ""
        self.settings: Mapping[str, str] = {}

    def prepare(self, edits: Mapping[str, Edit]) -> None:
        """Stage what can be committed of the edits, whose files are written. Paths are git's, relative to the top."""
        for path in edits:
            for parent in self._list_parents(path):
                if (parent / ".git").exists():
                    raise GitError(f"commit {path}", f"it belongs to another repository, {parent}. Open a vault there.")
        trace = self.folder.path / _TRACE
        # git reports these settings when it is traced: that saves a process at each commit.
        env = {"GIT_TRACE2_EVENT": str(trace), "GIT_TRACE2_CONFIG_PARAMS": _SETTINGS}
        with self.git.reading({**env, "GIT_INDEX_FILE": str(self.folder.index)}) as objects:
            self.is_simple = self.base is not None and self._stage_from_disk(objects, self.base, edits)
        self.settings = {"core.hookspath": "unknown"}
        if trace.is_file():
            lines = trace.read_text("utf-8", "replace").splitlines()
            events = [json.loads(line) for line in lines if '"def_param"' in line]
            # Those of the command line are our own.
            own = (event for event in events if event.get("scope") != "command")
            self.settings = {event["param"].lower(): event["value"] for event in own}
        if not self.is_simple:
            self._plan(edits)
            if self.parts:
                # From disk where they are there, so that git knows the files.
                on_disk = [part for part in self.parts if part.blob is None and self.is_on_disk(part)]
                self.put_from_disk([part.path for part in on_disk], self.folder.index)
                # Checked again, because somebody may have saved over a note while git was reading it.
                read = {part.path for part in on_disk if self.is_on_disk(part)}
                versions: dict[str, Version | None] = {}
                for path, edit, mode, blob in (part for part in self.parts if part.path not in read):
                    data = edit.after
                    versions[path] = None if data is None else Version(mode, blob or self.git.store(data, path))
                self.put_versions(versions, self.folder.index)
                self.tree = self.git.read_text("write a tree", "write-tree", index=self.folder.index)

    def has_changes(self) -> bool:
        """Return whether the index differs from HEAD."""
        if self.is_simple or self.base is None:
            return bool(self.parts)
        return self.tree != self.git.read_text("read HEAD", "rev-parse", f"{self.base}^{{tree}}")

    # -- nothing of the user's is in the way -----------------------------------------------------------------------

    def _stage_from_disk(self, objects: ObjectReader, base: str, edits: Mapping[str, Edit]) -> bool:
        """Stage the files as they are on disk. Return False, and stage nothing, where anything else is staged, or one
        of them was not in HEAD and in the index what its edit was planned on.
        """
        if not edits or any("\n" in path or not self.is_ordinary(path) for path in edits):
            return False
        if objects.find(base) is None:  # git failed, and `Git.stream` says why
            return False
        for path, edit in edits.items():
            versions = [objects.find(name) for name in (f"{base}:{path}", f":0:{path}")]
            if [found and found.data for found in versions] != [edit.before] * 2 or not self._holds(path, edit):
                return False
        index = self.folder.index
        args = ("add", "--pathspec-from-file=-", "--pathspec-file-nul")  # refuses what .gitignore names
        changes: Changes = {}
        try:
            self.git.run("stage notes", *args, stdin=join_items(edits), index=index)
            # Checked again, because somebody may have saved over a note while git was reading it.
            if all(self._holds(path, edit) for path, edit in edits.items()):
                self.tree = self.git.read_text("write a tree", "write-tree", index=index)
                changes = dict(_compare(objects, f"{base}^{{tree}}", self.tree))
        except GitError:  # planned with more care, it may go through, or fails again
            changes = {}
        if changes.keys() != edits.keys() or not all(_fits(edit, *changes[path]) for path, edit in edits.items()):
            self.folder.copy_index()
            return False
        for path, edit in edits.items():
            version = changes[path][1]
            self.parts.append(CommitPart(path, edit, version.mode if version else NEW_FILE))
        return True

    def _holds(self, path: str, edit: Edit) -> bool:
        """Return whether a file on disk is what an edit made it."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return stat.S_ISREG((self._top / path).lstat().st_mode) and files.read_file(self._top / path) == edit.after
        return edit.after is None

    # -- some of it may be ------------------------------------------------------------------------------------------

    def _plan(self, edits: Mapping[str, Edit]) -> None:
        """Decide for each path what is committed."""
        index = self.folder.index
        # HEAD's version of each path that the user's index changes.
        staged = {path: old for path, (old, _) in diff_index(self.git, self.base, index).items()} if self.base else {}
        entries = list_entries(self.git, list(edits), index)
        linked = set(filter(self._is_linked, edits))
        unknown = [path for path in edits if path not in {*entries, *staged, *linked}]
        if unknown:
            args = ("--no-literal-pathspecs", "check-ignore", "-v", "-z", "--stdin", "--no-index")
            _, out = self.git.run("read .gitignore", *args, stdin=join_items(unknown), accept=(0, 1))
            rules = zip(*(iter(out.decode("utf-8", "surrogateescape").split("\0")),) * 4, strict=False)
            self.ignored = {path: f"{rule!r} in {file}" for file, _, rule, path in rules if not rule.startswith("!")}
        if self.base is None:
            self.git.run("begin an index", "read-tree", "--empty", index=index)
        elif staged or not index.exists():
            self.git.run("read HEAD", "read-tree", "--reset", self.base, index=index)
        for path, edit in edits.items():
            entry = entries.get(path)
            head = staged.get(path, entry.version if entry and self.base else None)
            if path in self.ignored or path in linked:
                self.left.append(path)
            else:
                self._plan_edit(path, edit, head, entry)

    def _plan_edit(self, path: str, edit: Edit, head: Version | None, entry: IndexEntry | None) -> None:
        """Add a part; or `path` to those left where the user's work cannot be separated; or nothing if HEAD has it."""
        if head is None:
            if edit.before is not None or (entry is not None and edit.after is not None):
                self.left.append(path)
            elif edit.after is not None:
                self.parts.append(CommitPart(path, edit))
            return
        if edit.after is not None and hash_blob(edit.after, head.blob) == head.blob:
            return
        if edit.before is None or entry is None or entry.unmerged or head.mode not in REGULAR:
            self.left.append(path)
            return
        part = CommitPart(path, edit, head.mode)
        is_ours = entry.version == head and (
            hash_blob(edit.before, head.blob) == head.blob or self.git.store(edit.before, path) == head.blob
        )
        if is_ours and (edit.after is None or (not entry.hidden and self.is_on_disk(part))):
            self.parts.append(part)
            return
        blob = None if edit.after is None else self._merge_into_head(path, edit, head, entry)
        if blob is None:
            self.left.append(path)
        elif blob != head.blob:
            self.parts.append(CommitPart(path, edit, head.mode, blob))

    def _merge_into_head(self, path: str, edit: Edit, head: Version, entry: IndexEntry) -> str | None:
        """Return HEAD's blob with the edit's change; None where that collides with HEAD or with the index."""
        before, after = edit.before or b"", edit.after or b""
        if hash_blob(before, head.blob) == head.blob and self.git.store(before, path) != head.blob:
            # Committed before its filter was configured, say with CRLF. git leaves such files as they are.
            old, new = head.blob, self.git.store(after)
        else:
            old, new = self.git.store(before, path), self.git.store(after, path)
        blob = self.merge(head, old, new)
        is_free = blob is not None and (entry.version == head or self.merge(entry.version, head.blob, blob) is not None)
        return blob if is_free else None

    def put_from_disk(self, paths: Sequence[str], index: Path) -> None:
        """Make an index have these files as on disk, or not at all where there is no file."""
        if paths:
            args = ("update-index", "-z", "--add", "--remove", "--stdin")
            self.git.run("update the index", *args, stdin=join_items(paths), index=index)

    def put_versions(self, versions: Mapping[str, Version | None], index: Path) -> None:
        """Make an index have these versions (None removes the path), whatever is on disk."""
        null = "0" * len(self.base or "")
        lines = [f"{v.mode} {v.blob}\t{path}" if v else f"0 {null}\t{path}" for path, v in versions.items()]
        if lines:
            args = ("update-index", "-z", "--add", "--index-info")
            self.git.run("update the index", *args, stdin=join_items(lines), index=index)

    def is_on_disk(self, part: CommitPart) -> bool:
        """Return True if the file is byte for byte what the edit made it, with the mode the part wants."""
        if part.edit.after is None or not self._holds(part.path, part.edit):
            return part.edit.after is None and self._holds(part.path, part.edit)
        mode = (self._top / part.path).lstat().st_mode
        return bool(mode & stat.S_IXUSR) == (part.mode == EXECUTABLE)

    def merge(self, version: Version, old: str, new: str) -> str | None:
        """Return the blob that `version` becomes by the change from `old` to `new`; None if they collide."""
        if version.blob in (old, new):
            return new
        contents = self.git.read_blobs((version.blob, old, new))
        merged = self.git.merge_text(contents[version.blob], contents[old], contents[new])
        return self.git.store(merged) if merged is not None else None

    def is_ordinary(self, path: str) -> bool:
        """Return True if no link is on the way to a file, and no other repository around it."""
        return not self._is_linked(path) and not any((parent / ".git").exists() for parent in self._list_parents(path))

    def _is_linked(self, path: str) -> bool:
        return any(place.is_symlink() for place in (self._top / path, *self._list_parents(path)))

    def _list_parents(self, path: str) -> list[Path]:
        """Return the folders between the work tree's top and the file."""
        return [self._top / parent for parent in Path(path).parents if parent != Path()]


def list_entries(git: Git, paths: Collection[str], index: Path | None = None) -> dict[str, IndexEntry]:
    """Return the lines that an index (None is the user's own) has for `paths`."""
    wanted = ("--", *paths) if len(paths) <= MAX_ARGUMENTS else ()
    out = git.read("read the index", "ls-files", "-s", "-v", "-z", *wanted, index=index)
    asked, entries = set(paths), {}
    for line in split_items(out):
        # "H 100644 <blob> <stage>\t<path>": a small letter is assume-unchanged, S skip-worktree.
        head, _, path = line.partition("\t")
        if path in asked:
            tag, mode, blob, stage = head.split(" ")
            entries[path] = IndexEntry(Version(mode, blob), hidden=tag.islower() or tag == "S", unmerged=stage != "0")
    return entries


def diff_index(git: Git, base: str, index: Path | None = None) -> Changes:
    """Return what an index (None is the user's own) has otherwise than the commit `base`."""
    # An intent to add has to show, or its empty blob would pass for what HEAD has.
    args = ("--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--ita-visible-in-index", base)
    return dict(parse_raw(git.read("compare the index with HEAD", "diff-index", *args, index=index)))


def update_users_index(stage: Stage, changes: Changes, parts: Sequence[CommitPart]) -> None:
    """Make the user's own index follow a commit's `changes`; what they staged stays staged.

    Paths the commit changed beyond the parts, by a hook, are followed too: else the next `git commit` undid them. The
    caller holds the lock of the index: a copy is changed and put in its place, as git does.
    """
    users, copy = stage.folder.repository.git_dir / "index", stage.folder.path / "index.next"
    copy.unlink(missing_ok=True)
    copy.with_name("index.next.lock").unlink(missing_ok=True)
    if users.exists():
        shutil.copy2(users, copy)
    entries = list_entries(stage.git, list(changes), copy)
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
            if current and old and new and (blob := stage.merge(current, old.blob, new.blob)):
                targets[path] = Version(current.mode, blob)
        elif new and part and not (entry and entry.hidden) and part.makes(new) and stage.is_on_disk(part):
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


def _compare(
    objects: ObjectReader, old: str, new: str, folder: str = ""
) -> Iterator[tuple[str, tuple[Version | None, Version | None]]]:
    """Yield (path, (old, new)) of each file that differs between two trees; an empty id is an empty tree."""
    before, after = (dict(parse_tree_object(objects.read(tree))) if tree else {} for tree in (old, new))
    for name in sorted(before.keys() | after.keys()):
        sides = before.get(name), after.get(name)
        if sides[0] == sides[1]:
            continue
        path = folder + os.fsdecode(name)
        folders = [side.blob if side and side.is_folder else "" for side in sides]
        if any(folders):
            yield from _compare(objects, folders[0], folders[1], f"{path}/")
        left = [None if inner else side for side, inner in zip(sides, folders, strict=True)]
        if any(left):
            yield path, (left[0], left[1])


def _fits(edit: Edit, old: Version | None, new: Version | None) -> bool:
    """Return whether a change is that of an edit, and of nothing else such as the mode of the file."""
    if edit.after is None or new is None:
        return edit.after is None and new is None and old is not None and old.mode in REGULAR
    if old is None:
        return new.mode == NEW_FILE
    # A file that was committed before its filter was configured is left unfiltered.
    return new.mode == old.mode and old.mode in REGULAR and new.blob == hash_blob(edit.after, new.blob)
