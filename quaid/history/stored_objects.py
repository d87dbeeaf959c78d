"""The objects of a repository: what they take on the disk and who brought them. No content is read or fetched."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quaid.history.git import SUBMODULE, Git, parse_raw, split_log
from quaid.history.repository import Repository


class StoredObject(NamedTuple):
    """An object: its id, `blob`, `tree`, `commit` or `tag`, its bytes, and the bytes that it takes on the disk: few
    where a pack has it as the difference from another one.
    """

    id: str
    kind: str
    bytes: int
    disk_bytes: int


class ObjectFiles(NamedTuple):
    """How many objects are files of their own and in no pack, the bytes of all such files, and the packs."""

    loose: int
    loose_bytes: int
    packs: int
    packed: int
    pack_bytes: int


def measure_folder(folder: Path) -> int:
    """Return the bytes that all files of a folder take on the disk; what goes meanwhile does not count."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).lstat().st_blocks * 512
    return total


def count_files(repository: Repository) -> ObjectFiles:
    """Return how the objects lie on the disk.

    Raises:
        GitError: git refused.
    """
    out = Git(repository).read("count the objects", "count-objects", "-v")
    said = dict(line.split(": ", 1) for line in out.decode("utf-8", "replace").splitlines())
    of = {name: int(said[name]) for name in ("count", "prune-packable", "size", "packs", "in-pack", "size-pack")}
    loose = of["count"] - of["prune-packable"]
    return ObjectFiles(loose, of["size"] * 1024, of["packs"], of["in-pack"], of["size-pack"] * 1024)


def list_today(repository: Repository) -> list[tuple[str, str]]:
    """Return (path, blob) of each file that the checked-out commit has, none before the first commit.

    Raises:
        GitError: git refused.
    """
    git = Git(repository)
    files = git.list_tree("HEAD") if git.resolve("HEAD") else {}
    return [(path, version.blob) for path, version in files.items() if version.mode != SUBMODULE]


def iterate_stored(repository: Repository) -> Iterator[StoredObject]:
    """Yield every object that is here, also those that no branch reaches any more.

    Raises:
        GitError: one cannot be read.
    """
    shown = "--batch-check=%(objectname) %(objecttype) %(objectsize) %(objectsize:disk)"
    with Git(repository).stream("cat-file", "--batch-all-objects", shown, "--buffer", "--unordered") as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, kind, size, disk_size = line.decode().split()
            yield StoredObject(name, kind, int(size), int(disk_size))


def find_first_commits(repository: Repository, blobs: Collection[str]) -> dict[str, tuple[str, str]]:
    """Blob -> (commit, path) of the oldest commit that a ref or a reflog reaches and that brought it; those that were
    never committed are left out.

    Raises:
        GitError: git refused.
    """
    if not blobs:
        return {}
    args = ("log", "--all", "--reflog", "--reverse", "-m", "--root", "--raw", "--no-abbrev", "--no-renames", "-z")
    found: dict[str, tuple[str, str]] = {}
    for (commit,), changes in split_log(Git(repository).read("read the history", *args, "--format=/%x00%H%x00"), 1):
        raw = "\0".join(changes).encode("utf-8", "surrogateescape")
        for path, _, after in parse_raw(raw.strip(b"\0\n") + b"\0") if raw.strip(b"\0\n") else ():
            if after is not None and after.blob in blobs:
                found.setdefault(after.blob, (commit, path))
    return found


def find_paths(
    repository: Repository, blobs: Collection[str], tick: Callable[[int], None] = lambda _: None
) -> tuple[int, dict[str, str]]:
    """Return how many commits a branch or a tag reaches, and a path of each of `blobs` that they have; `tick` hears
    how many objects have been passed.

    Raises:
        GitError: git refused.
    """
    commits, paths = 0, {}
    with Git(repository).stream("rev-list", "--objects", "--all", "--missing=allow-any") as process:
        assert process.stdout is not None
        for passed, line in enumerate(process.stdout):
            if not passed % 1000:
                tick(passed)
            name, space, path = line.rstrip(b"\n").decode("utf-8", "surrogateescape").partition(" ")
            commits += not space
            if name in blobs:
                paths[name] = path
    return commits, paths
