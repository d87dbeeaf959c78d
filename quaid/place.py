"""Where the vault is. Imports next to nothing: a hook that only leaves a note in the queue needs no more of Quaid."""

from __future__ import annotations

import os
from pathlib import Path

CONFIG_FILE = "quaid.toml"
STATE_DIR = ".quaid"


def find_vault(start: Path) -> Path | None:
    """The vault that encloses `start`: the nearest folder upwards that holds quaid.toml."""
    for folder in (start, *start.parents):
        if (folder / CONFIG_FILE).is_file():
            return folder
    return None


def locate_vault(path: str | os.PathLike[str] | None = None, *, start: Path | None = None) -> Path:
    """The vault that is meant: `path`, `$QUAID_HOME`, the one around `start` (the working folder), `~/quaid`. Whether
    there is one is not looked at.
    """
    named = path if path is not None else os.environ.get("QUAID_HOME")
    if named:
        return Path(named).expanduser().absolute()
    return find_vault(start or Path.cwd()) or Path.home() / "quaid"


def state_folder(root: Path) -> Path:
    """The folder that holds the state of the vault at `root`: index, queue, locks and logs of this machine."""
    return root / STATE_DIR
