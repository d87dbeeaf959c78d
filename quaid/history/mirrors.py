"""The mirror of one branch of a remote, and a working copy made of it: repositories of a server, which nobody edits and
which can be thrown away at any time.

What a remote brings may be made to hurt: git checks its objects as they come, its size is bounded while it comes, and
the number of its files before any of them is looked at. No configuration, hook or link of it comes along.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from quaid.errors import BadInputError, GitError, QuaidError
from quaid.history.addresses import hide_password, protocol_of
from quaid.history.git import Git, execute, explain
from quaid.history.maintenance import maintain
from quaid.history.purged import FOLDER, PurgedError, find_returned
from quaid.history.remotes import Line
from quaid.history.repository import Repository
from quaid.http import host_of, is_local
from quaid.settings import Duration, Number

MIRRORED = "refs/quaid/mirrored"
FETCHED = "refs/quaid/fetched"
"""What the remote has, also where the mirror does not take it over."""
_BLOCK = 1 << 16
_ASK_OWNER = "On the machine that purged it, quaid pull says what to do"
_WAY_OUT = f"delete the list in {FOLDER}/ that names it"


@dataclass(frozen=True, slots=True)
class MirrorLimits:
    """The bounds of what a mirror takes: seconds of a call, bytes that come in one, files of a commit, and the hosts
    that it reaches over http.
    """

    plain_hosts: str = ""
    git_timeout_s: Duration = 60.0
    max_repository_bytes: Number = 2_000_000_000
    max_files: Number = 200_000


def check_source(address: str, branch: str, plain_hosts: str = "") -> None:
    """Refuse a repository that servers do not mirror. `plain_hosts` are reached over http all the same.

    Raises:
        BadInputError: where it is, how it is reached, or the name of its branch.
    """
    protocol, shown = protocol_of(address), hide_password(address)
    if protocol == "file":
        raise BadInputError(f"{shown!r} is a folder, which other servers do not have. Give https://… or ssh://…")
    if protocol == "http" and not is_local(address) and host_of(address) not in plain_hosts.replace(",", " ").split():
        raise BadInputError(
            f"{shown!r} is reached over http, where anybody on the way could change notes. Give https://… or ssh://…, "
            "or name its host in `plain_hosts` of the server's configuration."
        )
    if shown != address:
        raise BadInputError(
            f"The address of {shown!r} has a password or a token in it, which any list of processes shows. Give it "
            "without, and give git a key or a credential helper."
        )
    is_plain = branch.isprintable() and branch != "HEAD" and not branch.startswith("-")
    if not is_plain or execute(["check-ref-format", f"refs/heads/{branch}"], b"", {})[0]:
        raise BadInputError(f"{branch!r} is not a name for a branch. Give it as `git branch` shows it.")


@dataclass(frozen=True)
class Mirror:
    """The bare repository at `folder`, which holds `branch` of the repository at `address`."""

    folder: Path
    address: str
    branch: str
    limits: MirrorLimits

    @property
    def git(self) -> Git:
        """Git in the mirror."""
        return Git(Repository(self.folder, self.folder, self.folder, ""))

    def look(self) -> str | None:
        """Return the commit that the remote is at, None where it has no such branch. Raises as `Line.look`."""
        self._make()
        return self._line().look(f"refs/heads/{self.branch}")

    def fetch(self) -> str | None:
        """Fetch what is new and return the commit that the remote is at, None where it has no such branch.

        Raises:
            QuaidError: it has more files than the limits allow.
            PurgedError: it has what a list of the mirror's commit says was purged.
            RemoteUnreachableError, RemoteRefusedError, GitError: nothing was fetched.
        """
        self._make()
        old = self.head()
        if not self._line().fetch([f"+refs/heads/{self.branch}:{FETCHED}"]):
            return None
        head = self.resolve(FETCHED)
        if head is not None:
            # One tree made of a few folders that hold each other has billions of files.
            count = 0
            with self.git.stream("ls-tree", "-r", "-z", "--name-only", head) as listing:
                assert listing.stdout is not None
                while block := listing.stdout.read(_BLOCK):
                    count += block.count(b"\0")
                    if count > self.limits.max_files:
                        raise QuaidError(
                            f"The repository has more than {self.limits.max_files:,} files: nothing of it was taken. "
                            "Make it smaller, or raise the limit.",
                            code="repository_too_large",
                        )
            # Who removes a list from the vault says so in a commit; a history that goes back on it says nothing.
            known = head if old and self.git.is_ancestor(old, head) else old
            if old and known and (found := find_returned(self.git, head, old, known)):
                raise PurgedError(self.branch, found, _ASK_OWNER, _WAY_OUT)
            # The second one is HEAD here, and not fetched to: git would take it for a branch that is worked on.
            moves = "".join(f"update {ref} {head}\n" for ref in (MIRRORED, f"refs/heads/{self.branch}"))
            self.git.read("note what was fetched", "update-ref", "--stdin", stdin=moves.encode())
        return head

    def head(self) -> str | None:
        """Return the commit that was fetched last."""
        return self.resolve(MIRRORED)

    def resolve(self, revision: str) -> str | None:
        """Return the commit that `revision` means here, None where it is not here."""
        return self.git.resolve(revision) if self.exists() else None

    def exists(self) -> bool:
        """Return whether anything was fetched."""
        return (self.folder / "HEAD").is_file()

    def read(self, commit: str, path: str) -> bytes | None:
        """Return a file as `commit` has it, None where it has none."""
        return self.git.query("cat-file", "blob", f"{commit}:{path}")

    def maintain(self) -> None:
        """Have git pack what came in many pieces, where that is due."""
        maintain(self.git.repository, self.limits.git_timeout_s)

    def _line(self) -> Line:
        return Line(self.folder, self.address, self.limits.git_timeout_s, max_bytes=self.limits.max_repository_bytes)

    def _make(self) -> None:
        check_source(self.address, self.branch, self.limits.plain_hosts)
        if not self.exists():
            _init(self.folder, "--bare", "-b", self.branch)


class WorkingCopy(NamedTuple):
    """The files of a mirror's commit at `root`, to be changed and pushed. It borrows the mirror's objects."""

    root: Path
    mirror: Mirror

    def bring_to(self, commit: str) -> None:
        """Have the files, the branch and the index be exactly those of `commit`, whatever they were. Raises GitError:
        the mirror has no such commit.
        """
        if not (self.root / ".git" / "HEAD").is_file():
            _init(self.root, "-b", self.mirror.branch)
            borrowed = self.root / ".git" / "objects" / "info" / "alternates"
            borrowed.parent.mkdir(exist_ok=True)
            borrowed.write_text(f"{self.mirror.folder / 'objects'}\n", encoding="utf-8")
            # A link in the repository becomes a file that holds its target: nothing leads out of the folder.
            self._git.read("configure a repository", "config", "core.symlinks", "false")
        self._git.read("have the files of a commit", "reset", "-q", "--hard", commit, "--")
        self._git.read("remove other files", "clean", "-ffdxq")

    def head(self) -> str | None:
        """Return the commit that the branch is at."""
        return self._git.resolve("HEAD")

    def push(self, commit: str) -> bool:
        """Move the remote's branch on to `commit`. Returns and raises as `Line.push`."""
        line = Line(self.root, self.mirror.address, self.mirror.limits.git_timeout_s)
        return line.push(commit, f"refs/heads/{self.mirror.branch}")

    @property
    def _git(self) -> Git:
        return Git(Repository(self.root, self.root / ".git", self.root / ".git", ""))


def _init(folder: Path, *options: str) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise GitError("make a repository", f"{folder}: {error.strerror}") from error
    code, _, stderr = execute(["init", "-q", "--template=", *options, "--", str(folder)], b"", {})
    if code:
        raise explain("make a repository", stderr, folder)
