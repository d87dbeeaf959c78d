"""The files without a purged text, and the proof: every object, file and row is read once more, and none holds it.

What can be made again is deleted.
"""

import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from quaid.errors import GitError
from quaid.history import rewriting
from quaid.history.git import Git
from quaid.history.repository import Repository
from quaid.history.rewriting import overwrite
from quaid.local.rows import clean_rows, find_phrases, iterate_values
from quaid.open_vault import OpenVault
from quaid.place import AS_OF_DIR, DOCS_FILE, INDEX_FILE, LOCAL_FILE, write_private
from quaid.purge.wording import Wording
from quaid.sqlite import DAILY

_SQLITE = b"SQLite format 3\0"
_STREAM = re.compile(rb"x[\x01\x5e\x9c\xda]|\x1f\x8b\x08")
"""How zlib, with which git stores objects, and gzip begin."""
_PACK = re.compile(rb"PACK\0\0\0[\x02\x03]")
_SHORTENED_INDEX = b"DIRC\0\0\0\4"
"""An index of git's that has of each name only what differs from the one before."""
_ARCHIVES = (b"PK\3\4", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"7z\xbc\xaf", b"Rar!\x1a")
"""How zip, bzip2, xz, zstandard, lz4, 7z and rar begin."""
_OF_OWNER = {"lfs", "annex"}  # folders below `.git` with files of the owner's, packed or not
_CHUNK_BYTES, _MAX_UNPACKED_BYTES = 2**16, 2**30
_INDEXED = {"fulltext": "SELECT path FROM chunks JOIN documents USING (doc_id) WHERE chunk_id = ?"}
"""What the rows of an index's full-text tables were made of: files that are read themselves."""


@dataclass(slots=True)
class Proof:
    """What was read, and each place that holds the text or could not be looked into. The notes in `similar` have its
    words with other signs between them, so that only their owner can judge whether it is the same.
    """

    objects: int = 0
    files: int = 0
    rows: int = 0
    places: tuple[str, ...] = ()
    similar: set[str] = field(default_factory=set)

    @property
    def holds(self) -> bool:
        """Return whether nothing was found."""
        return not self.places


def prove(vault: OpenVault, repository: Repository, wording: Wording) -> Proof:
    """Read all objects of git, all files of its folders, of every worktree and of the vault's state, and the rows of
    databases. Raises GitError, DiskFailedError, OSError: one of them cannot be read.
    """
    search = _Search(vault, repository, wording)
    search.proof.places = tuple(dict.fromkeys(search.find_places()))
    return search.proof


class _Search:
    """Looks for the text, and counts what was read. What it yields are places that hold it, or may."""

    def __init__(self, vault: OpenVault, repository: Repository, wording: Wording) -> None:
        self._vault, self._repository, self._wording = vault, repository, wording
        self._own = repository.common_dir / "objects"
        self._stores = {self._own}  # folders of objects that git has read
        self._trees = rewriting.list_worktrees(repository)
        self.proof = Proof()

    def find_places(self) -> Iterator[str]:
        """The objects, files, rows and names that hold the text."""
        yield from self._find_objects(self._own)
        for tree in self._trees:
            if self._wording.is_in(Git(tree).read("read the index", "ls-files", "-z")):
                yield f"{tree.git_dir / 'index'}"
        folders = {self._repository.common_dir, self._vault.state.resolve(), *(tree.top for tree in self._trees)}
        for folder in sorted(folder for folder in folders if folders.isdisjoint(folder.parents)):
            for path in iterate_entries(folder):
                with suppress(FileNotFoundError):  # another program has removed it
                    yield from self._find_in_entry(path, path.relative_to(folder))

    def _find_in_entry(self, path: Path, name: Path) -> Iterator[str]:
        if self._wording.is_in(os.fsencode(name)):
            yield str(path)
        if path.suffix == ".pack" and path.parent.name == "pack" and path.with_suffix(".idx").is_file():
            if (store := path.parent.parent) not in self._stores:
                self._stores.add(store)
                yield from self._find_objects(store)
        elif path.is_symlink() or path.is_file():
            self.proof.files += 1
            is_in_tree = any(path.is_relative_to(tree.top) for tree in self._trees)
            is_owners = (is_in_tree and ".git" not in name.parts) or not _OF_OWNER.isdisjoint(name.parts)
            data = read_file(path)
            if path.is_symlink() and path.exists() and not is_owners:
                data += path.read_bytes()
            if any(path == tree.git_dir / "index" for tree in self._trees):
                data = data[len(_SHORTENED_INDEX) :]  # git has read its names
            yield from self._find_in_file(path, data, is_owners=is_owners)

    def _find_objects(self, store: Path) -> Iterator[str]:
        """The objects of a folder, of this repository or another one, that hold the text."""
        try:
            for item in Git(self._repository).iterate_objects(store):
                self.proof.objects += 1
                if not self.proof.objects % 1000:
                    self._vault.show_progress("proof", self.proof.objects, 0)
                is_changed = item.kind == "blob" and self._wording.change_file(item.data) != item.data
                if is_changed or self._wording.is_in(item.data):
                    yield f"{item.kind} {item.id}" + f" in {store}" * (store != self._own)
        except GitError as error:
            if store == self._own:
                raise
            yield f"{store} ({error.said})"

    def _find_in_file(self, path: Path, data: bytes, *, is_owners: bool) -> Iterator[str]:
        """The file if it holds the text, or may hold it where nobody can see. In a file of the owner's only what git
        could have written is looked into: a pack, or an object, which is a zlib stream from the beginning.
        """
        if self._wording.change_file(data) != data:
            yield str(path)
        if _PACK.search(data):
            yield f"{path} (a pack that git does not read there)"
        elif data.startswith(_SHORTENED_INDEX):
            yield f"{path} (an index that git does not read there)"
        elif not is_owners and data.startswith(_ARCHIVES):
            yield f"{path} (an archive)"
        elif data.startswith(_SQLITE):
            yield from self._find_in_tables(path)
        for start in _STREAM.finditer(data):
            if is_owners and (start.start() or start[0][:1] != b"x"):
                break
            unpacked, is_whole = _unpack(memoryview(data)[start.start() :])
            if self._wording.is_in(unpacked):
                yield str(path)
            if not (is_whole or start.start()) and "\ufffd" in data.decode("utf-8", "replace"):  # and it is no text
                yield f"{path} (compressed, and damaged)"

    def _find_in_tables(self, path: Path) -> Iterator[str]:
        """The tables of a database, full-text search's own among them, that hold the text in a row."""
        for table, value in iterate_values(path):
            self.proof.rows += 1
            if self._wording.is_in(value):
                yield f"{path}, table {table}"
        for table, note in find_phrases(path, self._wording.texts, _INDEXED):
            if note:
                self.proof.similar.add(note)
            else:
                yield f"{path}, table {table}"


