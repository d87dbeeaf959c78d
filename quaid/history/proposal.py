"""A change of a repository that is not the vault, on a branch of its own that its owner merges or deletes.

HEAD, the branches there are, the index and the files stay as they are. Nothing that the repository configures is run:
no hook, filter, monitor or signature, and nothing is fetched. A change that would collide with work that is not
committed is not made at all.
"""

import re
from hashlib import sha256
from os import W_OK, access
from pathlib import Path
from typing import NamedTuple

from quaid.errors import GitError, ProposalError
from quaid.history import commit_folder
from quaid.history.authorship import QUAID
from quaid.history.git import SUBMODULE, Changes, Git, Version
from quaid.history.repository import find_repository
from quaid.history.staging import REGULAR, IndexEntry, list_entries
from quaid.text.line_ends import with_lf
from quaid.vault import files

FOLDER = "quaid/docs"
_MAX_SLUG = 60


class Proposed(NamedTuple):
    """`branch` has one commit, `commit`."""

    branch: str
    commit: str


def name_branch(path: str, after: bytes) -> str:
    """`quaid/docs/recall-md-1a2b3c` for a file that is to become `after`: the same for the same."""
    key = sha256(path.encode("utf-8", "surrogateescape") + b"\0" + after).hexdigest()[:6]
    slug = re.sub(r"[^a-z0-9]+", "-", path.rsplit("/", 1)[-1].lower())[:_MAX_SLUG].strip("-")
    return f"{FOLDER}/{slug or 'doc'}-{key}"


def propose_branch(folder: Path, branch: str, path: str, before: bytes, after: bytes, message: str) -> Proposed:
    """Make `branch`, with one commit on HEAD that changes a file, in the repository around `folder`.

    `path` begins at the top of the repository; `before` and `after` are as on disk. Line ends that git turns on the way
    to the disk are turned back. The same again finds its branch.

    Raises:
        ProposalError: it cannot be made, and why; nothing was changed.
        LockedError: a rebase, a merge or another git is in progress.
        GitError, GitMissingError, DiskFullError: git refused, is not installed, or has no room.
    """
    repository = find_repository(folder)
    if repository is None:
        raise ProposalError(folder, "it is in no work tree of git", "Change the file in your editor")
    git, top, common = Git(repository), repository.top, repository.common_dir
    if (git.query("rev-parse", "--is-bare-repository") or b"").strip() == b"true":
        raise ProposalError(top, "it is a bare repository", "Use a clone or a worktree of it")
    commit_folder.wait_until_ready(repository, 0.0)
    if not all(access(common / name, W_OK) for name in ("objects", "refs")):
        raise ProposalError(top, f"{common} cannot be written to", "Apply the patch yourself")
    base = git.resolve("HEAD")
    if base is None:
        raise ProposalError(top, "it has no commit yet", "Commit something first")
    old, committed = _read_committed(git, path, before, base)
    new = Version(old.mode, git.store(_with_line_ends(committed, before, after)))
    if new == old:
        raise ProposalError(top, "HEAD has all of the change already", "There is nothing left to do")
    changes: Changes = {path: (old, new)}
    if known := _find(git, branch, changes):
        return known
    text = message.replace("\0", "").encode("utf-8", "replace")
    commit = git.commit_tree(git.write_tree(base, {path: new}), [base], text, QUAID, "--no-gpg-sign")
    # Against no commit at all: a branch that somebody has just made is not overwritten.
    target = (f"refs/heads/{branch}", commit, "0" * len(base))
    try:
        git.run("make a branch", "update-ref", "--no-deref", "-m", "quaid: proposal", *target)
    except GitError:
        known = _find(git, branch, changes)  # another process made it a moment ago
        if known is None:
            raise
        return known
    return Proposed(branch, commit)


def _read_committed(git: Git, path: str, before: bytes, base: str) -> tuple[Version, bytes]:
    """Return what HEAD, the commit `base`, has at `path`. Raises ProposalError: somebody is at work on the file."""
    top = git.repository.top
    version = git.list_tree(base, path).get(path)
    mine = list_entries(git, [path]).get(path)
    if problem := _find_problem(top, path, version, mine):
        raise ProposalError(top, f"{path} {problem}", "Commit or change it yourself")
    assert version is not None
    assert mine is not None
    committed = git.read("read a file", "cat-file", "blob", version.blob)
    try:
        is_on_disk = with_lf(files.read_file(top / path)) == with_lf(committed)
    except OSError as error:  # a sparse checkout may leave it out
        is_on_disk = isinstance(error, FileNotFoundError) and mine.hidden
    if not is_on_disk:
        problem = f"{path} holds what HEAD does not, or a filter of git's changes it"
        raise ProposalError(top, problem, "Commit it first")
    if _with_line_ends(committed, before, before) != committed:
        raise ProposalError(top, f"{path} is not in HEAD what the change was planned on", "Check the doc again")
    return version, committed


def _find_problem(top: Path, path: str, version: Version | None, mine: IndexEntry | None) -> str:
    """Return why a file, which HEAD has as `version` and the index as `mine`, is not to be changed; empty if it may."""
    parents = [top / parent for parent in Path(path).parents if parent != Path()]
    if any((parent / ".git").exists() for parent in parents) or (version and version.mode == SUBMODULE):
        return "belongs to another repository"
    if any(place.is_symlink() for place in (top / path, *parents)):
        return "is reached by a symbolic link"
    if version is None:
        return "is not committed"
    if version.mode not in REGULAR:
        return "is not a regular file in HEAD"
    is_as_committed = mine is not None and not mine.unmerged and mine.version == version
    return "" if is_as_committed else "has changes that are staged and not committed"


def _find(git: Git, branch: str, changes: Changes) -> Proposed | None:
    """The branch, if it is there. Raises ProposalError: it has other changes, or another branch is in its way."""
    wanted = ("--format=%(refname:lstrip=2) %(objectname)", f"refs/heads/{branch.partition('/')[0]}")
    listed = (git.query("for-each-ref", *wanted) or b"").decode("utf-8", "surrogateescape")
    there = dict(line.split() for line in listed.splitlines())
    if commit := there.get(branch):
        base = git.resolve(f"{commit}^")
        if base is None or git.diff_trees(base, commit) != changes:
            next_step = f"Merge it, or rename it with: git branch -m {branch} NEWNAME"
            raise ProposalError(git.repository.top, f"the branch {branch} is there and holds something else", next_step)
        return Proposed(branch, commit)
    # To git a branch is a file and each / in its name a folder: there cannot be both.
    for name in there:
        if branch.startswith(f"{name}/") or name.startswith(f"{branch}/"):
            problem = f"the branch {name} is in the way of one called {branch}"
            raise ProposalError(git.repository.top, problem, f"Rename that one with: git branch -m {name} NEWNAME")
    return None


def _with_line_ends(committed: bytes, before: bytes, after: bytes) -> bytes:
    """`after`, planned on `before`, with the line ends of the `committed` file, which is equal but for them."""
    if before == committed:
        return after
    # Where its line ends are mixed and `before` has one kind, neither way back is right: they show to be different.
    return with_lf(after) if with_lf(committed) == committed else with_lf(after).replace(b"\n", b"\r\n")
