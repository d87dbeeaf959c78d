"""Repositories that need not be the vault's: what their files became since a commit, and where a file is checked out.

A check of many documents costs a few processes for each repository, however many they are: one log, one tree, and two
batches of objects. Nothing that a foreign repository configures is run (see `git.py`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from quaid.errors import GitError, QuaidError
from quaid.history.git import SUBMODULE, Git, LeftOutError, split_items, split_log
from quaid.history.note_history import FileChange, parse_changes
from quaid.history.repository import Repository, find_repository, read_boundary
from quaid.text.line_ends import with_lf

FIRST_COMMITS, MAINLINE, MAX_COMMITS = 2_000, 1_000, 40_000
"""Commits that are read at first, of the mainline, and where that does not reach far enough."""
_FORMAT = "/ %H %P %ct %an %s".replace(" ", "%x00")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999: later times are not dates in Python, and git takes any."""


class LoggedCommit(NamedTuple):
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

    def commit(self, commit_id: str) -> LoggedCommit:
        """The commit of the log with this id."""
        return self.commits[self.places[commit_id]]

    def at(self, seconds: float) -> str | None:
        """The newest commit that was there at a time; the oldest that is known where all are later."""
        then = next((commit.id for commit in self.commits if commit.at <= seconds), None)
        return then or (self.commits[-1].id if self.commits else None)

    def changes(self, path: str) -> list[tuple[LoggedCommit, FileChange]]:
        """The commits that changed the file now at `path`, newest first. Renames are followed."""
        found: list[tuple[LoggedCommit, FileChange]] = []
        name, newer = path, -1
        while name:
            older = ""
            for commit in self.touching.get(name, ()):
                touch = next((touch for touch in commit.touches if touch.path == name), None)
                if touch is None or self.places[commit.id] <= newer:
                    continue
                found.append((commit, touch))
                if touch.old_path:
                    older, newer = touch.old_path, self.places[commit.id]
                    break
            name = older
        return found

    def age(self, commit: LoggedCommit) -> int:
        """The number of newer commits; one that was not read is older than all."""
        return self.places.get(commit.id, len(self.commits))


