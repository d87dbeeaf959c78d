"""Branches and worktrees, the history as a whole, and which lines a person wrote."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quaid.errors import GitError
from quaid.history.authorship import Authors, LineOrigin, find_signed
from quaid.history.git import Git, split_items
from quaid.history.merges import TreeMerges
from quaid.history.messages import LOG_FORMAT, build_commit
from quaid.history.note_history import RAW, FileChange, read_log
from quaid.model import Commit


@dataclass(frozen=True, slots=True)
class VaultCommit:
    """A commit with what it changed in the vault, nothing for a merge. `written` is its committer date, `committer` an
    e-mail address.
    """

    commit: Commit
    written: datetime
    changes: tuple[FileChange, ...]
    committer: str = ""


@dataclass(frozen=True, slots=True)
class BranchHead:
    """A branch and its newest commit, made `when`. `place` is the work tree that has it checked out, empty for none."""

    name: str
    id: str
    when: datetime
    is_current: bool
    place: str


def written_by_hand(log: Iterable[VaultCommit], authors: Authors) -> frozenset[str]:
    """Return the paths in the vault that a person's commit has touched."""
    by_hand = [logged for logged in log if authors.is_by_hand(logged.commit.email)]
    return frozenset(change.path for logged in by_hand for change in logged.changes)


def made_by_hand(log: Iterable[VaultCommit], authors: Authors) -> frozenset[str]:
    """Return the paths in the vault that a person's commit has added."""
    by_hand = [logged for logged in log if authors.is_by_hand(logged.commit.email)]
    return frozenset(change.path for logged in by_hand for change in logged.changes if change.befores[0] is None)


def last_written(log: Iterable[VaultCommit]) -> dict[str, datetime]:
    """Return the time, in UTC, of the last commit that changed each file of the vault."""
    in_time = sorted(log, key=lambda logged: logged.written)
    return {change.path: logged.written for logged in in_time for change in logged.changes}


