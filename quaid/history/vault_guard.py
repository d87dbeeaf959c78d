"""The check at every door: that a folder is the vault which its owner trusted there, that nobody else can write to it,
and that what git runs in it is what they were shown.

What they accepted is in the vault's state folder. The repository has a random id, which stays when the vault is moved,
restored or purged, or its disk gets another device number; without it the first commits decide.
"""

import grp
import os
import pwd
import secrets
import shlex
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from quaid import trust
from quaid.errors import QuaidError
from quaid.history import steering
from quaid.history.repository import Repository, find_repository, read_text
from quaid.place import CONFIG_FILE, folder_identity, state_folder, write_private

_ID_FILE = "quaid.id"
_NOBODY = 65534
"""The owner that a container shows for the folders of users it does not know, root among them."""


class OpenVaultError(QuaidError):
    """Other users of this machine can change a vault, or put another one in its place."""

    code = "open_vault"

    def __init__(self, root: Path, path: str, problem: str, next_step: str) -> None:
        super().__init__(f"{path} {problem}: nothing in the vault {root} was read. {next_step}")


def check(root: Path) -> None:
    """Make sure that the vault at `root` may be read, and that git may run in it.

    Raises:
        VaultNotFoundError, UntrustedVaultError, ForeignVaultError, QuaidError: as `trust.check_listed`.
        OpenVaultError, QuaidError, SteeringChangedError: its owner has to look first.
    """
    trust.check_listed(root)
    repository = find_repository(root)
    _check_private(root, repository)
    record = trust.read_about(root) or _find_state(root, repository)
    known = record.get("steering", {})
    if changes := steering.find_changes(steering.list_steering(repository), known):
        raise steering.SteeringChangedError(root, changes)
    if repository is not None:
        steering.keep_watch(root, repository, known)
    is_in_place = folder_identity(root) == (record.get("device"), record.get("inode"))
    if is_in_place and (repository is None or (bool(record.get("id")) and _read_id(repository) == record["id"])):
        return
    if not _is_same(root, repository, record):
        raise QuaidError(
            f"{root} is not the vault that you trusted there (its history begins with another commit): nothing in it "
            f"was read. If it is yours, or you know what is in it: quaid trust {shlex.quote(str(root))}",
            code="another_vault",
        )
    with suppress(OSError, QuaidError):  # a disk that takes no writes
        _remember(root, repository, known)


def accept(root: Path) -> dict[str, str]:
    """Remember which vault is at `root`, and all that can run a program or say where data goes in it, which is
    returned. The state of another vault that was at `root` before is put aside.

    Raises:
        VaultReadOnlyError, DiskFullError, QuaidError: it cannot be remembered.
        OpenVaultError: others can change it.
    """
    repository, record = find_repository(root), trust.read_about(root)
    _check_private(root, repository)
    listed = steering.list_steering(repository)
    if repository is not None:
        steering.keep_watch(root, repository, steering.digest(listed))
    if record.get("roots") and not _is_same(root, repository, record):
        trust.put_state_aside(root)
    _find_state(root, repository)
    _remember(root, repository, steering.digest(listed))
    return listed


def _find_state(root: Path, repository: Repository | None) -> dict[str, Any]:
    """Give a vault that was moved here, to another disk too, the state that it had: its queue, judgements and vectors
    are nowhere else. Return its record. A copy whose original is there gets an id of its own, and no state.
    """
    folder, own, here = state_folder(root), _read_id(repository), folder_identity(root)
    moved: dict[Path, dict[str, Any]] = {}
    for about in [] if folder.exists() else folder.parent.glob(f"*/{trust.ABOUT_FILE}"):
        record = trust.read_about_file(about)
        is_here, place = (record.get("device"), record.get("inode")) == here, Path(record.get("path") or about)
        # The inode alone is not enough where there is an id: a new folder often gets the one of a folder that is gone.
        if own != record.get("id") if own else not (is_here and _is_same(root, repository, record)):
            continue
        is_there = place.exists() and os.path.realpath(place) != os.path.realpath(root)
        if is_there and _read_id(find_repository(place)) == own:
            if own and repository is not None and repository.git_dir == repository.common_dir:
                with suppress(OSError):  # a vault that cannot be written is still read
                    (repository.common_dir / _ID_FILE).unlink(missing_ok=True)
            return {}
        moved = {about.parent: record} if is_here else {**moved, about.parent: record}
        if is_here:
            break
    if len(moved) == 1:  # of two copies that were moved, nothing tells whose state is whose
        ((state, record),) = moved.items()
        with suppress(OSError):
            state.rename(folder)
            trust.write_about(root, **{key: record[key] for key in ("id", "roots", "steering") if key in record})
            return record
    return {}


