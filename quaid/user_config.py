"""The user's own config.toml: where data may go, and which vaults are trusted. Its comments and order stay.

Imports next to nothing: a hook that finds a vault trusted reads no setting.
"""

import fcntl
import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quaid.errors import ConfigError
from quaid.place import config_folder, write_private

USER_CONFIG_FILE = "config.toml"
_HEADER = """\
# Quaid on this machine: where data may go, and which vaults are trusted. All settings: quaid config
# offline = true               # nothing leaves this machine

"""


def user_config_path() -> Path:
    """Return the path of the user's config, which need not exist."""
    return config_folder() / USER_CONFIG_FILE


def read_user_config() -> dict[str, Any]:
    """Return the tables of the user's config; empty when there is none.

    Raises:
        ConfigError: it is not TOML, or somebody else could have written it.
    """
    try:
        return tomllib.loads(_read())
    except tomllib.TOMLDecodeError as error:
        raise _refuse(error) from error


@contextmanager
def changing_user_config() -> Iterator[Any]:
    """Yield the file as a tomlkit document, and write what it has become. One process at a time.

    Raises:
        ConfigError: it cannot be read or written.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    folder = config_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(folder / f".{USER_CONFIG_FILE}.lock", flags, 0o600)
    except OSError as error:
        raise _refuse(error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = tomlkit.parse(_read() or _HEADER)
        yield document
        # Users with their settings in a repository have a link here: write its target, and the link stays.
        write_private(user_config_path().resolve(), tomlkit.dumps(document), sync=True)
    except (TOMLKitError, OSError) as error:
        raise _refuse(error) from error
    finally:
        os.close(lock)


def put(document: Any, key: str, value: object) -> None:
    """Set a dotted key of a tomlkit document."""
    import tomlkit

    *sections, name = key.split(".")
    table: Any = document
    for section in sections:
        if section not in table:
            table[section] = tomlkit.table()
        table = table[section]
    table[name] = value


def _refuse(problem: object) -> ConfigError:
    return ConfigError(str(user_config_path()), getattr(problem, "strerror", None) or str(problem))


def _read() -> str:
    try:
        handle = os.open(user_config_path(), os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _refuse(error) from error
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise _refuse("is not a file")
        if about.st_uid not in {os.geteuid(), 0} or about.st_mode & stat.S_IWOTH:
            raise _refuse("another user can change it; make it yours alone with chown and chmod 600")
        try:
            return file.read().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise _refuse(error) from error
