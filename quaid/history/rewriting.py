"""History without a text: each commit that holds it, or comes after one that does, is made again by `git fast-import`.

Then refs, indexes, reflogs and packs follow the new commits, and the old objects are removed. Each step may be
repeated: a killed process leaves old objects until `prune`, the last of them, so the next run finds again what still
has to move. Commits from before the first one that changes keep their ids and signatures.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from quaid.errors import BadInputError
from quaid.history.git import (
    Git,
    ObjectReader,
    Progress,
    Version,
    explain,
    hash_blob,
    parse_raw,
    parse_tree_object,
    split_items,
)
from quaid.history.repository import REFTABLE_BRANCH, Repository, find_repository, read_boundary, read_state, read_text

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


def survey(git: Git, rules: Rules, progress: Progress) -> Survey:
    """Return which objects hold the text, also those that nothing reaches.

    Raises:
        GitError: an object cannot be read.
        BadInputError: two files of a folder would have one name, so that one of them would be lost.
    """
    found = Survey()
    named: dict[tuple[str, bytes], list[str]] = {}
    for done, item in enumerate(git.iterate_objects(), 1):
        if not done % 1000:
            progress("objects", done, 0)
        if item.kind == "blob":
            if (changed := rules.change_file(item.data)) != item.data:
                found.files[item.id] = changed
        elif item.kind == "tree":
            if rules.change_path(item.data) != item.data:
                found.trees.add(item.id)
                for name, version in parse_tree_object(item):
                    named.setdefault((item.id, rules.change_path(name)), []).append(version.blob)
        elif rules.change_text(item.data) != item.data:
            found.messages.add(item.id)
    for (_, name), ids in named.items():
        _check_same(found, name, ids)
    return found


def _check_same(found: Survey, name: bytes, ids: list[str]) -> None:
    """Make sure that the files which one folder would have under one `name` are the same then."""
    left = [found.files.get(each, each) for each in ids]
    stored = [hash_blob(data, ids[0]) if isinstance(data, bytes) else data for data in left if data is not None]
    # Where one of them already is what the other becomes, as after a merge with the old history, nothing is lost.
    if len(stored) > 1 and (len(set(stored)) > 1 or stored[0] not in ids):
        raise BadInputError(
            f"Without the text two files would be called {name.decode('utf-8', 'replace')}: nothing was purged. "
            "Purge one of the notes first: quaid purge REF"
        )


class Commit(NamedTuple):
    """A commit that is made again: its headers, message and parents, and (path, version) of the files that change."""

    id: str
    head: bytes
    message: bytes
    parents: list[str]
    moves: tuple[tuple[bytes, Version], ...]


def iterate_changed(git: Git, reader: ObjectReader, rules: Rules, found: Survey) -> Iterator[Commit]:
    """Yield the commits that a ref, a reflog or a worktree reaches and that have to be made again, parents first."""

    @cache
    def list_moves(tree: str, *, is_all: bool = False) -> tuple[tuple[bytes, Version], ...]:
        """Return the files below a tree of which something changes, or all; their paths begin there."""
        moves: list[tuple[bytes, Version]] = []
        for name, version in parse_tree_object(reader.read(tree)):
            is_bad = is_all or (tree in found.trees and rules.change_path(name) != name)
            if version.is_folder:
                moves += [(name + b"/" + path, inner) for path, inner in list_moves(version.blob, is_all=is_bad)]
            elif is_bad or version.blob in found.files:
                moves.append((name, version))
        return tuple(moves)

    changed: set[str] = set()
    args = ("rev-list", "--topo-order", "--reverse", "--all", "--reflog", "--ignore-missing")
    for commit_id in git.read("list commits", *args).decode().split() if found != Survey() else ():
        head, _, message = reader.read(commit_id).data.partition(b"\n\n")
        parents = [line[7:].decode() for line in head.split(b"\n") if line.startswith(b"parent ")]
        commit = Commit(commit_id, head, message, parents, list_moves(head[5 : head.index(b"\n")].decode()))
        if commit.moves or commit_id in found.messages or not changed.isdisjoint(parents):
            changed.add(commit_id)
            yield commit


def rewrite(git: Git, rules: Rules, found: Survey, progress: Progress) -> Rewritten:
    """Make all commits again that hold what was `found` or come after one, and return the new ids."""
    args = ("fast-import", "--quiet", "--force", "--done", "--date-format=raw-permissive")
    with git.reading() as reader, git.stream(*args) as process:
        importer = _Importer(process, rules, git.repository.top)
        importer.import_files(found)
        for done, commit in enumerate(iterate_changed(git, reader, rules, found), 1):
            importer.import_commit(commit)
            progress("commits", done, 0)
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
        for path, _ in commit.moves:
            self.say(b"D %s\n" % _quoted(path))
        for path, version in commit.moves:
            if self.rewritten.get(version.blob, version.blob) is not None:
                named = self._marks.get(version.blob, version.blob.encode())
                mode, new_path = version.mode.encode(), _quoted(self._rules.change_path(path))
                self.say(b"M %s %s %s\n" % (mode, named, new_path))
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


REMOTES = "refs/remotes/"
_DELETED = re.compile(
    r"FETCH_HEAD|(?:COMMIT|TAG|NOTES)_EDITMSG|(?:MERGE|SQUASH)_MSG|gitk\.cache"
    r"|sharedindex\..*|next-index-.*|index\.stash\..*"  # parts and drafts of an index, which no index needs any more
)
_KEPT = {"index", "packed-refs"}
_STANDSTILL = re.compile(rb"(?m)^([0-9a-f]{40,64}) \1 [^\t\n]*\t?\n")
"""What the reflog says of a branch that moved to its new commit: both are one now."""
_WHOLE_INDEX = ("-c", "core.splitIndex=false", "-c", "core.untrackedCache=false", "update-index")
"""It keeps no old names in a shared file, nor those of files that git does not track."""
_OBJECT_FILE = re.compile(r"[0-9a-f]{2}|tmp_.*|incoming-.*|pack/.*|info/(?:packs|commit-graph|tmp_).*|.*\.lock")
"""What is in `objects` by git's hand: packs, loose objects, lists of them, and drafts and locks of a killed git."""
_PACK = ("pack-objects", "-q", "--all", "--reflog", "--indexed-objects", "--delta-base-offset", "--non-empty")
_PASSWORD = re.compile(r"(?<=://)[^/@]*@")


