"""Documents of projects in a run of the janitor: those that are stale or have grown, and branches for others."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import registry
from quaid.docs.freshness import Freshness, why_unchecked
from quaid.docs.judgements import StaleDoc, apply_stored
from quaid.docs.source_trees import SourceTree, SourceTrees
from quaid.docs.staleness import StalenessCheck, changes_of
from quaid.docs.updater import propose_branch
from quaid.errors import QuaidError
from quaid.history.source_repository import MAX_COMMITS
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.documentation import Documentation
    from quaid.local.runs import Decision, Judgements
    from quaid.open_vault import OpenVault

RECENT = timedelta(days=90)
HALF_A_YEAR = timedelta(days=182)
LARGE = 20_000
"""Bytes: one in ten of 304 READMEs of packages is as large. A smaller document is read whole."""
MANY_CHANGES = 12
"""In `RECENT`: one a week, as a document is changed with nearly every piece of work on its subject."""
MUCH_GROWTH = 1.5
"""Times its former size: whatever was added replaced nothing."""


class ProjectDocs:
    """The documents of one vault during one run. `problems` are sentences about what could not be checked."""

    def __init__(self, vault: OpenVault, documentation: Documentation, judgements: Judgements) -> None:
        self._root = vault.root
        self._settings = vault.settings
        self._documentation = documentation
        self._judgements = judgements
        self.problems: list[str] = []

    def stale(self) -> list[StaleDoc]:
        """Return the stale documents, without those that a model found to be true or that the owner is editing."""
        self.problems += why_unchecked(freshness for _, freshness in self._checked)
        opened = []
        for doc, freshness in self._select_stale(self._checked):
            try:
                found = StaleDoc.open(self._trees, doc, freshness)
                if self._is_committed(doc, found.data):
                    opened.append(found)
            except (QuaidError, OSError) as error:
                self.problems.append(f"{doc.id} could not be looked at: {error}")
        return opened

    def grown(self, now: datetime) -> list[tuple[Doc, bytes, int, float]]:
        """Return the documents that have grown by many additions, with their content, changes and growth as in
        `find_growth`; none that is stale.
        """
        stale = {doc.id for doc, _ in self._select_stale(self._checked)}
        by_tree: dict[SourceTree, list[Doc]] = {}
        for doc in self._docs:
            with suppress(OSError):
                is_large = doc.id not in stale and doc.file.stat().st_size >= LARGE
                if is_large and (tree := self._trees.open(doc.file.parent)) is not None:
                    by_tree.setdefault(tree, []).append(doc)
        grown = []
        for tree, docs in by_tree.items():
            try:
                paths = [tree.inside(doc.file) for doc in docs]
                log = tree.repository.log(MAX_COMMITS, paths)
                touched = [
                    [(each.at, touch.after) for each, touch in changes_of(log, path) if touch.after] for path in paths
                ]
                sizes = tree.repository.git.read_sizes(blob for steps in touched for _, blob in steps)
                for doc, steps in zip(docs, touched, strict=True):
                    life = [(datetime.fromtimestamp(at, UTC), sizes[blob]) for at, blob in steps if blob in sizes]
                    found, data = find_growth(life, now), files.read_note(doc.folder, doc.rel_path)
                    if found is not None and data is not None and self._is_committed(doc, data):
                        grown.append((doc, data, *found))
            except QuaidError as error:
                self.problems.append(f"{tree.top.name} could not be looked at: {error}")
        return grown

    def propose(self, decision: Decision) -> str:
        """Create the branch of a decision, store it, and return a sentence that names it.

        Raises:
            NoteChangedError: the document has changed since.
            ProposalError: it cannot be created now, and why.
        """
        assert decision.branch is not None
        made = propose_branch(decision.branch)
        self._judgements.add(decision.task, {decision.key: f"branch {made.branch}"})
        folder = shlex.quote(str(Path(decision.branch.folder).resolve()))
        return f"{decision.subject}: look at {made.branch} and merge it: git -C {folder} merge {made.branch}"

    def stale_ids(self) -> list[str]:
        """The ids of the documents that are stale now."""
        if not (self._settings.systems.projects and self._settings.docs.check):
            return []
        try:
            return [doc.id for doc, _ in self._select_stale(self._documentation.check())]
        except QuaidError as error:
            self.problems.append(f"Which documents are stale is not known: {error}")
            return []

    def index(self) -> list[str]:
        """Add new projects of the vault, bring the index of the documents up to date, and describe what is new."""
        if not self._settings.systems.projects:
            return []
        news: list[str] = []
        try:
            homes = self._documentation.discover(None).homes
            news += [f"{home} is a project now. See it with: quaid project show {home}" for home in homes]
        except QuaidError as error:
            news.append(f"New projects could not be looked for: {error}")
        try:
            added = self._documentation.sync().added
            news += [f"New documents: {first_three(added)}"] if added else []
        except QuaidError as error:
            news.append(f"The documents could not be indexed: {error}")
        return news

    @cached_property
    def _trees(self) -> SourceTrees:
        return SourceTrees(self._root, self._documentation.projects(registry.STATES))

    @cached_property
    def _docs(self) -> Sequence[Doc]:
        return self._documentation.catalogue().docs

    @cached_property
    def _checked(self) -> Sequence[tuple[Doc, Freshness]]:
        """The documents with their freshness; none if they are not to be checked."""
        if not self._settings.docs.check:
            return ()
        found = StalenessCheck(self._root, self._trees).check(self._docs, is_all=True)
        return tuple(zip(self._docs, found, strict=True))

    def _select_stale(self, found: Sequence[tuple[Doc, Freshness]]) -> list[tuple[Doc, Freshness]]:
        """Return the stale documents with all changes that are significant without a model."""
        known = apply_stored([freshness for _, freshness in found], self._judgements)
        return [pair for pair, judged in zip(found, known, strict=True) if judged.is_stale]

    def _is_committed(self, doc: Doc, data: bytes) -> bool:
        """Return whether a document is as HEAD has it: a branch can only change a committed one."""
        if doc.is_in_vault:
            return True
        tree = self._trees.open(doc.file.parent)
        if tree is not None and tree.repository.holds(tree.inside(doc.file), data):
            return True
        self.problems.append(f"{doc.id} was changed and not committed: nothing is proposed for it until it is.")
        return False


def first_three(names: Sequence[str]) -> str:
    """The first three of them, and how many more there are."""
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def find_growth(commits: Sequence[tuple[datetime, int]], now: datetime) -> tuple[int, float] | None:
    """Return the changes in the last 90 days and the growth of a document that may be worth shortening: large, often
    changed, and much larger than it was. None for any other.

    `commits` are (time, size in bytes) of each commit that changed it. Growth compares the size with that of half a
    year ago, or of the first commit if that is 90 days old; a younger document is still being written.
    """
    sized = sorted(commits)
    older = [size for when, size in sized if when <= now - HALF_A_YEAR]
    first = [size for when, size in sized[:1] if when <= now - RECENT]
    before = next(iter(older[-1:] or first), None)
    changes = sum(now - RECENT < when <= now for when, _ in sized)
    if before is None or changes < MANY_CHANGES or sized[-1][1] < LARGE:
        return None
    growth = sized[-1][1] / max(1, before)
    return (changes, growth) if growth >= MUCH_GROWTH else None
