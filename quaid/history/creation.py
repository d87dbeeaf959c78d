"""Making a folder a vault: a repository around it, and the files that every vault has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quaid import trust
from quaid.history.git_process import execute, explain
from quaid.model import Message
from quaid.vault import clashes, template, transaction

if TYPE_CHECKING:
    from quaid.history.vault_history import History


@dataclass(frozen=True, slots=True)
class Created:
    """The outcome of `init`. `adopted` says that the folder had files of its own; `clashes` are those of its folders
    that are called like Quaid's, which then lie in `folder`.
    """

    root: Path
    adopted: bool
    made_repository: bool
    files: tuple[str, ...]
    commit: str | None
    clashes: tuple[str, ...] = ()
    folder: str = ""


def fill_vault(
    root: Path, history: History, wait_s: float, say: Callable[[str], None], folder: str | None = None
) -> Created:
    """Add what is missing to the folder `root`, in one commit; nothing that is there is changed. It is trusted then.
    Quaid's folders will lie in `folder`, by default where they clash with none of the owner's.

    Raises:
        BadInputError: Quaid's notes cannot be kept in `folder`.
    """
    adopted = template.has_notes(root)
    clashing = tuple(clashes.list_clashes(root))
    folder = clashes.choose_folder(root) if folder is None else clashes.check_folder(root, folder)
    trust.begin_state(root)
    made_repository = history.find_repository(root) is None
    history.create_repository()
    planned = tuple(template.plan_template(root, adopt=adopted, folder=folder))
    with transaction.begin(root, history, wait_s, say):
        committed = transaction.apply(
            root, transaction.VaultChange("init", planned, Message("init: a vault for Quaid")), history
        )
    trust.trust(root)
    added = tuple(edit.rel_path for edit in planned)
    return Created(root, adopted, made_repository, added, committed.id, clashing, folder)


def clone_vault(url: str, folder: Path) -> None:
    """Clone the repository at `url` into the new folder `folder`. Nothing that it brings along is run.

    Raises:
        GitError, GitMissingError, DiskFullError: git refused, is not installed, or has no room.
    """
    code, _, stderr = execute(["clone", "--quiet", "--no-recurse-submodules", "--", url, str(folder)], b"", {})
    if code:
        raise explain("clone the vault", stderr, folder)
