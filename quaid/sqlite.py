"""Opening the SQLite files of Quaid, and setting them aside when they are damaged.

All of them can be lost: two are derived from files, one is a cache, one holds statistics. So a file that a check finds
damaged, or that another program made, is renamed to NAME.damaged, once. A copy of it, NAME.daily, takes its place where
there is one, else a new file.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import apsw

from quaid.errors import DiskFailedError, DiskFullError, LockedError, QuaidError, StateDamagedError, VaultReadOnlyError

BUSY_MS = 30_000
MAX_DAMAGE_RETRIES = 3
_PAUSE_SECONDS = 0.005
_HEADER_BYTES = 100
_SHARED_STEP = 32_768
"""The shared memory of a write-ahead log grows in such steps."""
_MAX_SHARED_BYTES = 1 << 20
_SHARED_HEADER = 136
_MIN_FREE_BYTES = 65_536
_SIDE_FILES = ("-wal", "-shm", "-journal")
DAILY = ".daily"
_DAMAGED_READS = {apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_CORRUPTFS}
_FAULTS = (apsw.IOError, apsw.CorruptError, apsw.NotADBError)
_REFUSED = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError)
_TROUBLE = (*_REFUSED, apsw.BusyError, apsw.LockedError, apsw.FullError)
_OF_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG}

Opened = TypeVar("Opened", bound="Database")


class Database(apsw.Connection):
    """A connection that knows which file it has open.

    A subclass is a kind of database. The header of its files has the `application_id`, which tells it from all others,
    and the `file_version`. A file of another version is set aside; or, if it `is_derived`, it is rebuilt in place, and
    readers of the old one go on until that is done.
    """

    application_id = 0
    file_version = 1
    is_derived = False
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

    def begin(self) -> None:
        """Make an empty file one of this kind."""
        self.pragma("application_id", self.application_id)
        self.pragma("user_version", self.file_version)

    def is_of_kind(self) -> bool:
        """Return whether the header is that of this kind and version."""
        found = self.pragma("application_id"), self.pragma("user_version")
        return found == (self.application_id, self.file_version)

    def check_application(self) -> None:
        """Raise NotADBError if Quaid did not make the file, or did for another purpose."""
        if self.pragma("application_id") != self.application_id:
            raise apsw.NotADBError("it was made by another program")

    def check_version(self) -> None:
        """Record that a file of another version is outdated. NotADBError: it is not derived, so cannot be rebuilt."""
        self.is_outdated = bool(self.pragma("application_id") or self.execute("SELECT * FROM sqlite_schema").get)
        if self.is_outdated:  # it is not a new file
            self.check_application()
            if not self.is_derived:
                raise apsw.NotADBError("it was made by another version of Quaid")

    def find_damage(self) -> str:
        """Return what a check of every page and every text finds wrong; empty if nothing is."""
        if (problem := str(self.execute("PRAGMA quick_check(1)").get)) != "ok":
            return " ".join(problem.split())
        tables = self.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0").fetchall()
        for (table,) in tables:
            for _ in self.execute(f'SELECT * FROM "{table}"'):
                pass  # a text that is not UTF-8 raises
        return ""

    def close(self, force: bool = False) -> None:
        """Close it. A file that is no longer current is left alone: a checkpoint would remove its successor's log."""
        with suppress(apsw.ConnectionClosedError):
            if not self.is_current():
                self.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        super().close(force)


class VectorCache(Database):
    """cache.db. It is of this module, so that `quaid.embed` need not load SQLite."""

    application_id = 0x51754361


def open_database(path: Path, kind: type[Opened], wait_ms: int = BUSY_MS) -> Opened:
    """Return a connection that may write the database of a kind at `path`, a new one if there is none; 0600, in WAL
    mode. A lock is waited for `wait_ms`.

    Raises:
        apsw.Error: as SQLite says; `DamageRetries` and `translated` translate it.
    """
    if not _has_header(path):
        _make_file(path, wait_ms)
    try:
        connection = connect(path, apsw.SQLITE_OPEN_READWRITE, kind=kind)
    except apsw.CantOpenError:  # another process has set it aside since it was looked at
        _make_file(path, wait_ms)
        connection = connect(path, apsw.SQLITE_OPEN_READWRITE, kind=kind)
    try:
        connection.set_busy_timeout(wait_ms)
        use_write_ahead_log(connection, wait_ms)
        if not connection.is_of_kind():
            with transaction(connection):
                if not connection.is_of_kind():  # another process may have been quicker
                    connection.check_version()
                    connection.begin()
        connection.is_current()
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: Path, flags: int, options: str = "", kind: type[Opened] = Database) -> Opened:  # type: ignore[assignment]
    """Return a connection of `kind` to the file at `path`, which is not a link, a pipe or a folder, nor are its side
    files.

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
    connection = kind(name, flags=flags)
    connection.path, connection.inode = real, found_inode
    connection.set_busy_timeout(BUSY_MS)
    return connection


class DamageRetries:
    """Repeats a block while the database at `path` proves to be damaged: `while True: with retries: return …`.

    The database is set aside first, and `notice` is a sentence about it from then on. Several times, as another process
    may be setting it aside at the same moment.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = MAX_DAMAGE_RETRIES
        self._inode = 0
        self.notice = ""

    def __enter__(self) -> None:
        self._inode = inode(self._path)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not self._left or not isinstance(error, apsw.Error | UnicodeDecodeError):
            return False
        reason = _explain_damage(error, self._path, self._inode)
        if reason:
            self._left -= 1
            self.notice = set_aside(self._path, self._inode, reason)
        return bool(reason)