def _unpack(data: memoryview) -> tuple[bytes, bool]:
    """Return what a stream that begins `data` holds, and whether that is all of it."""
    stream, parts, size = zlib.decompressobj(47), [], 0  # 47: zlib or gzip
    with suppress(zlib.error):
        for place in range(0, len(data), _CHUNK_BYTES):
            parts.append(stream.decompress(data[place : place + _CHUNK_BYTES]))
            size += len(parts[-1])
            if stream.eof or size > _MAX_UNPACKED_BYTES:
                break
    return b"".join(parts), stream.eof


def iterate_files(folder: Path) -> Iterator[Path]:
    """Yield every regular file and symbolic link below `folder`, except in repositories; no link is followed."""
    return (path for path in iterate_entries(folder, ".git") if path.is_symlink() or path.is_file())


def iterate_entries(folder: Path, skipped: str = "") -> Iterator[Path]:
    """Yield all that is below `folder`, folders too, and not in what is called `skipped`; no link is followed. Raises
    OSError: a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # another program has removed it
            raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        yield from (Path(place, name) for name in sorted([*folders, *names]) if name != skipped)
        folders[:] = sorted(name for name in folders if name != skipped)


def read_file(path: Path) -> bytes:
    """Return what git keeps of a file: of a symbolic link where it leads."""
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def clean_tree(top: Path, wording: Wording) -> None:
    """Take the text out of the files below `top`, and out of their names."""
    for path in list(iterate_files(top)):
        data = read_file(path)
        changed = wording.change_file(data)
        if changed is None:
            path.unlink()
            _remove_empty(path.parent)
            continue
        if changed != data:
            overwrite(path, changed)
        name = os.fsencode(path.relative_to(top))
        if (new := wording.change_path(name)) != name:
            wanted = target = top / os.fsdecode(new)
            numbers = count(2)
            while os.path.lexists(target):
                target = wanted.with_stem(f"{wanted.stem}-{next(numbers)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            _remove_empty(path.parent)


def clean_state(state: Path, wording: Wording) -> None:
    """Take the text out of what this machine keeps of a vault. The indexes are deleted: they are made again."""
    shutil.rmtree(state / AS_OF_DIR, ignore_errors=True)
    for name in (INDEX_FILE, DOCS_FILE):
        for path in state.glob(f"{name}*"):
            path.unlink()
    if (state / LOCAL_FILE).exists():
        clean_rows(state / LOCAL_FILE, wording.change_text)
    for path in iterate_files(state):
        is_copy = path.name.endswith((".damaged", DAILY, f"{DAILY}.tmp"))
        if path.is_symlink() or (path.name.startswith((LOCAL_FILE, "cache.db")) and not is_copy):
            continue
        data = path.read_bytes()
        if wording.is_in(os.fsencode(path.name)) or (is_copy and data.startswith(_SQLITE)):
            path.unlink()
        elif not data.startswith(_SQLITE) and (changed := wording.change_text(data)) != data:
            write_private(path, changed)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # something is in it, or in the one above
        os.removedirs(folder)
