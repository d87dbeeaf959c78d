"""A repository without a work tree, as a server keeps one: what its commits hold is read, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quaid.history.git_process import QUIET, GitCall, quiet_environment, run_once
from quaid.history.repository import Repository
from quaid.history.revisions import Revisions


def open_revisions(git_dir: Path) -> Revisions:
    """Return the revisions of the bare repository at `git_dir`; nothing that it configures is run."""

    def run(
        doing: str, *args: str, stdin: bytes = b"", index: Path | None = None, accept: Sequence[int] = (0,)
    ) -> tuple[int, bytes]:
        assert index is None, "there is nothing to stage in a bare repository"
        environment = {name: value for name, value in quiet_environment(git_dir).items() if name != "GIT_WORK_TREE"}
        call = GitCall(doing, [*QUIET, *args], stdin, {**environment, "GIT_DIR": str(git_dir)}, accept)
        return run_once(call, git_dir)

    return Revisions(run, Repository(git_dir, git_dir, git_dir, ""))
