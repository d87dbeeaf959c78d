"""The git directory of a vault and the operations in progress, read from its files: no process, no import of git."""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.05
MERGED = "refs/quaid/merged"
"""What the branch has of each remote."""
REFTABLE_BRANCH = ".invalid"
"""The target of HEAD, by git's own convention, when the refs are not files."""

NEXT_STEPS = {
    operation: f"git {operation} --continue, when its conflicts are resolved and added"
    for operation in ("rebase", "am", "merge", "cherry-pick", "revert")
} | {"bisect": "git bisect reset"}
"""How each operation ends. Not with --abort, which takes changes along that nobody has committed."""
KEEP_DETACHED = "keep its commits on a branch: git switch -c NAME"


@dataclass(frozen=True)
class RepositoryState:
    """The branch and commit of a repository, and the operation that it is in the middle of.

    `head` is None before the first commit, `branch` when HEAD is detached; `operation` is rebase, merge,
    cherry-pick, revert, bisect, am or None; `locked` says that somebody holds index.lock.
    """

    branch: str | None = None
    head: str | None = None
    operation: str | None = None
    locked: bool = False
    detached: bool = False


@dataclass(frozen=True)
class Repository:
    """The folders of one work tree: `prefix` is the vault's place in it, empty or ending in a slash."""

    top: Path
    git_dir: Path
    common_dir: Path
    prefix: str

    def to_git(self, rel_path: str) -> str:
        """A vault-relative path as git knows it."""
        return self.prefix + rel_path

    @property
    def inside(self) -> tuple[str, ...]:
        """The path that limits git to the vault; none where that is the whole repository."""
        return (self.prefix,) if self.prefix else ()

    def is_in_vault(self, path: str) -> bool:
        return path.startswith(self.prefix)

    def to_vault(self, path: str) -> str:
        """The opposite of `to_git`."""
        return path.removeprefix(self.prefix)

    @property
    def index_lock(self) -> Path:
        return self.git_dir / "index.lock"


def find_repository(root: Path) -> Repository | None:
    """The work tree that encloses `root`: a clone, a linked worktree or a submodule."""
    vault = root.resolve()
    for top in (vault, *vault.parents):
        git_dir = top / ".git"
        if git_dir.is_file() and (text := read_text(git_dir)).startswith("gitdir:"):
            git_dir = (top / text.removeprefix("gitdir:").strip()).resolve()
        if (git_dir / "HEAD").is_file():  # git, too, walks on past a .git that has none
            git_dir = git_dir.resolve()
            relative = vault.relative_to(top).as_posix()
            # A linked worktree shares the refs and objects of its main one.
            pointer = git_dir / "commondir"
            common_dir = (git_dir / read_text(pointer)).resolve() if pointer.is_file() else git_dir
            return Repository(top, git_dir, common_dir, "" if relative == "." else relative + "/")
    return None


def find_twin(path: Path, folders: Iterable[Path]) -> Path | None:
    """Return the twin of `path` in another work tree of its repository: the first that is around one of `folders`."""
    try:
        here = find_repository(path if path.is_dir() else path.parent)
        for folder in folders if here is not None else ():
            there = find_repository(folder)
            if here is not None and there is not None and there.common_dir == here.common_dir:
                return there.top / path.resolve().relative_to(here.top)
    except OSError:  # not ours to look at
        pass
    return None


def read_state(repository: Repository) -> RepositoryState:
    """The state as the files tell it; `branch` is `REFTABLE_BRANCH` where only git can tell."""
    text = read_text(repository.git_dir / "HEAD")
    ref = text.removeprefix("ref:").strip() if text.startswith("ref:") else None
    return RepositoryState(
        branch=None if ref is None else ref.removeprefix("refs/heads/"),
        head=text if ref is None else read_ref(repository.common_dir, ref),
        operation=read_operation(repository.git_dir),
        locked=repository.index_lock.exists(),
        detached=ref is None,
    )


def describe_lock(path: object) -> tuple[str, str]:
    """The two sentences of a `LockedError` about git's lock file at `path`, which Quaid never removes."""
    return (
        f"Another git process holds {path}",
        "Try again when it has finished; if none is running, one crashed: remove that file yourself.",
    )


def read_text(path: Path) -> str:
    """A text of git's, which may be behind a link; not from a pipe, which would keep us waiting."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "is not a file", str(path))
    return os.fsdecode(path.read_bytes()).strip()


def read_boundary(repository: Repository) -> frozenset[str]:
    """The commits of a shallow clone whose parents were never fetched: what they have seems to be new in them."""
    with suppress(OSError):
        return frozenset(read_text(repository.common_dir / "shallow").split())
    return frozenset()


def read_ref(common_dir: Path, ref: str) -> str | None:
    """Return the id that a ref names, from its file; None where it has none."""
    try:
        text = read_text(common_dir / ref)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        with suppress(FileNotFoundError):
            for line in read_text(common_dir / "packed-refs").splitlines():
                if line.endswith(" " + ref):
                    return line.partition(" ")[0]
        return None
    return read_ref(common_dir, text.removeprefix("ref:").strip()) if text.startswith("ref:") else text or None


def read_operation(git_dir: Path) -> str | None:
    """Return the operation that git is in the middle of: merge, rebase, cherry-pick …"""
    marks = {"rebase-merge": "rebase", "rebase-apply/applying": "am", "rebase-apply": "rebase"}
    marks |= {"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}
    for mark, operation in marks.items():
        if (git_dir / mark).exists():
            return operation
    # Between two picks of a series only the list of what is still to do is there.
    todo = git_dir / "sequencer" / "todo"
    if todo.is_file():
        return "revert" if todo.read_bytes().startswith(b"revert") else "cherry-pick"
    return "bisect" if (git_dir / "BISECT_LOG").exists() else None
