"""Merges: two commits into one tree without touching the work tree, the conflicts that git leaves, and what each side
of a merge of two machines had added.

Attributes and merge drivers are those of our own commit and configuration: what comes from elsewhere counts when it has
been merged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from quaid.errors import GitError, QuaidError
from quaid.history import repository as repositories
from quaid.history.authorship import choose_identity
from quaid.history.commit_hook import find_folder
from quaid.history.git import Git, Version, join_items, split_items
from quaid.history.messages import render
from quaid.history.revisions import Revisions, TreeFile
from quaid.history.staging import NEW_FILE
from quaid.model import Kind, Message
from quaid.vault import files, frontmatter, merging
from quaid.vault.layout import Layout

_TOO_OLD = "this git cannot merge without touching your files. Install git 2.38 or newer, or merge by hand: git merge"


class UnrelatedError(QuaidError):
    """Two histories begin with different commits."""

    code = "unrelated_histories"

    def __init__(self) -> None:
        super().__init__(
            "Your vault and the remote have no commit in common, so they cannot be merged: nothing was changed. "
            "If both are yours, clone the remote into a new folder and copy your notes there: quaid clone URL PATH, "
            "then in it: quaid import --from notes OLD_VAULT"
        )


@dataclass(frozen=True, slots=True)
class Unmerged:
    """A path that git could not merge: the versions of the common ancestor, of ours and of theirs that there are."""

    path: str
    base: Version | None = None
    ours: Version | None = None
    theirs: Version | None = None


@dataclass(frozen=True, slots=True)
class TreeMerge:
    """`tree` holds everything; a path of `unmerged` is in it with conflict markers, or as one side had it."""

    tree: str
    unmerged: tuple[Unmerged, ...] = ()


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path in what makes one tree of another; None is no file."""

    path: str
    old: Version | None
    new: Version | None


