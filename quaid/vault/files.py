"""Listing, reading and writing the files of a vault. Every write is atomic and guarded."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from quaid.errors import BadInputError, DiskFullError, NoteChangedError, VaultReadOnlyError
from quaid.vault import file_swap, layout

MAX_NAME_BYTES = 255
_BYTES_TOLD_BY = 8000
"""git decides by as many whether a file is text."""


class FileStat(NamedTuple):
    """The data of a note in the file system, without reading it: a hint that it changed, never a proof.

    Change time and inode are in it because an editor may keep size and modification time (`cp -p`, rsync).
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class NoteListing:
    """The notes of a vault, path -> stat, and what was passed over, path -> why."""

    notes: dict[str, FileStat]
    passed_over: dict[str, str]


def is_binary(data: bytes) -> bool:
    """Return whether git takes a file of `data` for something else than text."""
    return b"\0" in data[:_BYTES_TOLD_BY]


def list_notes(root: Path) -> NoteListing:
    """Every markdown note under `root`. Symbolic links are never followed.

    Raises:
        FileNotFoundError: `root` itself is gone (an unmounted disk is not an empty vault).
    """
    listed = NoteListing({}, {})
    pending = [("", str(root))]
    while pending:
        prefix, folder = pending.pop()
        try:
            entries = os.scandir(folder)
        except OSError as error:
            if not prefix:
                raise
            if error.errno != errno.ENOENT:
                listed.passed_over[printable(prefix)] = f"cannot be opened ({error.strerror})"
            continue
        with entries:
            _list_folder(entries, prefix, listed, pending)
    return listed


def list_some(root: Path, rel_paths: Iterable[str]) -> NoteListing:
    """List those of `rel_paths` that are there, by the rules of `list_notes`."""
    listed = NoteListing({}, {})
    for rel_path in rel_paths:
        try:
            found = os.lstat(root / rel_path)
        except OSError:
            continue
        if not _is_linked(root, rel_path):
            _classify(rel_path, found, listed)
    return listed


def why_passed_over(rel_path: str, mode: int) -> str | None:
    """Return the reason why a file with a note's name is not read, None for a note. `mode` is that of `lstat`, or of a
    git tree, which has the same bits for files and links.
    """
    if stat.S_ISLNK(mode):
        return "is a symbolic link; links are never followed"
    if not stat.S_ISREG(mode):
        return "is not a file"
    if layout.is_conflict_copy(rel_path):
        return "is a copy a sync tool made of a conflict; merge it into the note by hand"
    return None if is_unicode(rel_path) else "has a name that is not UTF-8"


def read_note(root: Path, rel_path: str, limit: int | None = None) -> bytes | None:
    """The file's bytes, None when it is gone. `O_NOFOLLOW`: a note swapped for a link is not read, and
    one swapped for a pipe is not waited for (`O_NONBLOCK`).
    """
    try:
        handle = os.open(root / rel_path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EISDIR}:
            return None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read() if limit is None else file.read(limit)


def read_file(path: Path) -> bytes:
    """Return the bytes of a file that is not a note, read as `read_note` reads: neither through a link nor from a pipe
    or device.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read.
    """
    data = read_note(path.parent, path.name)
    if data is None:
        raise FileNotFoundError(errno.ENOENT, "is not a file", str(path))
    return data


def is_file_in(root: Path, rel_path: str) -> bool:
    """Return True if `rel_path` is a file below `root`, with no link on the way and nothing that leads out of it."""
    parts = PurePosixPath(rel_path).parts
    if not parts or ".." in parts or parts[0] == "/" or "\0" in rel_path:
        return False
    try:
        return stat.S_ISREG((root / rel_path).lstat().st_mode) and not _is_linked(root, rel_path)
    except OSError:
        return False


def can_hold(root: Path, rel_path: str) -> bool:
    """Return True if a file could stand at `rel_path`, or does: its name fits, and nothing else is in the way."""
    *folders, _ = PurePosixPath(rel_path).parts
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in PurePosixPath(rel_path).parts):
        return False
    try:
        for depth in range(len(folders)):
            if not stat.S_ISDIR(root.joinpath(*folders[: depth + 1]).lstat().st_mode):
                return False
        return stat.S_ISREG((root / rel_path).lstat().st_mode)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def write_note(
    root: Path, rel_path: str, before: bytes | None, after: bytes | None, *, may_be_hidden: bool = False
) -> None:
    """Replace, create (`before` is None) or remove (`after` is None) a file, if it still is what it was.

    The new bytes go to a hidden file in the same folder, are synced, then renamed over the old one, so that a
    reader sees the old note or the new one and a crash leaves one of the two.

    Raises:
        NoteChangedError: the file is not `before` any more, or an editor is just saving it.
        VaultReadOnlyError, DiskFullError: nothing was written.
        BadInputError: no file of a vault has such a path.
    """
    path = root / rel_path
    if not (layout.is_vault_path(rel_path) or (may_be_hidden and layout.is_repository_path(rel_path))):
        raise BadInputError(
            f"{rel_path!r} is not a path that Quaid writes: nothing was changed. Give one of the vault."
        )
    if path.is_symlink() or _is_linked(root, rel_path):
        raise VaultReadOnlyError(path, "a symbolic link is on the way, and links are never followed")
    try:
        if after is None:
            _remove(root, rel_path, before)
        else:
            _replace(root, rel_path, before, after)
    except (FileNotFoundError, FileExistsError) as error:
        raise (NoteChangedError(rel_path) if path.parent.is_dir() else explain(error, path)) from error
    except OSError as error:
        raise explain(error, path) from error


