"""A change of a repository that is not the vault, on a branch of its own that its owner merges or deletes.

HEAD, the branches there are, the index and the files stay as they are. Nothing that the repository configures is run:
no hook, filter, monitor or signature, and nothing is fetched. A change that would collide with work that is not
committed is not made at all.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from os import W_OK, access
from pathlib import Path

from quaid.errors import GitError, ProposalError
from quaid.history import commit_folder
from quaid.history import repository as repositories
from quaid.history.git import Changes, Git, Version, join_items
from quaid.history.staging import EXECUTABLE, NEW_FILE, list_entries
from quaid.vault import files

Files = Mapping[str, tuple[bytes | None, bytes]]
"""Path from the top of the repository -> (before, after) as they are on disk; before None for a new file."""

FOLDER = "quaid/docs"
_MAX_SLUG = 60


@dataclass(frozen=True, slots=True)
class Proposed:
    """`branch` has one commit, `commit`, on top of `base`. `is_new` is False when it was there already."""

    branch: str
    commit: str
    base: str
    is_new: bool


def name_branch(path: str, after: bytes) -> str:
    """`quaid/docs/recall-md-1a2b3c` for a file that is to become `after`: the same for the same."""
    key = sha256(path.encode("utf-8", "surrogateescape") + b"\0" + after).hexdigest()[:6]
    slug = re.sub(r"[^a-z0-9]+", "-", path.rsplit("/", 1)[-1].lower())[:_MAX_SLUG].strip("-")
    return f"{FOLDER}/{slug or 'doc'}-{key}"


def propose_branch(folder: Path, branch: str, files: Files, message: str, author: tuple[str, str]) -> Proposed:
    """Make `branch`, with one commit on HEAD that has `files` as they are to be, in the repository around `folder`.

    `author` is a name and an e-mail address, the committer's too. Line ends that git turns on the way to the disk are
    turned back: what changes in the commit is what changes in `files`. The same again finds its branch.

    Raises:
        ProposalError: it cannot be made, and why; nothing was changed.
        LockedError: a rebase, a merge or another git is in progress.
        GitError, GitMissingError, DiskFullError: git refused, is not installed, or has no room.
    """
    repository = repositories.find_repository(folder)
    if repository is None:
        raise ProposalError(folder, "it is in no work tree of git", "Change the file in your editor")
    return _Proposal(Git(repository)).make(branch, files, message, author)


class _Proposal:
    def __init__(self, git: Git) -> None:
        self._git = git
        self._repository = git.repository
        self._top = git.repository.top

    def make(self, branch: str, files: Files, message: str, author: tuple[str, str]) -> Proposed:
        self._check_repository(branch)
        base = self._ask("rev-parse", "-q", "--verify", "HEAD^{commit}")
        if not base:
            raise self._refusal("it has no commit yet", "Commit something first")
        with tempfile.TemporaryDirectory(prefix="quaid-proposal-") as private:
            index = Path(private) / "index"
            self._git.run("read HEAD", "read-tree", base, index=index)
            changes = self._plan(files, index)
            known = self._find(branch, changes)
            if known is not None:
                return known
            tree = self._write_tree(changes, index)
        commit = self._commit(tree, base, message, author)
        # Against no commit at all: a branch that somebody has just made is not overwritten.
        moved = ("update-ref", "--no-deref", "-m", "quaid: proposal", f"refs/heads/{branch}", commit, "0" * len(base))
        try:
            self._git.run("make a branch", *moved)
        except GitError:
            known = self._find(branch, changes)  # another process made it a moment ago
            if known is None:
                raise
            return known
        return Proposed(branch, commit, base, is_new=True)

    def _plan(self, files: Files, index: Path) -> Changes:
        """Return the changes of the commit; their blobs are stored."""
        old = {path: entry.version for path, entry in list_entries(self._git, list(files), index).items()}
        changes: dict[str, tuple[Version | None, Version]] = {}
        for path, (before, after) in files.items():
            version = old.get(path)
            committed = self._check_file(path, before, version)
            data = _as_kept(committed, before, after)
            new = Version(version.mode if version else NEW_FILE, self._git.store(data))
            if new != version:
                changes[path] = (version, new)
        if not changes:
            raise self._refusal("HEAD has all of the change already", "There is nothing left to do")
        return changes

    def _write_tree(self, changes: Changes, index: Path) -> str:
        listed = join_items(f"{new.mode} {new.blob}\t{path}" for path, (_, new) in changes.items() if new)
        self._git.run("prepare a commit", "update-index", "-z", "--add", "--index-info", stdin=listed, index=index)
        # In a clone that leaves out objects, files that nothing here is about may be missing.
        return self._git.read_text("write a tree", "write-tree", "--missing-ok", index=index)

    def _check_repository(self, branch: str) -> None:
        if self._ask("rev-parse", "--is-bare-repository") == "true":
            raise self._refusal("it is a bare repository", "Use a clone or a worktree of it")
        commit_folder.wait_until_ready(self._repository, 0.0)
        folders = (self._repository.common_dir / "objects", self._repository.common_dir / "refs")
        if not all(access(folder, W_OK) for folder in folders):
            raise self._refusal(f"{self._repository.common_dir} cannot be written to", "Apply the patch yourself")
        if self._git.query("check-ref-format", f"refs/heads/{branch}") is None:
            raise self._refusal(f"{branch!r} is not a valid branch name", "Choose another one")

    def _check_file(self, path: str, before: bytes | None, version: Version | None) -> bytes:
        """Return the bytes that HEAD has at `path`, or refuse a file that somebody is at work on."""
        mine = list_entries(self._git, [path]).get(path)
        parents = [self._top / parent for parent in Path(path).parents if parent != Path()]
        problem = ""
        if any((parent / ".git").exists() for parent in parents) or (version and version.mode == "160000"):
            problem = "belongs to another repository"
        elif any(place.is_symlink() for place in (self._top / path, *parents)):
            problem = "is reached by a symbolic link"
        elif version is None:
            exists = mine is not None or (self._top / path).exists()
            problem = "is not committed" if before is not None or exists else ""
        elif version.mode not in (NEW_FILE, EXECUTABLE):
            problem = "is not a regular file in HEAD"
        elif mine is None or mine.unmerged or mine.version != version:
            problem = "has changes that are staged and not committed"
        if problem:
            raise self._refusal(f"{path} {problem}", "Commit or change it yourself")
        if version is None:
            return b""
        assert mine is not None
        committed = self._git.read("read a file", "cat-file", "blob", version.blob)
        if not self._is_on_disk(path, committed, hidden=mine.hidden):
            raise self._refusal(f"{path} holds what HEAD does not, or a filter of git's changes it", "Commit it first")
        if before is None or _as_kept(committed, before, before) != committed:
            raise self._refusal(f"{path} is not in HEAD what the change was planned on", "Check the doc again")
        return committed

    def _is_on_disk(self, path: str, committed: bytes, *, hidden: bool) -> bool:
        try:
            return _bare(files.read_file(self._top / path)) == _bare(committed)
        except FileNotFoundError:
            return hidden  # left out by a sparse checkout
        except OSError:
            return False

    def _find(self, branch: str, changes: Changes) -> Proposed | None:
        """The branch, if it is there: then it must have these changes and nothing else."""
        wanted = ("--format=%(refname:lstrip=2) %(objectname)", f"refs/heads/{branch.partition('/')[0]}")
        there = dict(line.split() for line in self._ask("for-each-ref", *wanted).splitlines())
        if branch in there:
            commit = there[branch]
            base = self._ask("rev-parse", "-q", "--verify", f"{commit}^")
            if (self._git.diff_trees(base, commit) if base else {}) != changes:
                next_step = f"Merge it, or rename it with: git branch -m {branch} NEWNAME"
                raise self._refusal(f"the branch {branch} is there and holds something else", next_step)
            return Proposed(branch, commit, base, is_new=False)
        # To git a branch is a file and each / in its name a folder: there cannot be both.
        for name in there:
            if branch.startswith(f"{name}/") or name.startswith(f"{branch}/"):
                problem = f"the branch {name} is in the way of one called {branch}"
                raise self._refusal(problem, f"Rename that one with: git branch -m {name} NEWNAME")
        return None

    def _commit(self, tree: str, base: str, message: str, author: tuple[str, str]) -> str:
        identity = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in zip(("NAME", "EMAIL"), author, strict=True)
        }
        args = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", "--no-gpg-sign", tree, "-p", base)
        text = message.replace("\0", "").encode("utf-8", "replace")
        return self._git.read_text("commit", *args, stdin=text, env=identity)

    def _ask(self, *args: str) -> str:
        """Return the answer of git, empty when it refuses."""
        return (self._git.query(*args) or b"").decode("utf-8", "surrogateescape").strip()

    def _refusal(self, problem: str, next_step: str) -> ProposalError:
        return ProposalError(self._top, problem, next_step)


def _bare(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def _as_kept(committed: bytes, before: bytes | None, after: bytes) -> bytes:
    """`after`, planned on `before`, with the line ends of the `committed` file, which is equal but for them."""
    if before is None or before == committed:
        return after
    # Where its line ends are mixed and `before` has one kind, neither way back is right: they show to be different.
    return _bare(after) if _bare(committed) == committed else _bare(after).replace(b"\n", b"\r\n")
