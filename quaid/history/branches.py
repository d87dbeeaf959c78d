"""Work beside the owner's branch: worktrees, the history as a whole, and which lines a person wrote."""

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
from quaid.history.authorship import Authors, LineOrigin
from quaid.history.messages import LOG_FORMAT, build_commit
from quaid.history.note_history import RAW, FileChange, read_blobs, read_log
from quaid.history.repository import Repository
from quaid.history.signatures import find_signed
from quaid.history.staging import RunGit
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


def written_by_hand(log: Iterable[VaultCommit], authors: Authors) -> frozenset[str]:
    """Paths in the vault that a commit of a person has touched."""
    by_hand = (logged for logged in log if authors.is_by_hand(logged.commit.email))
    return frozenset(change.path for logged in by_hand for change in logged.changes)


def made_by_hand(log: Iterable[VaultCommit], authors: Authors) -> frozenset[str]:
    """Paths in the vault that a commit of a person has brought."""
    return frozenset(
        change.path
        for logged in log
        if authors.is_by_hand(logged.commit.email)
        for change in logged.changes
        if change.befores[0] is None
    )


def last_written(log: Iterable[VaultCommit]) -> dict[str, datetime]:
    """Return the time, in UTC, of the last commit that changed each file of the vault."""
    in_time = sorted(log, key=lambda logged: logged.written)
    return {change.path: logged.written for logged in in_time for change in logged.changes}


class Branches:
    """Worktrees, log and authorship of one repository; git runs through a callable."""

    def __init__(self, run: RunGit, repository: Repository) -> None:
        self._run = run
        self._repository = repository

    def add_worktree(self, folder: Path, commit_id: str) -> Path:
        """Check `commit_id` out into the new `folder`; the vault in it."""
        # --detach: the owner's list of branches stays theirs.
        self._run("make a worktree", "worktree", "add", "--quiet", "--detach", "--force", str(folder), commit_id)
        return folder / self._repository.prefix if self._repository.prefix else folder

    def remove_worktree(self, folder: Path) -> None:
        """Take a worktree away, whatever state it is in."""
        with suppress(GitError):
            self._run("remove a worktree", "worktree", "remove", "--force", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(GitError):
            self._run("forget worktrees", "worktree", "prune")

    def reset(self, commit_id: str) -> None:
        """Set this work tree to `commit_id`; changes that are not committed are lost."""
        self._run("reset the worktree", "reset", "--hard", "--quiet", commit_id)

    def log(self, *which: str) -> list[VaultCommit]:
        """Every commit of the branch, or those that the options `which` of git log choose, with what it changed in the
        vault, parents before children.

        A file that is only moved is a change whose `source` is where it was.

        Raises:
            GitError: git refused, or there is no commit yet.
        """
        inside = self._repository.is_in_vault
        shape = (*RAW, "-M100%", "--topo-order", "--reverse", "--encoding=UTF-8", f"--format={LOG_FORMAT}%x00%ct %ce")
        return [
            VaultCommit(
                build_commit(fields[:6], self._repository, [change.path for change in changes]),
                datetime.fromtimestamp(int(fields[6].partition(" ")[0]), UTC),
                tuple(self._in_vault(change) for change in changes if inside(change.path)),
                fields[6].partition(" ")[2],
            )
            for fields, changes in read_log(self._run, *shape, *(which or ("HEAD",)), "--")
        ]

    def _in_vault(self, change: FileChange) -> FileChange:
        source = change.source
        if source is not None:
            source = self._repository.to_vault(source) if self._repository.is_in_vault(source) else None
        return change._replace(path=self._repository.to_vault(change.path), source=source)

    def read_blobs(self, blob_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of each blob that the repository has, by id, in one process."""
        return read_blobs(self._run, list(blob_ids))

    def merge(self, current: bytes, old: bytes, new: bytes) -> bytes | None:
        """Return `current` with the change from `old` to `new` made to it; None if they collide.

        Lines that both have only added do not collide, though they stand in one place: all of them are kept.
        """
        is_added = all(not Counter(old.splitlines()) - Counter(text.splitlines()) for text in (current, new))
        with tempfile.TemporaryDirectory(prefix="quaid-merge-") as folder:
            paths = [Path(folder) / name for name in ("current", "old", "new")]
            for path, data in zip(paths, (current, old, new), strict=True):
                path.write_bytes(data)
            options = ("-p", "--quiet", *(["--union"] if is_added else []))
            code, merged = self._run("merge a note", "merge-file", *options, *map(str, paths), accept=range(256))
        return merged if code == 0 else None

    def blame(self, rel_path: str, revision: str) -> tuple[LineOrigin, ...]:
        """Return for each line of a file at `revision` who touched it last; none where there is no such file."""
        path = self._repository.to_git(rel_path)
        code, out = self._run(
            "ask who wrote a note", "blame", "--no-textconv", "--line-porcelain", revision, "--", path, accept=(0, 128)
        )
        lines: list[LineOrigin] = []
        told: dict[str, str] = {}
        # Only "\n" ends a line of git's, and a tab begins the line that it tells of.
        for line in out.decode("utf-8", "replace").split("\n") if code == 0 else ():
            if line.startswith("\t"):
                email = told["author-mail"].removeprefix("<").removesuffix(">")
                lines.append(LineOrigin(told["commit"], told["author"], email, told["summary"]))
            elif re.match(r"[0-9a-f]{40,64} \d+ \d+", line):
                told = {"commit": line.split(" ")[0], "author": "", "author-mail": "", "summary": ""}
            else:
                key, _, value = line.partition(" ")
                told[key] = value
        return tuple(lines)

    def find_signed(self, commit_ids: Iterable[str]) -> frozenset[str]:
        """Return those of these commits that somebody has signed whom the user's own git config trusts."""
        return find_signed(self._run, commit_ids)

    def human_lines(self, rel_path: str, revision: str, authors: Authors) -> frozenset[int]:
        """Return the numbers, from 1, of the lines of a file at `revision` that a person touched last."""
        lines = enumerate(self.blame(rel_path, revision), 1)
        return frozenset(number for number, line in lines if authors.is_by_hand(line.email))
