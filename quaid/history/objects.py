"""All objects of a repository, also those that no branch reaches any more: each is read once, as git stores it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

from quaid.errors import GitError
from quaid.history.git_output import GitObject, parse_objects, read_objects
from quaid.history.git_process import run, streaming
from quaid.history.repository import Repository


def iterate_objects(repository: Repository, folder: Path | None = None) -> Iterator[GitObject]:
    """Yield every object of `repository`, or of the object `folder` of another one, in their order on the disk.

    Raises:
        GitError: one cannot be read, though git may have another copy of it.
    """
    store = folder or repository.common_dir / "objects"
    args = ("cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
    errors: list[bytes] = []
    with streaming(repository, args, {"GIT_OBJECT_DIRECTORY": str(store)}) as process:
        # Read meanwhile: git, which may have an error for each object, would wait until somebody does.
        listener = Thread(target=errors.extend, args=(process.stderr,), daemon=True)
        listener.start()
        for found in read_objects(process.stdout):
            if found.kind:
                yield found
            else:
                errors.append(f"{found.id} is damaged".encode())
        process.stdin.close()
        listener.join()
        if damage := [line for line in errors if not line.startswith((b"warning:", b"hint:"))]:
            step = "Repair it, or delete its file if nothing needs it: git fsck --full says what does"
            raise GitError(f"read all objects of {store}", f"{damage[0].decode('utf-8', 'replace').strip()}. {step}")


def read_blobs(repository: Repository, ids: Collection[str]) -> dict[str, bytes]:
    """Return the bytes of each object that is there, by id."""
    asked = "".join(f"{each}\n" for each in ids).encode()
    return parse_objects(run(repository, "read objects", "cat-file", "--batch", stdin=asked)) if ids else {}


class ObjectReader:
    """Reads objects by their ids, one at a time. Made by `reading`."""

    def __init__(self, asked: IO[bytes], answers: IO[bytes]) -> None:
        self._asked, self._answers = asked, answers

    def read(self, object_id: str) -> GitObject:
        """Return the object with this id. Raises KeyError: there is none."""
        self._asked.write(object_id.encode() + b"\n")
        self._asked.flush()
        found = next(read_objects(self._answers), None)
        if found is None or not found.kind:
            raise KeyError(object_id)
        return found


@contextmanager
def reading(repository: Repository, env: Mapping[str, str] | None = None) -> Iterator[ObjectReader]:
    """Yield a reader of the objects of `repository`; `env` is added to git's environment."""
    with streaming(repository, ("cat-file", "--batch"), env) as process:
        yield ObjectReader(process.stdin, process.stdout)
