"""Documentation: the projects of a vault and their documents. `Memory.documentation` is one.

- the registry of projects: registry.py reads, registrar.py writes, source_roots.py says which folders may be read
- which files are documents: catalogue.py
- what a document is about: sources.py; in which repositories that is: source_trees.py
- when it was last true and what makes it stale: staleness.py; which changes matter: significance.py, judgements.py
- how it becomes true again: updates.py proposes, validation.py checks, updater.py carries out
- how it is searched: search.py, in the passages of chunks.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import registry, updates
from quaid.docs.catalogue import Catalogue, Doc, find_doc, find_docs, find_project, is_file, list_docs
from quaid.docs.chunks import read_ownership
from quaid.docs.freshness import Freshness, SourceCommit, why_unchecked
from quaid.docs.judgements import StaleDoc, apply_stored, is_judged, judge_all
from quaid.docs.registrar import NewProject, Registrar
from quaid.docs.registry import Project, State
from quaid.docs.search import DocSearch, DocSearchResult
from quaid.docs.source_roots import SourceRoot, allow, check_roots
from quaid.docs.source_trees import SourceTrees
from quaid.docs.staleness import StalenessCheck, changes_of, commit_of
from quaid.docs.updater import apply_update
from quaid.docs.updates import DocUpdate
from quaid.errors import TROUBLE_FOR_ALL, BadInputError, ModelError, ModelUnavailableError, QuaidError
from quaid.history.repository import find_twin
from quaid.history.source_repository import MAX_COMMITS, open_repository
from quaid.index.scope import is_visible
from quaid.local.runs import Judgements
from quaid.place import LOCAL_FILE
from quaid.redaction import admit
from quaid.vault import files, notes, transaction

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.history.proposal import Proposed
    from quaid.llm import Models
    from quaid.model import PlannedCall
    from quaid.open_vault import OpenVault
    from quaid.recall.answers import Answers
    from quaid.recall.options import Depth
    from quaid.sync.derived_index import SyncReport

DEFAULT_LIMIT = 5
MAX_UPDATES = 5
"""The maximum of docs that one run asks the deep model about."""

ACTIVE: tuple[State, ...] = ("active",)
_HEAD_BYTES = 16_000
"""The beginning of a document, which states its owner."""


@dataclass(frozen=True, slots=True)
class FileOwner:
    """The project that owns a file, the file's path in it, and the documents that describe the file."""

    project: Project
    path: str
    docs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectDiscovery:
    """The projects and documents that are new; `homes` are new projects in the vault."""

    projects: tuple[NewProject, ...]
    homes: tuple[str, ...]
    catalogue: Catalogue
    new: tuple[Doc, ...]