class TreeMerges:
    """Merges trees of one repository."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._repository = git.repository

    def merge(self, ours: str, theirs: str) -> TreeMerge:
        """Return what the commits `ours` and `theirs` make.

        Raises:
            UnrelatedError: they have no common ancestor.
            GitError: git is too old.
        """
        with tempfile.TemporaryDirectory(prefix="quaid-merge-") as folder:
            # git puts the files of merge drivers into its working folder, and reads attributes there.
            read = ("read .gitattributes", "cat-file", "blob", f"{ours}:.gitattributes")
            code, attributes = self._git.run(*read, accept=(0, 128))
            if code == 0:
                (Path(folder) / ".gitattributes").write_bytes(attributes)
            env = {"GIT_DIR": str(self._repository.git_dir), "GIT_INDEX_FILE": str(Path(folder) / "index")}
            elsewhere = Git(replace(self._repository, top=Path(folder)))
            args = ("merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs)
            try:
                out = elsewhere.run("merge", *args, env=env, accept=(0, 1))[1]
            except GitError as error:
                if "usage: git merge-tree" in error.said or "unknown rev --write-tree" in error.said:
                    raise GitError("merge", _TOO_OLD) from error
                if "refusing to merge unrelated histories" in error.said:
                    raise UnrelatedError from error
                raise
        tree, *listed = split_items(out)
        sides: dict[str, dict[str, Version]] = {}
        for item in listed:
            head, _, path = item.partition("\t")
            mode, blob, stage = head.split(" ")
            sides.setdefault(path, {})[{"1": "base", "2": "ours", "3": "theirs"}[stage]] = Version(mode, blob)
        return TreeMerge(tree, tuple(Unmerged(path, **versions) for path, versions in sides.items()))

    def changes(self, old: str, new: str) -> list[TreeChange]:
        """Return what makes the tree `new` of the tree `old`, by path. Renames are a removal and an addition."""
        return [TreeChange(path, *versions) for path, versions in self._git.diff_trees(old, new).items()]

    def with_files(self, tree: str, contents: Mapping[str, bytes | None]) -> str:
        """Return `tree` with these files, None for no file; their modes stay."""
        if not contents:
            return tree
        modes = {path: version.mode for path, version in self._git.list_tree(tree, *contents).items()}
        lines = []
        for path, data in contents.items():
            mode, blob = "0", "0" * len(tree)
            if data is not None:
                mode, blob = modes.get(path, NEW_FILE), self._git.store(data)
            lines.append(f"{mode} {blob}\t{path}")
        with tempfile.TemporaryDirectory(prefix="quaid-merge-") as folder:
            index = Path(folder) / "index"
            self._git.run("read a tree", "read-tree", tree, index=index)
            self._git.run("change a tree", "update-index", "-z", "--index-info", stdin=join_items(lines), index=index)
            return self._git.read_text("write a tree", "write-tree", index=index)

    def commit_tree(self, tree: str, parents: Sequence[str], message: Message, ours: tuple[str, str]) -> str:
        """Make a commit by `ours` (name, e-mail), signed if the owner has git sign all of theirs. No branch moves."""
        signs = self._is_set("commit.gpgsign")
        names = [word for parent in parents for word in ("-p", parent)]
        keeps_committer = signs and bool(self._git.query("config", "--get", "user.email"))
        env = choose_identity(self._git, ours, None, signs=keeps_committer)
        args = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", *(["-S"] if signs else []), *names, tree)
        return self._git.read_text("merge", *args, stdin=render(message).encode("utf-8", "replace"), env=env)

    def _is_set(self, key: str) -> bool:
        return (self._git.query("config", "--type=bool", "--get", key) or b"").strip() == b"true"

    def read(self, versions: Mapping[str, Version]) -> dict[str, bytes]:
        """Return the bytes of each file, as a checkout by its owner would write it: through their filters."""
        wanted = [TreeFile(path, int(version.mode, 8), version.blob) for path, version in versions.items()]
        return dict(Revisions(self._git).read_files(wanted, filtered=True))

    def read_raw(self, tree: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Return what git keeps of those of `paths` that a tree has."""
        blobs = {path: version.blob for path, version in self._git.list_tree(tree, *paths).items()}
        contents = self.read_blobs(blobs.values())
        return {path: contents[blob] for path, blob in blobs.items() if blob in contents}

    def ignores_case(self) -> bool:
        """Return whether the file system takes small and capital letters for the same."""
        return self._is_set("core.ignoreCase")

    def hooks_folder(self) -> str:
        """Return the folder of the owner's hooks, if it is one of the work tree; else nothing."""
        top = self._repository.top.resolve()
        folder = find_folder(top).resolve()
        return folder.relative_to(top).as_posix() if folder.is_relative_to(top) else ""

    def read_blobs(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return what git keeps of each blob, by its id."""
        return self._git.read_blobs(blobs)

    def sizes(self, blobs: Sequence[str]) -> dict[str, int]:
        """Return the bytes of each blob, without reading it."""
        return self._git.read_sizes(blobs)


_FORGETTABLE = (Kind.FACT, Kind.ENTITY, Kind.EPISODE, Kind.REVIEW)


class Conflict(NamedTuple):
    """A file that git could not merge, by its path in the vault, and its blobs; None on the side that has it not.
    `is_committed` if a pull has committed it with marks.
    """

    path: str
    base: str | None
    ours: str | None
    theirs: str | None
    is_committed: bool = False

    @property
    def is_removed(self) -> bool:
        """Return whether one side has removed what the other has changed."""
        return self.base is not None and (self.ours is None) != (self.theirs is None)


def list_unmerged(root: Path) -> list[Conflict]:
    """The files of the vault at `root` that a merge in progress has left, by path; none where there is no merge."""
    repository = repositories.find_repository(root)
    if repository is None:
        return []
    out = Git(repository).read("look for conflicts", "ls-files", "-u", "-z", "--", repository.prefix or ".")
    stages: dict[str, dict[str, str]] = {}
    for item in split_items(out):
        about, _, path = item.partition("\t")
        _, blob, stage = about.split(" ")
        stages.setdefault(path, {})[stage] = blob
    return [
        Conflict(repository.to_vault(path), found.get("1"), found.get("2"), found.get("3"))
        for path, found in sorted(stages.items())
        if repository.is_in_vault(path)
    ]


def list_conflicts(root: Path) -> list[Conflict]:
    """Return the files of the vault at `root` that a merge has left, by path: those of a merge in progress, and those
    that a pull has committed with marks which are still there.
    """
    repository = repositories.find_repository(root)
    found = {each.path: each for each in list_unmerged(root)}
    if repository is None or repositories.read_state(repository).head is None:
        return list(found.values())
    shape = ("-z", "--merges", "--format=%H%n%(trailers:key=Quaid-Conflict,valueonly,unfold)")
    for item in split_items(Git(repository).read("look for conflicts", "log", *shape, "--grep=^Quaid-Conflict: ")):
        commit, *paths = item.split("\n")
        for path in filter(None, paths):
            blobs = [f"{commit}{parent}:{repository.to_git(path)}" for parent in ("", "^1", "^2")]
            now = files.read_note(root, path) if path not in found else None
            if now is None or b"<<<<<<<" not in now:
                continue
            marked, ours, theirs = (read_side(root, blob) or b"" for blob in blobs)
            if any(conflict in now for conflict in merging.find_conflicts(marked, ours, theirs)):
                found[path] = Conflict(path, None, blobs[1], blobs[2], is_committed=True)
    return [found[path] for path in sorted(found)]


def read_side(root: Path, blob: str | None) -> bytes | None:
    """Return a version of an unmerged file; None where that side has it not."""
    if blob is None:
        return None
    repository = repositories.find_repository(root)
    if repository is None:
        raise GitError("read a note", f"{root} is in no repository. Make one there with: git init")
    return Git(repository).read("read a note", "cat-file", "blob", blob)


def settle_conflict(root: Path, path: str, after: bytes | None) -> None:
    """Make `after` the outcome of the merge for a file, on disk and in git's index; None removes it.

    Raises:
        NoteChangedError: an editor is saving it.
        GitError: git refused.
    """
    repository = repositories.find_repository(root)
    before = files.read_note(root, path)
    if before != after:
        files.write_note(root, path, before, after)
    if repository is not None:
        Git(repository).read("settle a conflict", "add", "-A", "--", repository.to_git(path))


def keep_forgotten(root: Path, place: Layout) -> list[str]:
    """Remove what one side has forgotten and the other has changed, and return the paths: nothing forgotten returns.

    Only notes that Quaid made: what happens to a note of the owner's is the owner's to say.
    """
    forgotten = []
    for unmerged in list_unmerged(root):
        text = read_side(root, unmerged.ours or unmerged.theirs) if unmerged.is_removed else None
        fields = frontmatter.parse(text.decode("utf-8", "replace")).fields if text is not None else {}
        if text is not None and place.kind_of(unmerged.path, fields) in _FORGETTABLE:
            settle_conflict(root, unmerged.path, None)
            forgotten.append(unmerged.path)
    return forgotten


def read_operation(root: Path) -> str | None:
    """Return the operation that git is in the midst of: merge, rebase, cherry-pick …"""
    repository = repositories.find_repository(root)
    return repositories.read_state(repository).operation if repository is not None else None


MAX_MERGES = 50
"""Merges that are looked at, the newest first: more come together only where nobody has looked for months."""


class Merge(NamedTuple):
    """A merge commit. `ours` and `theirs` are the paths in the vault of the notes that each side alone has added;
    `both` are those that both have added or changed.
    """

    commit: str
    ours: frozenset[str]
    theirs: frozenset[str]
    both: frozenset[str]


def list_merges(root: Path, since: str | None) -> list[Merge]:
    """The merges that HEAD has and the commit `since` has not, oldest first; without `since` HEAD, if it is one.

    Nothing where git cannot tell: a shallow clone, no commit yet.
    """
    repository = repositories.find_repository(root)
    if repository is None:
        return []
    git = Git(repository)
    known = [f"^{since}"] if since and git.resolve(since) else []
    span = ("--merges", f"-n{MAX_MERGES}", "HEAD", *known) if known else ("--no-walk", "--merges", "HEAD")
    listed = git.query("rev-list", "--parents", *span, "--") or b""
    parents = [line.split() for line in reversed(listed.decode().splitlines())]
    merges = (_read_merge(git, *line) for line in parents if len(line) == 3)
    return [merge for merge in merges if merge is not None]


def _read_merge(git: Git, commit: str, ours: str, theirs: str) -> Merge | None:
    repository = git.repository
    base = (git.query("merge-base", ours, theirs) or b"").decode().strip()
    if not base or base in (ours, theirs):  # a night of the janitor's
        return None
    sides = []
    for side in (ours, theirs):
        items = split_items(git.query("diff-tree", "-r", "-z", "--no-renames", "--name-status", base, side) or b"")
        changes = zip(items[1::2], items[::2], strict=False)
        sides.append({repository.to_vault(path): how for path, how in changes if repository.is_in_vault(path)})
    added = [{path for path, how in side.items() if how == "A"} for side in sides]
    both = sides[0].keys() & sides[1].keys()
    return Merge(commit, frozenset(added[0] - both), frozenset(added[1] - both), frozenset(both))
