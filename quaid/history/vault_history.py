"""The vault's git history: commits that hold exactly what Quaid changed, and what later asks about them.

Every process runs in the work tree's top folder; paths go in and out vault-relative.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quaid.errors import GitError, LockedError
from quaid.history import checkout, filters, index_lock, plain_commit, private_git_dir, refusals, steering
from quaid.history import repository as repositories
from quaid.history.adoption import includes
from quaid.history.authorship import choose_identity, find_owner
from quaid.history.branches import Branches
from quaid.history.git_output import parse_tree, split_items
from quaid.history.git_process import (
    QUIET,
    GitCall,
    LockHeldError,
    execute,
    explain,
    quiet_environment,
    run_once,
)
from quaid.history.index_lock import IndexLock
from quaid.history.messages import LOG_FORMAT, escape, on_one_line, parse_log, render
from quaid.history.messages import grep_trailer as grep_option
from quaid.history.note_history import Revision, find_note, is_meant, read_note_history
from quaid.history.plain_commit import PlainPlan
from quaid.history.purged import Purges
from quaid.history.remotes import Remotes
from quaid.history.repository import Repository, RepositoryState
from quaid.history.revisions import Revisions, resolve
from quaid.history.staging import Stage, commit_by_git, finish_commit, follow_commit, is_refused_by_guard
from quaid.model import NOTE_ENDINGS, Commit, Committed, Edit, Message
from quaid.settings import GitSettings
from quaid.vault import files, transaction

ATTEMPTS = 10
"""The number of times HEAD may move under a commit before Quaid gives up."""
HASTY_ATTEMPTS = 3
"""So often the user's index is locked only from the moment git has read what it commits; then from the beginning."""


