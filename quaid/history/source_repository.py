"""Repositories that need not be the vault's: what their files became since a commit, and where a file is checked out.

A check of many documents costs a few processes for each repository, however many they are: one log, one tree, and two
batches of objects. Nothing that a foreign repository configures is run (see `git.py`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from quaid.errors import GitError, QuaidError
from quaid.history.git import SUBMODULE, Git, Version, split_items, split_log
from quaid.history.note_history import FileChange, parse_changes
from quaid.history.repository import Repository, find_repository, read_boundary, read_text
from quaid.text.line_ends import with_lf

FIRST_COMMITS, MAX_COMMITS = 4_000, 40_000
"""Commits that are read at first, and where that does not reach far enough."""
_MAX_RENAMES = 20
_FORMAT = "/ %H %P %ct %an %s".replace(" ", "%x00")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MODULE = re.compile(r"^[ \t]*path[ \t]*=[ \t]*(\S(?:.*\S)?)[ \t\r]*$", re.MULTILINE)
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999: later times are not dates in Python, and git takes any."""


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """One commit of a log. `at` is in seconds since 1970; a merge touches what it made like none of its parents."""

    id: str
    parents: tuple[str, ...]
    at: int
    author: str
    subject: str
    touches: tuple[FileChange, ...] = ()


