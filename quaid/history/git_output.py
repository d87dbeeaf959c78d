"""The output of git as data: items, trees, raw diffs, logs and objects. Paths may hold bytes that are not UTF-8."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, NamedTuple

SUBMODULE = "160000"
"""The mode of an entry that is another repository."""


@dataclass(frozen=True, slots=True)
class Version:
    """One file as a tree or an index has it."""

    mode: str
    blob: str


class GitObject(NamedTuple):
    """An object: its id, `blob`, `tree`, `commit` or `tag`, and what it holds."""

    id: str
    kind: str
    data: bytes


def split_items(out: bytes) -> list[str]:
    """The items of output made with -z; empty ones are left out."""
    return [item.decode("utf-8", "surrogateescape") for item in out.split(b"\0") if item]


def join_items(items: Iterable[str]) -> bytes:
    """The opposite of `split_items`: input for commands with -z."""
    return b"".join(item.encode("utf-8", "surrogateescape") + b"\0" for item in items)


def split_log(out: bytes, count: int) -> Iterator[tuple[list[str], list[str]]]:
    """(`count` fields, all that follows them) of each commit that `git log -z` prints in a format that begins with a
    slash as a field of its own. No path and no line of --raw is a slash, so the next one begins the next commit.
    """
    items = out.decode("utf-8", "surrogateescape").split("\0")
    place = 0
    while place < len(items) and items[place] == "/":
        start = place + 1 + count
        end = next((i for i in range(start, len(items)) if items[i] == "/"), len(items))
        yield items[place + 1 : start], items[start:end]
        place = end


def parse_tree(out: bytes) -> Iterator[tuple[str, Version]]:
    """(path, version) of each entry that `git ls-tree -z` prints."""
    for line in split_items(out):
        head, _, path = line.partition("\t")
        mode, _, blob = head.split(" ")
        yield path, Version(mode, blob)


def parse_raw(out: bytes) -> Iterator[tuple[str, Version | None, Version | None]]:
    """(path, old, new) of each change in git's raw diff format with -z."""
    fields = iter(split_items(out))
    for head in fields:
        old_mode, new_mode, old, new, _ = head.lstrip("\n:").split(" ")
        before, after = (
            None if mode == "000000" else Version(mode, blob) for mode, blob in ((old_mode, old), (new_mode, new))
        )
        yield next(fields), before, after


def parse_objects(out: bytes) -> dict[str, bytes]:
    """Id -> content of each object that `git cat-file --batch` prints; those that are not there are left out."""
    return {found.id: found.data for found in read_objects(io.BytesIO(out)) if found.kind}


def read_objects(stream: IO[bytes]) -> Iterator[GitObject]:
    """Yield each object that `git cat-file --batch` prints; the kind is empty of one that is not there."""
    while words := (line := stream.readline()).split():
        if line.endswith(b" missing\n") or len(words) != 3:
            yield GitObject(words[0].decode("utf-8", "replace"), "", b"")
            continue
        data = stream.read(int(words[2]))
        stream.read(1)
        yield GitObject(words[0].decode(), words[1].decode(), data)


def hash_blob(data: bytes, like: str) -> str:
    """The id of a blob of `data` as it is, no filter applied, in the hash that the id `like` is of."""
    return hash_object("blob", data, like)


def hash_object(kind: str, data: bytes, like: str) -> str:
    """The id of an object of a kind, in the hash that the id `like` is of."""
    algorithm = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return algorithm(b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()
