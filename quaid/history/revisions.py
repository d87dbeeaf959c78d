"""The vault as it was at a commit: which commit a name or date refers to, its files, and their content."""

import re
import secrets
import stat
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from quaid.errors import GitError, RevisionError
from quaid.history.git import SUBMODULE, Git, Version, join_items, split_items
from quaid.model import NOTE_ENDINGS

BATCH = 4096
"""Files that are in memory at the same time."""
MAX_NAMED = 256
"""Paths that one call of git names."""
_FIRST_YEAR = 1900
_PROGRAMS = ("clean", "smudge", "process")
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?P<minute>[T ]\d\d:\d\d(?P<second>:\d\d)?(?: ?Z|[+-]\d\d:?\d\d)?)?", re.IGNORECASE
)


class Point(NamedTuple):
    """A commit as a point in time: its id, its committer date in UTC, the id of what the vault's folder held."""

    id: str
    when: str
    tree: str


class TreeFile(NamedTuple):
    """A file of the vault at some revision; `mode` has the bits of `lstat`."""

    rel_path: str
    mode: int
    blob: str

    @property
    def is_regular(self) -> bool:
        return stat.S_ISREG(self.mode)


class Revisions:
    """Looks at the history of the vault in `repository`, and changes nothing."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._repository = git.repository

    def find(self, wanted: str) -> Point:
        """The commit that `wanted` names: anything git resolves, or the last one of a day or a moment.

        A day is over at its end in the zone of the machine. What counts is the branch that is checked out, along first
        parents, and when a commit was made (its committer date). A tag that looks like a day is reached as
        `refs/tags/2026-03-01`.

        Raises:
            RevisionError: there is no such commit, or the vault's folder was not there yet.
        """
        moment = parse_moment(wanted)
        if moment is None:
            commit_id = self._git.resolve(wanted)
        else:
            seconds = int(moment.timestamp())
            args = ("rev-list", "-1", "--first-parent", f"--min-age={seconds}", "HEAD", "--")
            found = self._git.run("read the history", *args, accept=(0, 128))[1].decode() if seconds > 0 else ""
            commit_id = found.strip() or None
        if commit_id is None:
            raise RevisionError(wanted, "the history begins later" if moment else "there is no such revision")
        show = ("log", "-1", "--format=%ct %T", commit_id, "--")
        committed, tree = self._git.read("read a revision", *show).decode().split()
        when = datetime.fromtimestamp(int(committed), UTC).isoformat().replace("+00:00", "Z")
        if self._repository.prefix:
            folder = f"{commit_id}:{self._repository.prefix.rstrip('/')}"
            code, out = self._git.run("read a revision", "rev-parse", "-q", "--verify", folder, accept=(0, 1, 128))
            if code:
                raise RevisionError(wanted, "there was no vault yet")
            tree = out.decode().strip()
        return Point(commit_id, when, tree)

    def find_first_day(self) -> date | None:
        """Return the day of the first commit, in UTC; None where there is none."""
        show = ("log", "--first-parent", "--max-parents=0", "--format=%ct", "HEAD", "--")
        seconds = self._git.run("read the history", *show, accept=(0, 128))[1].split()
        return datetime.fromtimestamp(int(seconds[-1]), UTC).date() if seconds else None

    def has_commit(self, commit_id: str) -> bool:
        """Return whether the repository has this commit."""
        return self._git.resolve(commit_id) == commit_id

    def list_left_out(self) -> set[str]:
        """Return the notes that a sparse checkout leaves out: git has them, and they are not to be on disk."""
        if not (self._repository.git_dir / "info/sparse-checkout").exists():
            return set()
        args = ("ls-files", "-t", "-z", "--", self._repository.prefix or ".")
        lines = split_items(self._git.read("read the index", *args))
        hidden = (line[2:] for line in lines if line.startswith("S ") and line.lower().endswith(NOTE_ENDINGS))
        return {self._repository.to_vault(path) for path in hidden}

    def list_files(self, commit_id: str, only: Collection[str] | None = None) -> list[TreeFile]:
        """Every file of the vault at a commit, or of the paths in `only`, links included, in git's order."""
        inside: Sequence[str] = self._repository.inside
        if only is not None and len(only) <= MAX_NAMED:
            inside = [self._repository.to_git(path) for path in only]
        found = (self._file(path, version) for path, version in self._git.list_tree(commit_id, *inside).items())
        return [file for file in found if file is not None and (only is None or file.rel_path in only)]

    def compare(self, before: str | None, after: str) -> Iterator[tuple[TreeFile | None, TreeFile | None]]:
        """(old, new) of each file of the vault in which two commits differ, None where one has none. Without a commit
        `before` all are new.
        """
        if before is None:
            yield from ((None, file) for file in self.list_files(after))
            return
        for path, versions in self._git.diff_trees(before, after, *self._repository.inside).items():
            old, new = (self._file(path, version) for version in versions)
            if old or new:
                yield old, new

    def _file(self, path: str, version: Version | None) -> TreeFile | None:
        if version is None or version.mode == SUBMODULE:
            return None
        return TreeFile(self._repository.to_vault(path), int(version.mode, 8), version.blob)

    def read_files(self, files: Sequence[TreeFile], *, filtered: bool = False) -> Iterator[tuple[str, bytes]]:
        """(path, bytes) of each of `files`, as a checkout would write them under the attributes of today, but that
        no filter is run: only who writes them again wants them `filtered`.
        """
        unfiltered = () if filtered else tuple(disable_filters(self._filters))
        for start in range(0, len(files), BATCH):
            batch = files[start : start + BATCH]
            # One line is one file in what git is asked.
            odd = [file for file in batch if "\n" in file.rel_path]
            plain = [file for file in batch if file not in odd] if odd else batch
            if plain:
                # The size git prints is that of the blob, and a filter may change it: a random mark separates them.
                mark = secrets.token_hex(16).encode()
                lines = "".join(f"{file.blob} {self._repository.to_git(file.rel_path)}\n" for file in plain)
                args = (*unfiltered, "cat-file", f"--batch={mark.decode()}", "--filters", "--buffer")
                _, out = self._git.run("read a revision", *args, stdin=lines.encode("utf-8", "surrogateescape"))
                begin, *parts = out.split(mark + b"\n")
                if begin or len(parts) != len(plain):
                    raise GitError("read a revision", "some of its objects are not there. Fetch them, then try again")
                yield from ((file.rel_path, part[:-1]) for file, part in zip(plain, parts, strict=True))
            for file in odd:
                path = f"--path={self._repository.to_git(file.rel_path)}"
                args = (*unfiltered, "cat-file", "--filters", path, file.blob)
                yield file.rel_path, self._git.read("read a note", *args)

    def read_changed(self, before: str, after: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return the files in which two commits differ, as their owner's checkout of each would write them."""
        pairs = list(self.compare(before, after))
        sides = [old for old, _ in pairs if old], [new for _, new in pairs if new]
        olds, news = (dict(self.read_files(side, filtered=True)) for side in sides)
        return olds, news

    def list_filtered(self, files: Sequence[TreeFile]) -> set[str]:
        """The paths of those that go through a filter on their way out of git's objects."""
        if not self._filters:
            return set()
        paths = {self._repository.to_git(file.rel_path): file.rel_path for file in files}
        args = ("check-attr", "-z", "--stdin", "filter")
        out = self._git.read("read .gitattributes", *args, stdin=join_items(paths))
        items = [item.decode("utf-8", "surrogateescape") for item in out.split(b"\0")]
        return {paths[path] for path, value in zip(items[::3], items[2::3], strict=False) if value in self._filters}

    @cached_property
    def _filters(self) -> Sequence[str]:
        return list_filters(self._git)


def parse_moment(text: str) -> datetime | None:
    """The end of the day, minute or second that `text` names, in the machine's zone unless it says otherwise, as UTC;
    None when it is not a date.

    Raises:
        RevisionError: it has the shape of a date and is not one.
    """
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    try:
        start = datetime.fromisoformat(match[0].replace(" Z", "Z").upper())
        if match["minute"] is None:
            start += timedelta(days=1)
        else:
            start += timedelta(seconds=1) if match["second"] else timedelta(minutes=1)
        end = start - timedelta(microseconds=1)
        # A clock knows no zone so long ago.
        return end.replace(tzinfo=UTC) if end.year < _FIRST_YEAR and end.tzinfo is None else end.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise RevisionError(text, "there is no such day or time") from error


def list_filters(git: Git) -> list[str]:
    """The names of the filters that any configuration of the repository knows."""
    args = ("config", "--includes", "--name-only", "-z", "--get-regexp", r"^filter\.")
    keys = split_items(git.run("read the configuration", *args, accept=(0, 1))[1])
    names = (key.removeprefix("filter.").rpartition(".")[0] for key in keys)
    return list(dict.fromkeys(name for name in names if name))


def disable_filters(names: Sequence[str]) -> list[str]:
    """Options of git with which it runs none of the filters `names`, and still turns line ends.

    Raises:
        GitError: one is called so that no option can name it.
    """
    for name in names:
        if "=" in name:
            raise GitError("read the repository", f"it has a filter called {name!r}. Remove it from its configuration")
    settings = [f"filter.{name}.{program}=" for name in names for program in _PROGRAMS]
    settings += [f"filter.{name}.required=false" for name in names]
    return [word for setting in settings for word in ("-c", setting)]
