"""The repositories of documents and their sources, each opened once."""

from collections.abc import Sequence
from pathlib import Path

from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange, is_test
from quaid.docs.freshness import SourceFinding
from quaid.docs.registry import Project
from quaid.errors import GitError
from quaid.history.note_history import FileChange
from quaid.history.source_repository import SourceRepository, open_repository

MAX_TESTS = 8
"""Files of tests that are read for an update."""


class SourceTrees:
    """The repositories of the projects of one vault."""

    def __init__(self, root: Path, projects: Sequence[Project]) -> None:
        self._root = root
        self._projects = {project.name: project for project in projects}
        self._trees: dict[Path, SourceRepository | None] = {}

    def open(self, folder: Path) -> SourceRepository | None:
        """Return the repository around a folder; None if there is no repository or no folder."""
        if folder not in self._trees:
            found = open_repository(folder) if folder.is_dir() else None
            same = (tree for tree in self._trees.values() if tree and found and tree.top == found.top)
            self._trees[folder] = next(same, found)
        return self._trees[folder]

    def roots(self, doc: Doc) -> tuple[Path, ...]:
        """Return the folders of a document's sources."""
        project = self._projects[doc.project]
        return project.roots(self._root) if doc.is_in_vault else (doc.folder,)

    def places(self, doc: Doc) -> list[tuple[SourceRepository, str]]:
        """Return the repositories that a document may refer to, each with the folder of its project in it."""
        opened = ((root, self.open(root)) for root in self.roots(doc))
        return [(tree, tree.inside(root)) for root, tree in opened if tree is not None]

    def heads(self, doc: Doc) -> list[str | None]:
        """Return the HEADs on which a check of a document depends: those of its sources' repositories and its own."""
        own = () if doc.is_in_vault else (self.open(doc.file.parent),)
        heads: list[str | None] = []
        for tree in (*own, *(tree for tree, _ in self.places(doc))):
            try:
                heads.append(tree.head if tree else None)
            except GitError:
                heads.append(None)
        return heads

    def newest_head(self, doc: Doc) -> str | None:
        """Return the HEAD of the repository of a document's sources, the newest of several."""
        trees = [tree for tree, _ in self.places(doc)]
        if len(trees) > 1:  # for the others, the commit of that time counts
            trees.sort(key=lambda tree: tree.log.commits[0].at if tree.log.commits else 0, reverse=True)
        return trees[0].head if trees else None

    def read_changes(self, findings: Sequence[SourceFinding]) -> list[SourceChange]:
        """Return the changes of the findings, with their bytes."""
        blobs: dict[str, bytes] = {}
        for top in dict.fromkeys(finding.top for finding in findings):
            tree = self.open(Path(top))
            if tree is not None:
                pairs = [(finding.before, finding.after) for finding in findings if finding.top == top]
                blobs |= tree.read_blobs([blob for pair in pairs for blob in pair if blob])
        return [SourceChange(each, blobs.get(each.before or ""), blobs.get(each.after or "")) for each in findings]

    def read_tests(self, findings: Sequence[SourceFinding]) -> list[SourceChange]:
        """Return the changes of tests in the commits of the findings, with their bytes."""
        found: list[SourceFinding] = []
        for top in dict.fromkeys(finding.top for finding in findings):
            tree = self.open(Path(top))
            ids = {commit.id for finding in findings if finding.top == top for commit in finding.commits}
            commits = [commit for commit in tree.log.commits if commit.id in ids] if tree else []
            touches: dict[str, list[FileChange]] = {}
            for touch in (touch for commit in commits for touch in commit.touches if is_test(touch.path)):
                touches.setdefault(touch.path, []).append(touch)
            for path, newest_first in list(touches.items())[:MAX_TESTS]:
                before, after = newest_first[-1].before, newest_first[0].after
                found.append(SourceFinding(top, path, None, before, after))
        return self.read_changes(found)