def list_obstacles(repository: Repository) -> Iterator[str]:
    """Yield what keeps this repository from being rewritten as a whole, each a clause with what to do."""
    common = repository.common_dir
    state = read_state(repository)
    is_partial = any((common / "objects/pack").glob("*.promisor")) or _config(repository, r"^remote\..*\.promisor$")
    is_grafted = (common / "info/grafts").exists() or any((common / "refs/replace").glob("*"))
    borrows = (common / "objects/info/alternates").exists()
    found = (
        (state.operation, f"a {state.operation} is in progress: end it first"),
        (state.locked, f"{repository.index_lock} is there: another git is at work, or one crashed"),
        (state.branch == REFTABLE_BRANCH, "its refs are not files: git refs migrate --ref-format=files"),
        (read_boundary(repository), "it is a shallow clone: git fetch --unshallow"),
        (is_partial, "it is a partial clone: purge in the full one, and clone anew from there"),
        (borrows, "it borrows objects of another repository: git repack -a -d, then delete objects/info/alternates"),
        (any((common / "objects/pack").glob("*.keep")), "a pack is kept by a .keep file: delete that file"),
        (is_grafted, "grafts or replacements change what its history says: make them real or delete them"),
        (any((common / "modules").glob("*")), "it has submodules: purge there, and remove the submodule here first"),
    )
    yield from (clause for is_so, clause in found if is_so)
    for lock in common.glob("worktrees/*/locked"):
        if not (tree := Path(read_text(lock.parent / "gitdir")).parent).is_dir():
            yield f"the locked worktree {tree} is not here: bring it back"


def list_worktrees(repository: Repository) -> list[Repository]:
    """All worktrees of a repository that are there, this one first."""
    out = Git(repository).read("list worktrees", "worktree", "list", "--porcelain", "-z")
    folders = [Path(item.removeprefix("worktree ")) for item in split_items(out) if item.startswith("worktree ")]
    found = (find_repository(folder) for folder in folders if folder.is_dir())
    others = [tree for tree in found if tree is not None and tree.git_dir != repository.git_dir]
    return [repository, *(tree for tree in others if tree.common_dir == repository.common_dir)]


def list_remotes(repository: Repository) -> list[tuple[str, str]]:
    """(name, URL) of each remote, without user and password."""
    lines = _config(repository, r"^remote\..*\.url$").splitlines()
    named = (line.partition(" ") for line in lines)
    return [(key[len("remote.") : -len(".url")], _PASSWORD.sub("", url)) for key, _, url in named]


def list_refs(repository: Repository) -> list[tuple[str, str]]:
    """(name, object) of each ref that is not only the name of another one."""
    out = Git(repository).read("list refs", "for-each-ref", "--format=%(objectname) %(refname) %(symref)")
    rows = (line.split(" ") for line in out.decode("utf-8", "surrogateescape").splitlines())
    return [(row[1], row[0]) for row in rows if not row[2]]


