"""git over the network: to one address, by its protocol alone, never asking anybody, in limited time.

Nothing else of Quaid lets git reach another machine (git_process.py forbids every protocol). What comes is checked by
git as it comes, and stays in its objects: no hook, submodule, filter or command of the other side has a part in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from quaid.errors import GitError, QuaidError
from quaid.history.addresses import hide_password, hide_passwords, protocol_of
from quaid.history.git import QUIET, WITH_HOOKS, execute_in_time, explain, quiet_environment

Progress = Callable[[str, int, int], None]

_FSCK_ERRORS = ("hasDot", "hasDotdot", "hasDotgit", "emptyName", "fullPathname", "nullSha1", "gitmodulesUrl")
"""Faults of objects that git only warns of unless told."""
_LISTENING = (
    *("-c", "fetch.fsckObjects=true", "-c", "transfer.fsckObjects=true", "-c", "fetch.recurseSubmodules=false"),
    *(word for fault in _FSCK_ERRORS for word in ("-c", f"fetch.fsck.{fault}=error")),
)
_NO_PROMPT = (
    *("-c", "core.askPass=", "-c", "http.followRedirects=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "credential.interactive=false"),
)
# The commands that answer in a folder of this machine. Whoever made it may have configured what they run.
_UNCONFIGURED = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c core.fsmonitor=false -c receive.autogc=false"
)
_UNREACHABLE = re.compile(
    r"Could not resolve host|Couldn't connect|Failed to connect|Connection (?:refused|timed out|reset|closed)"
    r"|Network is unreachable|No route to host|Operation timed out|Temporary failure in name resolution"
    r"|unable to look up|Host is down|The requested URL returned error: 5\d\d|Empty reply|early EOF"
    r"|does not appear to be a git repository"
    r"|repository '[^']*' does not exist|Recv failure|Send failure|Could not read from remote repository",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"Permission denied|Authentication failed|could not read (?:Username|Password)|returned error: 40[13]"
    r"|Host key verification failed|terminal prompts disabled",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"^!\t\S+\t\[(?:rejected|remote rejected)\] \((.*)\)$", re.MULTILINE)
_RACED = re.compile(r"fetch first|non-fast-forward|cannot lock ref|stale info|failed to update ref|incorrect old value")
_NO_SUCH_REF = "couldn't find remote ref"
_PERCENT = re.compile(r"(Counting objects|Receiving objects|Resolving deltas|Writing objects): +\d+% \((\d+)/(\d+)\)")
_ADVICE = ("hint:", "remote: hint:")


class RemoteUnreachableError(QuaidError):
    """Nobody answers at the address: normal for a machine that is offline."""

    exit_code = 75
    code = "remote_unreachable"

    def __init__(self, address: str, said: str) -> None:
        super().__init__(
            f"{hide_password(address)} could not be reached ({_one_line(said)}): nothing was changed. "
            "Your notes are safe here; try again when it answers."
        )


class RemoteRefusedError(QuaidError):
    """The other side answers and says no."""

    code = "remote_refused"

    def __init__(self, address: str, said: str, next_step: str) -> None:
        super().__init__(f"{hide_password(address)} refused ({_one_line(said)}): nothing was changed. {next_step}")


class Pushed(Enum):
    """What became of a push."""

    DONE = "the other side has it"
    BEHIND = "the other side has commits that this one has not"


@dataclass(frozen=True)
class Line:
    """A line to the repository at `address`, from the work tree at `top`, or from a bare repository. `timeout_s` bounds
    each call, `max_bytes` what comes in one.
    """

    top: Path
    address: str
    timeout_s: float
    progress: Progress = lambda _what, _done, _total: None
    max_bytes: int | None = None

    def look(self, ref: str) -> str | None:
        """Return the commit that the other side's `ref` is at, None if it is not there. Nothing is fetched.

        Raises:
            RemoteUnreachableError, RemoteRefusedError: nobody said.
        """
        local = [f"--upload-pack={_UNCONFIGURED} upload-pack"] if self._is_folder else []
        code, out, said = self._run([*QUIET, *_NO_PROMPT, "ls-remote", *local, "--", self.address, ref])
        if code:
            raise self._explain("ask the remote", said)
        found = (line.split("\t") for line in out.decode("utf-8", "replace").splitlines())
        return next((commit for commit, name in found if name == ref), None)

    def fetch(self, refspecs: Sequence[str]) -> bool:
        """Fetch these refs and what they need; False if the first of them is not there.

        Raises:
            RemoteUnreachableError, RemoteRefusedError: nothing was fetched.
        """
        local = [f"--upload-pack={_UNCONFIGURED} upload-pack"] if self._is_folder else []
        args = ("fetch", "--progress", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap=")
        code, _, said = self._run([*QUIET, *_LISTENING, *_NO_PROMPT, *args, *local, "--", self.address, *refspecs])
        if code and _NO_SUCH_REF in said:
            return False
        if code:
            raise self._explain("fetch from the remote", said)
        return True

    def push(self, commit: str, ref: str) -> Pushed:
        """Make the other side's `ref` be at `commit`, only if that leaves none of its commits behind.

        The owner's pre-push hook runs.

        Raises:
            RemoteUnreachableError, RemoteRefusedError: nothing was pushed.
        """
        local = [f"--receive-pack={_UNCONFIGURED} receive-pack"] if self._is_folder else []
        args = ("push", "--porcelain", "--progress", "--no-follow-tags", "--recurse-submodules=no", "--no-signed")
        command = [*WITH_HOOKS, *_NO_PROMPT, *args, *local, "--", self.address, f"{commit}:{ref}"]
        code, out, said = self._run(command)
        if code == 0:
            return Pushed.DONE
        rejected = _BEHIND.search(out.decode("utf-8", "replace"))
        if rejected and _RACED.search(rejected[1]):
            return Pushed.BEHIND
        if rejected:
            raise RemoteRefusedError(self.address, f"{rejected[1]}: {said}", "Settle that there, then: quaid push")
        raise self._explain("push to the remote", said)

    @property
    def _is_folder(self) -> bool:
        return protocol_of(self.address) == "file"

    def _run(self, args: Sequence[str]) -> tuple[int, bytes, str]:
        env = {
            **quiet_environment(self.top),
            "GIT_ALLOW_PROTOCOL": protocol_of(self.address),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GCM_INTERACTIVE": "never",
        }
        try:
            return execute_in_time(["-C", str(self.top), *args], env, self.timeout_s, self._hear, self.max_bytes)
        except TimeoutError as error:
            said = f"it did not end within {self.timeout_s:g} s, which git.timeout_s sets"
            raise RemoteUnreachableError(self.address, said) from error

    def _hear(self, said: str) -> None:
        for what, done, total in _PERCENT.findall(said)[-1:]:
            self.progress(what, int(done), int(total))

    def _explain(self, doing: str, said: str) -> QuaidError:
        if _DENIED.search(said):
            step = "Nobody is asked for passwords: give git a key or a credential helper, try with git, then again."
            return RemoteRefusedError(self.address, said, step)
        if _UNREACHABLE.search(said):
            return RemoteUnreachableError(self.address, said)
        error = explain(doing, _one_line(said), self.top)
        return error if not isinstance(error, GitError) else GitError(doing, hide_passwords(_one_line(said)))


def _one_line(said: str) -> str:
    """The last of what git said that is neither advice nor progress, in one line of bearable length."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", hide_passwords(said)) if line.strip()]
    kept = [line for line in lines if not line.startswith(_ADVICE) and not _PERCENT.search(line)]
    return " ".join(kept)[:400] or "it gave no reason"
