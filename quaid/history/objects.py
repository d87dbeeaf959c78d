"""All objects of a repository, also those that no branch reaches any more: each is read once, as git stores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, NamedTuple

from quaid.history.git_process import streaming
from quaid.history.repository import Repository


class GitObject(NamedTuple):
    """An object: its id, `blob`, `tree`, `commit` or `tag`, and what it holds."""

    id: str
    kind: str
    data: bytes


def iterate_objects(repository: Repository) -> Iterator[GitObject]:
    """Yield every object, in the order in which they lie on the disk.

    Raises:
        GitError: one cannot be read.
    """
    args = ("cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
    with streaming(repository, args) as process:
        while (found := _read_one(process.stdout)) is not None:
            yield found


class ObjectReader:
    """Reads objects by their ids, one at a time. Made by `reading`."""

    def __init__(self, asked: IO[bytes], answers: IO[bytes]) -> None:
        self._asked, self._answers = asked, answers

    def read(self, object_id: str) -> GitObject:
        """Return the object with this id.

        Raises:
            KeyError: there is none.
        """
        self._asked.write(object_id.encode() + b"\n")
        self._asked.flush()
        found = _read_one(self._answers)
        if found is None or not found.kind:
            raise KeyError(object_id)
        return found


@contextmanager
def reading(repository: Repository, env: Mapping[str, str] | None = None) -> Iterator[ObjectReader]:
    """Yield a reader of the objects of `repository`; `env` is added to git's environment."""
    with streaming(repository, ("cat-file", "--batch"), env) as process:
        yield ObjectReader(process.stdin, process.stdout)


def _read_one(stream: IO[bytes]) -> GitObject | None:
    words = stream.readline().split()
    if not words:
        return None
    if len(words) != 3:  # "<id> missing"
        return GitObject(words[0].decode(), "", b"")
    data = stream.read(int(words[2]))
    stream.read(1)
    return GitObject(words[0].decode(), words[1].decode(), data)
