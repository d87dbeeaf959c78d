"""History without a text: each commit that holds it, or comes after one that does, is made again by `git fast-import`.

Nothing is taken away here: refs, indexes and reflogs move to the new commits when `moving.py` is asked to. Commits from
before the first one that changes keep their ids and signatures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from quaid.errors import BadInputError
from quaid.history.git_process import ask, explain, run, streaming
from quaid.history.objects import GitObject, ObjectReader, iterate_objects, reading
from quaid.history.repository import Repository

WORKING_REF = "refs/quaid/purging"
"""What fast-import moves along while it works; deleted afterwards."""
_ENTRY = re.compile(rb"(\d+) ([^\0]+)\0")
_ID = re.compile(rb"\b[0-9a-f]{7,64}\b")
_SIGNATURE = re.compile(rb"(?m)^(?:gpgsig|gpgsig-sha256|mergetag) .*\n(?: .*\n)*")
_TAG_SIGNATURE = re.compile(rb"(?ms)^-----BEGIN (?:PGP|SSH|SIGNED).*\Z")
_FOLDER = b"40000"


class Rules(Protocol):
    """What becomes of files, names and messages; each returns what it is given where nothing has to change."""

    def change_file(self, data: bytes) -> bytes | None:
        """Return the file without the text, None if it goes altogether."""

    def change_path(self, path: bytes) -> bytes:
        """Return the path without the text."""

    def change_text(self, text: bytes) -> bytes:
        """Return a message, an author or a tag without the text."""


@dataclass(slots=True)
class Survey:
    """The objects that hold the text: blobs with what becomes of them (None: dropped), and all others."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    trees: set[str] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)
    objects: int = 0

    def __bool__(self) -> bool:
        return bool(self.files or self.trees or self.messages)


@dataclass(slots=True)
class Rewritten:
    """Old id -> new id, of commits and tags and of the blobs that are not dropped."""

    commits: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)


def survey(repository: Repository, rules: Rules, tick: Callable[[int], None] = lambda _: None) -> Survey:
    """Return which objects hold the text, also those that nothing reaches. `tick` is told how many were looked at.

    Raises:
        GitError: an object cannot be read.
        BadInputError: two files of a folder would have one name, so that one of them would be lost.
    """
    found = Survey()
    clashes: list[tuple[bytes, list[str]]] = []
    for item in iterate_objects(repository):
        found.objects += 1
        if not found.objects % 1000:
            tick(found.objects)
        if item.kind == "blob":
            if (changed := rules.change_file(item.data)) != item.data:
                found.files[item.id] = changed
        elif item.kind == "tree":
            if rules.change_path(item.data) != item.data:
                found.trees.add(item.id)
                clashes += _list_clashes(item, rules)
        elif rules.change_text(item.data) != item.data:
            found.messages.add(item.id)
    for name, ids in clashes:
        if sum(found.files.get(each, each) is not None for each in ids) > 1:
            raise BadInputError(
                f"Without the text two files would be called {name.decode('utf-8', 'replace')}: nothing was purged. "
                "Purge one of the notes first: quaid purge REF"
            )
    return found


def _list_clashes(tree: GitObject, rules: Rules) -> list[tuple[bytes, list[str]]]:
    """The names that several things in a folder would have without the text, and what these are."""
    named: dict[bytes, list[str]] = {}
    for _, name, object_id in _parse_tree(tree):
        named.setdefault(rules.change_path(name), []).append(object_id)
    return [(name, ids) for name, ids in named.items() if len(ids) > 1]


def list_reachable(repository: Repository) -> list[str]:
    """The commits that a ref, a reflog or a worktree reaches, parents first."""
    listed = run(repository, "list worktrees", "worktree", "list", "--porcelain").decode("utf-8", "surrogateescape")
    heads = [line[5:] for line in listed.splitlines() if line.startswith("HEAD ") and set(line[5:]) != {"0"}]
    args = ("rev-list", "--topo-order", "--reverse", "--all", "--reflog", "--ignore-missing", *heads)
    return run(repository, "list commits", *args).decode().split()


