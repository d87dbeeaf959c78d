"""Work beside the owner's branch: worktrees, what commits undo, and which lines a person wrote."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from quaid.errors import GitError
from quaid.model import Commit
from quaid.vault.messages import LOG_FORMAT, parse_log
from quaid.vault.repository import Repository
from quaid.vault.staging import RunGit

_REVERTED = re.compile(r"This reverts commit ([0-9a-f]{7,64})", re.IGNORECASE)
_SHAPE = ("-z", "-E", "--name-only", "--no-color", "--encoding=UTF-8", f"--format={LOG_FORMAT}")
REVERTS, VETO = "Quaid-Reverts", "Quaid-Veto"


class Branches:
    """Of one repository; git runs through a callable."""

    def __init__(self, run: RunGit, repository: Repository) -> None:
        self._run = run
        self._repository = repository

    def add_worktree(self, folder: Path, commit_id: str) -> Path:
        """Check `commit_id` out into the new `folder`; the vault in it."""
        # --detach: no branch of ours is in the owner's list of branches.
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
        """Have this work tree as it is at `commit_id`, and nothing else in it."""
        self._run("reset the worktree", "reset", "--hard", "--quiet", commit_id)

    def changed_by(self, commit_id: str) -> list[str]:
        """Paths in the vault that a commit changed; of a merge those that it brought to its first parent."""
        args = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", f"{commit_id}^1", commit_id)
        _, out = self._run("read a commit", *args)
        paths = [path for path in out.decode("utf-8", "surrogateescape").split("\0") if path]
        return [self._repository.to_vault(path) for path in paths if self._repository.is_in_vault(path)]

    def undone(self, own: Collection[str], limit: int = 500) -> list[tuple[Commit, tuple[str, ...]]]:
        """The newest commits that undo others, newest first, each with the ids of those as far as it names them.

        In commits of the e-mail addresses `own` only trailers count: their bodies quote what a memory says, which may
        be `This reverts commit …`.
        """
        grep = ("--grep=This reverts commit", f"--grep=^{REVERTS}: ", f"--grep=^{VETO}: ")
        args = ("log", *_SHAPE, f"-n{limit}", *grep)
        code, out = self._run("read the history", *args, accept=(0, 128))
        commits = parse_log(out, self._repository) if code == 0 else ()
        return [
            (commit, commit.trailers.get(REVERTS, ()) if commit.email in own else tuple(_REVERTED.findall(commit.body)))
            for commit in commits
        ]

    def contents(self, commit_id: str) -> list[Commit]:
        """The commit itself; of a merge those that it brought."""
        code, out = self._run("read a commit", "rev-parse", "--verify", "-q", f"{commit_id}^2", accept=(0, 1, 128))
        span = [f"{commit_id}^1..{commit_id}^2"] if code == 0 and out.strip() else ["-n1", commit_id]
        args = ("log", *_SHAPE, *span)
        code, out = self._run("read the history", *args, accept=(0, 128))
        return list(parse_log(out, self._repository)) if code == 0 else []

    def written_by_others(self, own: Collection[str]) -> frozenset[str]:
        """Paths in the vault that a commit of somebody else than the e-mail addresses `own` has touched."""
        return frozenset(path for email, path in self._touched("%ae") if email not in own)

    def last_written(self) -> dict[str, datetime]:
        """When each file of the vault was last changed by a commit, in UTC."""
        found: dict[str, datetime] = {}
        for seconds, path in self._touched("%ct"):  # newest first
            found.setdefault(path, datetime.fromtimestamp(int(seconds), UTC))
        return found

    def _touched(self, of: str) -> Iterator[tuple[str, str]]:
        """(what git's format `of` gives, path in the vault) for each file of each commit, the newest first."""
        args = ("log", "-z", "--no-merges", "--no-renames", "--name-only", f"--format=/{of}")
        code, out = self._run("read the history", *args, accept=(0, 128))
        told = ""
        for item in out.decode("utf-8", "surrogateescape").split("\0") if code == 0 else ():
            for word in item.split("\n"):
                if word.startswith("/"):
                    told = word[1:]
                elif word and self._repository.is_in_vault(word):
                    yield told, self._repository.to_vault(word)

    def human_lines(self, rel_path: str, revision: str, own: Collection[str]) -> frozenset[int]:
        """Numbers, from 1, of the lines of a file at `revision` that somebody else than `own` touched last."""
        path = self._repository.to_git(rel_path)
        code, out = self._run(
            "ask who wrote a note", "blame", "--no-textconv", "--line-porcelain", revision, "--", path, accept=(0, 128)
        )
        lines: set[int] = set()
        number = 0
        for line in out.decode("utf-8", "replace").split("\n") if code == 0 else ():
            if re.match(r"[0-9a-f]{40,64} \d+ \d+", line):
                number = int(line.split(" ")[2])
            elif line.startswith("author-mail ") and line.removeprefix("author-mail ").strip("<>") not in own:
                lines.add(number)
        return frozenset(lines)
