"""History without a text: each commit that holds it, or comes after one that does, is made again by `git fast-import`.

Nothing is taken away here: refs, indexes and reflogs move to the new commits when `moving.py` is asked to. Commits from
before the first one that changes keep their ids and signatures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from quaid.errors import BadInputError
from quaid.history.git import Git, GitObject, ObjectReader, explain, hash_blob, parse_tree_object

WORKING_REF = "refs/quaid/purging"
"""What fast-import moves along while it works; deleted afterwards."""
_ID = re.compile(rb"\b[0-9a-f]{7,64}\b")
_SIGNATURE = re.compile(rb"(?m)^(?:gpgsig|gpgsig-sha256|mergetag) .*\n(?: .*\n)*")
_TAG_SIGNATURE = re.compile(rb"(?ms)^-----BEGIN (?:PGP|SSH|SIGNED).*\Z")


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


Rewritten = dict[str, str | None]
"""Old id -> new id, of commits, tags and files; None for a file that is dropped."""


def survey(git: Git, rules: Rules, tick: Callable[[int], None] = lambda _: None) -> Survey:
    """Return which objects hold the text, also those that nothing reaches. `tick` is told how many were looked at.

    Raises:
        GitError: an object cannot be read.
        BadInputError: two files of a folder would have one name, so that one of them would be lost.
    """
    found = Survey()
    clashes: list[tuple[bytes, list[str]]] = []
    for done, item in enumerate(git.iterate_objects(), 1):
        if not done % 1000:
            tick(done)
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
        left = [found.files.get(each, each) for each in ids]
        kept = [hash_blob(data, ids[0]) if isinstance(data, bytes) else data for data in left if data is not None]
        # Where one of them already is what the other becomes, as after a merge with the old history, nothing is lost.
        if len(kept) > 1 and (len(set(kept)) > 1 or kept[0] not in ids):
            raise BadInputError(
                f"Without the text two files would be called {name.decode('utf-8', 'replace')}: nothing was purged. "
                "Purge one of the notes first: quaid purge REF"
            )
    return found


def _list_clashes(tree: GitObject, rules: Rules) -> list[tuple[bytes, list[str]]]:
    """The names that several things in a folder would have without the text, and what these are."""
    named: dict[bytes, list[str]] = {}
    for name, version in parse_tree_object(tree):
        named.setdefault(rules.change_path(name), []).append(version.blob)
    return [(name, ids) for name, ids in named.items() if len(ids) > 1]


def iterate_changed(git: Git, reader: ObjectReader, rules: Rules, found: Survey) -> Iterator[Commit]:
    """Yield the commits that a ref, a reflog or a worktree reaches and that have to be made again, parents first."""
    paths, changed = _BadPaths(reader, rules, found), set[str]()
    args = ("rev-list", "--topo-order", "--reverse", "--all", "--reflog", "--ignore-missing")
    for commit_id in git.read("list commits", *args).decode().split() if found != Survey() else ():
        head, _, message = reader.read(commit_id).data.partition(b"\n\n")
        parents = [line[7:].decode() for line in head.split(b"\n") if line.startswith(b"parent ")]
        commit = Commit(commit_id, head, message, parents, paths.list_moves(head[5 : head.index(b"\n")].decode()))
        if commit.moves or commit_id in found.messages or not changed.isdisjoint(parents):
            changed.add(commit_id)
            yield commit


def rewrite(git: Git, rules: Rules, found: Survey, tick: Callable[[int], None] = lambda _: None) -> Rewritten:
    """Make all commits again that hold what was `found` or come after one, and return the new ids."""
    args = ("fast-import", "--quiet", "--force", "--done", "--date-format=raw-permissive")
    with git.reading() as reader, git.stream(*args) as process:
        importer = _Importer(process, rules, git.repository.top)
        importer.import_files(found)
        for done, commit in enumerate(iterate_changed(git, reader, rules, found), 1):
            importer.import_commit(commit)
            tick(done)
        importer.say(b"done\n")
    git.query("update-ref", "-d", WORKING_REF)
    _rewrite_tags(git, rules, importer.rewritten)
    return importer.rewritten


class _Importer:
    """Speaks to one `git fast-import`."""

    def __init__(self, process: Any, rules: Rules, top: Path) -> None:
        self._process, self._rules, self._top = process, rules, top
        self._marks: dict[str, bytes] = {}
        self.rewritten: Rewritten = {}

    def import_files(self, found: Survey) -> None:
        for old, data in found.files.items():
            self.rewritten[old] = None
            if data is not None:
                self.say(b"blob\nmark %s\n" % self._mark(old) + _data(data))
                self._ask_id(old)

    def import_commit(self, commit: Commit) -> None:
        change, lines = self._rules.change_text, commit.head.split(b"\n")
        self.say(b"reset %s\n\n" % WORKING_REF.encode())
        self.say(b"commit %s\nmark %s\n" % (WORKING_REF.encode(), self._mark(commit.id)))
        for name in (b"author ", b"committer ", b"encoding "):
            self.say(b"".join(change(line) + b"\n" for line in lines if line.startswith(name)))
        # A revert names the commit it reverts: by its new id, as long as the old one was written.
        self.say(_data(translate_ids(change(commit.message), self.rewritten)))
        for number, parent in enumerate(commit.parents):
            self.say(b"%s %s\n" % (b"merge" if number else b"from", self._marks.get(parent, parent.encode())))
        self.say(b"M 040000 %s \n" % lines[0][5:])
        for move in commit.moves:
            self.say(b"D %s\n" % _quoted(move.path))
        for move in commit.moves:
            if self.rewritten.get(move.blob, move.blob) is not None:
                named = self._marks.get(move.blob, move.blob.encode())
                self.say(b"M %s %s %s\n" % (move.mode, named, _quoted(self._rules.change_path(move.path))))
        self._ask_id(commit.id)

    def _mark(self, old: str) -> bytes:
        """Return the mark of what takes the place of `old`: only by it does fast-import find what it has made."""
        self._marks[old] = b":%d" % (len(self._marks) + 1)
        return self._marks[old]

    def _ask_id(self, old: str) -> None:
        self.say(b"get-mark %s\n" % self._marks[old])
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise explain("rewrite the history", self._process.stderr.read().decode("utf-8", "replace"), self._top)
        self.rewritten[old] = answer.decode()

    def say(self, words: bytes) -> None:
        self._process.stdin.write(words)


class _Move(NamedTuple):
    path: bytes
    mode: bytes
    blob: str


class Commit(NamedTuple):
    """A commit that is made again: its headers, message and parents, and the files of it that change."""

    id: str
    head: bytes
    message: bytes
    parents: list[str]
    moves: tuple[_Move, ...]


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
        for name, version in parse_tree_object(self._reader.read(tree)):
            object_id = version.blob
            is_bad = is_all or (has_bad_name and self._rules.change_path(name) != name)
            if version.is_folder:
                inner = self._find(object_id, is_all=True) if is_bad else self.list_moves(object_id)
                yield from (_Move(name + b"/" + move.path, move.mode, move.blob) for move in inner)
            elif is_bad or object_id in self._found.files:
                yield _Move(name, version.mode.encode(), object_id)


def _rewrite_tags(git: Git, rules: Rules, rewritten: Rewritten) -> None:
    """Make annotated tags again that name a new object or hold the text; a tag may name another one."""

    def make_again(tag: str) -> str:
        head, _, rest = reader.read(tag).data.partition(b"\n")
        target = head.removeprefix(b"object ").decode()
        new = (make_again(target) if rest.startswith(b"type tag\n") else rewritten.get(target)) or target
        text = rules.change_text(rest)
        if new == target and text == rest:
            return tag
        made = b"object " + new.encode() + b"\n" + _TAG_SIGNATURE.sub(b"", text)
        rewritten[tag] = git.read_text("make a tag again", "hash-object", "-t", "tag", "-w", "--stdin", stdin=made)
        return str(rewritten[tag])

    listed = git.read_text("list tags", "for-each-ref", "--format=%(objecttype) %(objectname)")
    with git.reading() as reader:
        for line in listed.splitlines():
            if line.startswith("tag "):
                make_again(line[4:])


def is_signed(head: bytes) -> bool:
    """Return whether the headers of a commit have a signature."""
    return _SIGNATURE.search(head + b"\n") is not None


def translate_ids(text: bytes, ids: Mapping[str, str | None]) -> bytes:
    """Return `text` with the new id for each old one that it names in full."""
    return _ID.sub(lambda found: (ids.get(found[0].decode()) or found[0].decode()).encode(), text)


def _quoted(path: bytes) -> bytes:
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def _data(data: bytes) -> bytes:
    return b"data %d\n" % len(data) + data + b"\n"
