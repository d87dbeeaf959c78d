"""The repositories of documents and their sources, each opened once."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange
from quaid.docs.freshness import SourceFinding
from quaid.docs.registry import Project
from quaid.docs.sources import FileList, References
from quaid.errors import GitError
from quaid.history.repository import find_repository
from quaid.history.source_repository import MAX_COMMITS, Log, LoggedCommit, SourceRepository, open_repository
from quaid.vault import files


class SourceTree:
    """One repository during a check."""

    def __init__(self, repository: SourceRepository) -> None:
        self.repository = repository
        self.top = repository.top
        self._after: dict[str, Mapping[str, LoggedCommit]] = {}

    @cached_property
    def log(self) -> Log:
        return self.repository.log()

    def read_older(self) -> None:
        """Read more of the history than at first, once."""
        if not self.log.is_whole and len(self.log.commits) < MAX_COMMITS and not self.repository.boundary:
            self.log = self.repository.log(MAX_COMMITS)
            self._after.clear()

    def find(self, commit_id: str) -> str | None:
        """Return the whole id of a commit of this repository, if it is in the history that was read."""
        if self.log.find(commit_id) is None:
            self.read_older()
        return self.log.find(commit_id)

    def commit(self, commit_id: str) -> LoggedCommit:
        """Return the commit of the log with this id."""
        return self.log.commits[self.log.places[commit_id]]

    @cached_property
    def files(self) -> FileList:
        """The files in HEAD, and those that are gone."""
        there = self.repository.files
        return FileList(tuple(there), tuple(path for path in self.log.touching if path not in there))

    def after(self, base: str) -> Mapping[str, LoggedCommit]:
        """Return the commits after `base` by id, newest first."""
        if base not in self._after:
            self._after[base] = {commit.id: commit for commit in self.log.after(base)}
        return self._after[base]

    def is_changed(self, path: Path) -> bool:
        """Return whether a file differs from HEAD."""
        data, inside = files.read_note(path.parent, path.name), self.inside(path)
        return inside in self.repository.files if data is None else not self.repository.holds(inside, data)

    def inside(self, path: Path) -> str:
        """Return the path of a folder or file in this repository."""
        return self.repository.inside(path)

    def has_submodule(self, prefix: str) -> bool:
        """Return whether the repository that is checked out at `prefix` is stored in this one."""
        folder = Path(os.path.realpath(self.top)) / prefix
        try:
            found = find_repository(folder) if folder == Path(os.path.realpath(folder)) else None
        except (OSError, ValueError):
            return False
        homes = (folder, self.repository.common_dir)
        return found is not None and any(found.common_dir.is_relative_to(home) for home in homes)


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A repository that a document may refer to.

    `folder` is the document's, `root` the project's, both relative to the document's repository; `prefix` is the place
    of a submodule in that.
    """

    tree: SourceTree
    folder: str
    root: str
    prefix: str = ""

    def visible(self, references: References) -> References:
        """Return the references into this repository; those into a submodule are made relative to it."""
        if not self.prefix:
            return references
        inside = []
        for reference in references.written:
            for base in dict.fromkeys((self.folder, self.root, "")):
                full = posixpath.normpath(posixpath.join(base, reference))
                if full == self.prefix or full.startswith(f"{self.prefix}/"):
                    inside.append(full[len(self.prefix) + 1 :] or ".")
                    break
        return References(tuple(inside), references.origin)


class SourceTrees:
    """The repositories of the projects of one vault."""

    def __init__(self, root: Path, projects: Sequence[Project]) -> None:
        self._root = root
        self._projects = {project.name: project for project in projects}
        self._trees: dict[Path, SourceTree | None] = {}

    def open(self, folder: Path) -> SourceTree | None:
        """Return the repository around a folder; None if there is no repository or no folder."""
        if folder not in self._trees:
            found = open_repository(folder) if folder.is_dir() else None
            same = next((t for t in self._trees.values() if t and found and t.top == found.top), None)
            self._trees[folder] = same or (SourceTree(found) if found else None)
        return self._trees[folder]

    def roots(self, doc: Doc) -> tuple[Path, ...]:
        """Return the folders of a document's sources."""
        project = self._projects[doc.project]
        return project.roots(self._root) if doc.is_in_vault else (doc.folder,)

    def places(self, doc: Doc) -> list[SourcePlace]:
        """Return the repositories that a document may refer to."""
        found = []
        for root in self.roots(doc):
            if (tree := self.open(root)) is not None:
                base = tree.inside(root)
                folder = base if doc.is_in_vault else posixpath.dirname(tree.inside(doc.file))
                found.append(SourcePlace(tree, folder, base))
        return found

    def with_submodules(self, places: Iterable[SourcePlace]) -> Iterator[SourcePlace]:
        """Yield `places`, and the submodules that are checked out in them."""
        for place in places:
            yield place
            for prefix in place.tree.repository.submodules:
                tree = self.open(place.tree.top / prefix) if place.tree.has_submodule(prefix) else None
                if tree is not None and tree is not place.tree:  # else it is not checked out
                    yield SourcePlace(tree, place.folder, place.root, prefix)

    def heads(self, doc: Doc) -> list[str | None]:
        """Return the HEADs on which a check of a document depends, None for a folder without one: those of the
        repositories of its sources, of their submodules, and its own.
        """
        roots = self.roots(doc)
        trees = [tree for root in roots if (tree := self.open(root))]
        modules = [
            tree.top / path for tree in trees for path in tree.repository.checked_out if tree.has_submodule(path)
        ]
        heads: list[str | None] = []
        for folder in (*roots, *modules, *(() if doc.is_in_vault else (doc.file.parent,))):
            tree = self.open(folder)
            try:
                heads.append(tree.repository.head if tree else None)
            except GitError:
                heads.append(None)
        return heads

    def newest_head(self, doc: Doc) -> str | None:
        """Return the HEAD of the repository of a document's sources, the newest of several."""
        trees = [place.tree for place in self.places(doc)]
        if len(trees) > 1:  # for the others, the commit of that time counts
            trees.sort(key=lambda tree: tree.log.commits[0].at if tree.log.commits else 0, reverse=True)
        return trees[0].repository.head if trees else None

    def read_sources(self, doc: Doc, sources: Iterable[str]) -> dict[str, bytes]:
        """Return the content of a document's `sources` in HEAD, by path."""
        contents: dict[str, bytes] = {}
        for place in self.places(doc):
            there = place.tree.repository.files
            blobs = {there[path]: path for path in sources if path in there}
            contents |= {blobs[blob]: data for blob, data in place.tree.repository.git.read_blobs(blobs).items()}
        return contents

    def read_changes(self, findings: Sequence[SourceFinding]) -> list[SourceChange]:
        """Return the changes of the findings, with their bytes."""
        blobs: dict[str, bytes] = {}
        for top in dict.fromkeys(finding.top for finding in findings):
            tree = self.open(Path(top))
            if tree is not None:
                pairs = [(finding.before, finding.after) for finding in findings if finding.top == top]
                blobs |= tree.repository.git.read_blobs([blob for pair in pairs for blob in pair if blob])
        return [SourceChange(each, blobs.get(each.before or ""), blobs.get(each.after or "")) for each in findings]
