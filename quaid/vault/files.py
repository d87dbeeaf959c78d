"""Listing, reading and writing the files of a vault. Every write is atomic and guarded."""

import errno
import marshal
import os
import re
import signal
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from quaid.errors import BadInputError, DiskFullError, LockedError, NoteChangedError, VaultReadOnlyError
from quaid.vault import layout

LARGE = 100_000
"""A vault of more notes is listed by two processes."""
MAX_NAME_BYTES = 255
_MAY_STATE_OWNER = re.compile(rb"owner|priva|visibility|confidential|\0|\xef\xbc|\\[xu]", re.IGNORECASE)
_SNIFFED_BYTES = 8000
"""git decides by as many whether a file is text."""
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Links are not followed, and nothing waits for the other end of a pipe."""


class FileStat(NamedTuple):
    """The data of a note in the file system, without reading it: a hint that it changed, never a proof.

    Change time and inode are in it because an editor may keep size and modification time (`cp -p`, rsync).
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class NoteListing(NamedTuple):
    """The notes of a vault, path -> stat, and what was passed over, path -> why."""

    notes: dict[str, FileStat]
    passed_over: dict[str, str]


class FolderDigests:
    """The digests of folders by path, `known` ones and those `found` in a listing, each behind the number of notes."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = known
        self.found: dict[str, str] = {}

    @property
    def unchanged(self) -> int:
        """The number of notes in folders that have the digest that they had."""
        return sum(int(digest.split(":")[0]) for _, digest in self.known.items() & self.found.items())

    def list_half(self) -> dict[str, str]:
        """Return folders with about half of the notes, where a second process pays."""
        counts = {folder: int(digest.split(":")[0]) for folder, digest in self.known.items() if folder}
        is_large = sum(counts.values()) > LARGE
        return {folder: self.known[folder] for folder in sorted(counts, key=counts.__getitem__)[::2] if is_large}


def folder_of(rel_path: str) -> str:
    """Return the folder of a note, with a slash at its end; empty for the vault itself."""
    return rel_path[: rel_path.rfind("/") + 1]


def without_folders_of(folders: Mapping[str, str], changed: Iterable[str]) -> dict[str, str]:
    """Return `folders` but for those of the notes `changed`."""
    others = set(map(folder_of, changed))
    return {folder: digest for folder, digest in folders.items() if folder not in others}


def is_binary(data: bytes) -> bool:
    """Return whether git takes a file of `data` for something else than text."""
    return b"\0" in data[:_SNIFFED_BYTES]


def may_state_owner(data: bytes) -> bool:
    """Return False for a file that states neither owner nor privacy, in any spelling. Parses nothing."""
    return _MAY_STATE_OWNER.search(data) is not None


def list_notes(root: Path, folders: FolderDigests | None = None) -> NoteListing:
    """Every markdown note under `root`, with `folders` but for those of unchanged ones. Symbolic links are never
    followed.

    Raises:
        FileNotFoundError: `root` itself is gone (an unmounted disk is not an empty vault).
    """
    listed, waiting, known = NoteListing({}, {}), deque([""]), None if folders is None else folders.known
    half, found = {} if folders is None else folders.list_half(), dict[str, _Folder]()
    helper = threading.Thread(target=list_elsewhere, args=(root, half, found), daemon=True)
    if half:  # threads that look at files wait for Python's lock at each
        helper.start()
    while waiting:
        prefix = waiting.popleft()
        if prefix in half and helper.is_alive():  # all others are listed
            helper.join()
        digest, rows, passed_over, below = found.get(prefix) or list_folder(root, prefix, known)
        if folders is not None and digest:
            folders.found[prefix] = digest
        listed.passed_over.update(passed_over)
        listed.notes.update([(prefix + row[0], FileStat._make(row[1:])) for row in rows])
        waiting.extend(folder for folder in below if folder in half)
        waiting.extendleft(folder for folder in below if folder not in half)
    return listed


def list_some(root: Path, rel_paths: Iterable[str]) -> NoteListing:
    """List those of `rel_paths` that are there, by the rules of `list_notes`."""
    listed = NoteListing({}, {})
    for rel_path in rel_paths:
        try:
            found = os.lstat(root / rel_path)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) or _is_linked(root, rel_path):
            continue
        if reason := why_passed_over(rel_path, found.st_mode):
            listed.passed_over[printable(rel_path)] = reason
        else:
            listed.notes[rel_path] = FileStat(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
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
        handle = os.open(root / rel_path, _READ_FLAGS)
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
    """Return True if `rel_path` is a file or could become one: its name fits, and nothing else has its place."""
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
        if after is not None:
            _replace(root, rel_path, before, after)
        elif before is None:
            if path.exists():
                raise NoteChangedError(rel_path)
        elif not take_away(path.with_name(layout.temporary_name(path.name)), path, before):
            raise NoteChangedError(rel_path)
        else:
            with suppress(OSError):  # as git does: folders that a removal left empty go
                for folder in takewhile(lambda folder: folder != root, path.parents):
                    folder.rmdir()
    except (FileNotFoundError, FileExistsError) as error:
        raise (NoteChangedError(rel_path) if path.parent.is_dir() else explain(error, path)) from error
    except OSError as error:
        raise explain(error, path) from error


def walk_files(root: Path, skipped: Collection[str] = ()) -> Iterator[Path]:
    """Yield the files of all folders that may hold notes, but for those with a name in `skipped`."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not layout.skips_folder(name) and name not in skipped]
        yield from (Path(folder, name) for name in names)


