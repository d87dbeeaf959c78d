"""Two commits into one tree, without touching a file of the work tree: what git merges, and what it could not.

Attributes and merge drivers are those of our own commit and configuration: what comes from elsewhere counts when it has
been merged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quaid.errors import GitError, QuaidError
from quaid.history.authorship import choose_identity
from quaid.history.commit_hook import find_folder
from quaid.history.git import Git, Version, join_items, split_items
from quaid.history.messages import render
from quaid.history.revisions import Revisions, TreeFile
from quaid.history.staging import NEW_FILE
from quaid.model import Message

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
