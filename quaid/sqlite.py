"""Opening the SQLite files of Quaid, and setting them aside when they are damaged.

All of them can be lost: two are derived from files, one is a cache, one holds statistics. So a file that SQLite cannot
use, or that another program made, is renamed to NAME.damaged, once, and a new one begun in its place.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import apsw

from quaid.errors import (
    DiskFailedError,
    DiskFullError,
    LockedError,
    QuaidError,
    StateDamagedError,
    VaultReadOnlyError,
)

BUSY_MS = 30_000
MAX_DAMAGE_RETRIES = 3
_PAUSE_SECONDS = 0.005
_HEADER_BYTES = 100
_SHARED_STEP = 32_768
"""The shared memory of a write-ahead log grows in such steps."""
_MAX_SHARED_BYTES = 1 << 20
_SHARED_HEADER = 136
_CHECKSUM_BYTES = 8
_MIN_FREE_BYTES = 65_536
_SIDE_FILES = ("-wal", "-shm", "-journal")
_DAMAGED = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError)
_DAMAGED_READS = {
    apsw.SQLITE_IOERR_SHORT_READ,
    apsw.SQLITE_IOERR_READ,
    apsw.SQLITE_IOERR_DATA,
    apsw.SQLITE_IOERR_CORRUPTFS,
}
_REFUSED = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError)

_OF_SQLITE = (apsw.IOError, apsw.FullError, apsw.BusyError, apsw.CantOpenError, apsw.ReadOnlyError)
_OF_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG}

Result = TypeVar("Result")
Opened = TypeVar("Opened", bound="Database")


class Format(NamedTuple):
    """The entries of a file's header that tell one kind of database from all others, and its version.

    `is_derived`: one of another version is rebuilt in place, and readers of the old one go on until it is done.
    Else it is set aside.
    """

    application_id: int
    version: int
    is_derived: bool = False


class Database(apsw.Connection):
    """A connection that knows which file it has open."""

    path = Path()
    inode = 0
    is_outdated = False
    _shared = 0

    def is_current(self) -> bool:
        """Return whether the path still names the file that is open, and its shared memory is the one that others
        share.

        Shared memory that was cut short is extended again.
        """
        shared = _stat(Path(f"{self.path}-shm"))
        found = shared.st_ino if shared is not None else 0
        if shared is not None:
            _mend_shared(self.path, shared.st_size)
        self._shared = self._shared or found
        return inode(self.path) == self.inode and found == self._shared

    def close(self, force: bool = False) -> None:
        """Close it. A file that is no longer current is left alone: a checkpoint would remove its successor's log."""
        with suppress(apsw.ConnectionClosedError):
            if not self.is_current():
                self.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        super().close(force)


def open_database(
    path: Path,
    form: Format,
    begin: Callable[[Opened], object],
    wait_ms: int = BUSY_MS,
    *,
    prepare: Callable[[Opened], object] | None = None,
    kind: type[Opened] = Database,  # type: ignore[assignment]
) -> Opened:
    """Return a connection that may write the database at `path`, which `begin` fills when it is new; 0600, in WAL mode.

    It is of `kind`; `prepare` is called with it before it is used. A lock is waited for `wait_ms`.

    Raises:
        apsw.Error: as SQLite says; `retry_after_damage` and `translated` know what is meant.
    """
    connection = _connect_or_make(path, wait_ms, kind)
    try:
        connection.set_busy_timeout(wait_ms)
        if prepare is not None:
            prepare(connection)
        use_write_ahead_log(connection, wait_ms)
        if not _is_of(connection, form):
            with transaction(connection):
                if not _is_of(connection, form):  # another process may have been quicker
                    connection.is_outdated = _is_outdated(connection, form)
                    begin(connection)
                    stamp(connection, form)
        connection.is_current()
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_or_make(path: Path, wait_ms: int, kind: type[Opened]) -> Opened:
    if not _has_header(path):
        _make_file(path, wait_ms)
    try:
        return connect(path, apsw.SQLITE_OPEN_READWRITE, kind=kind)
    except apsw.CantOpenError:
        if path.exists():
            raise
    # Another process has set it aside since it was looked at.
    _make_file(path, wait_ms)
    return connect(path, apsw.SQLITE_OPEN_READWRITE, kind=kind)