class Documentation:
    """The projects of one vault and their documents.

    All raise BadInputError for the name of a `project`, or a `reference` to a document, that fits none or several.
    """

    def __init__(self, vault: OpenVault, answers: Answers) -> None:
        self._vault = vault
        self._settings = vault.settings
        self._root = vault.root
        self._answers = answers

    @cached_property
    def registrar(self) -> Registrar:
        """The writer of the registry."""
        return Registrar(self._vault)

    @cached_property
    def _search(self) -> DocSearch:
        return DocSearch(self._vault)

    def close(self) -> None:
        if "_search" in self.__dict__:
            self._search.close()

    # -- projects ------------------------------------------------------------------------------------------------

    def projects(self, states: Collection[State] = ACTIVE) -> list[Project]:
        """Return the projects in one of `states`, by name."""
        return [project for project in registry.read_projects(self._root) if project.state in states]

    def project(self, name: str) -> Project:
        """Return one project, whatever its state."""
        known = registry.read_projects(self._root)
        for project in known:
            if name in (project.name, project.label):
                return project
        raise registry.unknown_project(name, known)

    def create(self, new: NewProject, *, allow_roots: bool = True) -> WriteResult:
        """Create a project. Raises BadInputError as `Registrar.create`."""
        return self.registrar.create(new, allow_roots=allow_roots)

    def allow(self, name: str) -> tuple[SourceRoot, ...]:
        """Allow the source roots of a project to be read on this machine, and return all of them."""
        project = self.project(name)
        allow([root.folder for root in check_roots(self._root, project.source_roots) if root.can_be_allowed])
        return check_roots(self._root, project.source_roots)

    def find(self, path: Path) -> FileOwner | None:
        """Return the active project that owns a file, also in another worktree of its repository; None if none does."""
        projects = self.projects()
        found = find_project(self._root, projects, path)
        for project in projects if found is None else ():
            twin = find_twin(path, [root for root in project.roots(self._root) if root.is_dir()])
            if found is None and twin is not None:
                found = find_project(self._root, [project], twin)
        if found is None:
            return None
        project, rel_path = found
        repository = open_repository(path.parent)
        inside = repository.inside(path) if repository is not None else rel_path
        known = self._check().stored()
        about = {one.doc for one in known if project.owns(one.doc) and inside in one.sources}
        shown = {doc.id for doc in self.catalogue(project.name).docs} if about else set()
        return FileOwner(project, rel_path, tuple(sorted(shown & about)))

    def discover(self, folder: Path | None, *, dry_run: bool = False) -> ProjectDiscovery:
        """Find new projects in the vault and below `folder`, and new documents.

        Raises:
            BadInputError: `folder` is not a folder.
        """
        if folder is not None and not folder.is_dir():
            raise BadInputError(f"{folder} is not a folder. Give the one that your projects are in.")
        homes = self.registrar.adopt_homes(dry_run=dry_run)
        known = registry.read_projects(self._root)
        found = list(self.registrar.find_projects(folder, known)) if folder is not None else []
        for project in found if not dry_run else ():
            self.registrar.create(project)
        catalogue = self.catalogue()
        seen = {freshness.doc for freshness in self._check().stored()}
        new = tuple(doc for doc in catalogue.docs if doc.id not in seen)
        return ProjectDiscovery(tuple(found), tuple(homes), catalogue, new)

    # -- documents -----------------------------------------------------------------------------------------------

    def catalogue(self, project: str | None = None) -> Catalogue:
        """Return the documents of all active projects, or of one, without the private ones of other owners."""
        found = list_docs(self._root, [self.project(project)] if project else self.projects())
        shown = []
        for doc in found.docs:
            data = b""
            with suppress(OSError):
                data = files.read_note(doc.folder, doc.rel_path, _HEAD_BYTES) or b""
            if is_visible(*read_ownership(doc.rel_path, data), self._vault.owners):
                shown.append(doc)
        return replace(found, docs=tuple(shown))

    def doc(self, reference: str, project: str | None = None) -> Doc:
        """Return the document with this id, path, file name or title."""
        return find_doc(self.catalogue(project).docs, reference)

    def read(self, reference: str, project: str | None = None) -> tuple[Doc, str, tuple[str, ...]]:
        """Return a document, its text without secrets, and the kinds of the secrets that were removed.

        Raises:
            BadInputError: as `doc`; it is not text.
        """
        doc = self.doc(reference, project)
        data = files.read_note(doc.folder, doc.rel_path) or b""
        # Decoded as for the search: in a wrong encoding no secret is recognised.
        text, _ = notes.decode(data, len(data))
        if data and not text:
            raise BadInputError(f"{doc.id} is not text. It is neither shown nor searched.")
        admitted = admit(text, keep_lines=True)
        return doc, admitted.text, admitted.redacted

    def sync(self) -> SyncReport:
        """Bring the index of the documents up to date with them, vectors included."""
        return self._search.index(list_docs(self._root, self.projects()).docs).sync(progress=self._vault.show_progress)

    def search(
        self, query: str, project: str | None = None, limit: int | None = None, depth: Depth | None = None
    ) -> tuple[DocSearchResult, dict[str, Freshness]]:
        """Return the passages of one project or all that answer `query`, and the freshness of their documents by id."""
        projects = frozenset({self.project(project).name} if project else ())
        docs = {doc.id: doc for doc in list_docs(self._root, self.projects()).docs}
        found = self._search.search(
            docs.values(),
            query,
            projects,
            limit or DEFAULT_LIMIT,
            depth or self._settings.recall.depth,
            self._answers.judge,
        )
        hit = [docs[doc_id] for doc_id in dict.fromkeys(hit.doc for hit in found.hits) if doc_id in docs]
        checked = self.check_docs(hit) if self._settings.docs.check else []
        return found, {doc.id: freshness for doc, freshness in checked}

    def register(self, path: Path, project: str | None, sources: Sequence[str] = ()) -> WriteResult:
        """Add a document to the registry, with its sources; it counts as true at its last change.

        Raises:
            BadInputError: the file belongs to no project, or is not there.
        """
        if not is_file(path):
            raise BadInputError(f"{path} is not a file. Give the path of the document.")
        if project is None:
            owner = self.find(path)
            if owner is None:
                raise BadInputError(f"{path} belongs to no project. Say which with --project.")
            project = owner.project.name
        name = self.project(project).name
        real = path.resolve()
        known = next((doc for doc in self.catalogue(name).docs if doc.file.resolve() == real), None)
        return self.registrar.register(path, name, sources, known.registered_as if known else None)

    def confirm(self, reference: str, project: str | None = None, *, by_owner: bool = False) -> WriteResult:
        """Note that a document is true as its sources are now, `by_owner` in the owner's name.

        Raises:
            BadInputError: as `doc`, or its sources are in no repository.
        """
        doc = self.doc(reference, project)
        head = self._trees(registry.STATES).newest_head(doc)
        if head is None:
            raise BadInputError(f"The sources of {doc.id} are in no git repository: there is no commit to note.")
        return self.registrar.confirm(doc, head, by_owner=by_owner)

    def check(
        self, references: Sequence[str] = (), project: str | None = None, catalogue: Catalogue | None = None
    ) -> list[tuple[Doc, Freshness]]:
        """Check all documents or the named ones; the name of a project means all of its own. `catalogue` is that of
        `project`, if it was listed already.
        """
        known = (catalogue or self.catalogue(project)).docs
        docs = find_docs(known, references, project) if references else known
        return self.check_docs(docs, is_all=not references and project is None)

    def check_docs(self, docs: Sequence[Doc], *, is_all: bool = False) -> list[tuple[Doc, Freshness]]:
        """Check `docs` and apply the stored judgements of models. With `is_all` there are no other documents."""
        found = self._check(registry.STATES).check(docs, is_all=is_all)
        with suppress(QuaidError):  # without local.db the check decides alone
            found = apply_stored(found, self._judgements())
        return list(zip(docs, found, strict=True))

    def known(self) -> list[Freshness]:
        """Return the result of the last check of each document, whatever has happened since."""
        return apply_stored(self._check().stored(), self._judgements())

    def judge_changes(self, found: Sequence[tuple[Doc, Freshness]]) -> tuple[list[tuple[Doc, Freshness]], str | None]:
        """Let the fast model judge the significant changes in `found`; also return why it did not, if it failed."""
        models = None if all(is_judged(freshness) for _, freshness in found) else self._models()
        if models is None:
            return list(found), None
        return judge_all(found, self._trees(registry.STATES), models, self._judgements())

    def changes(self, found: Sequence[Freshness]) -> dict[str, dict[str, str]]:
        """Return the differences that make each stale document so: id -> source -> unified diff."""
        trees = self._trees(registry.STATES)
        changes: dict[str, dict[str, str]] = {}
        for freshness in found:
            diffs = changes.setdefault(freshness.doc, {})
            for change in trees.read_changes(freshness.significant):
                path = change.finding.path
                diffs[path if path not in diffs else f"{Path(change.finding.top).name}/{path}"] = change.diff()
        return changes

    def propose(
        self, references: Sequence[str] = (), project: str | None = None
    ) -> Iterator[tuple[StaleDoc, DocUpdate] | str]:
        """Yield the updates that the deep model proposes for stale documents, all or the named ones, and a sentence for
        each document that could not be checked or updated.

        Raises:
            BadInputError: as `doc`.
            ModelUnavailableError: there is no model.
        """
        models = self._models()
        if models is None:
            raise ModelUnavailableError("A document is brought up to date by a language model, and there is none")
        checked = self.judge_changes(self.check(references, project))[0]
        yield from why_unchecked(freshness for _, freshness in checked)
        trees = self._trees(registry.STATES)
        stale_docs = [pair for pair in checked if pair[1].is_stale]
        for doc, freshness in stale_docs[:MAX_UPDATES]:
            stale = StaleDoc.open(trees, doc, freshness)
            try:
                update = updates.ask_update(models, doc.rel_path, stale.text, stale.changes, stale.files)
            except ModelError as error:
                if isinstance(error, TROUBLE_FOR_ALL):
                    raise
                yield f"{doc.id}: {error}"
                continue
            if not update.edits:
                stale.mark_true(update.summary or "it is true as it is", self._judgements())
            yield stale, update
        if left := stale_docs[MAX_UPDATES:]:
            yield f"{len(left)} more are stale; one run updates {MAX_UPDATES}"

    def estimate_update(self, doc: Doc, freshness: Freshness) -> PlannedCall | None:
        """Return the call that `propose` would make for a stale document, at its upper bound; None without a model or
        if the document is not stale.
        """
        models = self._models() if freshness.is_stale else None
        if models is None:
            return None
        stale = StaleDoc.open(self._trees(registry.STATES), doc, freshness)
        inputs = updates.show_stale(doc.rel_path, stale.text, stale.changes, stale.files)
        return models.estimate(models.prompt(updates.PROMPT), inputs)

    def finish_killed(self) -> None:
        """Commit what a killed process has written: a document that is updated already is not stale."""
        transaction.finish_killed(self._root, self._vault.git, self._settings.git.wait_s)

    def apply(self, stale: StaleDoc, update: DocUpdate, *, by_owner: bool = False) -> Proposed | WriteResult:
        """Make a proposed update a commit in the vault, `by_owner` in the owner's name, or a branch in the repository.

        Raises:
            ProposalError, NoteChangedError: nothing was changed, and why.
        """
        return apply_update(self._vault, stale, update, self._judgements(), by_owner=by_owner)

    def follow(self, edited: Sequence[str]) -> list[tuple[Doc, Freshness]]:
        """Return the documents that describe the files an agent has edited, or that it has edited themselves.

        If a document was edited, the index of the documents is brought up to date.
        """
        projects = self.projects()
        paths = [path for path in map(Path, edited) if path.is_absolute() and find_project(self._root, projects, path)]
        if not paths:
            return []
        self._check().note_edited(paths)
        docs = self.catalogue().docs
        real = {path.resolve() for path in paths}
        if any(doc.file.resolve() in real for doc in docs):
            self.sync()
        found = self.check_docs(docs, is_all=True)
        return [(doc, freshness) for doc, freshness in found if freshness.edited or doc.file.resolve() in real]

    def history(self, reference: str, project: str | None = None, limit: int = 20) -> tuple[Doc, list[SourceCommit]]:
        """Return the commits that changed a document, newest first."""
        doc = self.doc(reference, project)
        found = open_repository(doc.file.parent)
        if found is None:
            return doc, []
        commits = [commit for commit, _ in changes_of(found.log(MAX_COMMITS), found.inside(doc.file))]
        return doc, [commit_of(commit) for commit in commits[:limit]]

    def _judgements(self) -> Judgements:
        return Judgements(self._vault.state / LOCAL_FILE, datetime.now(UTC).date().isoformat())

    def _models(self) -> Models | None:
        if self._settings.models.provider == "none":
            return None
        models = self._vault.models
        return None if models.describe().provider is None else models.start_run()

    def _check(self, states: Collection[State] = ACTIVE) -> StalenessCheck:
        return StalenessCheck(self._root, self._trees(states), self._vault.show_progress)

    def _trees(self, states: Collection[State]) -> SourceTrees:
        return SourceTrees(self._root, self.projects(states))
