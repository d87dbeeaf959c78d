"""The repositories that documents and their sources lie in, each opened once."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from quaid.docs.catalogue import Doc
from quaid.docs.registry import Project
from quaid.docs.sources import FileList
from quaid.errors import GitError
from quaid.history.repository import find_repository
from quaid.history.source_repository import MAX_COMMITS, Log, LoggedCommit, SourceRepository
from quaid.history.vault_history import History
from quaid.vault import files


class Tree:
    """One repository while it is being asked."""

    def __init__(self, repository: SourceRepository) -> None:
        self.repository = repository
        self.top = repository.top
        self._after: dict[str, Mapping[str, LoggedCommit]] = {}

    @cached_property
    def log(self) -> Log:
        return self.repository.log()

    def look_further(self) -> None:
        """Read more of the history than at first, once."""
        if not self.log.is_whole and len(self.log.commits) < MAX_COMMITS and not self.repository.boundary:
            self.log = self.repository.log(MAX_COMMITS)
            self._after.clear()

    def find(self, commit_id: str) -> str | None:
        """The whole id of a commit of this repository, as far as its history is read."""
        if self.log.find(commit_id) is None:
            self.look_further()
        return self.log.find(commit_id)

    @cached_property
    def files(self) -> FileList:
        there = self.repository.files
        return FileList(tuple(there), tuple(path for path in self.log.touching if path not in there))

    def after(self, base: str) -> Mapping[str, LoggedCommit]:
        if base not in self._after:
            self._after[base] = {step.id: step for step in self.log.after(base)}
        return self._after[base]

    def is_changed(self, path: Path) -> bool:
        """Whether a file differs from what HEAD has."""
        data = files.read_note(path.parent, path.name)
        (blob,) = self.repository.blobs_at([(self.repository.head or "HEAD", self.inside(path))])
        kept = self.repository.read_blobs([blob] if blob else [])
        was = kept.get(blob or "")
        return data != was and (data is None or was is None or data.replace(b"\r\n", b"\n") != was)

    def inside(self, path: Path) -> str:
        """A folder or file as this repository knows it."""
        return self.repository.inside(path)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document's references may point: a repository, and which part of the document's own paths leads to it.

    `folder` is the document's, `root` the project's, both relative to the repository that the document lies in;
    `prefix` is where this one is checked out in that.
    """

    tree: Tree
    folder: str
    root: str
    prefix: str = ""


def holds(tree: Tree, prefix: str) -> bool:
    """Whether the repository that is checked out at `prefix` is kept in this one: not behind a link, nor elsewhere."""
    folder = Path(os.path.realpath(tree.top)) / prefix
    try:
        found = find_repository(folder) if folder == Path(os.path.realpath(folder)) else None
    except (OSError, ValueError):
        return False
    around = tree.repository.common_dir
    return found is not None and any(found.common_dir.is_relative_to(home) for home in (folder, around))


class Trees:
    """The repositories of the projects of one vault."""

    def __init__(self, root: Path, projects: Sequence[Project]) -> None:
        self._root = root
        self._projects = {project.name: project for project in projects}
        self._trees: dict[Path, Tree | None] = {}

    def open(self, folder: Path) -> Tree | None:
        """The repository around a folder; None where there is none, or no folder."""
        if folder not in self._trees:
            found = History.open_source(folder) if folder.is_dir() else None
            same = next((t for t in self._trees.values() if t and found and t.top == found.top), None)
            self._trees[folder] = same or (Tree(found) if found else None)
        return self._trees[folder]

    def head(self, root: Path) -> str | None:
        """The commit that the repository around a source root is at; None where there is none to be read."""
        tree = self.open(root)
        try:
            return tree.repository.head if tree else None
        except GitError:
            return None

    def heads(self, doc: Doc) -> list[str | None]:
        """The commits that all stand at which a check of a document asks: around its sources, in them, and its own."""
        trees = [tree for root in self.roots(doc) if (tree := self.open(root))]
        modules = [tree.top / path for tree in trees for path in tree.repository.checked_out if holds(tree, path)]
        return [
            self.head(folder)
            for folder in (*self.roots(doc), *modules, *(() if doc.is_in_vault else (doc.file.parent,)))
        ]

    def roots(self, doc: Doc) -> tuple[Path, ...]:
        """The folders in which the sources of a document are."""
        project = self._projects[doc.project]
        return project.roots(self._root) if doc.is_in_vault else (doc.folder,)

    def places(self, doc: Doc) -> list[Place]:
        """Where the references of a document may point."""
        found = []
        for root in self.roots(doc):
            tree = self.open(root)
            if tree is not None:
                base = tree.inside(root)
                folder = base if doc.is_in_vault else posixpath.dirname(tree.inside(doc.file))
                found.append(Place(tree, folder, base))
        return found

    def with_submodules(self, places: Iterable[Place]) -> Iterator[Place]:
        """The same, and the submodules that are checked out in them."""
        for place in places:
            yield place
            for prefix in place.tree.repository.submodules:
                tree = self.open(place.tree.top / prefix) if holds(place.tree, prefix) else None
                if tree is not None and tree is not place.tree:  # else it is not checked out
                    yield Place(tree, place.folder, place.root, prefix)
