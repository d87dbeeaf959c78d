"""A memory beside the owner's: branches for experiments, agents and personas, switched, compared and merged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quaid.errors import BadInputError, LockedError, UnsavedWorkError
from quaid.history.vault_history import History
from quaid.janitor.vetoes import TASK
from quaid.janitor.worktree import janitor_lock
from quaid.model import Edit, Message
from quaid.place import CONFIG_FILE
from quaid.timeline.wording import MERGE
from quaid.trust import make_state_folder
from quaid.vault import files, layout, transaction

if TYPE_CHECKING:
    from quaid.history.branches import BranchHead
    from quaid.open_vault import OpenVault

BACKUPS = "refs/quaid/backup"
"""What deleted branches held is kept below this name."""
_FOLDER = "merge"
_REGULAR = (0o100644, 0o100755)


@dataclass(frozen=True, slots=True)
class MergedBranch:
    """A merge: its commit, None where there was nothing to merge; `left` is on disk and not committed."""

    name: str
    into: str
    commit: str | None
    left: tuple[str, ...] = ()


class MemoryBranches:
    """The branches of one vault, which is a repository of its own."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._root = vault.root

    @property
    def _git(self) -> History:
        return self._vault.git

    def list(self) -> list[BranchHead]:
        """Return all of them, by name."""
        return self._git.branches.list_heads()

    def find(self, name: str) -> BranchHead:
        """Return the branch of that name.

        Raises:
            BadInputError: there is none.
        """
        found = next((head for head in self.list() if head.name == name), None)
        if found is None:
            raise BadInputError(f"No branch is called {name!r}. See them with: quaid branch list")
        return found

    def current(self) -> BranchHead:
        """Return the branch that is checked out.

        Raises:
            BadInputError: none is.
        """
        found = next((head for head in self.list() if head.is_current), None)
        if found is None:
            raise BadInputError("No branch is checked out. Make one of what is there with: quaid branch create NAME")
        return found

    def create(self, name: str, start: str = "HEAD") -> BranchHead:
        """Make a branch of the memory as it was at `start`, a commit or a day.

        Raises:
            BadInputError: there is one already, or it cannot be called so.
            RevisionError: there is no such commit.
        """
        self._check_alone()
        git = self._git
        if not git.branches.is_name(name):
            raise BadInputError(f"{name!r} cannot be the name of a branch. Give letters, digits, - and /, such as work")
        if any(head.name == name for head in self.list()):
            raise BadInputError(f"There is a branch {name!r} already. Switch to it with: quaid branch switch {name}")
        git.branches.create(name, git.revisions.find(start).id)
        return self.find(name)

    def switch(self, name: str) -> BranchHead:
        """Check a branch out, and bring the index up to date with it.

        Raises:
            BadInputError: there is none, it holds no vault, or commits would be left behind.
            UnsavedWorkError: something is not committed.
            LockedError: a janitor is at work, or another writer.
        """
        self._check_alone()
        git, head = self._git, self.find(name)
        with janitor_lock(self._root), self._writing():
            if head.is_current:
                return head
            if git.read_at(head.id, CONFIG_FILE) is None:
                raise BadInputError(f"The branch {name!r} holds no vault. See what there is with: quaid branch list")
            state = git.state()
            if state.detached and not any(git.branches.has(state.head or "", one.id) for one in self.list()):
                raise BadInputError(
                    "HEAD is on no branch, and its commits would be left behind. Keep them with: "
                    "quaid branch create NAME"
                )
            transaction.commit_deferred(self._root, git)
            if unsaved := git.branches.list_unsaved():
                raise UnsavedWorkError(unsaved)
            git.branches.switch(name)
        self._vault.catch_up()
        return self.find(name)

    def delete(self, name: str, *, force: bool = False) -> str:
        """Delete a branch whose commits this one has, or any with `force`; return the ref that keeps what it held.

        Raises:
            BadInputError: there is none, it is checked out, or it is not merged.
        """
        self._check_alone()
        git, head = self._git, self.find(name)
        if head.place:
            raise BadInputError(
                f"The branch {name!r} is checked out in {head.place}. Switch to another one there first."
            )
        if not force and not git.branches.has(head.id):
            raise BadInputError(
                f"The branch {name!r} has commits that this one lacks. Merge it with: quaid branch merge {name}, or "
                f"delete it all the same (it is kept as a backup) with: quaid branch delete {name} --force"
            )
        backup = f"{BACKUPS}/{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{name}"
        git.branches.delete(head, backup)
        return backup

    def merge(self, name: str) -> MergedBranch:
        """Merge a branch into the one that is checked out, in one commit, which can be undone; what no merge of single
        files can see is settled in a second one, as after a pull.

        Raises:
            BadInputError: there is none, both have changed the same lines, or it has what Quaid does not write.
            UnsavedWorkError: a note that it changes holds what is not committed.
        """
        from quaid.janitor.settling import settle_merges  # not above: it loads the writer

        self._check_alone()
        head, into = self.find(name), self.current().name
        message = Message(f"merge: {name} into {into}", trailers=((TASK, MERGE),))
        with self._writing():
            edits = self._plan_merge(head)
            if not edits:
                return MergedBranch(name, into, None)
            unsaved = [edit.rel_path for edit in edits if files.read_note(self._root, edit.rel_path) != edit.before]
            if unsaved:
                raise UnsavedWorkError(unsaved)
            change = transaction.VaultChange(f"merge {head.id}", edits, message, self._git.owner(), merged=head.id)
            done = transaction.apply(self._root, change, self._git)
        self._vault.catch_up()
        with suppress(LockedError):  # the janitor, or the next sync, does it
            settle_merges(self._vault)
        return MergedBranch(name, into, done.id, done.left)

    def _plan_merge(self, head: BranchHead) -> tuple[Edit, ...]:
        """Merge in a work tree of its own, which is gone again at the end: the edits that come of it."""
        git = self._git
        base = git.state().head
        if base is None or git.branches.has(head.id):
            return ()
        folder = make_state_folder(self._root) / _FOLDER
        git.branches.remove_worktree(folder)  # a killed one may have left it
        try:
            vault = git.branches.add_worktree(folder, base)
            tree, collided = History(vault, self._vault.settings.git).branches.merge_here(head.id)
        finally:
            git.branches.remove_worktree(folder)
        if collided:
            raise BadInputError(
                f"{_name(collided)} was changed in both branches in the same lines: nothing was merged. Settle it by "
                f"hand: git merge {head.name}, edit what is marked, git add it, git commit"
            )
        sides = list(zip(*git.revisions.compare(base, tree), strict=True))
        listed = [[file for file in side if file is not None] for side in sides]
        odd = [
            file.rel_path
            for file in itertools.chain(*listed)
            if file.mode not in _REGULAR or not layout.is_vault_path(file.rel_path)
        ]
        if odd:
            raise BadInputError(
                f"{_name(odd)} is nothing that Quaid writes: nothing was merged. Merge by hand: git merge {head.name}"
            )
        old, new = (dict(git.revisions.read_files(side, filtered=True)) for side in listed or ([], []))
        return tuple(Edit(path, old.get(path), new.get(path)) for path in sorted({*old, *new}))

    def _check_alone(self) -> None:
        """Refuse a vault in a larger repository, all of which a branch would change."""
        top = History.find_repository(self._root)
        if top != self._root.resolve():
            raise BadInputError(
                f"The vault is a part of the repository {top}, and a branch would change all of that. Use git there."
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        wait_s = self._vault.settings.git.wait_s
        with transaction.begin(self._root, self._git, wait_s, self._vault.notify):
            yield


def _name(paths: list[str]) -> str:
    """The first of several files, and how many more there are."""
    return paths[0] if len(paths) == 1 else f"{paths[0]} (and {len(paths) - 1:,} more)"
