"""The vault's git history: commits that hold exactly what Quaid changed, and what later asks about them.

Every process runs in the work tree's top folder; paths go in and out vault-relative.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from quaid.errors import GitError, LockedError
from quaid.history import authorship, commit_folder, committing
from quaid.history import repository as repositories
from quaid.history.authorship import LineOrigin
from quaid.history.git import Git
from quaid.history.messages import LOG_FORMAT, build_commit, escape, on_one_line
from quaid.history.messages import grep_trailer as grep_option
from quaid.history.note_history import RAW, FileChange, Revision, find_note, matches_id, read_log, read_note_history
from quaid.history.purged import Purges
from quaid.history.remotes import Remotes
from quaid.history.repository import Repository, RepositoryState
from quaid.history.revisions import Revisions, disable_filters, list_filters
from quaid.model import NOTE_ENDINGS, Commit, Committed, Edit, Message
from quaid.settings import GitSettings
from quaid.text.words import find_words
from quaid.vault import files

ATTEMPTS = 10
"""The number of times HEAD may move under a commit before Quaid gives up."""
FAST_ATTEMPTS = 3
"""So often the user's index is locked only from the moment git has read what it commits; then from the beginning."""


@dataclass(frozen=True, slots=True)
class VaultCommit:
    """A commit with what it changed in the vault, nothing for a merge. `written` is its committer date, `committer` an
    e-mail address.
    """

    commit: Commit
    written: datetime
    changes: tuple[FileChange, ...]
    committer: str = ""


class BranchHead(NamedTuple):
    """A branch and its newest commit, made `when`. `place` is the work tree that has it checked out, empty for none."""

    name: str
    id: str
    when: datetime
    is_current: bool
    place: str


def last_written(log: Iterable[VaultCommit]) -> dict[str, datetime]:
    """Return the time, in UTC, of the last commit that changed each file of the vault."""
    in_time = sorted(log, key=lambda logged: logged.written)
    return {change.path: logged.written for logged in in_time for change in logged.changes}