class History:
    """The git side of the vault at `root`, which may be a subfolder, a linked worktree or a submodule; or of `found`, a
    repository that has no work tree to be found by.
    """

    def __init__(self, root: Path, settings: GitSettings, found: Repository | None = None) -> None:
        self._root = root
        self._settings = settings
        self._found = found

    @staticmethod
    def find_repository(root: Path) -> Path | None:
        """The top folder of the work tree that encloses `root`; costs a few looks at the disk, no process."""
        found = repositories.find_repository(root)
        return found.top if found else None

    @staticmethod
    def find_checkout(path: Path, data: bytes) -> checkout.Checkout | None:
        """Return the checkout that any file, holding `data`, lies in; None when it is in no repository."""
        return checkout.find_checkout(path, data)

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
        return self._ask_state(state) if state.branch == repositories.REFTABLE_BRANCH else state

    def wait_until_ready(self, say: Callable[[str], None] | None = None) -> None:
        """Wait up to `git.wait_s` for a rebase, a merge or another program's lock to end; `say` hears once why.

        Raises:
            LockedError: it did not end in time. Locks of others are never removed, those of our own dead at once.
        """
        repositories.wait_until_ready(self._repository, self._settings.wait_s, say, index_lock.is_abandoned)
        if self.is_lock_abandoned:
            self.recover()

    @property
    def git_dir(self) -> Path:
        """The folder of the repository that belongs to this work tree."""
        return self._repository.git_dir

    @property
    def is_lock_abandoned(self) -> bool:
        """Return True if the index is locked by a commit of ours whose process was killed: `recover` finishes it."""
        return index_lock.is_abandoned(self._repository)

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
        cannot be told apart, the path is left out. `author` is (name, e-mail), by default the one in the settings. With
        `merged`, the id of a commit, it is a merge of that one, whose second parent it becomes.
        On any error nothing is committed and the user's index is what it was.

        Raises:
            GitError: git, a hook or the signing program refused, or an edit is inside a submodule.
            LockedError: another program was at work for longer than `git.wait_s`.
            GitMissingError, DiskFullError, VaultReadOnlyError: nothing was committed.
        """
        by_path = {self._repository.to_git(edit.rel_path): edit for edit in edits}
        for attempt in range(ATTEMPTS):
            self.wait_until_ready()
            try:
                self.recover()
                with files.explaining(self._repository.top / ".git"):
                    is_hasty = attempt < HASTY_ATTEMPTS
                    return self._commit_once(by_path, message, author, merged, is_hasty=is_hasty)
            except _HeadMovedError:
                continue
            except GitError as error:
                raise refusals.explain_refusal(error, self._repository.top) from error
        raise LockedError(f"Other commits keep arriving in {self._repository.top}")

    def adopt(self, edits: Sequence[Edit], commit_id: str) -> Committed:
        """Bring the branch to `commit_id`, which has all that it has; NotAheadError, StagedWorkError, LockedError."""
        self.wait_until_ready()
        self.recover()
        by_path = {self._repository.to_git(edit.rel_path): edit for edit in edits}
        with files.explaining(self._repository.top / ".git"):
            if not self.has_adopted(commit_id):
                place = self._run, self._repository, self.state().head
                private_git_dir.adopt(*place, commit_id, by_path, self._settings.wait_s)
        return Committed(commit_id)

    def has_adopted(self, commit_id: str) -> bool:
        """Return whether the branch has this commit."""
        return includes(self._run, "HEAD", commit_id)

    def recover(self) -> None:
        """Finish what a killed process left half done; `commit` does it first. Else the user's index
        would lag behind Quaid's commit, and undo it with the user's next one.
        """
        with files.explaining(self._repository.top / ".git"):
            private_git_dir.recover(
                self._run, self._repository, self.state().head, self._settings.wait_s, self._set_aside
            )

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
            kept = [commit for commit in found if grep_trailer[1] in commit.trailers.get(grep_trailer[0], ())]
            if len(kept) >= limit or len(found) < limit:
                break
        return kept[:limit]

    def note_history(self, rel_path: str, note_id: str | None = None) -> list[Revision]:
        """Every commit that changed a note, newest first, across renames."""
        return read_note_history(self._run, self._repository, rel_path, note_id) if self.state().head else []

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
        args = ("ls-tree", "-z", "--full-tree", commit_id, "--", path)
        tree = dict(parse_tree(self._run("look for a note", *args)[1]))
        if path not in tree or not tree[path].mode.startswith("100"):
            return None
        return self._run("read a note", "cat-file", "--filters", f"--path={path}", tree[path].blob)[1]

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
        return Revisions(self._run, self._repository)

    @property
    def remotes(self) -> Remotes:
        """The repositories that the history is exchanged with."""
        return Remotes(self._run, self._repository)

    @property
    def purges(self) -> Purges:
        """What was purged from the vault and must not come back."""
        return Purges(self._root, self._repository)

    @property
    def branches(self) -> Branches:
        """Work beside the owner's branch, and who wrote what."""
        return Branches(self._run, self._repository)

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
                if is_meant(reference, fact_id) or reference in commit.files:
                    removed = ((path, self.read_at(f"{commit.id}^", path)) for path in commit.files)
                    found = find_note(removed, reference if reference in commit.files else fact_id)
                    if found is not None:
                        return commit.id, *found
        return None

    def has_commit(self, commit_id: str) -> bool:
        """Return True if git has this commit (it may have pruned it)."""
        return resolve(self._run, commit_id) is not None

    def tracked_missing(self, rel_paths: Sequence[str]) -> set[str]:
        """Return those of these paths, gone from disk, that a checkout of HEAD would have; before the first one all."""
        if self.state().head is None:
            return set(rel_paths)
        return (set(rel_paths) & self.list_tree("HEAD").keys()) - self.revisions.list_left_out()

    def uncommitted(self) -> list[str]:
        """Paths of the notes (*.md) that are untracked or differ from HEAD, in order."""
        args = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all"]
        unfiltered = filters.without(filters.list_configured(self._run))
        _, out = self._run("look for changes", *unfiltered, *args, "--", self._repository.prefix or ".")
        paths = [line[3:] for line in split_items(out)]
        return sorted(self._repository.to_vault(path) for path in paths if path.lower().endswith(NOTE_ENDINGS))

    @property
    def _repository(self) -> Repository:
        self._found = self._found or repositories.find_repository(self._root)
        if self._found is None:
            raise GitError("find a repository", f"{self._root} is in none. Make one there with: git init")
        return self._found

    def _commit_once(
        self, edits: Mapping[str, Edit], message: Message, author: tuple[str, str] | None, merged: str | None, *,
        is_hasty: bool,
    ) -> Committed:  # fmt: skip
        base = self.state().head
        with private_git_dir.open_private_git_dir(self._repository, base) as (folder, handle):
            if not is_hasty:
                IndexLock(self._repository, folder).wait(self._settings.wait_s)
            stage = Stage(self._run, self._repository, folder, base)
            if merged is None and (simple := plain_commit.plan(stage, edits, self._run_patiently)) is not None:
                return Committed(self._commit_plainly(stage, simple, message, author, handle))
            plan = stage.plan(edits)
            left = tuple(self._repository.to_vault(path) for path in plan.left)
            refused = tuple(map(self._repository.to_vault, plan.ignored))
            refusal = refusals.explain_ignored(plan.ignored.values())
            if not plan.parts:
                return Committed(None, left, refused, refusal)
            stage.fill(plan.parts)
            if merged is not None:
                (folder / "MERGE_HEAD").write_text(f"{merged}\n", encoding="ascii")
                (folder / "MERGE_MODE").write_text("no-ff", encoding="ascii")  # though it is ahead of HEAD
            made = self._commit_fully(stage, message, author, handle)
            if made is None:
                return Committed(None, left)
            subject, wait_s = render(message).partition("\n")[0], self._settings.wait_s
            commit_id = finish_commit(stage, made, plan.parts, subject, wait_s)
            if commit_id is None:
                raise _HeadMovedError
            return Committed(commit_id, left, refused, refusal)

    def _commit_plainly(
        self, stage: Stage, planned: PlainPlan, message: Message, author: tuple[str, str] | None, handle: int
    ) -> str | None:
        """Commit without `git commit`; the id is None when there was nothing to commit."""
        text, identity = _encode(message), self._identity(author, may_sign=False)
        made = plain_commit.create(stage, planned, text, identity, self._run_patiently)
        if made is None:
            return None
        if not IndexLock(stage.repository, stage.folder).take() or self._has_moved(stage):
            raise _HeadMovedError
        try:
            subject = text.decode().partition("\n")[0]
            plain_commit.move_branch(stage, made, subject, identity, handle, self._run_patiently)
        except GitError as error:
            if self._has_moved(stage):
                raise _HeadMovedError from error
            raise
        follow_commit(stage, made, None, planned.parts, self._settings.wait_s)
        return made

    def _commit_fully(self, stage: Stage, message: Message, author: tuple[str, str] | None, handle: int) -> str | None:
        """Commit by `git commit` and return the id, which may be short; None when there was nothing to commit."""
        text, identity = _encode(message), self._identity(author, may_sign=True)
        try:
            made = commit_by_git(stage, text, identity, handle, self._run_patiently)
        except GitError as error:
            if is_refused_by_guard(stage) or self._has_moved(stage):
                raise _HeadMovedError from error
            if not stage.is_empty():
                raise
            return None
        return made or repositories.read_state(replace(self._repository, git_dir=stage.folder)).head

    def _has_moved(self, stage: Stage) -> bool:
        state = self.state()
        names = [(folder / "HEAD").read_bytes() for folder in (stage.folder, self._repository.git_dir)]
        return state.head != stage.base or state.operation is not None or names[0] != names[1]

    def _set_aside(self, stray: Path, error: GitError) -> None:
        reason = f"A commit that a killed process began could not be finished: {error}"
        transaction.set_aside(self._root, reason, leftover=stray)

    def _identity(self, author: tuple[str, str] | None, *, may_sign: bool) -> dict[str, str]:
        ours = self._settings.name, self._settings.email
        return choose_identity(self._run, ours, author, may_sign=may_sign)

    def owner(self) -> tuple[str, str] | None:
        """Return the name and e-mail address with which git commits by hand here; None where it has none."""
        return find_owner(self._run)

    def _ask_state(self, state: RepositoryState) -> RepositoryState:
        code, head = self._run("read HEAD", "rev-parse", "-q", "--verify", "HEAD", accept=(0, 1))
        _, branch = self._run("read HEAD", "symbolic-ref", "-q", "--short", "HEAD", accept=(0, 1))
        name, commit_id = branch.decode().strip() or None, None if code else head.decode().strip()
        return RepositoryState(name, commit_id, state.operation, state.locked, name is None)

    def _resolve(self, revision: str) -> str | None:
        """The commit's id; None for HEAD before the first commit."""
        commit_id = resolve(self._run, revision)
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
        _, out = self._run("read the history", "log", *shape, *options, "--", *wanted)
        return list(parse_log(out, self._repository))

    def _run(
        self, doing: str, *args: str, stdin: bytes = b"", index: Path | None = None, accept: Sequence[int] = (0,)
    ) -> tuple[int, bytes]:
        env, config = quiet_environment(self._repository.top), [*QUIET]
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
            # Half of a split index would be in the user's git directory, where the commit does not look.
            config += ["-c", "core.splitIndex=false"]
        return self._run_patiently(GitCall(doing, [*config, *args], stdin, env, accept))

    def _run_patiently(self, call: GitCall) -> tuple[int, bytes]:
        """Run git, again and again for `git.wait_s` while another program holds the lock it needs."""
        steering.check(self._repository)
        until = time.monotonic() + self._settings.wait_s
        while True:
            try:
                return run_once(call, self._repository.top)
            except LockHeldError as error:
                if time.monotonic() >= until:
                    raise LockedError(*repositories.describe_lock(error)) from None
            time.sleep(repositories.POLL_S)


def _encode(message: Message) -> bytes:
    return render(message).encode("utf-8", "replace")


class _HeadMovedError(Exception):
    """Somebody committed or switched branches while Quaid made a commit."""
