"""Another memory in the same repository: a branch of git, made, switched to, merged and deleted."""

from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime

from quaid.errors import BadInputError, LockedError, UnsavedWorkError, name_first
from quaid.history.merges import merge_trees
from quaid.history.vault_history import BranchHead
from quaid.janitor.vetoes import TASK
from quaid.janitor.worktree import janitor_lock
from quaid.model import Committed, Edit, Message
from quaid.open_vault import OpenVault
from quaid.place import CONFIG_FILE
from quaid.timeline.log import MERGE
from quaid.vault import files, layout, transaction

BACKUPS = "refs/quaid/backup"
"""The namespace of the backups of deleted branches."""
_REGULAR = (0o100644, 0o100755)


class MemoryBranches:
    """The branches of one vault, which is a repository by itself. Each call raises BadInputError where it is not, or
    where git has no such branch.
    """

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._root = vault.root
        self._git = vault.git

    def list(self) -> list[BranchHead]:
        """Return all of them, by name."""
        return self._git.list_branches()

    def find(self, name: str = "") -> BranchHead:
        """Return the branch of that name, or the one that is checked out."""
        found = next((head for head in self.list() if head.name == name or (not name and head.is_current)), None)
        if found is None and name:
            raise BadInputError(f"No branch is called {name!r}. See them with: quaid branch list")
        if found is None:
            raise BadInputError("No branch is checked out. Make one of what is there with: quaid branch create NAME")
        return found

    def create(self, name: str, start: str = "HEAD") -> BranchHead:
        """Make a branch of the memory as it was at `start`, a commit or a day (RevisionError)."""
        self._check_alone()
        args = ("check-ref-format", "--branch", name)
        if name.startswith("-") or self._git.runner.run("check a name", *args, accept=(0, 1, 128))[0]:
            raise BadInputError(f"{name!r} cannot be the name of a branch. Give letters, digits, - and /, such as work")
        if any(head.name == name for head in self.list()):
            raise BadInputError(f"There is a branch {name!r} already. Switch to it with: quaid branch switch {name}")
        self._git.runner.run("make a branch", "branch", "--no-track", name, self._git.revisions.find(start).id)
        return self.find(name)

    def switch(self, name: str) -> BranchHead:
        """Check a branch out, and bring the index up to date with it.

        Raises:
            BadInputError: it holds no vault, or commits would be left behind.
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
            if state.detached and not any(git.has_adopted(state.head or "", one.id) for one in self.list()):
                raise BadInputError(
                    "HEAD is on no branch, and its commits would be left behind. Keep them with: "
                    "quaid branch create NAME"
                )
            transaction.commit_deferred(self._root, git)
            lines = git.runner.list_changed()
            if unsaved := [line[3:] for line in lines if not line.startswith("??") or line.endswith(".md")]:
                raise UnsavedWorkError(unsaved)
            git.runner.run("switch to a branch", "switch", "--quiet", "--no-guess", "--no-overwrite-ignore", name)
        self._vault.catch_up()
        return self.find(name)

    def delete(self, name: str, *, force: bool = False) -> str:
        """Delete a branch whose commits this one has, or any with `force`; return the ref that keeps what it held."""
        self._check_alone()
        head = self.find(name)
        if head.place:
            raise BadInputError(
                f"The branch {name!r} is checked out in {head.place}. Switch to another one there first."
            )
        if not force and not self._git.has_adopted(head.id):
            raise BadInputError(
                f"The branch {name!r} has commits that this one lacks. Merge it with: quaid branch merge {name}, or "
                f"delete it all the same (it is kept as a backup) with: quaid branch delete {name} --force"
            )
        backup = f"{BACKUPS}/{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{name}"
        lines = f"create {backup} {head.id}\ndelete refs/heads/{head.name} {head.id}\n"
        stdin = lines.encode("utf-8", "surrogateescape")
        self._git.runner.run("delete a branch", "update-ref", "--stdin", stdin=stdin)
        return backup

    def merge(self, name: str) -> Committed:
        """Merge a branch into the one that is checked out, in one commit, which can be undone. What no merge of single
        files can see is settled in a second one, as after a pull.

        Raises:
            BadInputError: both have changed the same lines, or the branch has what Quaid does not write.
            UnsavedWorkError: a note that it changes holds what is not committed.
        """
        from quaid.janitor.settling import settle_merges  # not above: it loads the writer

        self._check_alone()
        head, into = self.find(name), self.find().name
        message = Message(f"merge: {name} into {into}", trailers=((TASK, MERGE),))
        with self._writing():
            git = self._git
            base = git.state().head
            if base is None or git.has_adopted(head.id):
                return Committed(None)
            tree, unmerged = merge_trees(git.runner, base, head.id)
            if unmerged:
                raise BadInputError(
                    f"{name_first([each.path for each in unmerged], 1)} was changed in both branches in the same "
                    f"lines: nothing was merged. Settle it by hand: git merge {head.name}, edit what is marked, "
                    "git add it, git commit"
                )
            changed = [file for pair in git.revisions.compare(base, tree) for file in pair if file is not None]
            odd = [file for file in changed if file.mode not in _REGULAR or not layout.is_vault_path(file.rel_path)]
            if odd:
                raise BadInputError(
                    f"{name_first([file.rel_path for file in odd], 1)} is nothing that Quaid writes: nothing was "
                    f"merged. Merge by hand: git merge {head.name}"
                )
            old, new = git.revisions.read_changed(base, tree)
            edits = tuple(Edit(path, old.get(path), new.get(path)) for path in sorted({*old, *new}))
            if not edits:
                return Committed(None)
            if unsaved := [
                edit.rel_path for edit in edits if files.read_note(self._root, edit.rel_path) != edit.before
            ]:
                raise UnsavedWorkError(unsaved)
            change = transaction.VaultChange(f"merge {head.id}", edits, message, git.owner(), merged=head.id)
            done = transaction.apply(self._root, change, git)
        self._vault.catch_up()
        with suppress(LockedError):  # the janitor, or the next sync, does it
            settle_merges(self._vault)
        return done

    def _check_alone(self) -> None:
        """Refuse a vault in a larger repository, all of which a branch would change."""
        repository = self._git.runner.repository
        if repository.prefix:
            raise BadInputError(
                f"The vault is a part of the repository {repository.top}, and a branch would change all of that. "
                "Use git there."
            )

    def _writing(self) -> AbstractContextManager[object]:
        return transaction.begin(self._root, self._git, self._vault.settings.git.wait_s, self._vault.notify)