_Folder = tuple[str, list[tuple[str, int, int, int, int]], dict[str, str], list[str]]
"""The digest of a folder, name and stat of each note if they are new, what is passed over, and the folders in it."""


def list_folder(root: Path, prefix: str, known: Mapping[str, str] | None) -> _Folder:
    """Return what the folder `prefix` holds, no digest if `known` is None. OSError: the vault cannot be opened."""
    try:
        handle = os.open(f"{root}/{prefix}", os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if not prefix:
            raise
        is_gone = error.errno == errno.ENOENT
        return "", [], {} if is_gone else {printable(prefix): f"cannot be opened ({error.strerror})"}, []
    try:
        with os.scandir(handle) as entries:  # by this handle, the system looks a file up by its name alone
            listing = sort_entries(entries, prefix)
    finally:
        os.close(handle)
    if known is None or not listing[1]:
        return listing
    from hashlib import blake2b  # not above: a recall in a vault of few notes hashes nothing

    _, rows, passed_over, below = listing
    digest = f"{len(rows)}:{blake2b(marshal.dumps(rows, 2), digest_size=16).hexdigest()}"
    return digest, [] if known.get(prefix) == digest else rows, passed_over, below


def sort_entries(entries: Iterable[os.DirEntry[str]], prefix: str) -> _Folder:
    """Return the entries of the folder `prefix`: its notes, what is passed over, and its folders."""
    rows, passed_over, below = list[tuple[str, int, int, int, int]](), dict[str, str](), list[str]()
    is_note_name, is_regular, is_plain = layout.is_note_name, stat.S_ISREG, prefix.isascii()
    for entry in entries:
        name = entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if not layout.skips_folder(name):
                    below.append(f"{prefix}{name}/")
            elif (name.endswith(".md") and name[0] not in ".~") or is_note_name(name):
                found = entry.stat(follow_symlinks=False)
                # The ordinary note, ten thousand times in every sweep, needs no further look.
                is_ordinary = is_plain and name.isascii() and "(" not in name and "conflict" not in name.lower()
                odd = (
                    None if is_ordinary and is_regular(found.st_mode) else why_passed_over(prefix + name, found.st_mode)
                )
                if odd is None:
                    rows.append((name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))
                else:
                    passed_over[printable(prefix + name)] = odd
        except OSError:  # gone between listing and asking
            continue
    return "", rows, passed_over, below


def list_elsewhere(root: Path, known: Mapping[str, str], found: dict[str, _Folder]) -> None:
    """Add the folders `known` to `found`, as another process lists them; none where it cannot run."""
    import subprocess  # not above: a recall in a vault of few notes does without

    command = [sys.executable, "-P", "-c", f"import {__name__} as files; files.list_for_another()", str(root)]
    with suppress(EOFError, OSError, TypeError, ValueError):
        answer = subprocess.run(command, input=marshal.dumps(dict(known)), capture_output=True, check=False).stdout
        found.update(marshal.loads(answer))  # noqa: S302 - from this program


def list_for_another() -> None:
    root, known = Path(sys.argv[1]), marshal.load(sys.stdin.buffer)  # noqa: S302 - from this program
    marshal.dump({prefix: list_folder(root, prefix, known) for prefix in known}, sys.stdout.buffer)


def is_unicode(rel_path: str) -> bool:
    return rel_path.isascii() or not any("\udc80" <= char <= "\udcff" for char in rel_path)


def printable(rel_path: str) -> str:
    """A path as text that can be stored, whatever bytes it has."""
    return rel_path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_linked(root: Path, rel_path: str) -> bool:
    """Return True if a folder between vault and file is a link: what is behind it is not of the vault."""
    *folders, _vault = PurePosixPath(rel_path).parents
    return any((root / folder).is_symlink() for folder in folders)


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
            move_to_new(temporary, path)
        else:
            temporary.chmod(path.stat().st_mode & 0o7777)
            if not swap_in(temporary, path, before, after):
                raise NoteChangedError(rel_path)
    finally:
        temporary.unlink(missing_ok=True)


def explain(error: OSError, path: Path) -> Exception:
    """Return the disk's refusal as one of Quaid's errors; an unexpected one unchanged."""
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return VaultReadOnlyError(path.parent, error.strerror or "no permission")
    if error.errno in {errno.EEXIST, errno.ENOTDIR}:
        return VaultReadOnlyError(path.parent, "a file is in the place of a folder")
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


# -- files that an editor may be saving -------------------------------------------------------------------------------
#
# An editor that saves in place opens the file, often empties it, and writes a moment later. If the file were swapped
# in between, its text would go into a file without a name. So Quaid waits until nobody has the file open for writing,
# checks the old file again after the swap and swaps back if it was touched, and checks a last time after the write.

MAX_SAVE_S = 5.0
"""The time to wait for an editor."""
POLL_S = 0.02
QUIET_S, QUIET_EMPTY_S = 0.3, 3.0
"""A file that was not written for so long counts as saved, where the system does not tell who has it open."""


def is_written(handle: int) -> bool | None:
    """Return True if somebody has an open file open for writing, or mapped; None where the system does not tell.

    A read lease is granted only where nobody has: https://man7.org/linux/man-pages/man2/fcntl.2.html (F_SETLEASE).
    """
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        # The kernel signals us when another process opens the file during the lease; this signal does nothing.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:  # not our own file, or a file system without leases
        return True if error.errno == errno.EAGAIN else None
    fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def read_saved(handle: int, name: str) -> bytes:
    """The bytes of an open file as soon as nobody is writing to it.

    Raises:
        LockedError: somebody did for longer than `MAX_SAVE_S`.
    """
    until = time.monotonic() + MAX_SAVE_S
    while (is_busy := is_written(handle)) is not False:
        found = os.fstat(handle)
        age_s = abs(time.time() - found.st_mtime)
        if is_busy is None and age_s >= (QUIET_S if found.st_size else QUIET_EMPTY_S):
            break
        if time.monotonic() > until:
            raise LockedError(f"Another program is writing to {name}", "Try again when it has saved or closed it.")
        time.sleep(POLL_S)
    return read_now(handle)


def read_now(handle: int) -> bytes:
    """The bytes of an open file."""
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(handle, "rb", closefd=False) as file:
        return file.read()


def swap_in(temporary: Path, path: Path, before: bytes, after: bytes) -> bool:
    """Put `temporary`, which holds `after`, in the place of `path`; False when that is not `before` or being written.

    What stood there is gone, or at `temporary`.
    """
    if not is_untouched(path, before):
        return False
    if not exchange(temporary, path):
        temporary.replace(path)
        return True
    if is_untouched(temporary, before):
        return True
    exchange(temporary, path)
    if not is_untouched(temporary, after):  # saved once more: the newest stays
        exchange(temporary, path)
    return False


def take_away(temporary: Path, path: Path, before: bytes) -> bool:
    """Take `path` away by way of the free name `temporary`; False when it is not `before` or being written."""
    if not is_untouched(path, before):
        return False
    path.rename(temporary)
    if is_untouched(temporary, before):
        temporary.unlink()
        return True
    move_to_new(temporary, path)
    temporary.unlink(missing_ok=True)
    return False


def move_to_new(temporary: Path, path: Path) -> None:
    """Give `temporary` the name `path`; the old name may stay.

    Raises:
        FileExistsError: somebody has made a file of that name.
    """
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links (exFAT, some network mounts)
        if path.exists():
            raise FileExistsError(path) from None
        temporary.replace(path)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A file open for reading; never a link, and never waiting for the other end of a pipe."""
    handle = os.open(path, _READ_FLAGS)
    try:
        yield handle
    finally:
        os.close(handle)


def is_at(handle: int, path: Path) -> bool:
    """Return True if an open file is the one at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def is_untouched(path: Path, data: bytes) -> bool:
    try:
        with opened(path) as handle:
            return not is_written(handle) and read_now(handle) == data
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP}:
            return False
        raise


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files in one step; False where the system cannot."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if (call := getattr(library, "renameat2", None)) is not None:
        here = -100  # AT_FDCWD
        return bool(call(here, names[0], here, names[1], 2) == 0)  # RENAME_EXCHANGE
    call = getattr(library, "renamex_np", None)  # macOS
    return call is not None and call(*names, 2) == 0  # RENAME_SWAP
