"""The user's own config.toml: what belongs to a person and a machine, not to a memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quaid.errors import ConfigError


def path() -> Path:
    """The file, which need not exist."""
    folder = os.environ.get("QUAID_CONFIG_DIR")
    return (Path(folder).expanduser() if folder else Path.home() / ".config" / "quaid") / "config.toml"


def read() -> dict[str, Any]:
    """The tables of the user's config; empty when there is none.

    Raises:
        ConfigError: it is not TOML, or cannot be read.
    """
    import tomllib

    try:
        return tomllib.loads(path().read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(str(path()), str(error)) from error


def change(edit: Callable[[Any], None]) -> None:
    """Let `edit` change the file as a tomlkit document; comments and order stay.

    Raises:
        ConfigError: it cannot be read or written.
    """
    import tomlkit

    try:
        path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        document: Any = tomlkit.parse(path().read_text(encoding="utf-8") if path().exists() else "")
        edit(document)
        temporary = path().with_name(f".{path().name}.{os.getpid()}.tmp")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(tomlkit.dumps(document))
        temporary.replace(path())
    except (OSError, ValueError) as error:
        raise ConfigError(str(path()), str(error)) from error
