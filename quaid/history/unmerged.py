"""The files that a merge left unmerged: in git's index, or marked in the commit of a pull."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from quaid.errors import GitError
from quaid.history import repository as repositories
from quaid.history.git import Git, split_items
from quaid.model import Kind
from quaid.vault import files, frontmatter, merging
from quaid.vault.layout import Layout

_FORGETTABLE = (Kind.FACT, Kind.ENTITY, Kind.EPISODE, Kind.REVIEW)


class Unmerged(NamedTuple):
    """A file that git could not merge, by its path in the vault, and its blobs; None on the side that has it not.
    `is_committed` if a pull has committed it with marks.
    """

    path: str
    base: str | None
    ours: str | None
    theirs: str | None
    is_committed: bool = False

    @property
    def is_removed(self) -> bool:
        """Return whether one side has removed what the other has changed."""
        return self.base is not None and (self.ours is None) != (self.theirs is None)


def list_unmerged(root: Path) -> list[Unmerged]:
    """The files of the vault at `root` that a merge in progress has left, by path; none where there is no merge."""
    repository = repositories.find_repository(root)
    if repository is None:
        return []
    out = Git(repository).read("look for conflicts", "ls-files", "-u", "-z", "--", repository.prefix or ".")
    stages: dict[str, dict[str, str]] = {}
    for item in split_items(out):
        about, _, path = item.partition("\t")
        _, blob, stage = about.split(" ")
        stages.setdefault(path, {})[stage] = blob
    return [
        Unmerged(repository.to_vault(path), found.get("1"), found.get("2"), found.get("3"))
        for path, found in sorted(stages.items())
        if repository.is_in_vault(path)
    ]


def list_conflicts(root: Path) -> list[Unmerged]:
    """Return the files of the vault at `root` that a merge has left, by path: those of a merge in progress, and those
    that a pull has committed with marks which are still there.
    """
    repository = repositories.find_repository(root)
    found = {each.path: each for each in list_unmerged(root)}
    if repository is None or repositories.read_state(repository).head is None:
        return list(found.values())
    shape = ("-z", "--merges", "--format=%H%n%(trailers:key=Quaid-Conflict,valueonly,unfold)")
    for item in split_items(Git(repository).read("look for conflicts", "log", *shape, "--grep=^Quaid-Conflict: ")):
        commit, *paths = item.split("\n")
        for path in filter(None, paths):
            blobs = [f"{commit}{parent}:{repository.to_git(path)}" for parent in ("", "^1", "^2")]
            now = files.read_note(root, path) if path not in found else None
            if now is None or b"<<<<<<<" not in now:
                continue
            marked, ours, theirs = (read_side(root, blob) or b"" for blob in blobs)
            if any(conflict in now for conflict in merging.find_conflicts(marked, ours, theirs)):
                found[path] = Unmerged(path, None, blobs[1], blobs[2], is_committed=True)
    return [found[path] for path in sorted(found)]


def read_side(root: Path, blob: str | None) -> bytes | None:
    """Return a version of an unmerged file; None where that side has it not."""
    if blob is None:
        return None
    repository = repositories.find_repository(root)
    if repository is None:
        raise GitError("read a note", f"{root} is in no repository. Make one there with: git init")
    return Git(repository).read("read a note", "cat-file", "blob", blob)


def settle(root: Path, path: str, after: bytes | None) -> None:
    """Make `after` the outcome of the merge for a file, on disk and in git's index; None removes it.

    Raises:
        NoteChangedError: an editor is saving it.
        GitError: git refused.
    """
    repository = repositories.find_repository(root)
    before = files.read_note(root, path)
    if before != after:
        files.write_note(root, path, before, after)
    if repository is not None:
        Git(repository).read("settle a conflict", "add", "-A", "--", repository.to_git(path))


def keep_forgotten(root: Path, place: Layout) -> list[str]:
    """Remove what one side has forgotten and the other has changed, and return the paths: nothing forgotten returns.

    Only notes that Quaid made: what happens to a note of the owner's is the owner's to say.
    """
    forgotten = []
    for unmerged in list_unmerged(root):
        said = read_side(root, unmerged.ours or unmerged.theirs) if unmerged.is_removed else None
        fields = frontmatter.parse(said.decode("utf-8", "replace")).fields if said is not None else {}
        if said is not None and place.kind_of(unmerged.path, fields) in _FORGETTABLE:
            settle(root, unmerged.path, None)
            forgotten.append(unmerged.path)
    return forgotten


def operation(root: Path) -> str | None:
    """Return the operation that git is in the midst of: merge, rebase, cherry-pick …"""
    repository = repositories.find_repository(root)
    return repositories.read_state(repository).operation if repository is not None else None