class Branches:
    """Worktrees, log and authorship of one repository; as git knows them."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._repository = git.repository

    @property
    def trees(self) -> TreeMerges:
        """What two commits make."""
        return TreeMerges(self._git)

    def add_worktree(self, folder: Path, commit_id: str) -> Path:
        """Check `commit_id` out into the new `folder`; the vault in it."""
        # --detach: the owner's list of branches stays theirs.
        self._git.run("make a worktree", "worktree", "add", "--quiet", "--detach", "--force", str(folder), commit_id)
        return folder / self._repository.prefix if self._repository.prefix else folder

    def remove_worktree(self, folder: Path) -> None:
        """Take a worktree away, whatever state it is in."""
        with suppress(GitError):
            self._git.run("remove a worktree", "worktree", "remove", "--force", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(GitError):
            self._git.run("forget worktrees", "worktree", "prune")

    def list_heads(self) -> list[BranchHead]:
        """Return the owner's branches by name."""
        fields = ("refname:lstrip=2", "objectname", "committerdate:unix", "HEAD", "worktreepath")
        shape = f"--format={'%00'.join(f'%({field})' for field in fields)}%00"
        out = self._git.read("list the branches", "for-each-ref", shape, "refs/heads")
        items = out.decode("utf-8", "surrogateescape").split("\0")
        rows = zip(*(iter(items[:-1]),) * len(fields), strict=True)
        return [
            BranchHead(
                name.removeprefix("\n"), commit_id, datetime.fromtimestamp(int(seconds), UTC), mark == "*", place
            )
            for name, commit_id, seconds, mark, place in rows
        ]

    def is_name(self, name: str) -> bool:
        """Return whether git takes `name` for a branch."""
        args = ("check-ref-format", "--branch", name)
        return not name.startswith("-") and self._git.run("check a name", *args, accept=(0, 1, 128))[0] == 0

    def create(self, name: str, commit_id: str) -> None:
        """Make a branch. GitError: there is one of that name."""
        self._git.run("make a branch", "branch", "--no-track", name, commit_id)

    def switch(self, name: str) -> None:
        """Check a branch out. GitError: a file that git does not have would be overwritten."""
        self._git.run("switch to a branch", "switch", "--quiet", "--no-guess", "--no-overwrite-ignore", name)

    def delete(self, head: BranchHead, backup: str) -> None:
        """Delete a branch that is where `head` says, and keep what it held as the ref `backup`."""
        lines = f"create {backup} {head.id}\ndelete refs/heads/{head.name} {head.id}\n"
        self._git.run("delete a branch", "update-ref", "--stdin", stdin=lines.encode("utf-8", "surrogateescape"))

    def count_apart(self, one: str, other: str) -> tuple[int, int]:
        """Return how many commits only `one` has, and how many only `other`."""
        args = ("rev-list", "--left-right", "--count", f"{one}...{other}", "--")
        first, second = self._git.read("compare two branches", *args).split()
        return int(first), int(second)

    def list_unsaved(self) -> list[str]:
        """Return what no commit has: files that differ from HEAD, and notes that are untracked, as git knows them."""
        args = ("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
        lines = split_items(self._git.read("look for changes", *args))
        return [line[3:] for line in lines if not line.startswith("??") or line.endswith(".md")]

    def reset(self, commit_id: str) -> None:
        """Set this work tree to `commit_id`; changes that are not committed are lost."""
        self._git.run("reset the worktree", "reset", "--hard", "--quiet", commit_id)

    def log(self, *which: str, path: str = "") -> list[VaultCommit]:
        """Every commit of the branch, or those that the options `which` of git log choose and that changed `path`, with
        what it changed in the vault, parents before children.

        A file that is only moved is a change whose `source` is where it was.

        Raises:
            GitError: git refused, or there is no commit yet.
        """
        inside = self._repository.is_in_vault
        files = [self._repository.to_git(path)] if path else []
        shape = (*RAW, "-M100%", "--topo-order", "--reverse", "--encoding=UTF-8", f"--format={LOG_FORMAT}%x00%ct %ce")
        return [
            VaultCommit(
                build_commit(fields[:6], self._repository, [change.path for change in changes]),
                datetime.fromtimestamp(int(fields[6].partition(" ")[0]), UTC),
                tuple(self._in_vault(change) for change in changes if inside(change.path)),
                fields[6].partition(" ")[2],
            )
            for fields, changes in read_log(self._git, *shape, *(which or ("HEAD",)), "--", *files)
        ]

    def read_commits(self, commit_ids: Iterable[str]) -> list[VaultCommit]:
        """Return these commits; the changes of a merge are what it brought to its first parent."""
        wanted = list(commit_ids)
        return self.log("--no-walk", "-m", "--first-parent", *wanted) if wanted else []

    def has(self, commit_id: str, branch: str = "HEAD") -> bool:
        """Return whether a branch has got the commit."""
        args = ("merge-base", "--is-ancestor", commit_id, branch)
        return self._git.run("look for a commit", *args, accept=(0, 1))[0] == 0

    def list_path(self, last: str, first: str | None = None) -> list[str]:
        """Return the ids of the commits from `first` (or the first of all) to `last` along first parents that changed
        the vault, and of these two in any case, oldest first.
        """
        span = [last, f"^{first}"] if first else [last]
        inside = [self._repository.prefix] if self._repository.prefix else []
        args = ("rev-list", "--first-parent", "--reverse", *span, "--", *inside)
        ids = self._git.read("read the history", *args).decode().split()
        return list(dict.fromkeys([*([first] if first else []), *ids, last]))

    def _in_vault(self, change: FileChange) -> FileChange:
        if not self._repository.prefix:
            return change
        source = change.source
        if source is not None:
            source = self._repository.to_vault(source) if self._repository.is_in_vault(source) else None
        return change._replace(path=self._repository.to_vault(change.path), source=source)

    def read_blobs(self, blob_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of each blob that the repository has, by id, in one process."""
        return self._git.read_blobs(blob_ids)

    def merge(self, current: bytes, old: bytes, new: bytes) -> bytes | None:
        """Return `current` with the change from `old` to `new` made to it; None if they collide.

        Lines that both have only added do not collide, even in one place: all of them are preserved.
        """
        is_added = all(not Counter(old.splitlines()) - Counter(text.splitlines()) for text in (current, new))
        with tempfile.TemporaryDirectory(prefix="quaid-merge-") as folder:
            paths = [Path(folder) / name for name in ("current", "old", "new")]
            for path, data in zip(paths, (current, old, new), strict=True):
                path.write_bytes(data)
            options = ("-p", "--quiet", *(["--union"] if is_added else []))
            code, merged = self._git.run("merge a note", "merge-file", *options, *map(str, paths), accept=range(256))
        return merged if code == 0 else None

    def blame(self, rel_path: str, revision: str) -> tuple[LineOrigin, ...]:
        """Return for each line of a file at `revision` who touched it last; none where there is no such file."""
        path = self._repository.to_git(rel_path)
        code, out = self._git.run(
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

    def find_signed(self, commit_ids: Iterable[str]) -> frozenset[str]:
        """Return those of these commits that somebody has signed whom the user's own git config trusts."""
        return find_signed(self._git, commit_ids)

    def human_lines(self, rel_path: str, revision: str, authors: Authors) -> frozenset[int]:
        """Return the numbers, from 1, of the lines of a file at `revision` that a person touched last."""
        lines = enumerate(self.blame(rel_path, revision), 1)
        return frozenset(number for number, line in lines if authors.is_by_hand(line.email))
