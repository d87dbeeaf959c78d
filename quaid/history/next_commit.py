"""What `git commit` is about to commit, as its pre-commit hook sees it: the files that are staged, and what they
replace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from quaid.errors import GitError
from quaid.history import steering
from quaid.history.git_output import SUBMODULE, Version, parse_raw
from quaid.history.git_process import QUIET, execute, explain, quiet_environment
from quaid.history.objects import ObjectReader, reading
from quaid.history.repository import Repository, find_repository

_HANDED_ON = ("GIT_DIR", "GIT_INDEX_FILE")
"""What git tells its hook: `git commit FILE` has an index of its own, and a work tree need not have a .git."""


@dataclass(frozen=True, slots=True)
class NextCommit:
    """`added` has the blob of each path that no parent has so, `replaced` the blobs of the parents in their place;
    `sizes` are the bytes of each. A merge has several parents.
    """

    repository: Repository
    env: Mapping[str, str]
    added: Mapping[str, str]
    replaced: frozenset[str]
    sizes: Mapping[str, int]

    @contextmanager
    def reading(self) -> Iterator[ObjectReader]:
        """Yield a reader of the blobs."""
        with reading(self.repository, self.env) as reader:
            yield reader


def read(folder: Path) -> NextCommit:
    """Return what the commit would bring that git makes in the work tree whose top is `folder`.

    Raises:
        GitError: git cannot tell, or there is no repository.
    """
    env = {name: os.path.abspath(folder / os.environ[name]) for name in _HANDED_ON if name in os.environ}  # noqa: PTH100
    git_dir = Path(env["GIT_DIR"]) if "GIT_DIR" in env else None
    repository = Repository(folder, git_dir, git_dir, "") if git_dir else find_repository(folder)
    if repository is None:
        raise GitError("read what is staged", f"{folder} is in no repository")
    steering.check(repository)
    parents = ["HEAD"]
    with suppress(FileNotFoundError):
        parents += (repository.git_dir / "MERGE_HEAD").read_text("ascii").split()
    if _ask(repository, env, "rev-parse", "--quiet", "--verify", "HEAD", accept=(0, 1))[0]:
        parents = [_ask(repository, env, "hash-object", "-t", "tree", "--stdin")[1].decode().strip()]  # the empty one
    compared = [_compare(repository, env, parent) for parent in parents]
    added = {
        path: new.blob for path, (_, new) in compared[0].items() if new and all(path in other for other in compared)
    }
    replaced = frozenset(old.blob for changes in compared for old, _ in changes.values() if old)
    return NextCommit(repository, env, added, replaced, _read_sizes(repository, env, {*added.values(), *replaced}))


def _compare(
    repository: Repository, env: Mapping[str, str], parent: str
) -> dict[str, tuple[Version | None, Version | None]]:
    """Each path that is staged otherwise than in `parent`: what is there, what is staged."""
    out = _ask(repository, env, "diff-index", "--cached", "--raw", "-z", "--no-renames", parent)[1]
    return {path: (old, new) for path, old, new in parse_raw(out) if new is None or new.mode != SUBMODULE}


def _read_sizes(repository: Repository, env: Mapping[str, str], blobs: set[str]) -> dict[str, int]:
    """The size of each that is there: a partial clone may have left one out."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    out = _ask(repository, env, "cat-file", "--batch-check", stdin=asked)[1].decode()
    rows = [line.split() for line in out.splitlines()]
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[1] == "blob"}


def _ask(
    repository: Repository, env: Mapping[str, str], *args: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)
) -> tuple[int, bytes]:
    environment = {**quiet_environment(repository.top), **env}
    code, out, stderr = execute(["-C", str(repository.top), *QUIET, *args], stdin, environment)
    if code not in accept:
        raise explain("read what is staged", stderr, repository.top)
    return code, out
