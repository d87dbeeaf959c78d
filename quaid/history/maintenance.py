"""git's own maintenance of a repository: of its tasks those that are safe while others write, and stay safe if killed.

They delete no object and lock nothing that a commit needs. `git gc` does both: it drops what nothing reaches, and
killed while it expires reflogs or packs refs it leaves locks on which every later commit fails.
"""

from __future__ import annotations

import time
from pathlib import Path

from quaid.history import steering
from quaid.history.git import QUIET, execute_in_time, explain, quiet_environment
from quaid.history.repository import Repository

LIMIT_S = 600.0
LEFTOVER_S = 12 * 3600.0
"""A lock or a draft as old as this belongs to no living process: git itself takes the lock of its gc for abandoned."""
_TASKS = ("commit-graph", "loose-objects")
_REPACK = "incremental-repack"
_LOCKS = (
    *("objects/maintenance.lock", "objects/pack/multi-pack-index.lock"),
    *("objects/info/commit-graph.lock", "objects/info/commit-graphs/commit-graph-chain.lock"),
)
_GRAPHS = ("objects/info/commit-graph", "objects/info/commit-graphs/commit-graph-chain")
_DRAFTS = (
    *("objects/pack/tmp_*", "objects/pack/.tmp-*", "objects/??/tmp_obj_*"),
    *("objects/info/tmp_*", "objects/info/commit-graphs/tmp_*"),
    *(f"objects/{folder}-*/{inner}" for folder in ("tmp_objdir", "incoming") for inner in ("*", "*/*")),
)


def maintain(repository: Repository, limit_s: float = LIMIT_S) -> list[str]:
    """Have git do what is due: write the commit graph, pack loose objects, join packs. Return what is worth telling.

    Raises:
        GitError, GitMissingError, DiskFullError: it would not.
    """
    if why_not(repository):
        return []
    steering.check(repository)
    gone = list_leftovers(repository, LEFTOVER_S)
    for path in gone:
        path.unlink(missing_ok=True)
    # A pack that is joined with one of a partial clone's remote would no longer say what that remote promises.
    tasks = _TASKS if is_partial(repository) else (*_TASKS, _REPACK)
    args = ("maintenance", "run", "--auto", "--quiet", *(f"--task={task}" for task in tasks))
    command = ["-C", str(repository.top), *QUIET, *args]
    told = [f"Removed what killed processes left in {repository.common_dir}: {len(gone):,} files."] if gone else []
    try:
        code, _, stderr = execute_in_time(command, quiet_environment(repository.top), limit_s)
    except TimeoutError:
        return [*told, f"git's maintenance was ended after {limit_s:,.0f} s; another night goes on with it."]
    if code:
        raise explain("maintain the repository", stderr, repository.top)
    return told


def why_not(repository: Repository) -> str:
    """Return why this repository is its owner's alone to maintain, as a clause; empty where it is Quaid's too."""
    if repository.prefix:
        return f"the vault is a part of the larger repository {repository.top}"
    if repository.git_dir != repository.common_dir:
        return f"the vault is one of several worktrees of {repository.common_dir}"
    return ""


def is_partial(repository: Repository) -> bool:
    """Return whether a remote promises objects that this clone has left out."""
    return any((repository.common_dir / "objects/pack").glob("*.promisor"))


def has_commit_graph(repository: Repository) -> bool:
    """Return whether git finds commits without reading each of them."""
    return any((repository.common_dir / name).is_file() for name in _GRAPHS)


def find_last_write(repository: Repository) -> float | None:
    """Return when maintenance last wrote, in seconds since 1970 by the times of its files; None where it never did."""
    written = [*_GRAPHS, "objects/pack/multi-pack-index", "objects/pack/loose-*.pack"]
    files = (path for pattern in written for path in repository.common_dir.glob(pattern))
    return max((path.stat().st_mtime for path in files), default=None)


def list_leftovers(repository: Repository, min_age_s: float = 0.0) -> list[Path]:
    """The locks and drafts beside the objects that are at least so old; a living git may be at work on young ones."""
    now, found, inside = time.time(), [], repository.common_dir.resolve()
    for pattern in (*_LOCKS, *_DRAFTS):
        for path in repository.common_dir.glob(pattern):
            try:
                is_ours = path.parent.resolve().is_relative_to(inside) and not path.is_symlink()  # no link leads away
                if is_ours and path.is_file() and now - path.stat().st_mtime >= min_age_s:
                    found.append(path)
            except FileNotFoundError:
                continue
    return sorted(found)
