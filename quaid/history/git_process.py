"""git as a process: the only module that imports GitPython. The inherited GIT_* variables are taken away, messages are
English, and what it says when it refuses becomes one of Quaid's errors.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quaid.errors import DiskFullError, GitError, GitMissingError, QuaidError
from quaid.history import steering
from quaid.history.repository import Repository

WITH_HOOKS = (
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false", "-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false", "-c", "log.mailmap=false", "-c", "log.follow=false"),
    *("-c", "diff.submodule=short", "-c", f"diff.orderFile={os.devnull}", "-c", "submodule.recurse=false"),
)
QUIET = (*WITH_HOOKS, "-c", f"core.hooksPath={os.devnull}")
"""With these, and in a `quiet_environment`, git runs nothing that the repository configures: what it may run besides
are the filters of files that it reads or writes (filters.py), and programs that turn files into text (`--no-textconv`).
"""
_DISK_FULL = re.compile(r"No space left on device|Out of diskspace")
_LEFT_OUT = re.compile(r"lazy fetching disabled|from promisor remote")
_LOCK_HELD = re.compile(r"Unable to create '(.+\.lock)': File exists")
# Git exports GIT_DIR, GIT_INDEX_FILE, GIT_WORK_TREE and more to the hooks it runs, and Quaid is run from hooks: kept,
# they would turn every call here towards the repository of that hook (https://github.com/pre-commit/pre-commit/issues/300).
# Only what says how to reach, trust or trace, never what says where, is let through.
_KEPT_VARIABLES = re.compile(
    r"GIT_(EXEC_PATH|SSH|SSH_COMMAND|SSH_VARIANT|SSL_.*|ASKPASS|TERMINAL_PROMPT|ALLOW_PROTOCOL|HTTP_.*|PROXY_.*|TRACE.*"
    r"|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM|CONFIG_COUNT|CONFIG_KEY_\d+|CONFIG_VALUE_\d+|PYTHON_.*)"
)


@dataclass(frozen=True)
class GitCall:
    """One git process; exit codes that are not in `accept` are errors. It inherits `handles`."""

    doing: str
    args: Sequence[str]
    stdin: bytes
    env: Mapping[str, str]
    accept: Sequence[int] = (0,)
    handles: Sequence[int] = ()


@dataclass(frozen=True)
class TimeLimit:
    """The seconds after which a git process is ended; `hear` is given what it says on stderr meanwhile. A file that it
    writes may have `max_file_bytes`, where the system bounds that (Linux).
    """

    seconds: float
    hear: Callable[[str], None] = lambda _: None
    max_file_bytes: int | None = None


RunCall = Callable[[GitCall], tuple[int, bytes]]
"""Runs git and returns (exit code, stdout)."""


class LockHeldError(Exception):
    """Another git process holds the lock file it names."""


class LeftOutError(GitError):
    """A partial clone has left out what git was to read, and Quaid fetches nothing unasked."""

    def __init__(self, doing: str) -> None:
        step = "Fetch all of them with: git fetch --refetch --no-filter"
        super().__init__(doing, f"this partial clone has left out old versions. {step}")


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
    # By -C: where GitPython cannot enter the working folder it is given, it quietly runs git in another.
    code, out, stderr = execute(["-C", str(top), *call.args], call.stdin, call.env, call.handles)
    if code in call.accept:
        return code, out
    held = _LOCK_HELD.search(stderr)
    raise LockHeldError(held[1]) if held else explain(call.doing, stderr, top)


def execute(
    args: Sequence[str],
    stdin: bytes,
    env: Mapping[str, str],
    handles: Sequence[int] = (),
    limit: TimeLimit | None = None,
) -> tuple[int, bytes, str]:
    """Run git to its end: exit code, stdout, stderr.

    Raises:
        TimeoutError: it took longer than `limit`, and was ended.
    """
    process = _start(args, env, handles, own_session=limit is not None)
    if limit is not None and limit.max_file_bytes is not None:
        import resource

        if prlimit := getattr(resource, "prlimit", None):
            with suppress(ProcessLookupError, PermissionError):  # of the process, and of all that it will start
                prlimit(process.pid, resource.RLIMIT_FSIZE, (limit.max_file_bytes, limit.max_file_bytes))
    out, err = process.communicate(stdin) if limit is None else _communicate_in_time(process.proc, limit)
    stderr = err.decode("utf-8", "replace")
    if process.returncode == 127 and stderr.startswith("env:"):
        raise GitMissingError
    return process.returncode, out, stderr


@contextmanager
def streaming(repository: Repository, args: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A git process, as `subprocess` has them, that runs as in `ask` and is read while it runs; it ends with the block.
    `env` is added to its environment.

    Raises:
        GitError: it failed.
    """
    steering.check(repository)
    # GitPython ends a process of its own when the last name for it goes.
    started = _start(
        ["-C", str(repository.top), *QUIET, *args], {**quiet_environment(repository.top), **(env or {})}, ()
    )
    process = started.proc
    try:
        yield process
        process.stdin.close()
        said = process.stderr.read().decode("utf-8", "replace")
        if process.wait():
            raise explain(f"run {args[0]}", said, repository.top)
    finally:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):
                stream.close()
        process.wait()


