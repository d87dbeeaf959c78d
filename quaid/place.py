"""This machine: where the vault, its state and the user's own config are, files that only this user reads, and which
processes run. Imports next to nothing, not even pathlib before it is needed: a call that another process answers needs
no more of Quaid.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` takes as long as all else that such a call imports
if TYPE_CHECKING:
    from pathlib import Path

VERSION = "0.2.0"
"""The version of this package, as in pyproject.toml. It is here because this module is cheap to import."""
CONFIG_FILE = "quaid.toml"
LOG_DIR = "log"
INDEX_FILE = "index.db"
DOCS_FILE = "docs.db"
CACHE_FILE = "cache.db"
LOCAL_FILE = "local.db"
FOLLOWED_FILE = "followed.json"
LOCK_FILE = "lock"
AS_OF_DIR = "as-of"
"""All of them in a vault's state folder."""
RUN_DIR = "run"
"""In the folder of all vaults' states: the sockets of the processes that answer for others."""
MAX_NAME_BYTES = 200
"""The maximum length of a state folder's name; file systems take 255."""


def data_folder(name: str) -> Path:
    """Return a folder of files that Quaid brings along: that of the wheel, else of the checkout."""
    here = os.path.dirname(__file__)
    packaged = _as_path(os.path.join(here, "data", name))
    return packaged if packaged.is_dir() else _as_path(os.path.join(os.path.dirname(here), name))


def config_folder() -> Path:
    """The folder of the user's own config; `QUAID_CONFIG_DIR` overrides it."""
    return _as_path(config_path())


def config_path() -> str:
    """The same as a string."""
    return _folder("QUAID_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def state_home() -> Path:
    """The folder that holds the state of all vaults of this user; `QUAID_STATE_DIR` overrides it."""
    return _as_path(state_path())


def state_path() -> str:
    """The same as a string."""
    return _folder("QUAID_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def state_folder(root: Path) -> Path:
    """The folder that holds the state of the vault at `root`: index, queue, locks and logs of this machine.

    It is outside the vault, so nothing in a clone, an archive or a pull can take its place. A
    worktree in a state folder has its state next to it and goes with it.
    """
    home, vault = os.path.realpath(state_path()), os.path.realpath(root)
    if vault.startswith(home + os.sep):
        return _as_path(f"{vault}.state")
    # The path itself, so that a person can tell whose state it is: home%2Fmaya%2Fquaid
    name = vault.lstrip(os.sep).replace("%", "%25").replace(os.sep, "%2F")
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        import hashlib

        name = hashlib.sha256(os.fsencode(vault)).hexdigest()
    return _as_path(f"{home}{os.sep}vaults{os.sep}{name}")


def find_vault(start: Path) -> Path | None:
    """The vault that encloses `start`: the nearest folder upwards that holds quaid.toml."""
    found = find_vault_path(str(start))
    return None if found is None else _as_path(found)


def find_vault_path(start: str) -> str | None:
    """The same for strings."""
    folder, above = start, os.path.dirname(start)
    while not os.path.isfile(os.path.join(folder, CONFIG_FILE)):
        if folder == above:
            return None
        folder, above = above, os.path.dirname(above)
    return folder


def make_private_folder(folder: Path) -> None:
    """Make `folder` and those above it that are missing, for this user alone whatever the umask.

    Raises:
        OSError: it cannot be made.
    """
    # Not by `parents`: that makes those above with the modes of the umask.
    for missing in (*reversed([above for above in folder.parents if not above.exists()]), folder):
        missing.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, data: bytes | str, *, sync: bool = False) -> None:
    """Write a file that only this user reads, whole or not at all; its folder is made. `sync`: it outlives a power cut.

    A text is written as UTF-8, half a character of it as JSON writes it.

    Raises:
        OSError: it cannot be written.
    """
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name[:40]}.{os.urandom(10).hex()}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data)
            if sync:
                file.flush()
                os.fsync(handle)
        temporary.replace(path)
    finally:
        try:
            temporary.unlink(missing_ok=True)
        except OSError:
            pass


def folder_identity(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another that comes in its place: device and inode; None where there is none."""
    try:
        about = folder.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def process_exists(pid: int) -> bool:
    """Return True if a process with this number is running, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _folder(variable: str, xdg_variable: str, default: str) -> str:
    if named := os.environ.get(variable):
        folder = os.path.expanduser(named)
        return folder if os.path.isabs(folder) else os.path.join(os.getcwd(), folder)
    base = os.environ.get(xdg_variable, "")
    # The XDG specification: a relative path in these variables is to be ignored.
    return os.path.join(base if base.startswith("/") else os.path.expanduser(f"~/{default}"), "quaid")


def _as_path(path: str) -> Path:
    from pathlib import Path

    return Path(path)