def find_named(root: Path, is_meant: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the files whose name `is_meant`, in all folders that may hold notes."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not layout.skips_folder(name)]
        yield from (Path(folder, name) for name in names if is_meant(name))


def iterate_leftovers(root: Path) -> Iterator[Path]:
    """Hidden temporary files that a killed write left behind."""
    return find_named(root, layout.is_temporary_name)


def _list_folder(
    entries: Iterable[os.DirEntry[str]], prefix: str, listed: NoteListing, pending: list[tuple[str, str]]
) -> None:
    is_note_name, is_regular, notes = layout.is_note_name, stat.S_ISREG, listed.notes
    is_plain = prefix.isascii()
    for entry in entries:
        name = entry.name
        try:
            found = entry.stat(follow_symlinks=False) if is_note_name(name) else None
            # The ordinary note, ten thousand times in every sweep; anything odd about a file is looked at below.
            is_ordinary = is_plain and name.isascii() and "(" not in name and "conflict" not in name.lower()
            if found is not None and is_regular(found.st_mode) and is_ordinary:
                notes[prefix + name] = FileStat(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
            elif entry.is_dir(follow_symlinks=False):
                if not layout.skips_folder(name):
                    pending.append((f"{prefix}{name}/", entry.path))
            elif found is not None:
                _classify(prefix + name, found, listed)
        except OSError:  # gone between listing and asking
            continue


def _classify(rel_path: str, found: os.stat_result, listed: NoteListing) -> None:
    """Put a file with a note's name among the notes, or say why not."""
    if stat.S_ISDIR(found.st_mode):
        return
    reason = why_passed_over(rel_path, found.st_mode)
    if reason is None:
        listed.notes[rel_path] = FileStat(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    else:
        listed.passed_over[printable(rel_path)] = reason


def is_unicode(rel_path: str) -> bool:
    return rel_path.isascii() or not any("\udc80" <= char <= "\udcff" for char in rel_path)


def printable(rel_path: str) -> str:
    """A path as text that can be stored, whatever bytes it has."""
    return rel_path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_linked(root: Path, rel_path: str) -> bool:
    """Return True if a folder between vault and file is a link: what is behind it is not of the vault."""
    *folders, _vault = PurePosixPath(rel_path).parents
    return any((root / folder).is_symlink() for folder in folders)


def _remove(root: Path, rel_path: str, before: bytes | None) -> None:
    path = root / rel_path
    if before is None:
        if path.exists():
            raise NoteChangedError(rel_path)
    elif not file_swap.remove(path.with_name(layout.temporary_name(path.name)), path, before):
        raise NoteChangedError(rel_path)
    else:
        with suppress(OSError):  # as git does: folders that a removal left empty go
            for folder in takewhile(lambda folder: folder != root, path.parents):
                folder.rmdir()


def _replace(root: Path, rel_path: str, before: bytes | None, after: bytes) -> None:
    path = root / rel_path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(layout.temporary_name(path.name))
    try:
        with temporary.open("xb") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        if before is None:
            file_swap.move_to_new(temporary, path)
        else:
            temporary.chmod(path.stat().st_mode & 0o7777)
            if not file_swap.replace(temporary, path, before, after):
                raise NoteChangedError(rel_path)
    finally:
        temporary.unlink(missing_ok=True)


def explain(error: OSError, path: Path) -> Exception:
    """Return the disk's refusal as one of Quaid's errors; an unexpected one unchanged."""
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return VaultReadOnlyError(path.parent, error.strerror or "no permission")
    if error.errno in {errno.EEXIST, errno.ENOTDIR}:
        return VaultReadOnlyError(path.parent, "a file stands where a folder must be")
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFullError(path.parent)
    return error


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Raise the disk's refusals in the block as Quaid's errors about `path`."""
    try:
        yield
    except OSError as error:
        raise explain(error, path) from error
