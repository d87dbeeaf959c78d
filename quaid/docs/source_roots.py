"""The folders from which documents of a project may be read.

PROJECT.md may be a stranger's, because a vault can be a clone. A folder outside the vault is read only if this user has
allowed it in their own config.toml, which no vault can change.
"""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from quaid.history.repository import find_repository
from quaid.place import state_folder
from quaid.user_config import changing_user_config, read_user_config

KEY = "source_roots"
ABSENT = "is not a folder on this machine"
_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var",
    "/private/etc", "/private/var", "/Library", "/System",
)  # fmt: skip
_OPEN = (
    *("/dev/shm", "/var/tmp"),  # noqa: S108 - nothing is written there
    *("/run/media", "/usr/src", "/usr/local/src", "/var/www", "/var/folders", "/private/var/folders"),
)
"""Folders of the system in which people store their own files."""


class SourceRoot(NamedTuple):
    """A source root as written in PROJECT.md, and its folder. With a `problem` it is not read, unless the owner allows
    it if it `can_be_allowed`.
    """

    written: str
    folder: Path
    problem: str = ""
    can_be_allowed: bool = False


def check_roots(vault: Path, written: Sequence[str]) -> tuple[SourceRoot, ...]:
    """Return the source roots in PROJECT.md, in their order, with the problems for which they are not read."""
    allowed = allowed_roots() if written else ()
    found = []
    for root in written:
        try:
            folder = Path(vault, Path(root).expanduser())
            real, inside = Path(os.path.realpath(folder)), Path(os.path.realpath(vault))
        except (RuntimeError, ValueError):  # ~nobody, or a zero byte
            found.append(SourceRoot(root, vault / "projects", "is not a path"))
            continue
        problem = _find_problem(vault, real, inside)
        can_be_allowed = not problem and not any(real.is_relative_to(above) for above in (str(inside), *allowed))
        if can_be_allowed:
            problem = "lies outside of the vault, and nobody on this machine has allowed it"
        found.append(SourceRoot(root, folder, problem, can_be_allowed))
    return tuple(found)


def next_step(project: str, root: SourceRoot) -> str:
    """Return the next step for a root that is not read."""
    if root.can_be_allowed:
        return f"If it is yours, allow it with: quaid project allow {shlex.quote(project)}"
    return f"Change it in projects/{project}/PROJECT.md."


def allowed_roots() -> tuple[str, ...]:
    """Return the real paths of the folders that this user has allowed.

    Raises:
        ConfigError: config.toml cannot be read.
    """
    table = read_user_config().get("trust", {})
    listed = table.get(KEY, []) if isinstance(table, dict) else []
    return tuple(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else ()


def allow(folders: Sequence[Path]) -> None:
    """Allow the documents in `folders` to be read, whatever vault names them.

    Raises:
        ConfigError: config.toml cannot be changed.
    """
    known = allowed_roots()
    new = [real for real in dict.fromkeys(os.path.realpath(folder) for folder in folders) if real not in known]
    if new:
        with changing_user_config() as document:
            document.setdefault("trust", {})[KEY] = [*known, *new]


def _find_problem(vault: Path, real: Path, inside: Path) -> str:
    """Return why a folder may never be read; empty if it can be allowed."""
    home = Path(os.path.realpath(Path.home()))
    base = next((above for above in (inside, home) if real.is_relative_to(above)), Path("/"))
    is_system = any(real.is_relative_to(folder) for folder in _SYSTEM)
    problems = {
        "is the vault itself": real == inside,
        "holds all of a home folder": home.is_relative_to(real),
        "is a hidden folder, or lies in one": any(part.startswith(".") for part in real.relative_to(base).parts),
        "holds what Quaid knows of this machine": real.is_relative_to(os.path.realpath(state_folder(vault))),
        "is a folder of the system": base == Path("/") and is_system and not any(map(real.is_relative_to, _OPEN)),
        ABSENT: not os.path.isdir(real),  # noqa: PTH112 - does not fail for a name that is too long
        "has its history outside of the vault": base == inside and not _has_its_history_in(inside, real),
    }
    return next((problem for problem, is_so in problems.items() if is_so), "")


def _has_its_history_in(inside: Path, real: Path) -> bool:
    """Return whether a folder of the vault is in the vault's repository, or in one that is stored in the vault."""
    try:
        here, around = find_repository(real), find_repository(inside)
    except (OSError, RuntimeError):
        return False
    if here is None or (around is not None and here.git_dir == around.git_dir):
        return True
    homes = (inside, *((around.common_dir,) if around is not None else ()))
    return all(
        any(folder.resolve().is_relative_to(home) for home in homes) for folder in (here.git_dir, here.common_dir)
    )
