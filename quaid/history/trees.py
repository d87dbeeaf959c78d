"""The tree of a commit with some files changed, made without an index: only the folders around them are read.

An index lists every file; git reads all of it for each question and writes all of it for each change.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from quaid.errors import GitError
from quaid.history.git_output import Version, hash_object, read_objects
from quaid.history.staging import RunGit

Entries = dict[bytes, tuple[bytes, bytes]]
"""What a folder holds: name to mode and id, as git's objects have them."""
FOLDER = b"40000"
"""The mode of an entry that is a folder."""


@dataclass(frozen=True)
class Folders:
    """The folders of a commit around some paths, "." its top; empty where it has none."""

    commit: str
    entries: Mapping[str, Entries]

    def find(self, path: str) -> Version | None:
        """The version that the commit has of one of the paths."""
        entry = self._get(path)
        return Version(entry[0].decode(), entry[1].hex()) if entry else None

    def has_file_around(self, path: str) -> bool:
        """Return True if what would be a folder of `path` is something else in the commit."""
        around = (self._get(folder) for folder in list_folders([path]) if folder != ".")
        return any(entry is not None and entry[0] != FOLDER for entry in around)

    def change(self, changes: Mapping[str, Version | None]) -> list[bytes]:
        """Return the folders, the innermost first and the top last, as objects of git that hold `changes`."""
        entries = {folder: dict(held) for folder, held in self.entries.items()}
        for path, version in changes.items():
            _put(entries, path, (version.mode.encode(), bytes.fromhex(version.blob)) if version else None)
        written = []
        for folder in sorted(entries, key=lambda folder: -len(PurePosixPath(folder).parts)):
            data = _render(entries[folder])
            written.append(data)
            if folder != ".":
                entry = FOLDER, bytes.fromhex(hash_object("tree", data, self.commit))
                _put(entries, folder, entry if entries[folder] else None)
        return written

    def _get(self, path: str) -> tuple[bytes, bytes] | None:
        return self.entries[_parent_of(path)].get(_name_of(path))


def list_folders(paths: Iterable[str]) -> list[str]:
    """Return each folder that one of `paths` lies in, "." first."""
    return sorted({str(folder) for path in paths for folder in PurePosixPath(path).parents})


def read(run: RunGit, commit: str, paths: Iterable[str]) -> Folders:
    """Read the folders of a commit around `paths`, of which none has a line break in its name."""
    folders = list_folders(paths)
    asked = [f"{commit}:{'' if folder == '.' else folder}".encode("utf-8", "surrogateescape") for folder in folders]
    out = io.BytesIO(run("read a commit", "cat-file", "--batch", stdin=b"".join(line + b"\n" for line in asked))[1])
    found = {
        folder: _parse(each.data, len(commit) // 2) if each.kind == "tree" else {}
        for folder, each in zip(folders, read_objects(out), strict=True)
    }
    return Folders(commit, found)


def write(run: RunGit, folder: Path, objects: Iterable[bytes], like: str) -> str:
    """Store folders, of which the last is the top, by way of files in `folder`, and return its id.

    Raises:
        GitError: git refused, or calls them by other names.
    """
    folder.mkdir()
    ids = {}
    for number, data in enumerate(objects):
        path = folder / str(number)
        path.write_bytes(data)
        ids[str(path)] = hash_object("tree", data, like)
    args = ("hash-object", "-w", "-t", "tree", "--no-filters", "--stdin-paths")
    said = run("write a tree", *args, stdin="".join(f"{path}\n" for path in ids).encode("utf-8", "surrogateescape"))[1]
    if said.decode().split() != [*ids.values()]:
        raise GitError("write a tree", "git calls it by another name")
    return [*ids.values()][-1]


def _put(entries: Mapping[str, Entries], path: str, entry: tuple[bytes, bytes] | None) -> None:
    folder, name = entries[_parent_of(path)], _name_of(path)
    if entry is None:
        folder.pop(name, None)
    else:
        folder[name] = entry


def _parent_of(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _name_of(path: str) -> bytes:
    return os.fsencode(PurePosixPath(path).name)


def _parse(data: bytes, id_size: int) -> Entries:
    """The entries of a folder: "mode name", a zero and the bytes of the id, one after the other."""
    found = re.findall(rb"(\d+) ([^\0]+)\0(.{%d})" % id_size, data, re.DOTALL)
    return {name: (mode, blob) for mode, name, blob in found}


def _render(entries: Entries) -> bytes:
    """The opposite of `_parse`, in git's order: that of the bytes of the names, a folder's with a slash behind."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" if item[1][0] == FOLDER else item[0])
    return b"".join(b"%s %s\0%s" % (mode, name, blob) for name, (mode, blob) in ordered)
