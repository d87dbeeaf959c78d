"""The janitor's copy of the vault: a worktree in the state folder with a separate index.

Decisions are carried out there first, commit by commit. They are not visible before the merge; the folder that a killed
run leaves is removed by the next run.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from quaid.errors import LockedError, QuaidError
from quaid.history.authorship import JANITOR
from quaid.history.vault_history import History
from quaid.index.port import IndexConnection
from quaid.index.sqlite import database
from quaid.local import claimed
from quaid.local.locks import try_lock
from quaid.model import Edit, Message
from quaid.open_vault import OpenVault
from quaid.place import CONFIG_FILE, INDEX_FILE, state_folder
from quaid.sqlite import DamageRetries
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.trust import make_state_folder
from quaid.vault import files, transaction

WORKTREES = "worktrees"
LOCK_FILE = "janitor.lock"


class JanitorStoppedError(QuaidError):
    """A run that would do harm, or works on something that may be broken."""

    code = "janitor_stopped"

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(f"The janitor changed nothing: {reason}. {next_step}")


NOT_COMMITTED = (
    "the vault is not committed yet",
    f"Commit it first: git add -- {CONFIG_FILE} && git commit -- {CONFIG_FILE}",
)


class Worktree(OpenVault):
    """The owner's vault as it was at the commit `base`, in a worktree with a separate index."""

    def __init__(self, owner: OpenVault, root: Path, base: str) -> None:
        # The owner's embedding: its cache has nearly all vectors, and stores those that are made here.
        super().__init__(root, owner.settings, embedding=owner.embedding)
        self.base = base

    def index(self) -> IndexConnection:
        """Return the whole index as of the last `sync`."""
        connection = self.whole_reader.open()
        assert connection is not None
        return connection

    def read(self, rel_path: str) -> bytes | None:
        return files.read_note(self.root, rel_path)

    def sync(self, options: SyncOptions | None = None) -> SyncReport:
        """Bring the index up to date."""
        return super().sync(options or SyncOptions(accept_removals=True, fetch_weights=False))

    def commit(self, changes: Sequence[Edit], message: Message, author: tuple[str, str] = JANITOR) -> str | None:
        """Commit all of `changes` or none, by the janitor or the `author` whose decision it carries out.

        Raises:
            NoteChangedError: a note has changed since its edit was planned.
        """
        with transaction.begin(self.root, self.git, 0):
            change = transaction.VaultChange(message.subject, tuple(changes), message, author)
            return transaction.apply(self.root, change, self.git).id

    @property
    def tip(self) -> str:
        """The newest commit."""
        return self.git.state().head or self.base


@contextmanager
def janitor_lock(root: Path) -> Iterator[None]:
    """Lock the vault at `root` against other runs, which need the branch that they began on.

    Raises:
        LockedError: a run is in progress.
    """
    with try_lock(make_state_folder(root) / LOCK_FILE) as is_ours:
        if not is_ours:
            raise LockedError("A janitor is at work in this vault")
        yield


@contextmanager
def open_worktree(owner: OpenVault, name: str, base: str) -> Iterator[Worktree]:
    """Open a worktree of the owner's vault as it was at the commit `base`, and remove it at the end, also on errors.

    Its state is in the same folder. JanitorStoppedError: the vault is not in the commit.
    """
    root, history = owner.root, owner.git
    folder = state_folder(root) / WORKTREES / name
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        vault = history.add_worktree(folder / "tree", base)
        if not (vault / CONFIG_FILE).is_file():
            raise JanitorStoppedError(*NOT_COMMITTED)
        state, present = make_state_folder(vault), state_folder(root) / INDEX_FILE
        retries, is_copied = DamageRetries(present), False
        while present.exists() and not is_copied:  # so that only the run's changes are indexed
            with retries:
                database.copy(present, state / INDEX_FILE)
                is_copied = True
        claimed.write(vault, claimed.read(root))
        with closing(Worktree(owner, vault, base)) as worktree:
            worktree.sync()
            yield worktree
    finally:
        _remove(history, folder)


def clear_worktrees(root: Path, history: History) -> None:
    """Remove the worktrees of killed runs. The caller holds the janitor's lock."""
    for folder in (state_folder(root) / WORKTREES).glob("*"):
        _remove(history, folder)


def _remove(history: History, folder: Path) -> None:
    history.remove_worktree(folder / "tree")
    shutil.rmtree(folder, ignore_errors=True)
