"""The repositories that a vault's history is exchanged with: how git reaches them, and the refs that say what they had
when they were last queried.

Nothing else of Quaid lets git reach another machine (git.py forbids every protocol): to one address, by its protocol
alone, without any prompt, in limited time. What comes is checked by git as it comes, and stays in its objects: no hook,
submodule, filter or command of the other side takes part.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quaid.errors import BadInputError, GitError, QuaidError
from quaid.history.addresses import hide_password, hide_passwords, protocol_of
from quaid.history.authorship import QUAID
from quaid.history.git import PROGRESS, QUIET, WITH_HOOKS, Git, Progress, execute_in_time, explain, quiet_environment
from quaid.history.repository import MERGED

_FSCK_ERRORS = ("hasDot", "hasDotdot", "hasDotgit", "emptyName", "fullPathname", "nullSha1", "gitmodulesUrl")
"""Faults of objects that git by default only warns of."""
_LISTENING = (
    *("-c", "fetch.fsckObjects=true", "-c", "transfer.fsckObjects=true", "-c", "fetch.recurseSubmodules=false"),
    *(word for fault in _FSCK_ERRORS for word in ("-c", f"fetch.fsck.{fault}=error")),
)
_NO_PROMPT = (
    *("-c", "core.askPass=", "-c", "http.followRedirects=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "credential.interactive=false"),
)
# The commands that answer in a folder of this machine. Its owner may have configured what they run.
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
_ADVICE = ("hint:", "remote: hint:")


class RemoteUnreachableError(QuaidError):
    """Nobody answers at the address: normal for a machine that is offline."""

    exit_code = 75
    code = "remote_unreachable"

    def __init__(self, address: str, stderr: str) -> None:
        super().__init__(
            f"{hide_password(address)} could not be reached ({_one_line(stderr)}): nothing was changed. "
            "Your notes are safe here; try again when it answers."
        )


class RemoteRefusedError(QuaidError):
    """The other side answers and says no."""

    code = "remote_refused"

    def __init__(self, address: str, stderr: str, next_step: str) -> None:
        super().__init__(f"{hide_password(address)} refused ({_one_line(stderr)}): nothing was changed. {next_step}")


class Line(NamedTuple):
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
            RemoteUnreachableError, RemoteRefusedError: there was no answer.
        """
        code, out, stderr = self._run("upload-pack", [*QUIET, *_NO_PROMPT, "ls-remote"], ref)
        if code:
            raise self._explain("ask the remote", stderr)
        found = (line.split("\t") for line in out.decode("utf-8", "replace").splitlines())
        return next((commit for commit, name in found if name == ref), None)

    def fetch(self, refspecs: Sequence[str]) -> bool:
        """Fetch these refs and what they need; False if the first of them is not there.

        Raises:
            RemoteUnreachableError, RemoteRefusedError: nothing was fetched.
        """
        args = ("fetch", "--progress", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap=")
        code, _, stderr = self._run("upload-pack", [*QUIET, *_LISTENING, *_NO_PROMPT, *args], *refspecs)
        if code and _NO_SUCH_REF in stderr:
            return False
        if code:
            raise self._explain("fetch from the remote", stderr)
        return True

    def push(self, commit: str, ref: str) -> bool:
        """Make the other side's `ref` be at `commit`; False, and nothing is pushed, if it has commits that `commit` has
        not. The owner's pre-push hook runs.

        Raises:
            RemoteUnreachableError, RemoteRefusedError: nothing was pushed.
        """
        args = ("push", "--porcelain", "--progress", "--no-follow-tags", "--recurse-submodules=no", "--no-signed")
        code, out, stderr = self._run("receive-pack", [*WITH_HOOKS, *_NO_PROMPT, *args], f"{commit}:{ref}")
        if code == 0:
            return True
        rejected = _BEHIND.search(out.decode("utf-8", "replace"))
        if rejected and _RACED.search(rejected[1]):
            return False
        if rejected:
            raise RemoteRefusedError(self.address, f"{rejected[1]}: {stderr}", "Settle that there, then: quaid push")
        raise self._explain("push to the remote", stderr)

    def _run(self, program: str, command: Sequence[str], *refs: str) -> tuple[int, bytes, str]:
        """Run a command about `refs`, which `program` answers on the other side."""
        protocol = protocol_of(self.address)
        local = [f"--{program}={_UNCONFIGURED} {program}"] if protocol == "file" else []
        args = ["-C", str(self.top), *command, *local, "--", self.address, *refs]
        env = {
            **quiet_environment(self.top),
            "GIT_ALLOW_PROTOCOL": protocol,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "GCM_INTERACTIVE": "never",
        }
        try:
            return execute_in_time(args, env, self.timeout_s, self.progress, self.max_bytes)
        except TimeoutError as error:
            stderr = f"it did not end within {self.timeout_s:g} s, which git.timeout_s sets"
            raise RemoteUnreachableError(self.address, stderr) from error

    def _explain(self, doing: str, stderr: str) -> QuaidError:
        if _DENIED.search(stderr):
            step = "Nobody is asked for passwords: give git a key or a credential helper, try with git, then again."
            return RemoteRefusedError(self.address, stderr, step)
        if _UNREACHABLE.search(stderr):
            return RemoteUnreachableError(self.address, stderr)
        error = explain(doing, _one_line(stderr), self.top)
        return error if not isinstance(error, GitError) else GitError(doing, hide_passwords(_one_line(stderr)))


def _one_line(stderr: str) -> str:
    """Return the last of git's output that is neither advice nor progress, in one line of limited length."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", hide_passwords(stderr)) if line.strip()]
    shown = [line for line in lines if not line.startswith(_ADVICE) and not PROGRESS.search(line)]
    return " ".join(shown)[:400] or "it gave no reason"


FETCHED = "refs/quaid/fetched"
"""What a remote had when it was last asked, looked at or not."""
BACKUPS = "refs/quaid/backup"
LEASES = "refs/quaid/lease"
"""Here and on the other side: who does what only one machine does."""
LEASE = f"{LEASES}/janitor"
MAX_BACKUPS = 50
MAX_LEASE_BYTES = 2_000
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,60}")


class Remote(NamedTuple):
    """A remote of .git/config: where it is fetched from and pushed to after all rewriting."""

    name: str
    address: str
    push_address: str

    @property
    def shown(self) -> str:
        """The address for people, without a password."""
        pushed = hide_password(self.push_address)
        shown = hide_password(self.address)
        return shown if shown == pushed else f"{shown} (pushed to {pushed})"


class Remotes:
    """The remotes of one repository."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._repository = git.repository

    def check_whole(self) -> None:
        """Refuse a vault that is a part of a larger repository, all of which would be exchanged, by a BadInputError."""
        if self._repository.prefix:
            raise BadInputError(
                f"The vault is only a part of the repository {self._repository.top}, all of which would be sent. "
                "Push and pull that with git."
            )

    def list_all(self) -> list[Remote]:
        """Return the remotes of .git/config, by name."""
        return [self.read(name) for name in self._git.read("list the remotes", "remote").decode().split()]

    def read(self, name: str) -> Remote:
        """Return a remote. Raises BadInputError: there is none, or Quaid does not speak its protocol."""
        code, out = self._git.run("read a remote", "remote", "get-url", "--", name, accept=(0, 2, 128))
        if code:
            raise BadInputError(f"There is no remote {name!r}. Add one with: quaid remote add URL")
        address = out.decode("utf-8", "replace").strip()
        pushed = self._git.read_text("read a remote", "remote", "get-url", "--push", "--", name)
        for each in (address, pushed):
            protocol_of(each)
        return Remote(name, address, pushed)

    def add(self, name: str, address: str) -> Remote:
        """Enter a remote in .git/config; nothing is fetched. Raises BadInputError: the name is taken, or is none."""
        protocol_of(address)
        if not _NAME.fullmatch(name):
            raise BadInputError(f"{name!r} is not a name for a remote. Give letters, digits and hyphens.")
        if name in self._git.read("list the remotes", "remote").decode().split():
            raise BadInputError(f"There is a remote {name} already. See it with: quaid remote list")
        self._git.run("add a remote", "remote", "add", "--no-tags", "--", name, address)
        return self.read(name)

    def remove(self, name: str) -> None:
        """Take a remote out of .git/config with all refs that say what it had. Raises BadInputError: there is none."""
        if self._git.run("remove a remote", "remote", "remove", "--", name, accept=(0, 2, 128))[0]:
            raise BadInputError(f"There is no remote {name!r}. See them with: quaid remote list")
        for ref in (*self._list_refs(f"{FETCHED}/{name}"), *self._list_refs(f"{MERGED}/{name}")):
            self._git.run("forget a remote", "update-ref", "-d", ref)

    def fetch(self, line: Line, name: str, branch: str) -> str | None:
        """Ask a remote for `branch` and the leases; return the commit it is at, None where there is no such branch.
        Raises as `Line.fetch`.
        """
        place = f"{FETCHED}/{name}"
        leases = f"+{LEASES}/*:{place}/lease/*"
        if not line.fetch([f"+refs/heads/{branch}:{place}/heads/{branch}", leases]):
            line.fetch([leases])
            self._git.run("forget a branch", "update-ref", "-d", f"{place}/heads/{branch}")
            return None
        return self.fetched(name, branch)

    def push(self, line: Line, name: str, commit: str, branch: str) -> bool:
        """Move a remote's `branch` on to `commit`. Returns and raises as `Line.push`."""
        pushed = line.push(commit, f"refs/heads/{branch}")
        if pushed:
            self._set(f"{FETCHED}/{name}/heads/{branch}", commit)
            self.keep_merged(name, branch, commit)
        return pushed

    def fetched(self, name: str, branch: str) -> str | None:
        """The commit that the remote's branch was at when it was last asked, by Quaid or else by its clone."""
        return self._git.resolve(f"{FETCHED}/{name}/heads/{branch}") or self._git.resolve(
            f"refs/remotes/{name}/{branch}"
        )

    def merged(self, name: str, branch: str) -> str | None:
        """The newest commit of the remote's branch that was merged or pushed, by Quaid or else by git."""
        if found := self._git.resolve(f"{MERGED}/{name}/heads/{branch}"):
            return found
        cloned = self._git.resolve(f"refs/remotes/{name}/{branch}")
        return cloned if cloned and self._git.is_ancestor(cloned, "HEAD") else None

    def keep_cloned(self, name: str) -> None:
        """Remember what each branch has of a remote: git's own record of it moves with the next `git fetch`."""
        for head in self._list_refs("refs/heads"):
            branch = head.removeprefix("refs/heads/")
            cloned = self._git.resolve(f"refs/remotes/{name}/{branch}")
            if (
                cloned
                and not self._git.resolve(f"{MERGED}/{name}/heads/{branch}")
                and self._git.is_ancestor(cloned, head)
            ):
                self.keep_merged(name, branch, cloned)

    def keep_merged(self, name: str, branch: str, commit: str) -> None:
        """Remember that `commit` was merged or pushed; git's own remote branch follows."""
        self._set(f"{MERGED}/{name}/heads/{branch}", commit)
        self.show(name, branch, commit)

    def show(self, name: str, branch: str, commit: str) -> None:
        """Have git's own remote branch be at `commit`."""
        self._set(f"refs/remotes/{name}/{branch}", commit)

    def count_new(self, commit: str, known: str | None) -> int:
        """Count the commits that `commit` was made from, itself among them, and that `known` was not."""
        span = [commit, *([f"^{known}"] if known else [])]
        return int(self._git.read("count commits", "rev-list", "--count", *span, "--"))

    def back_up(self, commit: str, now: datetime) -> str:
        """Keep `commit` under a ref that names the time; the oldest of more than `MAX_BACKUPS` go, which the branch has
        in any case.
        """
        ref = f"{BACKUPS}/{now.astimezone(UTC):%Y-%m-%dT%H-%M-%S.%fZ}"
        self._set(ref, commit)
        for old in sorted(self._list_refs(BACKUPS))[:-MAX_BACKUPS]:
            if self._git.is_ancestor(old, "HEAD"):
                self._git.run("forget a backup", "update-ref", "-d", old)
        return ref

    # -- leases --------------------------------------------------------------------------------------------------

    def read_lease(self, name: str | None = None) -> tuple[str, str] | None:
        """Return (commit, what it says) of the lease: ours, or that of the remote `name` when last asked."""
        commit = self._git.resolve(f"{FETCHED}/{name}/lease/janitor" if name else LEASE)
        if commit is None:
            return None
        if int(self._git.read("read a lease", "cat-file", "-s", commit)) > MAX_LEASE_BYTES:
            return commit, ""
        text = self._git.read("read a lease", "cat-file", "commit", commit).decode("utf-8", "replace")
        return commit, text.partition("\n\n")[2].strip()

    def write_lease(self, text: str, after: str | None) -> str:
        """Make a lease of ours that follows `after`, seen by nobody else before it is pushed; return its commit."""
        tree = self._git.read_text("make a lease", "hash-object", "-w", "-t", "tree", "--stdin")
        made = self._git.commit_tree(tree, [after] if after else [], text.encode(), QUAID, "--no-gpg-sign")
        self._set(LEASE, made)
        return made

    def _list_refs(self, prefix: str) -> list[str]:
        args = ("for-each-ref", "--format=%(refname)", f"{prefix}/")
        return self._git.read_text("list refs", *args).splitlines()

    def _set(self, ref: str, commit: str) -> None:
        self._git.run("remember a commit", "update-ref", "-m", "quaid", ref, commit)


def check_branch(branch: str | None) -> str:
    """Return `branch`, if there is one. Raises GitError: HEAD is detached."""
    if branch is None:
        raise GitError("exchange commits", "HEAD is on no branch. Keep its commits on one with: git switch -c NAME")
    return branch