class History:
    """The git side of the vault at `root`, which may be a subfolder, a linked worktree or a submodule; or of `found`, a
    repository that has no work tree to be found by.
    """

    def __init__(self, root: Path, settings: GitSettings, found: Repository | None = None) -> None:
        self._root = root
        self._settings = settings
        self._found = found

    @cached_property
    def runner(self) -> Git:
        """Runs git in the work tree. Raises GitError: there is no repository."""
        found = self._found or repositories.find_repository(self._root)
        if found is None:
            raise GitError("find a repository", f"{self._root} is in none. Make one there with: git init")
        return Git(found, self._settings.wait_s)

    @property
    def _repository(self) -> Repository:
        return self.runner.repository

    def state(self) -> RepositoryState:
        """Return the state of the repository: branch, commit, operation in progress."""
        return self.runner.read_state()

    def wait_until_ready(self, say: Callable[[str], None] | None = None) -> None:
        """Wait up to `git.wait_s` for a rebase, a merge or another program's lock to end; `say` gets the reason once.

        Raises:
            LockedError: it did not end in time. Locks of others are never removed, those of our own dead at once.
        """
        commit_folder.wait_until_ready(self._repository, self._settings.wait_s, say)
        if commit_folder.is_abandoned(self._repository):
            self.recover()

    @property
    def git_dir(self) -> Path:
        """The folder of the repository that belongs to this work tree."""
        return self._repository.git_dir

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
                    return committing.commit(self.runner, by_path, message, identity, merged, locks_first=locks_first)
            except committing.HeadMovedError:
                continue
            except GitError as error:
                raise committing.explain_refusal(error, self._repository.top) from error
        raise LockedError(f"Other commits keep arriving in {self._repository.top}")

    def adopt(self, edits: Sequence[Edit], commit_id: str) -> Committed:
        """Bring the branch to `commit_id`, which has all that it has; NotAheadError, QuaidError, LockedError."""
        self.wait_until_ready()
        self.recover()
        by_path = {self._repository.to_git(edit.rel_path): edit for edit in edits}
        with files.explaining(self._repository.top / ".git"):
            if not self.has_adopted(commit_id):
                committing.adopt(self.runner, commit_id, by_path)
        return Committed(commit_id)

    def has_adopted(self, commit_id: str, branch: str = "HEAD") -> bool:
        """Return whether a branch has this commit."""
        return self.runner.is_ancestor(commit_id, branch)

    def recover(self) -> None:
        """Finish what a killed process left half done; `commit` does it first. Else the user's index
        would lag behind Quaid's commit, and undo it with the user's next one.
        """
        with files.explaining(self._repository.top / ".git"):
            committing.recover(self.runner, self._root)

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
        return read_note_history(self.runner, rel_path, note_id) if self.state().head else []

    @property
    def boundary(self) -> frozenset[str]:
        """The commits at which a shallow clone ends; none in a whole one."""
        return repositories.read_boundary(self._repository)

    def read_at(self, revision: str, rel_path: str) -> bytes | None:
        """A file as a checkout of `revision` would have it, None if it has none."""
        commit_id = self._resolve(revision)
        if commit_id is None:
            return None
        path = self._repository.to_git(rel_path)
        version = self.runner.list_tree(commit_id, path).get(path)
        if version is None or not version.mode.startswith("100"):
            return None
        return self.runner.read("read a note", "cat-file", "--filters", f"--path={path}", version.blob)

    def list_tree(self, revision: str) -> dict[str, str]:
        """Every regular file of the vault at `revision`: its path and blob id."""
        commit_id = self._resolve(revision)
        listed = self.revisions.list_files(commit_id) if commit_id is not None else ()
        return {file.rel_path: file.blob for file in listed if file.is_regular}

    @property
    def revisions(self) -> Revisions:
        """The vault as it was at any commit."""
        return Revisions(self.runner)

    @property
    def remotes(self) -> Remotes:
        """The repositories that the history is exchanged with."""
        return Remotes(self.runner)

    @property
    def purges(self) -> Purges:
        """What was purged from the vault and must not come back."""
        return Purges(self._root, self.runner)

    def diff(self, commit_id: str) -> str:
        """Return the changes of a commit in the vault as a patch; a merge's against its first parent; or GitError."""
        args = ["show", "--format=", "-m", "--first-parent", "--no-color", "--no-ext-diff", "--no-textconv"]
        args += ["--encoding=UTF-8", *(f"--relative={prefix}" for prefix in self._repository.inside)]
        commit_id = self._resolve(commit_id) or commit_id
        out = self.runner.read("show a commit", "-c", "diff.noprefix=false", *args, commit_id)
        return out.decode("utf-8", "replace")

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

    def list_removed(self, words: Collection[str]) -> dict[str, str]:
        """Return the notes whose removal by Quaid has all `words` in its subject: id -> subject, the newest first."""
        removals = self._log(["--grep=^Quaid-Fact: ", "--diff-filter=D", "--no-renames"], (), everywhere=True)
        named = [commit for commit in removals if set(words) <= set(find_words(commit.subject))]
        return {fact_id: commit.subject for commit in named for fact_id in commit.trailers["Quaid-Fact"]}

    def has_commit(self, commit_id: str) -> bool:
        """Return True if git has this commit (it may have pruned it)."""
        return self.runner.resolve(commit_id) is not None

    def tracked_missing(self, rel_paths: Sequence[str]) -> set[str]:
        """Return those of these paths, gone from disk, that a checkout of HEAD would have; before the first one all."""
        if self.state().head is None:
            return set(rel_paths)
        return (set(rel_paths) & self.list_tree("HEAD").keys()) - self.revisions.list_left_out()

    def unstage(self, rel_path: str) -> None:
        """Remove from the user's index what is staged of a note; the file stays as it is."""
        self.runner.run("unstage a note", "reset", "--quiet", "--", self._repository.to_git(rel_path))

    def uncommitted(self) -> list[str]:
        """Paths of the notes (*.md) that are untracked or differ from HEAD, in order."""
        unfiltered = disable_filters(list_filters(self.runner))
        paths = [line[3:] for line in self.runner.list_changed(*self._repository.inside, config=unfiltered)]
        return sorted(self._repository.to_vault(path) for path in paths if path.lower().endswith(NOTE_ENDINGS))

    def owner(self) -> tuple[str, str] | None:
        """Return the name and e-mail address with which git commits by hand here; None where it has none."""
        return authorship.find_owner(self.runner)

    def _resolve(self, revision: str) -> str | None:
        """The commit's id; None for HEAD before the first commit."""
        commit_id = self.runner.resolve(revision)
        if commit_id is None and not (revision == "HEAD" and self.state().head is None):
            raise GitError(f"read {revision!r}", "there is no such revision")
        return commit_id

    def _log(self, options: Sequence[str], paths: Sequence[str], *, everywhere: bool = False) -> list[Commit]:
        if self.state().head is None:
            return []
        wanted = [self._repository.to_git(path) for path in paths] or ([] if everywhere else self._repository.inside)
        shape = (*RAW, "-E", "--encoding=UTF-8", f"--format={LOG_FORMAT}%x00")
        found: dict[str, Commit] = {}
        for fields, changes in read_log(self.runner, *shape, *options, "--", *wanted):
            # A merge comes once for each parent; the first says what it brought to this branch.
            if fields[0] not in found:
                found[fields[0]] = build_commit(fields[:6], self._repository, [change.path for change in changes])
        return list(found.values())

    # -- branches, worktrees, and who wrote what ----------------------------------------------------------------

    def add_worktree(self, folder: Path, commit_id: str) -> Path:
        """Check `commit_id` out into the new `folder`; the vault in it."""
        # --detach: the owner's list of branches stays theirs.
        self.runner.run("make a worktree", "worktree", "add", "--quiet", "--detach", "--force", str(folder), commit_id)
        return folder / self._repository.prefix if self._repository.prefix else folder

    def remove_worktree(self, folder: Path) -> None:
        """Take a worktree away, whatever state it is in."""
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(GitError):
            self.runner.run("forget worktrees", "worktree", "prune")

    def list_branches(self) -> list[BranchHead]:
        """Return the owner's branches by name."""
        fields = ("refname:lstrip=2", "objectname", "committerdate:unix", "HEAD", "worktreepath")
        shape = f"--format={'%00'.join(f'%({field})' for field in fields)}%00"
        out = self.runner.read("list the branches", "for-each-ref", shape, "refs/heads")
        items = out.decode("utf-8", "surrogateescape").split("\0")
        rows = zip(*(iter(items[:-1]),) * len(fields), strict=True)
        return [
            BranchHead(
                name.removeprefix("\n"), commit_id, datetime.fromtimestamp(int(seconds), UTC), mark == "*", place
            )
            for name, commit_id, seconds, mark, place in rows
        ]

    def count_apart(self, one: str, other: str) -> tuple[int, int]:
        """Return how many commits only `one` has, and how many only `other`."""
        args = ("rev-list", "--left-right", "--count", f"{one}...{other}", "--")
        first, second = self.runner.read("compare two branches", *args).split()
        return int(first), int(second)

    def reset(self, commit_id: str) -> None:
        """Set this work tree to `commit_id`; changes that are not committed are lost."""
        self.runner.run("reset the worktree", "reset", "--hard", "--quiet", commit_id)

    def log_changes(self, *which: str, path: str = "") -> list[VaultCommit]:
        """Every commit of the branch, or those that the options `which` of git log choose and that changed `path`, with
        what it changed in the vault, parents before children.

        A file that is only moved is a change whose `old_path` is where it was.
        """
        inside = self._repository.is_in_vault
        files = [self._repository.to_git(path)] if path else []
        shape = (*RAW, "-M100%", "--topo-order", "--reverse", "--encoding=UTF-8", f"--format={LOG_FORMAT}%x00%ct %ce")
        return [
            VaultCommit(
                build_commit(fields[:6], self._repository, [change.path for change in changes]),
                datetime.fromtimestamp(int(fields[6].partition(" ")[0]), UTC),
                tuple(
                    change._replace(
                        path=self._repository.to_vault(change.path),
                        old_path=self._repository.to_vault(old) if (old := change.old_path) and inside(old) else None,
                    )
                    for change in changes
                    if inside(change.path)
                ),
                fields[6].partition(" ")[2],
            )
            for fields, changes in read_log(self.runner, *shape, *(which or ("HEAD",)), "--", *files)
        ]

    def read_commits(self, commit_ids: Iterable[str]) -> list[VaultCommit]:
        """Return these commits; the changes of a merge are what it brought to its first parent."""
        wanted = list(commit_ids)
        return self.log_changes("--no-walk", "-m", "--first-parent", *wanted) if wanted else []

    def list_path(self, last: str, first: str | None = None) -> list[str]:
        """Return the ids of the commits from `first` (or the first of all) to `last` along first parents that changed
        the vault, and of these two in any case, oldest first.
        """
        span = [last, f"^{first}"] if first else [last]
        args = ("rev-list", "--first-parent", "--reverse", *span, "--", *self._repository.inside)
        ids = self.runner.read("read the history", *args).decode().split()
        return list(dict.fromkeys([*([first] if first else []), *ids, last]))

    def merge_text(self, current: bytes, old: bytes, new: bytes) -> bytes | None:
        """Return `current` with the change from `old` to `new` made to it; None if they collide.

        Lines that both have only added do not collide, even in one place: all of them are preserved.
        """
        is_added = all(not Counter(old.splitlines()) - Counter(text.splitlines()) for text in (current, new))
        return self.runner.merge_text(current, old, new, *(["--union"] if is_added else []))

    def blame(self, rel_path: str, revision: str) -> tuple[LineOrigin, ...]:
        """Return for each line of a file at `revision` who touched it last; none where there is no such file."""
        path = self._repository.to_git(rel_path)
        code, out = self.runner.run(
            "ask who wrote a note", "blame", "--no-textconv", "--line-porcelain", revision, "--", path, accept=(0, 128)
        )
        lines: list[LineOrigin] = []
        fields: dict[str, str] = {}
        # Only "\n" ends a line of git's, and a tab begins the line that it tells of.
        for line in out.decode("utf-8", "replace").split("\n") if code == 0 else ():
            if line.startswith("\t"):
                email = fields["author-mail"].removeprefix("<").removesuffix(">")
                lines.append(LineOrigin(fields["commit"], fields["author"], email, fields["summary"]))
            elif re.match(r"[0-9a-f]{40,64} \d+ \d+", line):
                fields = {"commit": line.split(" ")[0], "author": "", "author-mail": "", "summary": ""}
            else:
                key, _, value = line.partition(" ")
                fields[key] = value
        return tuple(lines)