def rewrite(
    repository: Repository, rules: Rules, found: Survey, tick: Callable[[int, int], None] = lambda *_: None
) -> Rewritten:
    """Make all commits again that hold what was `found` or come after one, and return the new ids.

    Raises:
        GitError: git refused.
    """
    commits = list_reachable(repository)
    with reading(repository) as reader, streaming(repository, ("fast-import", *_IMPORT)) as process:
        importer = _Importer(process, reader, rules, found, repository.top)
        importer.import_files()
        for done, commit_id in enumerate(commits, 1):
            importer.import_commit(reader.read(commit_id))
            tick(done, len(commits))
        importer.finish()
        rewritten = importer.rewritten
    ask(repository, ["update-ref", "-d", WORKING_REF])
    _rewrite_tags(repository, rules, rewritten)
    return rewritten


_IMPORT = ("--quiet", "--force", "--done", "--date-format=raw-permissive")


class _Importer:
    """Speaks to one `git fast-import`."""

    def __init__(self, process: Any, reader: ObjectReader, rules: Rules, found: Survey, top: Path) -> None:
        self._top = top
        self._process, self._reader, self._rules, self._found = process, reader, rules, found
        self._paths = _BadPaths(reader, rules, found)
        self._mark = 0
        self._marks: dict[str, bytes] = {}
        self.rewritten = Rewritten()

    def import_files(self) -> None:
        for old, data in self._found.files.items():
            self.rewritten.files[old] = None
            if data is not None:
                self._say(b"blob\nmark :%d\n" % self._next_mark() + _data(data))
                self.rewritten.files[old] = self._ask_mark(old)

    def import_commit(self, commit: GitObject) -> None:
        head, _, message = commit.data.partition(b"\n\n")
        lines = head.split(b"\n")
        parents = [line[7:].decode() for line in lines if line.startswith(b"parent ")]
        tree = lines[0][5:].decode()
        moves = list(self._paths.list_moves(tree))
        is_told = commit.id in self._found.messages
        if not (moves or is_told or any(parent in self.rewritten.commits for parent in parents)):
            return
        change = self._rules.change_text
        self._say(b"reset %s\n\n" % WORKING_REF.encode())
        self._say(b"commit %s\nmark :%d\n" % (WORKING_REF.encode(), self._next_mark()))
        for name in (b"author ", b"committer ", b"encoding "):
            self._say(b"".join(change(line) + b"\n" for line in lines if line.startswith(name)))
        # A revert names the commit it reverts: by its new id, as long as the old one was written.
        self._say(_data(translate_ids(change(message), self.rewritten.commits)))
        for number, parent in enumerate(parents):
            self._say(b"%s %s\n" % (b"merge" if number else b"from", self._marks.get(parent, parent.encode())))
        self._say(b"M 040000 %s \n" % tree.encode())
        for move in moves:
            self._say(b"D %s\n" % _quoted(move.path))
        for move in moves:
            if (blob := self.rewritten.files.get(move.blob, move.blob)) is not None:
                named = self._marks.get(move.blob, blob.encode())
                self._say(b"M %s %s %s\n" % (move.mode, named, _quoted(self._rules.change_path(move.path))))
        self.rewritten.commits[commit.id] = self._ask_mark(commit.id)

    def finish(self) -> None:
        self._say(b"done\n")
        self._process.stdin.flush()

    def _next_mark(self) -> int:
        self._mark += 1
        return self._mark

    def _ask_mark(self, old: str) -> str:
        """Return the id of what was made last, in the place of `old`; only by its mark does fast-import find it."""
        self._marks[old] = b":%d" % self._mark
        self._say(b"get-mark :%d\n" % self._mark)
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise explain("rewrite the history", self._process.stderr.read().decode("utf-8", "replace"), self._top)
        return str(answer.decode())

    def _say(self, words: bytes) -> None:
        self._process.stdin.write(words)


@dataclass(frozen=True, slots=True)
class _Move:
    path: bytes
    mode: bytes
    blob: str


