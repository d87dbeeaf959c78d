"""The vault's git history: commits that hold exactly what Quaid changed, and what later asks about them.

Every process runs in the work tree's top folder; paths go in and out vault-relative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from quaid.errors import GitError, LockedError
from quaid.history import commit_folder, committing
from quaid.history import repository as repositories
from quaid.history.authorship import find_owner
from quaid.history.branches import Branches
from quaid.history.git import Git, execute, explain, split_items
from quaid.history.messages import LOG_FORMAT, escape, on_one_line, parse_log
from quaid.history.messages import grep_trailer as grep_option
from quaid.history.note_history import Revision, find_note, matches_id, read_note_history
from quaid.history.purged import Purges
from quaid.history.remotes import Remotes
from quaid.history.repository import Repository, RepositoryState
from quaid.history.revisions import Revisions, disable_filters, list_filters
from quaid.history.source_repository import Checkout, find_checkout
from quaid.model import NOTE_ENDINGS, Commit, Committed, Edit, Message
from quaid.settings import GitSettings
from quaid.vault import files

ATTEMPTS = 10
"""The number of times HEAD may move under a commit before Quaid gives up."""
FAST_ATTEMPTS = 3
"""So often the user's index is locked only from the moment git has read what it commits; then from the beginning."""


class History:
    """The git side of the vault at `root`, which may be a subfolder, a linked worktree or a submodule; or of `found`, a
    repository that has no work tree to be found by.
    """

    def __init__(self, root: Path, settings: GitSettings, found: Repository | None = None) -> None:
        self._root = root
        self._settings = settings
        self._runner = Git(found, settings.wait_s) if found else None

    @staticmethod
    def find_repository(root: Path) -> Path | None:
        """The top folder of the work tree that encloses `root`; costs a few looks at the disk, no process."""
        found = repositories.find_repository(root)
        return found.top if found else None

    @staticmethod
    def find_checkout(path: Path, data: bytes) -> Checkout | None:
        """Return the checkout that any file, holding `data`, is in; None when it is in no repository."""
        return find_checkout(path, data)

    def create_repository(self) -> None:
        """Make the vault a repository with the branch main, unless one encloses it already.

        Raises:
            GitError, GitMissingError: git refused or is not installed.
        """
        if repositories.find_repository(self._root) is None:
            code, _, stderr = execute(["-C", str(self._root), "init", "-q", "-b", "main"], b"", {})
            if code:
                raise explain("create a repository", stderr, self._root)

    def state(self) -> RepositoryState:
        """Return the state of the repository: branch, commit, operation in progress.

        Raises:
            GitError: the vault is in no repository, or in a broken one.
        """
        try:
            state = repositories.read_state(self._repository)
        except OSError as error:
            raise GitError("read HEAD", str(error)) from error
        if state.is_known:
            return state
        branch, head = committing.read_head(self._git)
        return RepositoryState(branch, head, state.operation, state.locked, branch is None)

    def wait_until_ready(self, say: Callable[[str], None] | None = None) -> None:
        """Wait up to `git.wait_s` for a rebase, a merge or another program's lock to end; `say` gets the reason once.

        Raises:
            LockedError: it did not end in time. Locks of others are never removed, those of our own dead at once.
        """
        commit_folder.wait_until_ready(self._repository, self._settings.wait_s, say)
        if self.is_lock_abandoned:
            self.recover()

    @property
    def git_dir(self) -> Path:
        """The folder of the repository that belongs to this work tree."""
        return self._repository.git_dir

    @property
    def is_lock_abandoned(self) -> bool:
        """Return True if the index is locked by a commit of ours whose process was killed: `recover` finishes it."""
        return commit_folder.is_abandoned(self._repository)

    def commit(
        self,
        edits: Sequence[Edit],
        message: Message,
        *,
        author: tuple[str, str] | None = None,
        merged: str | None = None,
    ) -> Committed:
        """Commit exactly these edits, already written to disk; the user's staged and unstaged work stays as it is.

        Where a note also holds changes of the user, only the edit's own difference is committed; where the two
        cannot be separated, the path is left out. `author` is (name, e-mail), by default the one in the settings. With
        `merged`, the id of a commit, it is a merge of that one, whose second parent it becomes.
        On any error nothing is committed and the user's index is what it was.

        Raises:
            GitError: git, a hook or the signing program refused, or an edit is inside a submodule.
            LockedError: another program was at work for longer than `git.wait_s`.
            GitMissingError, DiskFullError, VaultReadOnlyError: nothing was committed.
        """
        by_path = {self._repository.to_git(edit.rel_path): edit for edit in edits}
        identity = (self._settings.name, self._settings.email), author
        for attempt in range(ATTEMPTS):
            self.wait_until_ready()
            try:
                self.recover()
                with files.explaining(self._repository.top / ".git"):
                    locks_first = attempt >= FAST_ATTEMPTS
                    return committing.commit(self._git, by_path, message, identity, merged, locks_first=locks_first)
            except committing.HeadMovedError:
                continue
            except GitError as error:
                raise committing.explain_refusal(error, self._repository.top) from error
        raise LockedError(f"Other commits keep arriving in {self._repository.top}")

    def adopt(self, edits: Sequence[Edit], commit_id: str) -> Committed:
        """Bring the branch to `commit_id`, which has all that it has; NotAheadError, StagedWorkError, LockedError."""
        self.wait_until_ready()
        self.recover()
        by_path = {self._repository.to_git(edit.rel_path): edit for edit in edits}
        with files.explaining(self._repository.top / ".git"):
            if not self.has_adopted(commit_id):
                committing.adopt(self._git, commit_id, by_path)
        return Committed(commit_id)

    def has_adopted(self, commit_id: str) -> bool:
        """Return whether the branch has this commit."""
        return self._git.is_ancestor(commit_id, "HEAD")

    def recover(self) -> None:
        """Finish what a killed process left half done; `commit` does it first. Else the user's index
        would lag behind Quaid's commit, and undo it with the user's next one.
        """
        with files.explaining(self._repository.top / ".git"):
            committing.recover(self._git, self._root)

    def maintain(self) -> list[str]:
        """Let git tidy its objects where that is due, and return what is worth telling: our way of committing never
        makes it look. Raises as `maintenance.maintain`.
        """
        from quaid.history.maintenance import maintain

        return maintain(self._repository) if self._settings.maintenance == "auto" else []

    def log(
        self,
        *,
        paths: Sequence[str] = (),
        limit: int = 20,
        grep_trailer: tuple[str, str] | None = None,
        since: str | None = None,
        author: str | None = None,
        own_line: bool = False,
    ) -> list[Commit]:
        """The newest `limit` commits that touch the vault, newest first; times are in UTC.

        Args:
            paths: only commits that touch one of these files or folders.
            limit: how many at most.
            grep_trailer: only commits with this (key, value) among their trailers.
            since: only commits after this date, in any form git reads.
            author: only commits whose author's name or e-mail contains this.
            own_line: only commits that this branch did not get by a merge.

        Raises:
            GitError: git refused, for example a repository it does not trust.
        """
        options = ["-m", "--no-renames", *([f"--since={since}"] if since else [])]
        options += [*([f"--author={escape(author)}"] if author else []), *(["--first-parent"] if own_line else [])]
        if grep_trailer is None:
            return self._log([f"-n{limit}", *options], paths)
        grep_trailer = grep_trailer[0], on_one_line(grep_trailer[1])
        options.append(grep_option(*grep_trailer))
        # A line of the body may look like the trailer asked for: such a hit is dropped here, after git counted it.
        for count in (f"-n{limit}", "-n-1"):
            found = self._log([count, *options], paths, everywhere=True)
            matching = [commit for commit in found if grep_trailer[1] in commit.trailers.get(grep_trailer[0], ())]
            if len(matching) >= limit or len(found) < limit:
                break
        return matching[:limit]

    def note_history(self, rel_path: str, note_id: str | None = None) -> list[Revision]:
        """Every commit that changed a note, newest first, across renames."""
        return read_note_history(self._git, rel_path, note_id) if self.state().head else []

    @property
    def boundary(self) -> frozenset[str]:
        """The commits at which a shallow clone ends; none in a whole one."""
        return repositories.read_boundary(self._repository)

    def read_at(self, revision: str, rel_path: str) -> bytes | None:
        """A file as a checkout of `revision` would have it, None if it has none.

        Raises:
            GitError: there is no such revision.
        """
        commit_id = self._resolve(revision)
        if commit_id is None:
            return None
        path = self._repository.to_git(rel_path)
        version = self._git.list_tree(commit_id, path).get(path)
        if version is None or not version.mode.startswith("100"):
            return None
        return self._git.read("read a note", "cat-file", "--filters", f"--path={path}", version.blob)

    def list_tree(self, revision: str) -> dict[str, str]:
        """Every regular file of the vault at `revision`: its path and blob id.

        Raises:
            GitError: there is no such revision.
        """
        commit_id = self._resolve(revision)
        listed = self.revisions.list_files(commit_id) if commit_id is not None else ()
        return {file.rel_path: file.blob for file in listed if file.is_regular}

    @property
    def revisions(self) -> Revisions:
        """The vault as it was at any commit."""
        return Revisions(self._git)

    @property
    def remotes(self) -> Remotes:
        """The repositories that the history is exchanged with."""
        return Remotes(self._git)

    @property
    def purges(self) -> Purges:
        """What was purged from the vault and must not come back."""
        return Purges(self._root, self._git)

    @property
    def branches(self) -> Branches:
        """Branches, worktrees, the log, and who wrote what."""
        return Branches(self._git)

    def diff(self, commit_id: str) -> str:
        """Return the changes of a commit in the vault as a patch; a merge's against its first parent; or GitError."""
        return self.revisions.show(self._resolve(commit_id) or commit_id)

    def find_removed(self, reference: str) -> tuple[str, str, bytes] | None:
        """The newest commit that removed the note called `reference`, by its trailer `Quaid-Fact`.

        `reference` is the note's id, its path, or at least four characters from either end of the id. Returns the
        commit's id, the note's path and the note's bytes before it.
        """
        options = ["--grep=^Quaid-Fact: ", "--diff-filter=D", "--no-renames"]
        for commit in self._log(options, (), everywhere=True):
            for fact_id in commit.trailers.get("Quaid-Fact", ()):
                if matches_id(reference, fact_id) or reference in commit.files:
                    removed = ((path, self.read_at(f"{commit.id}^", path)) for path in commit.files)
                    found = find_note(removed, reference if reference in commit.files else fact_id)
                    if found is not None:
                        return commit.id, *found
        return None

    def has_commit(self, commit_id: str) -> bool:
        """Return True if git has this commit (it may have pruned it)."""
        return self._git.resolve(commit_id) is not None

    def tracked_missing(self, rel_paths: Sequence[str]) -> set[str]:
        """Return those of these paths, gone from disk, that a checkout of HEAD would have; before the first one all."""
        if self.state().head is None:
            return set(rel_paths)
        return (set(rel_paths) & self.list_tree("HEAD").keys()) - self.revisions.list_left_out()

    def uncommitted(self) -> list[str]:
        """Paths of the notes (*.md) that are untracked or differ from HEAD, in order."""
        args = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all"]
        unfiltered = disable_filters(list_filters(self._git))
        out = self._git.read("look for changes", *unfiltered, *args, "--", self._repository.prefix or ".")
        paths = [line[3:] for line in split_items(out)]
        return sorted(self._repository.to_vault(path) for path in paths if path.lower().endswith(NOTE_ENDINGS))

    @property
    def _repository(self) -> Repository:
        return self._git.repository

    @property
    def _git(self) -> Git:
        if self._runner is None:
            found = repositories.find_repository(self._root)
            if found is None:
                raise GitError("find a repository", f"{self._root} is in none. Make one there with: git init")
            self._runner = Git(found, self._settings.wait_s)
        return self._runner

    def owner(self) -> tuple[str, str] | None:
        """Return the name and e-mail address with which git commits by hand here; None where it has none."""
        return find_owner(self._git)

    def _resolve(self, revision: str) -> str | None:
        """The commit's id; None for HEAD before the first commit."""
        commit_id = self._git.resolve(revision)
        if commit_id is None and not (revision == "HEAD" and self.state().head is None):
            raise GitError(f"read {revision!r}", "there is no such revision")
        return commit_id

    def _log(self, options: Sequence[str], paths: Sequence[str], *, everywhere: bool = False) -> list[Commit]:
        if self.state().head is None:
            return []
        wanted = [self._repository.to_git(path) for path in paths]
        if not wanted and self._repository.prefix and not everywhere:
            wanted = [self._repository.prefix]
        shape = ("-z", "-E", "--name-only", "--no-color", "--encoding=UTF-8", f"--format={LOG_FORMAT}")
        out = self._git.read("read the history", "log", *shape, *options, "--", *wanted)
        return list(parse_log(out, self._repository))