def move_refs(repository: Repository, rewritten: Rewritten) -> None:
    """Let every ref and detached HEAD name the new commits, all or none; what is known of a remote is forgotten."""
    lines = []
    for name, old in list_refs(repository):
        if new := rewritten.get(old):
            gone = name.startswith(REMOTES)
            lines.append(f"delete {name} {old}\n" if gone else f"update {name} {new} {old}\n")
    given = "".join(lines).encode("utf-8", "surrogateescape")
    Git(repository).read("move the branches", "update-ref", "--no-deref", "--stdin", stdin=given)
    for tree in list_worktrees(repository):
        state = read_state(tree)
        if state.detached and (new := rewritten.get(state.head or "")):
            Git(tree).read("move HEAD", "update-ref", "--no-deref", "HEAD", new)


def move_index(repository: Repository, rules: Rules, rewritten: Rewritten) -> None:
    """Let the index of a worktree have the new files; all else that is staged stays as it is."""
    lines = []
    for item in split_items(Git(repository).read("read the index", "ls-files", "--stage", "-z")):
        head, _, path = item.partition("\t")
        mode, blob, stage = head.split(" ")
        raw = path.encode("utf-8", "surrogateescape")
        new_path = rules.change_path(raw).decode("utf-8", "surrogateescape")
        new = rewritten.get(blob, blob)
        if new == blob and new_path == path:
            continue
        lines.append(f"0 {'0' * len(blob)}\t{path}\0")
        if new is not None:
            lines.append(f"{mode} {new} {stage}\t{new_path}\0")
    if lines:
        given = "".join(lines).encode("utf-8", "surrogateescape")
        Git(repository).read("change the index", "update-index", "-z", "--index-info", stdin=given)
    if (repository.git_dir / "index").exists():
        Git(repository).read("change the index", *_WHOLE_INDEX, "--clear-resolve-undo", "--no-split-index")
        Git(repository).read("forget old folders", "write-tree")  # the index keeps their names for the next commit
        Git(repository).query(*_WHOLE_INDEX, "-q", "--refresh", "--force-write-index")


def clean_git_dir(repository: Repository, rules: Rules, rewritten: Rewritten) -> None:
    """Take the text out of the files that git stores next to its objects: reflogs, messages, notes to itself. They name
    the new commits afterwards.
    """
    for path in sorted(repository.common_dir.rglob("*")):
        inner = path.relative_to(repository.common_dir)
        if inner.parts[0] in {"objects", "refs"} or path.name in _KEPT or path.is_symlink() or not path.is_file():
            continue
        if _DELETED.fullmatch(path.name) or "logs/refs/remotes" in path.as_posix():
            path.unlink()
        elif (new := translate_ids(rules.change_text(data := path.read_bytes()), rewritten)) != data:
            overwrite(path, _STANDSTILL.sub(b"", new) if "logs" in path.parts else new)


def prune(repository: Repository) -> None:
    """Pack every object that a ref, reflog, index or worktree reaches, and delete all others with whatever else git, or
    a git that was killed, wrote next to them. No other git may be at work.
    """
    # A reflog's ids that git no longer knows are the old commits' own: nothing leads back to them.
    Git(repository).read("forget worktrees", "worktree", "prune")
    objects = repository.common_dir / "objects"
    packed = Git(repository).read("pack the objects", *_PACK, str(objects / "pack/pack")).decode().split()
    stored = {objects / f"pack/pack-{name}.{kind}" for name in packed for kind in ("pack", "idx", "rev")}
    inside = (path for folder in (".", "info", "pack") for path in (objects / folder).glob("*"))
    for path in sorted(inside):  # an index goes before its pack
        if path not in stored and _OBJECT_FILE.fullmatch(path.relative_to(objects).as_posix()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    Git(repository).read("list the packs", "update-server-info")


def list_versions(repository: Repository, path: str) -> list[str]:
    """The ids of all that the file at `path`, as git knows it, has ever held."""
    args = ("log", "--all", "--reflog", "-m", "--format=", "--raw", "--no-abbrev", "--no-renames", "-z")
    changes = parse_raw(Git(repository).read("read the history of a note", *args, "--", path))
    return sorted({version.blob for _, versions in changes for version in versions if version})


def overwrite(path: Path, data: bytes) -> None:
    """Replace a file by one that holds `data`, or a symbolic link by one that leads there."""
    draft = path.with_name(f".{path.name[:40]}.{os.urandom(6).hex()}.tmp")
    if path.is_symlink():
        draft.symlink_to(os.fsdecode(data))
    else:
        draft.write_bytes(data)
        shutil.copymode(path, draft)
    draft.replace(path)


def _config(repository: Repository, pattern: str) -> str:
    return (Git(repository).query("config", "--get-regexp", pattern) or b"").decode("utf-8", "replace")
