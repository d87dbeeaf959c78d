"""git as a process. The inherited GIT_* variables are taken away, messages are English, and what it says when it
refuses becomes one of Quaid's errors.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quaid.errors import DiskFullError, GitError, GitMissingError, QuaidError
from quaid.history import repository as repositories
from quaid.history.repository import Repository

QUIET = (
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false", "-c", "log.mailmap=false", "-c", "log.follow=false"),
    *("-c", "diff.submodule=short", "-c", f"diff.orderFile={os.devnull}", "-c", "submodule.recurse=false"),
)
"""With these, and in a `quiet_environment`, git runs nothing that the repository configures: what it may run besides
are the filters of files that it reads or writes (filters.py), and programs that turn files into text (`--no-textconv`).
"""
_ENGLISH = {"LC_ALL": "C", "LANGUAGE": "C"}
_DISK_FULL = re.compile(r"No space left on device|Out of diskspace")
_LOCK_HELD = re.compile(r"Unable to create '(.+\.lock)': File exists")


@dataclass(frozen=True)
class GitCall:
    """One git process; exit codes that are not in `accept` are errors. It inherits `handles`."""

    doing: str
    args: Sequence[str]
    stdin: bytes
    env: Mapping[str, str]
    accept: Sequence[int] = (0,)
    handles: Sequence[int] = ()


class LockHeldError(Exception):
    """Another git process holds the lock file it names."""


def quiet_environment(top: Path) -> dict[str, str]:
    """Return the environment that goes with `QUIET` for the work tree at `top`."""
    return {
        "GIT_OPTIONAL_LOCKS": "0",  # a mere status must not hold a lock that the user's rebase stumbles over
        "GIT_WORK_TREE": str(top),  # core.worktree may name any folder
        # What a clone left out would be fetched in the midst of anything, by a command that its config names. Before
        # git 2.45 only the second one helps.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        # Both have another history read than the one that the commits' ids vouch for.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
    }


def run_once(call: GitCall, top: Path) -> tuple[int, bytes]:
    code, out, stderr = execute(["-C", str(top), *call.args], call.stdin, call.env, call.handles)
    if code in call.accept:
        return code, out
    held = _LOCK_HELD.search(stderr)
    raise LockHeldError(held[1]) if held else explain(call.doing, stderr, top)


def execute(
    args: Sequence[str], stdin: bytes, env: Mapping[str, str], handles: Sequence[int] = ()
) -> tuple[int, bytes, str]:
    """Run git to its end: exit code, stdout, stderr.

    Raises:
        GitMissingError: there is none.
    """
    inherited = {name: value for name, value in os.environ.items() if not repositories.is_stripped(name)}
    environment = {**inherited, **_ENGLISH, **env}
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            ["git", *args], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, pass_fds=handles
        )
    except FileNotFoundError as error:
        raise GitMissingError from error
    try:
        out, err = process.communicate(stdin)
    except BaseException:
        process.terminate()  # killed, it would leave its locks behind
        raise
    return process.returncode, out, err.decode("utf-8", "replace")


def ask(repository: Repository, args: Sequence[str], stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Run git in a repository without anything that it configures: exit code, stdout, stderr."""
    repositories.check_files(repository)
    return execute(["-C", str(repository.top), *QUIET, *args], stdin, quiet_environment(repository.top))


def explain(doing: str, stderr: str, top: Path) -> QuaidError:
    return DiskFullError(top) if _DISK_FULL.search(stderr) else GitError(doing, stderr)


def user_locale() -> dict[str, str]:
    """The user's own language again, for the hooks; an empty value counts as none."""
    return {name: os.environ.get(name, "") for name in ("LC_ALL", "LANGUAGE")}