def _start(args: Sequence[str], env: Mapping[str, str], handles: Sequence[int], *, own_session: bool = False) -> Any:
    try:
        from git.cmd import Git
        from git.exc import GitCommandNotFound
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        # GitPython asks git for its version when it is imported, and takes any trouble for a missing git.
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise GitMissingError from error
    # GitPython adds to the inherited environment but cannot take away from it.
    given = (name for name in os.environ.keys() - env.keys() if name.startswith("GIT_"))
    inherited = [name for name in given if not _KEPT_VARIABLES.fullmatch(name)]
    clean = ["env", *(f"-u{name}" for name in inherited)] if inherited else []
    command = [*clean, str(Git.GIT_PYTHON_GIT_EXECUTABLE or "git"), *args]
    try:
        return Git().execute(
            command,
            istream=subprocess.PIPE,
            as_process=True,
            env=dict(env),
            pass_fds=tuple(handles),
            start_new_session=own_session,
        )
    except GitCommandNotFound as error:
        raise GitMissingError from error


def _communicate_in_time(process: Any, limit: TimeLimit) -> tuple[bytes, bytes]:
    """Return stdout and stderr of a process that leads a session of its own: it has no terminal to ask at, and can be
    ended with all that it has started.
    """
    said: list[bytes] = []
    stderr, process.stderr = process.stderr, None  # which `communicate` would read as well

    def listen() -> None:
        while part := stderr.read1(4096):
            said.append(part)
            limit.hear(part.decode("utf-8", "replace"))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    out = None
    try:
        out, _ = process.communicate(timeout=limit.seconds)
        listener.join(1.0)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if out is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return out, b"".join(said)


def ask(repository: Repository, args: Sequence[str], stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Run git in a repository without anything that it configures: exit code, stdout, stderr."""
    steering.check(repository)
    return execute(["-C", str(repository.top), *QUIET, *args], stdin, quiet_environment(repository.top))


def run(repository: Repository, doing: str, *args: str, stdin: bytes = b"") -> bytes:
    """Run git as `ask` does and return what it prints.

    Raises:
        GitError, DiskFullError: git refused, or has no room.
    """
    code, out, stderr = ask(repository, args, stdin)
    if code:
        raise explain(doing, stderr, repository.top)
    return out


def explain(doing: str, stderr: str, top: Path) -> QuaidError:
    if _LEFT_OUT.search(stderr):
        return LeftOutError(doing)
    return DiskFullError(top) if _DISK_FULL.search(stderr) else GitError(doing, stderr)
