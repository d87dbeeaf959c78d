"""Where things are on this machine: the vault, its state, the user's own config. Imports next to nothing: a hook that
only leaves a note in the queue needs no more of Quaid.
"""

from __future__ import annotations

import os
from pathlib import Path

CONFIG_FILE = "quaid.toml"
LOG_DIR = "log"
INDEX_FILE = "index.db"
DOCS_FILE = "docs.db"
CACHE_FILE = "cache.db"
LOCAL_FILE = "local.db"
LOCK_FILE = "lock"
AS_OF_DIR = "as-of"
"""All of them in a vault's state folder."""
MAX_NAME_BYTES = 200
"""Of a state folder's name; file systems take 255."""


def config_folder() -> Path:
    """The folder of the user's own config; `QUAID_CONFIG_DIR` overrides it."""
    return _folder("QUAID_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def state_home() -> Path:
    """The folder that holds the state of all vaults of this user; `QUAID_STATE_DIR` overrides it."""
    return _folder("QUAID_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def state_folder(root: Path) -> Path:
    """The folder that holds the state of the vault at `root`: index, queue, locks and logs of this machine.

    It lies outside the vault, so nothing that a clone, an archive or a pull brings along can stand in for it. A
    worktree that lies in a state folder has its state beside it and goes with it.
    """
    home, vault = os.path.realpath(state_home()), os.path.realpath(root)
    if vault.startswith(home + os.sep):
        return Path(f"{vault}.state")
    # The path itself, so that a person can tell whose state it is: home%2Fmaya%2Fquaid
    name = vault.lstrip(os.sep).replace("%", "%25").replace(os.sep, "%2F")
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        import hashlib

        name = hashlib.sha256(os.fsencode(vault)).hexdigest()
    return Path(home, "vaults", name)


def find_vault(start: Path) -> Path | None:
    """The vault that encloses `start`: the nearest folder upwards that holds quaid.toml."""
    for folder in (start, *start.parents):
        if (folder / CONFIG_FILE).is_file():
            return folder
    return None


def _folder(variable: str, xdg_variable: str, default: str) -> Path:
    if named := os.environ.get(variable):
        return Path(named).expanduser().absolute()
    base = os.environ.get(xdg_variable, "")
    # The XDG specification: a relative path in these variables is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / default) / "quaid"