def connect(path: Path, flags: int, options: str = "", kind: type[Opened] = Database) -> Opened:  # type: ignore[assignment]
    """Return a connection of `kind` to the file at `path`, which is not a link, a pipe or a folder, nor is what lies
    beside it.

    Raises:
        apsw.NotADBError: it is, or it cannot be read where it can be replaced.
        apsw.CantOpenError: there is none.
    """
    real = Path(os.path.realpath(path.parent), path.name)
    for suffix in ("", *_SIDE_FILES):
        found = _stat(Path(f"{real}{suffix}"))
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise apsw.NotADBError(f"{path.name}{suffix} is not a file")
        if found is not None and suffix == "-shm":
            is_open = any(isinstance(each, Database) and each.path == real for each in apsw.connections())
            if is_open:
                _mend_shared(real, found.st_size)
    found_inode = inode(real)
    wanted = os.R_OK | (os.W_OK if flags & apsw.SQLITE_OPEN_READWRITE else 0)
    if found_inode and not os.access(real, wanted) and os.access(real.parent, os.W_OK):
        raise apsw.NotADBError(f"{path.name} may not be read or written")
    name = f"{real.as_uri()}?{options}" if options else str(real)
    flags |= apsw.SQLITE_OPEN_NOFOLLOW | (apsw.SQLITE_OPEN_URI if options else 0)
    connection = kind(name, flags=flags, vfs=_checked_files())
    connection.path, connection.inode = real, found_inode
    return connection


def check_application(connection: Database, form: Format) -> None:
    """Read the file for the first time.

    Raises:
        apsw.NotADBError: it was not made by Quaid.
    """
    if connection.pragma("application_id") != form.application_id:
        raise apsw.NotADBError("it was made by another program")
    connection.is_current()


def stamp(connection: apsw.Connection, form: Format) -> None:
    """Write into the file's header what it is."""
    connection.pragma("application_id", form.application_id)
    connection.pragma("user_version", form.version)


def retry_after_damage(path: Path, work: Callable[[bool], Result]) -> Result:
    """Return what `work` returns. If it finds the database at `path` damaged, that is set aside and `work` is called
    again with True; several times, as another process may be setting it aside at the same moment.
    """
    for attempt in range(MAX_DAMAGE_RETRIES):
        found = inode(path)
        try:
            return work(attempt > 0)
        except Exception as error:
            if not is_damage(error):
                raise
            set_aside(path, found, error)
    return work(True)