class SourceRepository:
    """The repository around a folder, and its history."""

    def __init__(self, repository: Repository) -> None:
        self.git = Git(repository)
        self.top = repository.top
        self._changed: dict[str, Mapping[str, tuple[str | None, str | None]]] = {}

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
        tree = self.git.list_tree(self.head) if self.head else {}
        return {path: version.blob for path, version in tree.items() if version.mode != SUBMODULE}

    def present(self, folder: Path) -> list[str]:
        """Files below `folder`, relative to it: all that git follows or would; ignored ones are left out."""
        args = ("-C", str(folder), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        return split_items(self.git.read("list the files", *args))

    @cached_property
    def log(self) -> Log:
        """The last commits."""
        return self.read_log(FIRST_COMMITS)

    @cached_property
    def mainline(self) -> Log:
        """The last commits of the mainline."""
        return self.read_log(MAINLINE, is_mainline=True)

    def read_log(self, most: int, paths: Sequence[str] = (), *, is_mainline: bool = False) -> Log:
        """The last `most` commits, or of those that touched one of `paths`, with what they touched. Of the mainline
        (first parents), a merge touches all that it brought.
        """
        if self.head is None:
            return Log()
        # Of a part of the history each commit's parents are those that are in it.
        mainline = ("--first-parent", "-m") if is_mainline else ()
        shape = ("-M", f"-n{most}", *mainline, *(("--parents",) if paths else ()))
        commits = self._commits(*shape, self.head, "--", *paths)
        places = {commit.id: place for place, commit in enumerate(commits)}
        if any(places.get(parent, place) < place for place, commit in enumerate(commits) for parent in commit.parents):
            # Clocks were wrong. This order takes long in a large repository.
            commits = self._commits(*shape, "--date-order", self.head, "--", *paths)
        # The changes of a merge itself are in no other commit; asking for them apart, without renames, is cheap.
        if merges := "".join(
            f"{commit.id}\n" for commit in commits if len(commit.parents) > 1 and not paths and not is_mainline
        ):
            joined = self._commits("--no-renames", "-c", "--no-walk", "--stdin", stdin=merges)
            merged = {commit.id: commit for commit in joined}
            commits = tuple(merged.get(commit.id, commit) for commit in commits)
        return Log(commits, is_whole=len(commits) < most and not self.boundary)

    def _commits(self, *wanted: str, stdin: str = "") -> tuple[LoggedCommit, ...]:
        shape = ("-z", "--raw", "--no-abbrev", "-l400", "--encoding=UTF-8", f"--format={_FORMAT}")
        args = ("-c", "log.showRoot=true", "log", *shape, *wanted)
        try:
            out = self.git.read("read the history", *args, stdin=stdin.encode())
        except GitError:
            # Contents are missing. Without them only those renames are seen that changed nothing else.
            exact = ["-M100%" if each == "-M" else each for each in args]
            if "-M" not in args:
                raise
            out = self.git.read("read the history", *exact, stdin=stdin.encode())
        logged = split_log(out, 5)
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

    def last_changes(
        self, paths: Sequence[str], *, is_alone: bool = False
    ) -> dict[str, list[tuple[LoggedCommit, FileChange]]]:
        """The changes of each file, newest first. Where the log does not reach far enough, or with `is_alone`, only the
        commits of these files are read.
        """
        found = {path: [] if is_alone else self.log.changes(path) for path in paths}
        old = [path for path, changes in found.items() if not changes and path in self.files]
        if old and (is_alone or not self.log.is_whole):
            older = self.read_log(MAX_COMMITS, old)
            found |= {path: older.changes(path) for path in old}
        return found

    def compare(self, bases: Iterable[str]) -> None:
        """Compare many commits with HEAD in one process, for `changes_since`."""
        asked = [base for base in dict.fromkeys(bases) if base not in self._changed]
        self._changed |= {base: {} for base in asked}
        asked = [base for base in asked if base != self.head]
        stdin = "".join(f"{self.head} {base}\n" for base in asked).encode()
        shape = ("--stdin", "--always", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
        out = self.git.read("compare commits", "diff-tree", *shape, stdin=stdin) if asked else b""
        parts = out.decode("utf-8", "surrogateescape").split(f"{self.head}\0")[1:]
        for base, part in zip(asked, parts, strict=False):
            self._changed[base] = {each.path: (each.before, each.after) for each in parse_changes(part.split("\0"))}

    def changes_since(self, base: str) -> Mapping[str, tuple[str | None, str | None]]:
        """The files that differ between a commit and HEAD, with their blobs. A rename is two of them."""
        self.compare([base])
        return self._changed[base]

    def commits_since(self, base: str, *paths: str | None) -> list[LoggedCommit]:
        """The commits after `base` that changed one of `paths`, newest first."""
        last = self.log.places.get(base, len(self.log.commits))
        touching = {commit.id: commit for path in paths if path for commit in self.log.touching.get(path, ())}
        return sorted((commit for commit in touching.values() if self.log.age(commit) < last), key=self.log.age)

    def renames_since(self, base: str) -> Mapping[str, str]:
        """Old -> new name of the files that were renamed after a commit, the last name of several."""
        renamed: dict[str, str] = {}
        for commit in self.log.commits[: self.log.places.get(base)]:
            for touch in commit.touches:
                if touch.old_path:
                    renamed.setdefault(touch.old_path, renamed.get(touch.path, touch.path))
        return renamed

    def read_blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        """The content of each blob that is here. Of a partial clone some are not, and nothing is fetched."""
        wanted = set(ids)
        try:
            return self.git.read_blobs(wanted)
        except LeftOutError:
            return self.git.read_blobs(wanted & self._present)

    @cached_property
    def _present(self) -> frozenset[str]:
        args = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
        return frozenset(self.git.read("list the objects", *args).decode().split())

    def read_versions(self, path: Path, endings: tuple[str, ...]) -> list[tuple[int, bytes]]:
        """The contents that a file, or files with one of `endings` in a folder, had in the last commits, each with the
        time of the commit in seconds since 1970.
        """
        inside = self.inside(path)
        log = self.read_log(FIRST_COMMITS, [inside] if inside else [])
        touches = [(commit.at, touch) for commit in log.commits for touch in commit.touches]
        made = [(at, touch.after) for at, touch in touches if touch.after and touch.path.endswith(endings)]
        blobs = self.read_blobs(blob for _, blob in made)
        return [(at, blobs[blob]) for at, blob in made if blob in blobs]

    def holds(self, path: str, data: bytes) -> bool:
        """Return True if HEAD has `data` at `path`, but for its line ends."""
        blob = self.files.get(path)
        committed = self.read_blobs([blob]).get(blob) if blob is not None else None
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


class Checkout(NamedTuple):
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