class _BadPaths:
    """The files of trees that hold the text, or have it in their path; each tree is read once."""

    def __init__(self, reader: ObjectReader, rules: Rules, found: Survey) -> None:
        self._reader, self._rules, self._found = reader, rules, found
        self._known: dict[str, tuple[_Move, ...]] = {}

    def list_moves(self, tree: str) -> tuple[_Move, ...]:
        """The files below `tree` of which something changes; their paths begin there."""
        if tree not in self._known:
            self._known[tree] = tuple(self._find(tree))
        return self._known[tree]

    def _find(self, tree: str, *, is_all: bool = False) -> Iterator[_Move]:
        has_bad_name = tree in self._found.trees
        for mode, name, object_id in _parse_tree(self._reader.read(tree)):
            is_bad = is_all or (has_bad_name and self._rules.change_path(name) != name)
            if mode == _FOLDER:
                inner = self._find(object_id, is_all=True) if is_bad else self.list_moves(object_id)
                yield from (_Move(name + b"/" + move.path, move.mode, move.blob) for move in inner)
            elif is_bad or object_id in self._found.files:
                yield _Move(name, mode, object_id)


class TouchedTrees:
    """Tells of trees whether anything below them changes; each tree is read once."""

    def __init__(self, reader: ObjectReader, found: Survey) -> None:
        self._reader, self._found = reader, found
        self._known: dict[str, bool] = dict.fromkeys(found.trees, True)

    def is_touched(self, tree: str) -> bool:
        """Return whether `tree` holds a file or a name that changes."""
        if tree not in self._known:
            self._known[tree] = any(
                self.is_touched(object_id) if mode == _FOLDER else object_id in self._found.files
                for mode, _, object_id in _parse_tree(self._reader.read(tree))
            )
        return self._known[tree]


def _parse_tree(tree: GitObject) -> Iterator[tuple[bytes, bytes, str]]:
    """Yield (mode, name, id) of each entry."""
    place, width = 0, len(tree.id) // 2
    while (entry := _ENTRY.match(tree.data, place)) is not None:
        place = entry.end() + width
        yield entry[1], entry[2], tree.data[entry.end() : place].hex()


def _rewrite_tags(repository: Repository, rules: Rules, rewritten: Rewritten) -> None:
    """Make annotated tags again that name a new commit or hold the text."""
    listed = run(repository, "list tags", "for-each-ref", "--format=%(objecttype) %(objectname)").decode()
    with reading(repository) as reader:
        for kind, tag in (line.split() for line in listed.splitlines()):
            if kind == "tag":
                _rewrite_tag(repository, reader, tag, rules, rewritten)


def _rewrite_tag(repository: Repository, reader: ObjectReader, tag: str, rules: Rules, rewritten: Rewritten) -> str:
    """Return the id of the new tag, or of the old one where nothing changes."""
    data = reader.read(tag).data
    head, _, rest = data.partition(b"\n")
    target = head.removeprefix(b"object ").decode()
    if rest.startswith(b"type tag\n"):
        new = _rewrite_tag(repository, reader, target, rules, rewritten)
    else:
        new = rewritten.commits.get(target) or rewritten.files.get(target) or target
    text = rules.change_text(rest)
    if new == target and text == rest:
        return tag
    made = b"object " + new.encode() + b"\n" + _TAG_SIGNATURE.sub(b"", text)
    out = run(repository, "make a tag again", "hash-object", "-t", "tag", "-w", "--stdin", stdin=made)
    rewritten.commits[tag] = out.decode().strip()
    return rewritten.commits[tag]


def is_signed(commit: bytes) -> bool:
    """Return whether the content of a commit has a signature."""
    return _SIGNATURE.search(commit.partition(b"\n\n")[0] + b"\n") is not None


def translate_ids(text: bytes, ids: Mapping[str, str]) -> bytes:
    """Return `text` with the new id for each old one that it names in full."""
    return _ID.sub(lambda found: ids.get(found[0].decode(), found[0].decode()).encode(), text)


def _quoted(path: bytes) -> bytes:
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def _data(data: bytes) -> bytes:
    return b"data %d\n" % len(data) + data + b"\n"
