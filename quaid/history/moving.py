"""Refs, indexes, reflogs and packs after a rewriting: they follow the new commits, and the old objects are taken away.

Each step may be repeated. A killed process leaves old objects until `prune`, the last of them, so the next run finds
again what still has to move.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from quaid.history.git import Git, parse_raw, split_items
from quaid.history.repository import REFTABLE_BRANCH, Repository, find_repository, read_boundary, read_state, read_text
from quaid.history.rewriting import Rewritten, Rules, translate_ids

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


def list_uncommitted(repository: Repository) -> list[str]:
    """The paths with work that is not committed, as git knows them."""
    args = ("status", "--porcelain", "-z", "-uall", "--no-renames")
    return [item[3:] for item in split_items(Git(repository).read("look for uncommitted work", *args))]


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
    """Take the text out of the files that git keeps beside its objects: reflogs, messages, notes to itself. They name
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
    kept = {objects / f"pack/pack-{name}.{kind}" for name in packed for kind in ("pack", "idx", "rev")}
    inside = (path for folder in (".", "info", "pack") for path in (objects / folder).glob("*"))
    for path in sorted(inside):  # an index goes before its pack
        if path not in kept and _OBJECT_FILE.fullmatch(path.relative_to(objects).as_posix()):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    Git(repository).read("list the packs", "update-server-info")


def list_versions(repository: Repository, path: str) -> list[str]:
    """The ids of all that the file at `path`, as git knows it, has ever held."""
    args = ("log", "--all", "--reflog", "-m", "--format=", "--raw", "--no-abbrev", "--no-renames", "-z")
    changes = parse_raw(Git(repository).read("read the history of a note", *args, "--", path))
    return sorted({version.blob for _, *versions in changes for version in versions if version})


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
