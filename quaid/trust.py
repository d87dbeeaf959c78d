"""The vaults that are read: those in a list of the user's own config that this user owns, and no other.

A quaid.toml does not make a folder your vault: a clone, an archive or a shared folder may hold one too.
"""

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from quaid.errors import ForeignVaultError, QuaidError, UntrustedVaultError, VaultNotFoundError
from quaid.place import CONFIG_FILE, find_vault, make_private_folder, state_folder, state_home, write_private
from quaid.user_config import changing_user_config, read_user_config

ABOUT_FILE = "vault.json"
"""In a vault's state folder: whose state it is."""


def locate_vault(path: str | os.PathLike[str] | None = None, *, start: Path | None = None) -> tuple[Path, str]:
    """Return the chosen vault, and a remark about the choice: `path`, `$QUAID_HOME`, the trusted one
    around `start` (the working folder), `~/quaid`. Whether it is there and trusted is left to `vault_guard.check`.

    Raises:
        UntrustedVaultError, ForeignVaultError: only a vault that is not trusted is there.
    """
    named = path if path is not None else os.environ.get("QUAID_HOME")
    if named:
        return Path(named).expanduser().absolute(), ""
    home = Path.home() / "quaid"
    around = find_vault(start or Path.cwd())
    if around is None or around == home:
        return home, ""
    try:
        check_listed(around)
    except (UntrustedVaultError, ForeignVaultError) as error:
        if not (home / CONFIG_FILE).is_file():
            raise
        return home, f"{home} is used. {error}"
    return around, ""


def check_listed(root: Path) -> None:
    """Make sure that `root` is a trusted vault, and that nobody else made its state. `vault_guard.check` does it first.

    Raises:
        VaultNotFoundError: there is no vault.
        ForeignVaultError: it belongs to another user.
        UntrustedVaultError: it is not in the list of trusted vaults.
        QuaidError: its state folder is a link or belongs to another user.
    """
    _check_own(root)
    if os.path.realpath(root) not in trusted_vaults():
        raise UntrustedVaultError(root)
    secure_state(root)


def trusted_vaults() -> tuple[str, ...]:
    """The real paths of the trusted vaults."""
    table = read_user_config().get("trust", {})
    listed = table.get("vaults", []) if isinstance(table, dict) else []
    return tuple(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else ()


def trust(root: Path) -> bool:
    """Add the vault at `root` to the list; whether it was not there before.

    Raises:
        VaultNotFoundError, ForeignVaultError: there is no vault, or it is another user's.
    """
    _check_own(root)
    real = os.path.realpath(root)
    is_new = real not in trusted_vaults()
    if is_new:
        _change_list({real}, real)
    return is_new


def distrust(root: Path) -> bool:
    """Take the vault at `root` off the list; whether it was there."""
    names = {os.path.realpath(root), str(root)}
    if names.isdisjoint(trusted_vaults()):
        return False
    _change_list(names)
    return True


def make_state_folder(root: Path) -> Path:
    """The state folder of the vault at `root`, made if it is missing; nobody else can enter it.

    Raises:
        VaultReadOnlyError, DiskFullError: it cannot be made.
        QuaidError: it is a link or belongs to another user.
    """
    folder = state_folder(root)
    try:
        make_private_folder(folder)
        if not (folder / ABOUT_FILE).exists():
            write_about(root)
    except OSError as error:
        from quaid.sqlite import explain  # not above: a hook that finds all well needs no database

        raise explain(error, folder / ABOUT_FILE) from error
    secure_state(root)
    return folder


def secure_state(root: Path) -> None:
    """Refuse a state folder that somebody else may have made, and shut others out of one that is ours.

    Raises:
        QuaidError: it is a link or belongs to another user.
    """
    folder = state_folder(root)
    for path in (state_home(), folder.parent, folder):
        try:
            about = path.lstat() if path == folder else path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return
        if (is_link := stat.S_ISLNK(about.st_mode)) or about.st_uid != os.geteuid():
            problem = "it is a link" if is_link else "it belongs to another user"
            raise QuaidError(
                f"The state folder {path} cannot be used ({problem}). "
                "Move it away, or name another with QUAID_STATE_DIR.",
                code="state_folder",
            )
        if not stat.S_ISDIR(about.st_mode):
            return  # nothing can be written there: the first write reports that
        if about.st_mode & 0o077:
            with suppress(OSError):  # a disk that takes no writes
                path.chmod(0o700)


def put_state_aside(root: Path) -> None:
    """Give the state folder of a vault that was at `root` before another name."""
    folder = state_folder(root)
    with suppress(OSError):
        folder.rename(folder.with_name(f"{folder.name}.{int(folder.stat().st_mtime)}.old"))


def read_about(root: Path) -> dict[str, Any]:
    """Return what is recorded of the vault at `root`: its place, and what vault_guard.py adds."""
    return read_about_file(state_folder(root) / ABOUT_FILE)


def read_about_file(path: Path) -> dict[str, Any]:
    """Return what the file of a state folder records; empty where it cannot be read."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def write_about(root: Path, **accepted: object) -> None:
    """Record which folder the vault at `root` is, and what of it was `accepted`."""
    root.mkdir(parents=True, exist_ok=True)
    found = root.stat()
    place = {"path": os.path.realpath(root), "device": found.st_dev, "inode": found.st_ino}
    write_private(state_folder(root) / ABOUT_FILE, f"{json.dumps({**place, **accepted}, ensure_ascii=False)}\n")


def _check_own(root: Path) -> None:
    if not (root / CONFIG_FILE).is_file():
        raise VaultNotFoundError(root)
    if root.stat().st_uid != os.geteuid():
        raise ForeignVaultError(root)


def _change_list(taken: set[str], *added: str) -> None:
    with changing_user_config() as document:
        table = document.setdefault("trust", {})
        known = [vault for vault in table.get("vaults", []) if isinstance(vault, str) and Path(vault).exists()]
        table["vaults"] = [*(vault for vault in known if vault not in taken), *added]