def _remember(root: Path, repository: Repository | None, digests: Mapping[str, str]) -> None:
    trust.make_state_folder(root)
    if repository is not None and not _read_id(repository):
        with suppress(OSError):  # the first commits have to do
            write_private(repository.common_dir / _ID_FILE, f"{secrets.token_hex(16)}\n")
    roots = sorted(_list_roots(repository))
    trust.write_about(root, id=_read_id(repository), roots=roots, steering=digests)


def _is_same(root: Path, repository: Repository | None, record: Mapping[str, Any]) -> bool:
    """Return whether the vault at `root` is the recorded one."""
    if record.get("id") and (own := _read_id(repository)):
        return bool(own == record["id"])
    if roots := record.get("roots"):
        return not _list_roots(repository).isdisjoint(roots)
    return "inode" not in record or folder_identity(root) == (record.get("device"), record["inode"])


def _list_roots(repository: Repository | None) -> set[str]:
    """Return the commits without a parent that the branch began with; none where it has no commit."""
    from quaid.history.git import Git  # not above: a hook that finds all well starts no git

    out = Git(repository).query("rev-list", "--max-parents=0", "HEAD", "--") if repository else None
    return set((out or b"").decode().split())


def _read_id(repository: Repository | None) -> str:
    with suppress(OSError):
        return read_text(repository.common_dir / _ID_FILE) if repository else ""
    return ""


def _check_private(root: Path, repository: Repository | None) -> None:
    """Refuse a vault that other users can change or replace, as ssh refuses such keys.

    Raises:
        OpenVaultError: they can.
    """
    inside = [f"{root}", f"{root}/{CONFIG_FILE}"]
    if repository is not None:
        common = repository.common_dir
        inside += [f"{repository.top}", f"{repository.top}/.git", f"{repository.git_dir}", f"{common}"]
        inside += [f"{common}/{name}" for name in ("config", "hooks", "objects", "refs")]
    above = set(map(str, Path(os.path.realpath(root)).parents))
    for path in dict.fromkeys((*inside, *above)):
        try:
            about = os.stat(path)  # noqa: PTH116 - at every command
        except OSError:
            continue
        is_above = path in above
        if about.st_uid not in {os.geteuid(), 0, _NOBODY if is_above else 0}:
            step = "Copy the vault to a folder of your own, or take that over with chown."
            raise OpenVaultError(root, path, "belongs to another user", step)
        is_open = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and not _is_own_group(path, about))
        # In a sticky folder others can add files, and rename none of yours.
        if is_open and not (is_above and about.st_mode & stat.S_ISVTX):
            step = f"Shut them out with: chmod go-w {shlex.quote(path)}"
            raise OpenVaultError(root, path, "can be changed by other users", step)


def _is_own_group(path: str, about: os.stat_result) -> bool:
    """Return whether a group is the system's, or the private one that many Linux systems give each user, and no list of
    access rights lets others in.
    """
    with suppress(AttributeError, OSError):
        os.getxattr(path, "system.posix_acl_access")  # the group's right to write may be another user's
        return False
    try:
        group, user = grp.getgrgid(about.st_gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return about.st_gid in {os.geteuid(), 0}
    return about.st_gid == 0 or (group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name})
