"""git's own maintenance of a repository, and the size of its objects.

Of git's tasks those run that are safe while others write, and stay safe if killed. They delete no object and lock
nothing that a commit needs. `git gc` does both: it drops what nothing reaches, and killed while it expires reflogs or
packs refs it leaves locks on which every later commit fails.
"""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quaid.history import steering
from quaid.history.git import (
    QUIET,
    SUBMODULE,
    Git,
    Progress,
    execute_in_time,
    explain,
    parse_raw,
    quiet_environment,
    split_log,
)
from quaid.history.repository import Repository

LIMIT_S = 600.0
LEFTOVER_S = 12 * 3600.0
"""A lock or a draft as old as this belongs to no living process: git itself takes the lock of its gc for abandoned."""
_TASKS = ("--task=commit-graph", "--task=loose-objects")
MAX_PACKS = 5
"""More packs are joined: git looks for an object in one after the other."""
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
    """Have git do what is due: write the commit graph, pack loose objects, join packs. Return what is worth telling."""
    if why_not(repository):
        return []
    steering.check(repository)
    gone = list_leftovers(repository, LEFTOVER_S)
    for path in gone:
        path.unlink(missing_ok=True)
    messages = [f"Removed what killed processes left in {repository.common_dir}: {len(gone):,} files."] if gone else []
    try:
        _run(repository, limit_s, "maintenance", "run", "--auto", "--quiet", *_TASKS)
        _join_packs(repository, limit_s)
    except TimeoutError:
        messages.append(f"git's maintenance was ended after {limit_s:,.0f} s; another night goes on with it.")
    return messages


def _join_packs(repository: Repository, limit_s: float) -> None:
    """Join the packs, all but a much larger one, where there are many. An old pack goes once a new one has all of it.

    The packs of a partial clone stay: a joined one would no longer say what its remote promises.
    """
    objects = repository.common_dir / "objects"
    sizes = sorted(
        path.stat().st_size for path in objects.glob("pack/*.pack") if not path.with_suffix(".keep").exists()
    )
    if len(sizes) <= MAX_PACKS or is_partial(repository) or (objects / "maintenance.lock").exists():
        return
    small = sum(sizes[:-1])
    # git takes packs below the size until they reach it; one whose objects are elsewhere too counts for less.
    size = 0 if sizes[-1] <= small else small * 9 // 10
    for step in (("write",), ("repack", f"--batch-size={size}"), ("expire",)):
        _run(repository, limit_s, "multi-pack-index", *step)


def _run(repository: Repository, limit_s: float, *args: str) -> None:
    command = ["-C", str(repository.top), *QUIET, *args]
    code, _, stderr = execute_in_time(command, quiet_environment(repository.top), limit_s)
    if code:
        raise explain("maintain the repository", stderr, repository.top)


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
    """List the locks and drafts next to the objects of at least this age; a running git may use young ones."""
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


class ObjectFiles(NamedTuple):
    """How many objects are files of their own and in no pack, and the packs."""

    loose: int
    loose_bytes: int
    packs: int
    packed: int
    pack_bytes: int


def measure_folder(folder: Path) -> int:
    """Return the bytes that all files of a folder take on the disk; what goes while it runs does not count."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).lstat().st_blocks * 512
    return total


def count_files(repository: Repository) -> ObjectFiles:
    """Return how the objects lie on the disk."""
    out = Git(repository).read("count the objects", "count-objects", "-v")
    counts = dict(line.split(": ", 1) for line in out.decode("utf-8", "replace").splitlines())
    of = {name: int(counts[name]) for name in ("count", "size", "prune-packable", "packs", "in-pack", "size-pack")}
    loose = of["count"] - of["prune-packable"]
    return ObjectFiles(loose, of["size"] * 1024, of["packs"], of["in-pack"], of["size-pack"] * 1024)


def list_today(repository: Repository) -> list[tuple[str, str]]:
    """Return (path, blob) of each file that the checked-out commit has, none before the first commit."""
    git = Git(repository)
    files = git.list_tree("HEAD") if git.resolve("HEAD") else {}
    return [(path, version.blob) for path, version in files.items() if version.mode != SUBMODULE]


def iterate_stored(repository: Repository) -> Iterator[tuple[str, str, int, int]]:
    """Yield every object that is here, also those that no branch reaches any more."""
    shown = "--batch-check=%(objectname) %(objecttype) %(objectsize) %(objectsize:disk)"
    with Git(repository).stream("cat-file", "--batch-all-objects", shown, "--buffer", "--unordered") as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, kind, size, disk_size = line.decode().split()
            yield name, kind, int(size), int(disk_size)


def find_first_commits(repository: Repository, blobs: Collection[str]) -> dict[str, tuple[str, str]]:
    """Blob -> (commit, path) of the oldest commit that a ref or a reflog reaches and that brought it; those that were
    never committed are left out.
    """
    if not blobs:
        return {}
    args = ("log", "--all", "--reflog", "--reverse", "-m", "--root", "--raw", "--no-abbrev", "--no-renames", "-z")
    found: dict[str, tuple[str, str]] = {}
    for (commit,), changes in split_log(Git(repository).read("read the history", *args, "--format=/%x00%H%x00"), 1):
        raw = "\0".join(changes).encode("utf-8", "surrogateescape")
        for path, (_, after) in parse_raw(raw.strip(b"\0\n") + b"\0") if raw.strip(b"\0\n") else ():
            if after is not None and after.blob in blobs:
                found.setdefault(after.blob, (commit, path))
    return found


def find_paths(
    repository: Repository, blobs: Collection[str], total: int, progress: Progress
) -> tuple[int, dict[str, str]]:
    """Return how many commits a branch or a tag reaches, and a path of each of `blobs` that they have, of `total`
    objects.
    """
    commits, paths = 0, {}
    with Git(repository).stream("rev-list", "--objects", "--all", "--missing=allow-any") as process:
        assert process.stdout is not None
        for passed, line in enumerate(process.stdout):
            if not passed % 1000:
                progress("objects", passed, total)
            name, space, path = line.rstrip(b"\n").decode("utf-8", "surrogateescape").partition(" ")
            commits += not space
            if name in blobs:
                paths[name] = path
    return commits, paths
