"""git as a process: the only module that imports GitPython. The inherited GIT_* variables are taken away, messages are
English, and what it says when it refuses becomes one of Quaid's errors.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quaid.errors import DiskFullError, GitError, GitMissingError, QuaidError
from quaid.vault import repository as repositories

_DISK_FULL = re.compile(r"No space left on device|Out of diskspace")
_LOCK_HELD = re.compile(r"Unable to create '(.+\.lock)': File exists")


@dataclass(frozen=True)
class Call:
    """One git process; exit codes that are not in `accept` are errors. It inherits `handles`."""

    doing: str
    args: Sequence[str]
    stdin: bytes
    env: Mapping[str, str]
    accept: Sequence[int] = (0,)
    handles: Sequence[int] = ()


class LockHeldError(Exception):
    """Another git process holds the lock file it names."""


def run_once(call: Call, top: Path) -> tuple[int, bytes]:
    # By -C: where GitPython cannot enter the working folder it is given, it quietly runs git in another.
    code, out, said = execute(["-C", str(top), *call.args], call.stdin, call.env, call.handles)
    if code in call.accept:
        return code, out
    held = _LOCK_HELD.search(said)
    raise LockHeldError(held[1]) if held else explain(call.doing, said, top)


def execute(
    args: Sequence[str], stdin: bytes, env: Mapping[str, str], handles: Sequence[int] = ()
) -> tuple[int, bytes, str]:
    """Run git to its end: exit code, stdout, stderr."""
    try:
        from git.cmd import Git
        from git.exc import GitCommandNotFound
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        # GitPython asks git for its version when it is imported.
        raise GitMissingError from error
    # GitPython adds to the inherited environment but cannot take away from it.
    inherited = [name for name in os.environ.keys() - env.keys() if repositories.is_stripped(name)]
    clean = ["env", *(f"-u{name}" for name in inherited)] if inherited else []
    command = [*clean, str(Git.GIT_PYTHON_GIT_EXECUTABLE or "git"), *args]
    try:
        process = Git().execute(
            command, istream=subprocess.PIPE, as_process=True, env=dict(env), pass_fds=tuple(handles)
        )
    except GitCommandNotFound as error:
        raise GitMissingError from error
    out, err = process.communicate(stdin)
    said = err.decode("utf-8", "replace")
    if clean and process.returncode == 127 and said.startswith("env:"):
        raise GitMissingError
    return process.returncode, out, said


def explain(doing: str, said: str, top: Path) -> QuaidError:
    return DiskFullError(top) if _DISK_FULL.search(said) else GitError(doing, said)


def user_locale() -> dict[str, str]:
    """The user's own language again, for the hooks; an empty value counts as none."""
    return {name: os.environ.get(name, "") for name in ("LC_ALL", "LANGUAGE")}
