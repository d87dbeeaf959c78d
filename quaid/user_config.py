"""The user's own config.toml: what belongs to a person and a machine, not to a memory.

It says where data may go (providers, addresses, names of key variables, webhooks), which vaults are trusted, and
whether anything may leave the machine at all. Nobody who can change a vault can change it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from quaid import place
from quaid.errors import ConfigError

USER_CONFIG_FILE = "config.toml"
_HEADER = """\
# Quaid on this machine: where data may go, and which vaults are trusted. All settings: quaid config
# offline = true               # nothing leaves this machine

"""


def path() -> Path:
    """The file, which need not exist."""
    return place.config_folder() / USER_CONFIG_FILE


def read() -> dict[str, Any]:
    """The tables of the user's config; empty when there is none.

    Raises:
        ConfigError: it is not TOML, or somebody else could have written it.
    """
    import tomllib

    text = _read_text()
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path()), str(error)) from error


def change(edit: Callable[[Any], None]) -> None:
    """Let `edit` change the file as a tomlkit document; comments and order stay. One process at a time.

    Raises:
        ConfigError: it cannot be read or written.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    with _alone():
        try:
            document = tomlkit.parse(_read_text() or _HEADER)
            edit(document)
        except TOMLKitError as error:
            raise ConfigError(str(path()), str(error)) from error
        _write_text(tomlkit.dumps(document))


def _read_text() -> str:
    try:
        handle = os.open(path(), os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(str(path()), error.strerror or str(error)) from error
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError(str(path()), "is not a file")
        if about.st_uid not in {os.geteuid(), 0} or about.st_mode & stat.S_IWOTH:
            raise ConfigError(str(path()), "another user can change it; make it yours alone with chown and chmod 600")
        try:
            return file.read().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(path()), str(error)) from error


def _write_text(text: str) -> None:
    # Behind a link lies the file of those who keep their settings in a repository: the link stays.
    target = path().resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        temporary.replace(target)
    except OSError as error:
        raise ConfigError(str(path()), error.strerror or str(error)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _alone() -> Iterator[None]:
    import fcntl

    folder = place.config_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(folder / f".{USER_CONFIG_FILE}.lock", flags, 0o600)
    except OSError as error:
        raise ConfigError(str(path()), error.strerror or str(error)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