def is_damage(error: BaseException) -> bool:
    """Return whether an error of SQLite or Python means that a database does not hold what it should."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) in _DAMAGED_READS
    return isinstance(error, _DAMAGED)


def set_aside(path: Path, damaged: int, reason: object) -> None:
    """Keep the database with the inode `damaged` as NAME.damaged, in the place of an earlier one, with its log.

    Nothing happens when another process has done so, or begun a new one, already.

    Raises:
        DiskFullError, DiskFailedError, VaultReadOnlyError: it stays in the way.
    """
    try:
        with _exclusively(path):
            if not damaged or inode(path) != damaged:
                return
            kept = path.with_name(f"{path.name}.damaged")
            for suffix in ("", *_SIDE_FILES):
                _remove(Path(f"{kept}{suffix}"))
            path.replace(kept)
            for suffix in _SIDE_FILES:
                with suppress(FileNotFoundError):
                    Path(f"{path}{suffix}").replace(f"{kept}{suffix}")
    except OSError as error:
        raise explain(error, path) from error
    import logging

    logging.getLogger("quaid").warning(
        "quaid: %s was damaged (%s) and is kept as %s; a new one is begun.", path.name, reason, kept.name
    )


@contextmanager
def translated(path: Path, opened: int = 0, busy: str = "") -> Iterator[None]:
    """Raise the errors of SQLite and the system about the database at `path` as Quaid's own.

    Raises:
        DiskFullError, DiskFailedError, VaultReadOnlyError: it cannot be read or written.
        LockedError: another process is at work, as `busy` says.
        StateDamagedError: the file, which had the inode `opened`, was damaged; it stands aside now.
    """
    try:
        try:
            yield
        except Exception as error:
            if not is_damage(error):
                raise
            set_aside(path, opened, error)
            raise StateDamagedError(path.name) from error
    except (apsw.Error, OSError) as error:
        raise explain(error, path, busy) from error


def explain(error: Exception, path: Path, busy: str = "") -> QuaidError:
    """Return the error that says what SQLite or the system refused around the database at `path`."""
    number = getattr(error, "errno", None)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return LockedError(busy or f"{path.name} is in use by another process")
    if isinstance(error, apsw.FullError) or number in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFullError(path.parent)
    if isinstance(error, _REFUSED) or (isinstance(error, OSError) and number != errno.EIO):
        return VaultReadOnlyError(path.parent, str(error))
    with suppress(OSError):
        disk = os.statvfs(path.parent)
        if disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES:
            return DiskFullError(path.parent)
    return DiskFailedError(path, str(error))


def refusal(error: Exception, state: Path) -> QuaidError | None:
    """Return an error that nobody has translated as Quaid's own, when it is about the databases in the folder `state`
    or about the disk; else None. A damaged database is set aside.
    """
    if isinstance(error, apsw.Error) and is_damage(error):
        damaged = [path for path in sorted(state.glob("*.db")) if not _is_sound(path)]
        for path in damaged:
            set_aside(path, inode(path), error)
        return StateDamagedError(damaged[0].name) if damaged else None
    is_of_disk = isinstance(error, OSError) and error.errno in _OF_DISK
    return explain(error, state / "state") if is_of_disk or isinstance(error, _OF_SQLITE) else None


def inode(path: Path) -> int:
    """Return the number that tells one file from the next at the same path; 0 when there is none."""
    found = _stat(path)
    return found.st_ino if found is not None else 0


def use_write_ahead_log(connection: apsw.Connection, wait_ms: int) -> None:
    """Put the file into WAL mode, where it stays, and have what is deleted overwritten in it.

    When another process is about to do the same to a new file, SQLite does not wait as it does for every other lock:
    it says at once that the file is busy. So waiting is done here.

    Raises:
        apsw.BusyError: the file was busy for `wait_ms`.
    """
    connection.execute("PRAGMA secure_delete = ON")  # what was forgotten is not to be read off the disk
    last = time.monotonic() + wait_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() >= last:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """BEGIN IMMEDIATE … COMMIT: one that begins by reading cannot wait for the lock when it comes to writing, and
    nothing that it read can be overtaken.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(apsw.Error):  # SQLite may have taken it back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _make_file(path: Path, wait_ms: int) -> None:
    """Make an empty database in WAL mode, in the place of nothing, or of a stump that open readers hold on to.

    The log that somebody who deleted the database alone left behind goes too.
    """
    with _exclusively(path):
        if _has_header(path):
            return
        for suffix in (*_SIDE_FILES, ""):
            _remove(Path(f"{path}{suffix}"))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection: Database = connect(path, apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.reserve_bytes("main", _CHECKSUM_BYTES)
            use_write_ahead_log(connection, wait_ms)
        finally:
            connection.close()


def _is_sound(path: Path) -> bool:
    try:
        connection: Database = connect(path, apsw.SQLITE_OPEN_READWRITE)
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").get == "ok")
        finally:
            connection.close()
    except apsw.Error as error:
        return not is_damage(error)


def _mend_shared(path: Path, size: int) -> None:
    """Lengthen the shared memory that was cut to `size` bytes: who touches what is behind its end is killed (SIGBUS),
    and all connections of a process share it. A header of zeros makes the next reader fill it again from the log.
    """
    if size and not size % _SHARED_STEP:
        return
    with suppress(OSError):
        handle = os.open(f"{path}-shm", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.posix_fallocate(handle, 0, _MAX_SHARED_BYTES)  # a hole in it kills as well when the disk is full
            os.pwrite(handle, bytes(_SHARED_HEADER), 0)
        finally:
            os.close(handle)


@cache
def _checked_files() -> str | None:
    """Return the name of SQLite's own VFS that checks each page against a checksum; None where apsw comes without
    it.
    """
    usual = apsw.vfs_names()[0]
    connection = apsw.Connection(":memory:")
    with suppress(apsw.Error):
        connection.enable_load_extension(True)
        # `apsw.sqlite_extra` knows the path as well, and takes 70 ms to import.
        connection.load_extension(str(Path(apsw.__file__).with_name("sqlite_extra_binaries") / "cksumvfs"))
    connection.close()
    apsw.set_default_vfs(
        usual
    )  # it makes itself the default, and would then write sums or not as the order of calls is
    return "cksmvfs" if "cksmvfs" in apsw.vfs_names() else None


def _has_header(path: Path) -> bool:
    """Return whether there is a file that could be a database, or that is not ours to remove."""
    found = _stat(path)
    return found is not None and (found.st_size >= _HEADER_BYTES or not stat.S_ISREG(found.st_mode))


def _is_of(connection: Database, form: Format) -> bool:
    return (connection.pragma("application_id"), connection.pragma("user_version")) == (
        form.application_id,
        form.version,
    )


def _is_outdated(connection: Database, form: Format) -> bool:
    """Return False for a new file, True for one of another version that is to be rebuilt."""
    found = connection.pragma("application_id"), connection.pragma("user_version")
    if found == (0, 0) and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        return False
    if form.is_derived and found[0] == form.application_id:
        return True
    whose = "another version of Quaid" if found[0] == form.application_id else "another program"
    raise apsw.NotADBError(f"it was made by {whose}")


@contextmanager
def _exclusively(path: Path) -> Iterator[None]:
    """Hold the lock under which files are unlinked, so that no other process opens them as its own meanwhile."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            from shutil import rmtree

            rmtree(path)
        else:
            path.unlink()


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
