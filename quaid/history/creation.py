"""Making a folder a vault: a repository around it, and the files that every vault has."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from quaid import trust
from quaid.history import merge_driver, vault_guard
from quaid.history.git import execute, explain
from quaid.history.repository import find_repository
from quaid.history.vault_history import History
from quaid.model import Message
from quaid.vault import transaction
from quaid.vault.template import VaultPlan


class Created(NamedTuple):
    """The outcome of `init`: what was planned, whether a repository was made, and the commit."""

    root: Path
    plan: VaultPlan
    made_repository: bool
    commit: str | None

    @property
    def files(self) -> list[str]:
        return [edit.rel_path for edit in self.plan.edits]


def fill_vault(root: Path, history: History, wait_s: float, say: Callable[[str], None], plan: VaultPlan) -> Created:
    """Make the folder `root` a vault with the files of `plan`, in one commit. It is trusted then."""
    with _shut_to_others():
        trust.put_state_aside(root)
        trust.make_state_folder(root)
        made_repository = create_repository(root)
        merge_driver.set_up(root)
        change = transaction.VaultChange("init", plan.edits, Message("init: a vault for Quaid"))
        with transaction.begin(root, history, wait_s, say):
            committed = transaction.apply(root, change, history)
    trust.trust(root)
    vault_guard.accept(root)
    return Created(root, plan, made_repository, committed.id)


def create_repository(root: Path) -> bool:
    """Make a folder a repository with the branch main, unless one encloses it already; return whether it was made."""
    if find_repository(root) is not None:
        return False
    code, _, stderr = execute(["-C", str(root), "init", "-q", "-b", "main"], b"", {})
    if code:
        raise explain("create a repository", stderr, root)
    return True


def user_name(folder: Path) -> str:
    """Return git's user.name in `folder`, which need not exist; empty where none is set."""
    there = next((place for place in (folder, *folder.parents) if place.is_dir()), Path.home())
    code, out, _ = execute(["-C", str(there), "config", "--get", "user.name"], b"", {})
    return " ".join(out.decode("utf-8", "replace").split()) if code == 0 else ""


def clone_vault(url: str, folder: Path) -> None:
    """Clone the repository at `url` into the new folder `folder`. Nothing that it brings along is run. Where it does
    not name a default branch, as a bare repository may to which only `main` was pushed, that is main, or its only
    one.
    """
    with _shut_to_others():
        code, _, stderr = execute(["clone", "--quiet", "--no-recurse-submodules", "--", url, str(folder)], b"", {})
    if code:
        raise explain("clone the vault", stderr, folder)
    at = ["-C", str(folder)]
    if execute([*at, "rev-parse", "--quiet", "--verify", "HEAD"], b"", {})[0]:
        _, out, _ = execute([*at, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes/origin"], b"", {})
        branches = out.decode("utf-8", "replace").split()
        if branch := "main" if "main" in branches else branches[0] if len(branches) == 1 else "":
            execute([*at, "checkout", "--quiet", "-b", branch, "--track", f"origin/{branch}"], b"", {})


@contextmanager
def _shut_to_others() -> Iterator[None]:
    """Make files that no other user can change, whatever the umask: a vault that they can change is refused."""
    before = os.umask(0o022)
    os.umask(before | 0o022)
    try:
        yield
    finally:
        os.umask(before)