@dataclass(frozen=True)
class Log:
    """Commits from HEAD back, newest first. `is_whole` is False where older ones exist that were not read."""

    commits: Sequence[LoggedCommit] = ()
    is_whole: bool = True

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The number of commits that are newer than each."""
        return {commit.id: place for place, commit in enumerate(self.commits)}

    @cached_property
    def has_merges(self) -> bool:
        return any(len(commit.parents) > 1 for commit in self.commits)

    @cached_property
    def touching(self) -> Mapping[str, Sequence[LoggedCommit]]:
        """The commits that touched each path, by its name then, newest first."""
        found: dict[str, list[LoggedCommit]] = {}
        for commit in self.commits:
            names = (name for touch in commit.touches for name in (touch.path, touch.old_path) if name)
            for path in dict.fromkeys(names):
                found.setdefault(path, []).append(commit)
        return found

    def find(self, commit_id: str) -> str | None:
        """The whole id of a commit in the log that is named by a part of it of at least seven digits."""
        commit_id = commit_id.lower()
        if commit_id in self.places:
            return commit_id
        named = [commit.id for commit in self.commits if commit.id.startswith(commit_id)] if len(commit_id) >= 7 else []
        return named[0] if len(named) == 1 else None

    def at(self, seconds: float) -> str | None:
        """The newest commit that was there at a time; the oldest that is known where all are later."""
        then = next((commit.id for commit in self.commits if commit.at <= seconds), None)
        return then or (self.commits[-1].id if self.commits else None)

    def is_ancestor(self, commit_id: str, of: str) -> bool:
        """Return True if one commit came before another, on the way to it."""
        return commit_id != of and commit_id in self._list_ancestors(of, self.places[commit_id])

    def after(self, commit_id: str) -> Iterator[LoggedCommit]:
        """The commits that came after one: all but itself and its ancestors, newest first."""
        known = self._list_ancestors(commit_id, len(self.commits))
        return (commit for commit in self.commits if commit.id not in known)

    def _list_ancestors(self, commit_id: str, last: int) -> set[str]:
        """Return a commit and those that it was made from, up to the place `last`. No parent is newer in the log."""
        known, waiting = {commit_id}, [commit_id]
        while waiting:
            place = self.places.get(waiting.pop(), last)
            for parent in self.commits[place].parents if place < last else ():
                if parent not in known and self.places.get(parent, last) <= last:
                    known.add(parent)
                    waiting.append(parent)
        return known


class SourceRepository:
    """The repository around a folder, and its history."""

    def __init__(self, repository: Repository) -> None:
        self.git = Git(repository)
        self.top = repository.top
        self.common_dir = repository.common_dir

    def inside(self, path: Path) -> str:
        """A folder or file as this repository knows it, empty for its top and for anything outside of it."""
        try:
            relative = path.resolve().relative_to(self.top.resolve()).as_posix()
        except ValueError:
            return ""
        return "" if relative == "." else relative

    @cached_property
    def boundary(self) -> frozenset[str]:
        """The commits of a shallow clone whose parents were never fetched."""
        return read_boundary(self.git.repository)

    @cached_property
    def head(self) -> str | None:
        """The commit that is checked out, None before the first one; read without a process where refs are files."""
        head = self.git.read_state().head
        if head is not None and not _COMMIT.fullmatch(head):
            raise GitError(f"read HEAD of {self.top}", "it names no commit")
        return head

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Path -> blob of every file that HEAD has."""
        return {path: version.blob for path, version in self._tree if version.mode != SUBMODULE}

    @cached_property
    def submodules(self) -> Sequence[str]:
        """The places of other repositories in this one, as HEAD has it."""
        return [path for path, version in self._tree if version.mode == SUBMODULE]

    @cached_property
    def checked_out(self) -> Sequence[str]:
        """The places of other repositories in this one, as .gitmodules has it: read without a process."""
        try:
            return _MODULE.findall(read_text(self.top / ".gitmodules"))
        except OSError:
            return []

    @cached_property
    def _tree(self) -> Sequence[tuple[str, Version]]:
        return list(self.git.list_tree(self.head).items()) if self.head else []

    def present(self, folder: Path) -> list[str]:
        """Files below `folder`, relative to it: all that git follows or would; ignored ones are left out."""
        args = ("-C", str(folder), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        return split_items(self.git.read("list the files", *args))

    def log(self, most: int = FIRST_COMMITS, paths: Sequence[str] = ()) -> Log:
        """The last `most` commits, or of those that touched one of `paths`, with what they touched."""
        if self.head is None:
            return Log()
        # Of a part of the history each commit's parents are those that are in it.
        shape = ("-M", f"-n{most}", *(("--parents",) if paths else ()))
        commits = self._commits(*shape, self.head, "--", *paths)
        places = {commit.id: place for place, commit in enumerate(commits)}
        if any(places.get(parent, place) < place for place, commit in enumerate(commits) for parent in commit.parents):
            # Clocks were wrong. This order takes long in a large repository.
            commits = self._commits(*shape, "--date-order", self.head, "--", *paths)
        # The changes of a merge itself are in no other commit; asking for them apart, without renames, is cheap.
        if merges := "".join(f"{commit.id}\n" for commit in commits if len(commit.parents) > 1 and not paths):
            joined = self._commits("--no-renames", "-c", "--no-walk", "--stdin", stdin=merges)
            merged = {commit.id: commit for commit in joined}
            commits = tuple(merged.get(commit.id, commit) for commit in commits)
        return Log(commits, is_whole=len(commits) < most and not self.boundary)

    def _commits(self, *wanted: str, stdin: str = "") -> tuple[LoggedCommit, ...]:
        shape = ("-z", "--raw", "--no-abbrev", "-l400", "--encoding=UTF-8", f"--format={_FORMAT}")
        args = ("-c", "log.showRoot=true", "log", *shape, *wanted)
        logged = split_log(self.git.read("read the history", *args, stdin=stdin.encode()), 5)
        return tuple(
            LoggedCommit(
                commit_id,
                tuple(parents.split()),
                min(int(at or 0), _LAST_SECOND),
                author,
                subject,
                tuple(parse_changes(items)),
            )
            for (commit_id, parents, at, author, subject), items in logged
        )

    def find_renamed(self, paths: Iterable[str]) -> dict[str, str]:
        """The names that files which are gone have in HEAD now; those that were not renamed are left out."""
        now = {path: path for path in paths if path not in self.files}
        for _ in range(_MAX_RENAMES):
            gone = {path for path in now.values() if path not in self.files}
            if not gone:
                break
            # A rename is a removal where renames are not looked for, and as a rename it is seen in the whole commit.
            args = ("--no-renames", f"-n{MAX_COMMITS}", self.head or "HEAD", "--", *sorted(gone))
            removed = {
                path: commit.id
                for commit in reversed(self._commits(*args))
                for path in (touch.path for touch in commit.touches if touch.after is None)
            }
            wanted = dict.fromkeys(removed.values())
            commits = self._commits("-M", "--no-walk", *wanted, "--") if wanted else ()
            renamed = {
                touch.old_path: touch.path
                for commit in commits
                for touch in commit.touches
                if touch.old_path and removed.get(touch.old_path) == commit.id
            }
            now = {path: renamed.get(name, name) for path, name in now.items() if name in self.files or name in renamed}
        return {path: name for path, name in now.items() if name in self.files}

    def blobs_at(self, places: Sequence[tuple[str, str]]) -> list[str | None]:
        """The blob that each (commit, path) had, None where there was none."""
        plain = [(commit, path) for commit, path in places if "\n" not in path]
        if not plain:
            return [None] * len(places)
        asked = "".join(f"{commit}:{path}\n" for commit, path in plain).encode("utf-8", "surrogateescape")
        out = self.git.read("read old files", "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
        lines = out.split(b"\n")
        found = {
            place: line.split(b" ")[0].decode()
            for place, line in zip(plain, lines, strict=False)
            if line[-5:] == b" blob"
        }
        return [found.get(place) for place in places]

    def holds(self, path: str, data: bytes) -> bool:
        """Return True if HEAD has `data` at `path`, but for its line ends."""
        blob = self.files.get(path)
        committed = self.git.read_blobs([blob]).get(blob) if blob is not None else None
        return committed is not None and with_lf(committed) == with_lf(data)


def open_repository(folder: Path) -> SourceRepository | None:
    """The repository around `folder`, which may be a worktree or a submodule; None where there is none."""
    try:
        found = find_repository(folder)
    except OSError:
        return None
    return SourceRepository(found) if found is not None else None


_POINTER_SIZE = 300
"""Bytes; the pointer to a file that git LFS stores elsewhere is smaller."""
_SCHEME = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[^/]*@)?(?P<host>[^/:?#@\s]+)(?::\d+)?/+(?P<path>[^?#\s]*)(?:[?#].*)?", re.IGNORECASE
)
_SCP = re.compile(r"(?:[^/:]*@)?(?P<host>[^/@:\s]{2,}):(?P<path>(?!//|:)[^?#\s]+)")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A file's place in a repository: `repository` is its remote (`github.com/maya/house`) or its folder's name.

    `commit` last touched the file, None when none has; `is_changed` says that the file differs from what HEAD has.
    """

    repository: str
    path: str
    branch: str | None
    commit: str | None
    is_changed: bool


def find_checkout(path: Path, data: bytes) -> Checkout | None:
    """Return the checkout that the file at `path`, which holds `data`, is in; None when it is in no repository."""
    real = path.resolve()
    found = find_repository(real.parent)
    if found is None:
        return None
    inside = found.to_git(real.name)
    try:
        git = Git(found)
        branch = git.read_state().branch
        commit = (git.query("log", "-1", "--format=%H", "HEAD", "--", inside) or b"").decode().strip()
        committed = git.query("cat-file", "blob", f"HEAD:{inside}") if commit else None
        remote = (git.query("config", "--get-regexp", r"^remote\..*\.url$") or b"").decode("utf-8", "replace")
    except (QuaidError, OSError):  # git is not there, or HEAD is not to be read
        return Checkout(found.top.name, inside, None, None, is_changed=True)
    is_pointer = committed and len(committed) < _POINTER_SIZE and sha256(data).hexdigest().encode() in committed
    is_changed = committed is None or (not is_pointer and with_lf(committed) != with_lf(data))
    name = find_remote_name(remote) or found.top.name
    return Checkout(name, inside, branch, commit or None, is_changed)


def find_remote_name(listed: str) -> str | None:
    """`github.com/maya/house` from the remotes, `origin` before the others; no user, password or port stays in it."""
    urls = dict(line.split(" ", 1) for line in listed.splitlines() if " " in line)
    for _, url in sorted(urls.items(), key=lambda item: item[0] != "remote.origin.url"):
        found = _SCHEME.fullmatch(url.strip()) or _SCP.fullmatch(url.strip())
        if found and not url.startswith("file:"):
            return f"{found['host'].lower()}/{found['path'].strip('/').removesuffix('.git')}"
    return None