def may_be_damage(error: Exception) -> bool:
    """Return whether a damaged file can be the cause of `error`. So can a bug: only a check of the file decides."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) in _DAMAGED_READS
    return isinstance(error, apsw.Error | UnicodeDecodeError) and not isinstance(error, _TROUBLE)


def find_damage(path: Path) -> str:
    """Return what a check of the database at `path` finds wrong; empty if nothing is, or it cannot be checked now."""
    try:
        with closing(connect(path, apsw.SQLITE_OPEN_READWRITE, kind=Database)) as connection:
            application_id = connection.pragma("application_id")
        kinds = (each for each in Database.__subclasses__() if each.application_id == application_id)
        with closing(connect(path, apsw.SQLITE_OPEN_READWRITE, kind=next(kinds, Database))) as connection:
            return connection.find_damage()
    except (apsw.Error, UnicodeDecodeError) as error:
        return str(error) if may_be_damage(error) and not isinstance(error, apsw.SQLError) else ""


def _explain_damage(error: Exception, path: Path, opened: int) -> str:
    """Return why the database at `path`, opened as the inode `opened`, is to blame for `error`; empty if it is not."""
    if not may_be_damage(error):
        return ""
    reason = str(error) if isinstance(error, apsw.NotADBError) else find_damage(path)
    return reason if inode(path) == opened else "another process has set it aside"


def set_aside(path: Path, damaged: int, reason: str) -> str:
    """Keep the database with the inode `damaged` as NAME.damaged, in the place of an earlier one, with its log; return
    a sentence about it. Its daily copy takes its place.

    Nothing happens when another process has done so, or begun a new one, already.

    Raises:
        UnwritableError: it stays in the way.
    """
    target, daily = path.with_name(f"{path.name}.damaged"), Path(f"{path}{DAILY}")
    notice = f"{path.name} was damaged and is preserved as {target.name}; a new one is begun"
    try:
        with exclusively(path):
            if not damaged or inode(path) != damaged:
                return notice
            for suffix in ("", *_SIDE_FILES):
                _remove(Path(f"{target}{suffix}"))
            path.replace(target)
            for suffix in _SIDE_FILES:
                with suppress(FileNotFoundError):
                    Path(f"{path}{suffix}").replace(f"{target}{suffix}")
            if (copied := _stat(daily)) is not None:
                daily.replace(path)
                day = time.strftime("%Y-%m-%d", time.gmtime(copied.st_mtime))
                notice = f"{path.name} was damaged and is preserved as {target.name}; its copy of {day} takes its place"
    except OSError as error:
        raise explain(error, path) from error
    import logging

    logging.getLogger("quaid").warning("quaid: %s.", notice.replace("damaged", f"damaged ({reason})", 1))
    return notice


@contextmanager
def translated(path: Path, opened: int = 0, busy: str = "") -> Iterator[None]:
    """Raise the errors of SQLite and the system about the database at `path` as Quaid's own.

    Raises:
        UnwritableError: it cannot be read or written.
        LockedError: another process is at work, as `busy` says.
        StateDamagedError: the file, opened as the inode `opened`, was damaged; it is set aside now.
    """
    try:
        yield
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        if opened and (reason := _explain_damage(error, path, opened)):
            set_aside(path, opened, reason)
            raise StateDamagedError(path.name) from error
        if may_be_damage(error) and not isinstance(error, _FAULTS):
            raise
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
    damaged = ""
    if may_be_damage(error):
        for path in sorted(state.glob("*.db")):
            found = inode(path)
            if reason := find_damage(path):
                set_aside(path, found, reason)
                damaged = damaged or path.name
    if damaged:
        return StateDamagedError(damaged)
    is_of_disk = isinstance(error, OSError) and error.errno in _OF_DISK
    return explain(error, state / "state") if is_of_disk or isinstance(error, (*_FAULTS, *_TROUBLE)) else None


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
    with exclusively(path):
        if _has_header(path):
            return
        if _stat(path) is not None and _stat(Path(f"{path}{DAILY}")) is not None:
            raise apsw.NotADBError("it was cut short")
        for suffix in (*_SIDE_FILES, ""):
            _remove(Path(f"{path}{suffix}"))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        with closing(connect(path, apsw.SQLITE_OPEN_READWRITE, kind=Database)) as connection:
            use_write_ahead_log(connection, wait_ms)


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


def _has_header(path: Path) -> bool:
    """Return whether there is a file that could be a database, or that is not ours to remove."""
    found = _stat(path)
    return found is not None and (found.st_size >= _HEADER_BYTES or not stat.S_ISREG(found.st_mode))


@contextmanager
def exclusively(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock under which files are unlinked, so that no other process opens them as its own meanwhile.

    Raises:
        BlockingIOError: another process holds it, and `wait` is false.
    """
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
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
    with suppress(OSError):
        return os.lstat(path)
    return None
