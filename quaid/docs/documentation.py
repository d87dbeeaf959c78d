"""Documentation: what the doors ask of projects and their documents. `Memory.documentation` is one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import registry
from quaid.docs.catalogue import Catalogue, Doc, find_project, list_docs
from quaid.docs.listing import find_doc, find_docs, find_renamed, is_file, list_files
from quaid.docs.registry import Project, State
from quaid.docs.roots import Root, allow, judge
from quaid.errors import BadInputError, QuaidError
from quaid.history.repository import find_twin
from quaid.history.source_repository import MAX_COMMITS
from quaid.history.vault_history import History
from quaid.place import LOCAL_FILE, state_folder
from quaid.sqlite import heal
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.vault import files, notes, transaction

if TYPE_CHECKING:
    from quaid.capture.writer import Dependencies, Writer, WriteResult
    from quaid.docs.changes import SourceCommit
    from quaid.docs.checking import Checker
    from quaid.docs.registrar import NewProject, Registrar
    from quaid.docs.search import DocsFound
    from quaid.docs.search_index import DocsSearch
    from quaid.docs.staleness import Freshness
    from quaid.docs.updating import CarriedOut, Proposal, Updater
    from quaid.llm import Models
    from quaid.local.runs import Judgements
    from quaid.recall.options import Depth
    from quaid.recall.pipeline import Helpers
    from quaid.sync.embedding import Progress

SEARCH_WAIT_MS = 500
"""For another process that is indexing the documents: a question is answered from what there is."""
MOST_EMBED_S = 1.0
"""Passages are long: a large repository takes twenty seconds, and a question does not wait for that."""
ACTIVE: tuple[State, ...] = ("active",)


@dataclass(frozen=True, slots=True)
class Owner:
    """The project that a file belongs to, where in it the file is, and the documents that are about it."""

    project: Project
    path: str
    docs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovered:
    """What a look around found: new projects, and the documents of each project that were not known before."""

    projects: tuple[NewProject, ...]
    homes: tuple[str, ...]
    catalogue: Catalogue
    new: tuple[Doc, ...]


class Documentation:
    """The projects of one vault and their documents."""

    def __init__(
        self,
        dependencies: Dependencies,
        writer: Callable[[], Writer],
        models: Callable[[], Models],
        helpers: Callable[[], Helpers],
        progress: Progress | None = None,
    ) -> None:
        self._dependencies = dependencies
        self._settings = dependencies.settings
        self._root = dependencies.root
        self._writer = writer
        self._own_models = models
        self._helpers = helpers
        self._progress = progress

    @cached_property
    def registrar(self) -> Registrar:
        """Who writes the registry."""
        from quaid.docs.registrar import Registrar

        return Registrar(self._root, self._writer())

    @cached_property
    def _search(self) -> DocsSearch:
        from quaid.docs.search_index import DocsSearch

        return DocsSearch(self._root, self._settings, self._dependencies.embedding)

    def close(self) -> None:
        if "_search" in self.__dict__:
            self._search.close()

    # -- projects ------------------------------------------------------------------------------------------------

    def projects(self, states: Collection[State] = ACTIVE) -> list[Project]:
        """The projects in one of `states`, by name."""
        return [project for project in registry.read_projects(self._root) if project.state in states]

    def project(self, name: str) -> Project:
        """One project, whatever its state.

        Raises:
            BadInputError: there is none of that name.
        """
        known = registry.read_projects(self._root)
        for project in known:
            if name in (project.name, project.label):
                return project
        raise registry.unknown_project(name, known)

    def create(self, new: NewProject, *, allow_roots: bool = True) -> WriteResult:
        """Make a project. Raises BadInputError as `Registrar.create`."""
        return self.registrar.create(new, allow_roots=allow_roots)

    def allow(self, name: str) -> tuple[Root, ...]:
        """Let the source roots of a project be read on this machine, and return all of them.

        Raises:
            BadInputError: there is no such project.
        """
        project = self.project(name)
        allow([root.folder for root in judge(self._root, project.source_roots) if root.can_be_allowed])
        return judge(self._root, project.source_roots)

    def find(self, path: Path) -> Owner | None:
        """Which active project owns a file, also in another worktree of its repository; None where none does."""
        projects = self.projects()
        found = find_project(self._root, projects, path) or self._find_in_worktree(projects, path)
        if found is None:
            return None
        project, rel_path = found
        repository = History.open_source(path.parent)
        inside = repository.inside(path) if repository is not None else rel_path
        about = [
            freshness.doc
            for freshness in self._checker(projects).kept()
            if freshness.doc.startswith((f"{project.name}:", f"{project.home}/")) and inside in freshness.sources
        ]
        return Owner(project, rel_path, tuple(sorted(about)))

    def _find_in_worktree(self, projects: Sequence[Project], path: Path) -> tuple[Project, str] | None:
        for project in projects:
            twin = find_twin(path, [root for root in project.roots(self._root) if root.is_dir()])
            if twin is not None:
                return find_project(self._root, [project], twin)
        return None

    def discover(self, folder: Path | None, *, dry_run: bool = False) -> Discovered:
        """Look for projects, in the vault and below `folder`, and for documents that are new.

        Raises:
            BadInputError: `folder` is none.
        """
        if folder is not None and not folder.is_dir():
            raise BadInputError(f"{folder} is no folder. Give the one that your projects are in.")
        homes = self.registrar.adopt_homes(dry_run=dry_run)
        known = registry.read_projects(self._root)
        found = list(self.registrar.find_projects(folder, known)) if folder is not None else []
        for project in found if not dry_run else ():
            self.registrar.create(project)
        catalogue = self.catalogue()
        seen = {freshness.doc for freshness in self._checker(self.projects()).kept()}
        new = tuple(doc for doc in catalogue.docs if doc.id not in seen)
        return Discovered(tuple(found), tuple(homes), catalogue, new)

    # -- documents -----------------------------------------------------------------------------------------------

    def catalogue(self, project: str | None = None) -> Catalogue:
        """The documents of all active projects, or of one."""
        wanted = [self.project(project)] if project else self.projects()
        return list_docs(self._root, wanted, list_files, find_renamed)

    def doc(self, reference: str, project: str | None = None) -> Doc:
        """The one document that is meant by an id, a path, a file name or a title.

        Raises:
            BadInputError: none is, or several are.
        """
        return find_doc(self.catalogue(project).docs, reference)

    def read(self, reference: str, project: str | None = None) -> tuple[Doc, str, tuple[str, ...]]:
        """A document with its text as it may be shown, and the kinds of the secrets that were taken out of it.

        Raises:
            BadInputError: as `doc`; it is not text.
        """
        from quaid.redaction import admit

        doc = self.doc(reference, project)
        data = files.read_note(doc.folder, doc.rel_path) or b""
        # As it is searched: in another encoding than its own no secret looks like one.
        text, _ = notes.decode(data, len(data))
        if data and not text:
            raise BadInputError(f"{doc.id} is not text. It is neither shown nor searched.")
        admitted = admit(text, keep_lines=True)
        return doc, admitted.text, admitted.redacted

    def sync(self) -> SyncReport:
        """Bring the index of the documents in step with them, vectors and all."""
        return self._search.sync(self.catalogue(), progress=self._progress)

    def search(
        self, query: str, project: str | None = None, limit: int | None = None, depth: Depth | None = None
    ) -> tuple[DocsFound, dict[str, Freshness]]:
        """Passages of the documents, of one project or all, that answer `query`, and how fresh each one's document is.

        Raises:
            BadInputError: there is no such project.
        """
        settings = self._settings
        projects = frozenset({self.project(project).name} if project else ())
        catalogue = self.catalogue()

        def ask(_again: bool) -> DocsFound:
            degraded = self._catch_up(catalogue)
            found = self._search.search(query, projects, limit, depth or settings.recall.depth, self._helpers)
            return replace(found, degraded=(*found.degraded, *degraded))

        found = heal(self._search.path, ask)
        docs = {doc.id: doc for doc in catalogue.docs}
        hit = [docs[doc_id] for doc_id in dict.fromkeys(hit.doc for hit in found.hits) if doc_id in docs]
        checked = self.check_docs(hit) if settings.docs.check else []
        return found, {doc.id: freshness for doc, freshness in checked}

    def _catch_up(self, catalogue: Catalogue) -> list[str]:
        """Bring the index in step for a question that waits; what it lacks afterwards."""
        settings = self._settings
        budget_s = min(settings.recall.embed_budget_s, MOST_EMBED_S)
        try:
            report = self._search.sync(
                catalogue,
                SyncOptions(embed_budget_s=budget_s, fetch_weights=False, wait_ms=SEARCH_WAIT_MS),
                self._progress,
            )
        except QuaidError as error:  # another process is at it, or nothing can be written: then there is what there is
            return [f"stale: {error}"]
        if report.pending and settings.embedding.provider != "none":
            return [f"pending: {report.pending:,} chunks have no vector yet; finish with: quaid docs sync"]
        return []

    def register(self, path: Path, project: str | None, sources: Sequence[str] = ()) -> WriteResult:
        """Put a document into the registry, with what it is about; it counts as true as of its last change.

        Raises:
            BadInputError: the file belongs to no project, or is not there.
        """
        if not is_file(path):
            raise BadInputError(f"{path} is no file. Give the path of the document.")
        if project is None:
            owner = self.find(path)
            if owner is None:
                raise BadInputError(f"{path} belongs to no project. Say which with --project.")
            project = owner.project.name
        name = self.project(project).name
        real = path.resolve()
        known = next((doc for doc in self.catalogue(name).docs if doc.file.resolve() == real), None)
        return self.registrar.register(path, name, sources, None, known.registered_as if known else None)

    def confirm(self, reference: str, project: str | None = None) -> WriteResult:
        """Note that a document is true as its sources are now.

        Raises:
            BadInputError: as `doc`, or its sources are in no repository.
        """
        doc = self.doc(reference, project)
        head = self._checker(self.projects(registry.STATES)).head_of(doc)
        if head is None:
            raise BadInputError(f"The sources of {doc.id} are in no git repository: there is no commit to note.")
        return self.registrar.confirm(doc, head)

    def check(
        self, references: Sequence[str] = (), project: str | None = None, catalogue: Catalogue | None = None
    ) -> list[tuple[Doc, Freshness]]:
        """How true the documents are, all or those that are named; the name of a project means all of its own.
        `catalogue` is that of `project`, where it was listed already.

        Raises:
            BadInputError: as `doc`.
        """
        known = (catalogue or self.catalogue(project)).docs
        docs = find_docs(known, references, project) if references else known
        return self.check_docs(docs, is_all=not references and project is None)

    def check_docs(self, docs: Sequence[Doc], *, is_all: bool = False) -> list[tuple[Doc, Freshness]]:
        """How true `docs` are, by the filter and what a model has said before. `is_all` says that these are all."""
        from quaid.docs.weighing import recall_verdicts

        found = self._checker(self.projects(registry.STATES)).check(docs, is_all=is_all)
        with suppress(QuaidError):  # where local.db cannot be had, the filter's word stands
            found = recall_verdicts(found, self._judgements())
        return list(zip(docs, found, strict=True))

    def known_stale(self) -> list[str]:
        """The documents that were stale at the last check, whatever has happened since."""
        from quaid.docs.weighing import recall_verdicts

        kept = [freshness for freshness in self._checker(self.projects()).kept() if freshness.is_stale]
        return sorted(freshness.doc for freshness in recall_verdicts(kept, self._judgements()) if freshness.is_stale)

    def ask_what_matters(
        self, found: Sequence[tuple[Doc, Freshness]]
    ) -> tuple[list[tuple[Doc, Freshness]], str | None]:
        """The same, with the fast model's word on what the filter let through; why it was not asked, where it failed.

        What it has said before is in `found` already.
        """
        from quaid.docs.weighing import is_weighed

        models = None if all(is_weighed(freshness) for _, freshness in found) else self._models()
        return self._updater().weigh(found, models) if models is not None else (list(found), None)

    def changes(self, found: Sequence[Freshness]) -> dict[str, dict[str, str]]:
        """For each stale document the differences that make it so: source -> unified diff."""
        checker = self._checker(self.projects(registry.STATES))
        told: dict[str, dict[str, str]] = {}
        for freshness in found:
            diffs = told.setdefault(freshness.doc, {})
            for finding, change in zip(freshness.significant, checker.changes(freshness.significant), strict=True):
                path = change.path if change.path not in diffs else f"{Path(finding.top).name}/{change.path}"
                diffs[path] = change.diff()
        return told

    def propose(self, references: Sequence[str] = (), project: str | None = None) -> Iterator[Proposal | str]:
        """What the deep model would change in stale documents, all or those that are named; a sentence for each that it
        could not be asked about, and for what keeps documents from being checked.

        Raises:
            BadInputError: as `doc`.
            ModelUnavailableError: there is no model.
        """
        from quaid.docs.staleness import why_unchecked
        from quaid.errors import TROUBLE_FOR_ALL, ModelError, ModelUnavailableError

        models = self._models()
        if models is None:
            raise ModelUnavailableError("A document is brought up to date by a language model, and there is none")
        updater = self._updater()
        checked = self.ask_what_matters(self.check(references, project))[0]
        yield from why_unchecked(freshness for _, freshness in checked)
        stale = [pair for pair in checked if pair[1].is_stale]
        for doc, freshness in stale[: self._settings.docs.most_updates]:
            try:
                yield updater.propose(updater.open(doc, freshness), models)
            except ModelError as error:
                if isinstance(error, TROUBLE_FOR_ALL):
                    raise
                yield f"{doc.id}: {error}"
        if left := stale[self._settings.docs.most_updates :]:
            yield f"{len(left)} more are stale; docs.most_updates is {self._settings.docs.most_updates}"

    def finish_killed(self) -> None:
        """Commit what a killed writer has begun: a document that is written already is not stale any more."""
        transaction.finish_killed(self._root, self._dependencies.history(), self._settings.git.wait_s)

    def carry_out(self, proposal: Proposal) -> CarriedOut:
        """Make a proposal a commit in the vault, or a branch in the source repository.

        Raises:
            ProposalError, NoteChangedError: nothing was changed, and why.
        """
        return self._updater().carry_out(proposal)

    def follow(self, edited: Sequence[str]) -> list[tuple[Doc, Freshness]]:
        """Take note of files that an agent has edited; the documents that are about them, or were edited themselves.

        The index of the documents is brought in step where one of them was.
        """
        projects = self.projects()
        paths = [path for path in map(Path, edited) if path.is_absolute() and find_project(self._root, projects, path)]
        if not paths:
            return []
        checker = self._checker(projects)
        checker.note_edited(paths)
        docs = self.catalogue().docs
        real = {path.resolve() for path in paths}
        if any(doc.file.resolve() in real for doc in docs):
            self.sync()
        found = self.check_docs(docs, is_all=True)
        return [(doc, freshness) for doc, freshness in found if freshness.edited or doc.file.resolve() in real]

    def history(self, reference: str, project: str | None = None, limit: int = 20) -> tuple[Doc, list[SourceCommit]]:
        """The commits that changed a document, newest first.

        Raises:
            BadInputError: as `doc`.
        """
        from quaid.docs.staleness import changes_of, commit_of

        doc = self.doc(reference, project)
        found = History.open_source(doc.file.parent)
        if found is None:
            return doc, []
        steps = [step for step, _ in changes_of(found.log(MAX_COMMITS), found.inside(doc.file))]
        return doc, [commit_of(step) for step in steps[:limit]]

    def _updater(self) -> Updater:
        from quaid.docs.updating import Updater

        checker = self._checker(self.projects(registry.STATES))
        return Updater(self._root, checker, self._judgements(), self._writer)

    def _judgements(self) -> Judgements:
        from quaid.local.runs import Judgements

        local = state_folder(self._root) / LOCAL_FILE
        return Judgements(local, datetime.now(UTC).date().isoformat())

    def _models(self) -> Models | None:
        if self._settings.models.provider == "none":
            return None
        models = self._own_models()
        return None if models.describe().provider is None else models.start_run()

    def _checker(self, projects: Sequence[Project]) -> Checker:
        from quaid.docs.checking import Checker

        return Checker(self._root, projects, self._progress)
