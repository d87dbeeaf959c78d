"""Documents of projects for a night: those that are stale or have grown, and branches outside of the vault."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import registry
from quaid.docs.cleanup import LARGE, GrownDoc, is_bloated, measure_churn
from quaid.docs.file_history import changes_of
from quaid.docs.freshness import why_unchecked
from quaid.docs.judgements import StaleDoc, apply_kept
from quaid.docs.source_trees import SourceTree, SourceTrees
from quaid.docs.updater import Updater, propose_branch
from quaid.errors import QuaidError
from quaid.history.source_repository import MAX_COMMITS
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.documentation import Documentation
    from quaid.docs.freshness import Freshness
    from quaid.janitor.decision import Decision
    from quaid.local.runs import Judgements
    from quaid.open_vault import OpenVault


class ProjectDocs:
    """The documents of one vault as one run of the janitor finds them. `problems` are sentences about what it could not
    look at.
    """

    def __init__(self, vault: OpenVault, documentation: Documentation, judgements: Judgements) -> None:
        self._vault = vault
        self._root = vault.root
        self._settings = vault.settings
        self._documentation = documentation
        self._judgements = judgements
        self.problems: list[str] = []

    def stale(self) -> list[StaleDoc]:
        """The documents that their sources have left behind, as the filter sees it. Those are left out that a model has
        found to be true, and those that their owner is at work on.
        """
        self.problems += why_unchecked(freshness for _, freshness in self._checked)
        opened = []
        updater = Updater(self._root, self._trees, self._judgements, self._vault)
        for doc, freshness in self._stale_of(self._checked):
            try:
                found = updater.open(doc, freshness)
                if self._is_committed(doc, found.data):
                    opened.append(found)
            except (QuaidError, OSError) as error:
                self.problems.append(f"{doc.id} could not be looked at: {error}")
        return opened

    def grown(self, now: datetime) -> list[GrownDoc]:
        """Documents that have grown by being added to again and again; none that is stale."""
        stale = {doc.id for doc, _ in self._stale_of(self._checked)}
        by_tree: dict[SourceTree, list[Doc]] = {}
        for doc in self._docs:
            with suppress(OSError):
                is_large = doc.id not in stale and doc.file.stat().st_size >= LARGE
                if is_large and (tree := self._trees.open(doc.file.parent)) is not None:
                    by_tree.setdefault(tree, []).append(doc)
        grown: list[GrownDoc] = []
        for tree, docs in by_tree.items():
            try:
                grown += [found for found in _grown_in(tree, docs, now) if self._is_committed(found.doc, found.data)]
            except QuaidError as error:
                self.problems.append(f"{tree.top.name} could not be looked at: {error}")
        return grown

    def propose(self, decision: Decision) -> str:
        """Make the branch that a decision wants, remember it, and say where it is.

        Raises:
            NoteChangedError: the document is another one by now.
            ProposalError: there can be none now, and why.
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
            return [doc.id for doc, _ in self._stale_of(self._documentation.check())]
        except QuaidError as error:
            self.problems.append(f"Which documents are stale is not known: {error}")
            return []

    def index(self) -> list[str]:
        """Look for new projects in the vault and bring the index of the documents up to date; what was new."""
        if not self._settings.systems.projects:
            return []
        said: list[str] = []
        try:
            homes = self._documentation.discover(None).homes
            said += [f"{home} is a project now. See it with: quaid project show {home}" for home in homes]
        except QuaidError as error:
            said.append(f"New projects could not be looked for: {error}")
        try:
            added = self._documentation.sync().added
            said += [f"New documents: {first_three(added)}"] if added else []
        except QuaidError as error:
            said.append(f"The documents could not be indexed: {error}")
        return said

    # -- looking -------------------------------------------------------------------------------------------------

    @cached_property
    def _trees(self) -> SourceTrees:
        return SourceTrees(self._root, self._documentation.projects(registry.STATES))

    @cached_property
    def _docs(self) -> Sequence[Doc]:
        return self._documentation.catalogue().docs

    @cached_property
    def _checked(self) -> Sequence[tuple[Doc, Freshness]]:
        """The documents with how true they are; none where they are not to be checked."""
        if not self._settings.docs.check:
            return ()
        from quaid.docs.staleness import StalenessCheck

        found = StalenessCheck(self._root, self._trees).check(self._docs, is_all=True)
        return tuple(zip(self._docs, found, strict=True))

    def _stale_of(self, found: Sequence[tuple[Doc, Freshness]]) -> list[tuple[Doc, Freshness]]:
        """The documents that are stale whatever a model has said of their changes, as the filter alone sees them."""
        known = apply_kept([freshness for _, freshness in found], self._judgements)
        return [pair for pair, told in zip(found, known, strict=True) if told.is_stale]

    def _is_committed(self, doc: Doc, data: bytes) -> bool:
        """Return whether a document in a source repository is as HEAD has it: else no branch can have it."""
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


def _grown_in(tree: SourceTree, docs: Sequence[Doc], now: datetime) -> Iterator[GrownDoc]:
    """The documents of one repository that have grown."""
    paths = [tree.inside(doc.file) for doc in docs]
    log = tree.repository.log(MAX_COMMITS, paths)
    lives = [[(step.at, touch.after) for step, touch in changes_of(log, path) if touch.after] for path in paths]
    sizes = tree.repository.sizes_of(blob for life in lives for _, blob in life)
    for doc, life in zip(docs, lives, strict=True):
        commits = [(datetime.fromtimestamp(at, UTC), sizes[blob]) for at, blob in life if blob in sizes]
        churn = measure_churn(commits, now)
        data = files.read_note(doc.folder, doc.rel_path)
        if data is not None and is_bloated(churn):
            yield GrownDoc(doc, data, churn)
