"""Reading and writing the configs of other programs: the only code of this room that touches the disk.

A link is followed, because people who keep their configs in a repository link them from there: the file behind it is
replaced, the link stays.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quaid.errors import HostConfigError, LockedError

MAX_BYTES = 64_000_000
"""Bytes. No config is near it; Claude Code's own grows to some megabytes."""
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config as it was read. `target` is where it really lies, `data` is None when there is none."""

    path: Path
    target: Path
    data: bytes | None
    mode: int = _PRIVATE

    @property
    def text(self) -> str:
        """Raises:
        HostConfigError: it is not UTF-8.
        """
        try:
            return (self.data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise HostConfigError(self.path, "it is not UTF-8 text") from error


def read(path: Path) -> ConfigFile:
    """The config at `path`, which may be missing.

    Raises:
        HostConfigError: it is no file, too large, or cannot be read.
    """
    try:
        target = path.resolve()
        found = target.stat()
        if not stat.S_ISREG(found.st_mode):
            raise HostConfigError(path, "it is no file")
        if found.st_size > MAX_BYTES:
            raise HostConfigError(path, "it is larger than any config should be")
        return ConfigFile(path, target, target.read_bytes(), stat.S_IMODE(found.st_mode))
    except FileNotFoundError:
        return ConfigFile(path, path.resolve(), None)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise HostConfigError(path, _reason(error)) from error


def replace(held: ConfigFile, after: bytes | None) -> None:
    """Put `after` in the place of what was read, in one step; None takes the file away.

    Raises:
        HostConfigError: it is read-only, or the disk refuses.
        LockedError: another program wrote it meanwhile.
    """
    if held.data is not None and not held.mode & stat.S_IWUSR:
        raise HostConfigError(held.path, "it is read-only")
    temporary = held.target.with_name(f".{held.target.name}.quaid-{os.getpid()}")
    try:
        if after is None:
            _check_unchanged(held)
            held.target.unlink()
            return
        held.target.parent.mkdir(parents=True, exist_ok=True)
        _write(temporary, after, held.mode)
        _check_unchanged(held)
        temporary.replace(held.target)
    except OSError as error:
        raise HostConfigError(held.path, _reason(error)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def back_up(held: ConfigFile) -> Path | None:
    """A copy beside the config, as private as it is; None where there is nothing to copy.

    Raises:
        HostConfigError: there is no room or no right to write there.
    """
    if held.data is None:
        return None
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    names = (f"{held.path.name}.quaid-backup-{stamp}{suffix}" for suffix in ("", *(f"-{n}" for n in range(1, 100))))
    try:
        copy = next(path for name in names if not (path := held.path.with_name(name)).exists())
        _write(copy, held.data, held.mode)
    except OSError as error:
        raise HostConfigError(held.path, f"no backup could be made: {_reason(error)}") from error
    return copy


def _check_unchanged(held: ConfigFile) -> None:
    now = held.target.read_bytes() if held.target.exists() else None
    if now != held.data:
        raise LockedError(f"{held.path} was written by another program meanwhile")


def _write(path: Path, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
