"""The config files of other programs, replaced and backed up; and receipts of what Quaid wrote into them.

A link is followed, because people who keep their configs in a repository link to them: the file behind it is replaced,
the link stays.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from quaid.agents.config_entries import ConfigEntry
from quaid.errors import HostConfigError, LockedError

MAX_BYTES = 64_000_000
"""The config of Claude Code grows to some megabytes."""
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config as it was read. `target` is the file behind links; `data` is None if there is no file."""

    path: Path
    target: Path
    data: bytes | None
    mode: int = _PRIVATE

    @property
    def text(self) -> str:
        """The text, empty if there is no file.

        Raises:
            HostConfigError: it is not UTF-8.
        """
        try:
            return (self.data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise HostConfigError(self.path, "it is not UTF-8 text") from error


def read(path: Path) -> ConfigFile:
    """Read the config at `path`, which may be missing.

    Raises:
        HostConfigError: it is not a file, too large, or cannot be read.
    """
    try:
        target = path.resolve()
        found = target.stat()
        if not stat.S_ISREG(found.st_mode):
            raise HostConfigError(path, "it is not a file")
        if found.st_size > MAX_BYTES:
            raise HostConfigError(path, "it is larger than any config should be")
        return ConfigFile(path, target, target.read_bytes(), stat.S_IMODE(found.st_mode))
    except FileNotFoundError:
        return ConfigFile(path, path.resolve(), None)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError before Python 3.13
        raise HostConfigError(path, _reason(error)) from error


def replace(file: ConfigFile, after: bytes | None) -> None:
    """Replace what was read by `after`, in one step; None removes the file.

    Raises:
        HostConfigError: it is read-only, or the disk refuses.
        LockedError: another program has written it meanwhile.
    """
    if file.data is not None and not file.mode & stat.S_IWUSR:
        raise HostConfigError(file.path, "it is read-only")
    temporary = file.target.with_name(f".{file.target.name}.quaid-{os.getpid()}")
    try:
        if after is not None:
            file.target.parent.mkdir(parents=True, exist_ok=True)
            _write(temporary, after, file.mode)
        if (file.target.read_bytes() if file.target.exists() else None) != file.data:
            raise LockedError(f"{file.path} was written by another program meanwhile")
        if after is None:
            file.target.unlink()
        else:
            temporary.replace(file.target)
    except OSError as error:
        raise HostConfigError(file.path, _reason(error)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def back_up(file: ConfigFile) -> Path | None:
    """Copy the config to a file next to it with the same mode, and return its path; None if there is no config.

    Raises:
        HostConfigError: the disk is full or read-only.
    """
    if file.data is None:
        return None
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    names = (f"{file.path.name}.quaid-backup-{stamp}{suffix}" for suffix in ("", *(f"-{n}" for n in range(1, 100))))
    try:
        copy = next(path for name in names if not (path := file.path.with_name(name)).exists())
        _write(copy, file.data, file.mode)
    except OSError as error:
        raise HostConfigError(file.path, f"no backup could be made: {_reason(error)}") from error
    return copy


def _write(path: Path, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    path.chmod(mode)


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


# -- receipts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Receipt:
    """What `quaid install` wrote into one config.

    `after` is the hash of the file as Quaid left it: while it is so, uninstalling restores the `backup`, a file next to
    the config. It is empty if the user had changed the file before, `backup` is None if there was no file.
    """

    after: str
    backup: str | None
    entries: tuple[ConfigEntry, ...]


def fingerprint(data: bytes | None) -> str:
    """Return the hash by which receipts know a file; empty if there is none."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def load_receipts(path: Path) -> dict[str, Receipt]:
    """Return the receipts by the config's path, none if they cannot be read: then uninstalling is less exact."""
    try:
        stored = json.loads(read(path).text or "{}")
        return {
            name: Receipt(
                one["after"],
                one["backup"],
                tuple(ConfigEntry(**{**item, "path": tuple(item["path"])}) for item in one["entries"]),
            )
            for name, one in stored["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def save_receipts(path: Path, receipts: Mapping[str, Receipt]) -> None:
    """Replace all receipts.

    Raises:
        HostConfigError, LockedError
    """
    stored = {"v": 1, "files": {name: asdict(receipt) for name, receipt in receipts.items()}}
    replace(read(path), (json.dumps(stored, ensure_ascii=False, indent=1) + "\n").encode())
