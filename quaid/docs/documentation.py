"""Documentation: the projects of a vault and their documents. `Memory.documentation` is one.

- the registry of projects: registry.py reads, registrar.py writes, source_roots.py says which folders may be read
- which files are documents: catalogue.py
- what a document is about: sources.py; in which repositories that is: source_trees.py
- what sources define: definitions.py, symbols.py; what a page names: mentions.py; what speaks against it: doubts.py
- when it was last true and what makes it stale: staleness.py, freshness.py
- how it becomes true again: updates.py proposes and carries out, validation.py checks
- how it is searched: search.py, in the passages of chunks.py
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from quaid import errors
from quaid.capture.writer import WritePlan, Writer, WriteResult, make_key
from quaid.docs import catalogue, edits, registry
from quaid.docs.catalogue import Catalogue, Doc, list_docs
from quaid.docs.chunks import read_ownership
from quaid.docs.freshness import Freshness
from quaid.docs.registrar import Registrar
from quaid.docs.registry import Project, State
from quaid.docs.search import DocSearch, DocSearchResult
from quaid.docs.source_roots import SourceRoot, allow, check_roots
from quaid.docs.source_trees import SourceTrees
from quaid.docs.staleness import StalenessCheck
from quaid.docs.updates import PROMPTS, DocUpdate, OpenDoc, apply_stored, find_grown, open_stale, propose_branch
from quaid.history.proposal import Proposed
from quaid.history.source_repository import open_repository
from quaid.index.scope import is_visible
from quaid.llm import Models
from quaid.local.runs import Judgements
from quaid.model import PlannedCall, SourceEdit
from quaid.open_vault import OpenVault
from quaid.place import LOCAL_FILE
from quaid.recall.answers import Answers
from quaid.recall.options import Depth, RecallOptions
from quaid.redaction import admit
from quaid.sync.derived_index import SyncReport
from quaid.vault import files, notes, transaction

DEFAULT_LIMIT = 5
MAX_UPDATES = 5
"""The maximum of docs that one run asks the deep model about."""

ACTIVE: tuple[State, ...] = ("active",)
_HEAD_BYTES = 16_000
"""The beginning of a document, which states its owner."""


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
        return registry.read_project(self._root, name)

    def create(self, new: Project, about: str = "", *, allow_roots: bool = True) -> WriteResult:
        """Create a project. Raises BadInputError as `Registrar.create`."""
        return self.registrar.create(new, about, allow_roots=allow_roots)

    def allow(self, name: str) -> tuple[SourceRoot, ...]:
        """Allow the source roots of a project to be read on this machine, and return all of them."""
        project = self.project(name)
        allow([root.folder for root in check_roots(self._root, project.source_roots) if root.can_be_allowed])
        return check_roots(self._root, project.source_roots)

    def find(self, path: Path) -> tuple[Project, str, Sequence[str]] | None:
        """Return the active project that owns a file, also in another worktree of its repository, the file's path in
        it, and the documents that describe the file; None if no project owns it.
        """
        found = catalogue.find_owner(self._root, self.projects(), path)
        if found is None:
            return None
        project, rel_path = found
        repository = open_repository(path.parent)
        inside = repository.inside(path) if repository is not None else rel_path
        about = {one.doc for one in self._check().stored() if one.describes(inside)}
        return project, rel_path, sorted(doc.id for doc in self.catalogue(project.name).docs if doc.id in about)

    def discover(self, folder: Path | None = None, *, dry_run: bool = False) -> list[Project]:
        """Create the projects that are missing: one for each folder of projects/ that has notes, and for each that
        looks like a project below `folder`. Return them.

        Raises:
            BadInputError: `folder` is not a folder.
        """
        if folder is not None and not folder.is_dir():
            raise errors.BadInputError(f"{folder} is not a folder. Give the one that your projects are in.")
        found = self.registrar.find_homes()
        found += self.registrar.find_projects(folder, found) if folder is not None else ()
        for project in found if not dry_run else ():
            self.registrar.create(project, is_named=True)
        return found

    # -- documents -----------------------------------------------------------------------------------------------

    def catalogue(self, project: str | None = None) -> Catalogue:
        """Return the documents of all active projects, or of one, without the private ones of other owners."""
        found = list_docs(self._root, [self.project(project)] if project else self.projects())
        shown: list[Doc] = []
        hidden: list[Doc] = []
        for doc in found.docs:
            data = b""
            with suppress(OSError):
                data = files.read_note(doc.folder, doc.rel_path, _HEAD_BYTES) or b""
            is_shown = is_visible(*read_ownership(doc.rel_path, data), self._vault.owners)
            (shown if is_shown else hidden).append(doc)
        return replace(found, docs=tuple(shown), hidden=tuple(hidden))

    def doc(self, reference: str, project: str | None = None) -> Doc:
        """Return the document with this id, path, file name or title."""
        return catalogue.find_doc(self.catalogue(project).docs, reference)

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
            raise errors.BadInputError(f"{doc.id} is not text. It is neither shown nor searched.")
        admitted = admit(text, keep_lines=True)
        return doc, admitted.text, admitted.redacted

    def sync(self) -> SyncReport:
        """Bring the index of the documents up to date with them, vectors included."""
        return self._search.index(list_docs(self._root, self.projects()).docs).sync(progress=self._vault.show_progress)

    def search(
        self, query: str, project: str | None = None, limit: int | None = None, depth: Depth | None = None
    ) -> tuple[DocSearchResult, dict[str, Freshness]]:
        """Return the passages of one project or all that answer `query`, and the freshness of their documents by id."""
        options = RecallOptions(
            limit=limit or DEFAULT_LIMIT,
            owners=self._vault.owners,
            projects=frozenset({self.project(project).name} if project else ()),
            depth=depth or self._settings.recall.depth,
        )
        every = list_docs(self._root, self.projects()).docs
        found = self._search.search(every, query, options, self._answers.judge)
        listed = self.catalogue(project)
        hit = {hit.doc for hit in found.hits}.intersection(doc.id for doc in listed.docs)
        checked = self.check([*hit], project, listed) if hit and self._settings.docs.check else []
        return found, {doc.id: freshness for doc, freshness in checked}

    def register(self, path: Path, project: str | None, sources: Sequence[str] = ()) -> WriteResult:
        """Add a document to the registry, with its sources; it counts as true at its last change.

        Raises:
            BadInputError: the file belongs to no project, or is no document of it.
        """
        if project is None:
            owner = self.find(path)
            if owner is None:
                raise errors.BadInputError(f"{path} belongs to no project. Say which with --project.")
            project = owner[0].name
        found = self.project(project)
        doc = catalogue.locate_doc(self._root, found, path)
        if doc is None:
            endings = ", ".join(catalogue.SUFFIXES)
            what = f"One is a visible file in its folder or its source roots that ends in {endings}."
            raise errors.BadInputError(f"{path} is not a document of {found.name}. {what}")
        return self.registrar.register(doc, sources)

    def confirm(self, reference: str, project: str | None = None, *, by_owner: bool = False) -> WriteResult:
        """Note that a document is true as its sources are now, `by_owner` in the owner's name.

        Raises:
            BadInputError: as `doc`, or its sources are in no repository.
        """
        doc = self.doc(reference, project)
        head = self._trees().newest_head(doc)
        if head is None:
            raise errors.BadInputError(f"The sources of {doc.id} are in no git repository: there is no commit to note.")
        return self.registrar.confirm(doc, head, by_owner=by_owner)

    def check(
        self, references: Sequence[str] = (), project: str | None = None, listed: Catalogue | None = None
    ) -> list[tuple[Doc, Freshness]]:
        """Check all documents or the named ones; the name of a project means all of its own. `listed` is the catalogue
        of `project`, if it is known already.
        """
        listed = listed or self.catalogue(project)
        docs = catalogue.find_docs(listed.docs, references, project) if references else listed.docs
        names = {doc.project for doc in docs}
        every = [doc for doc in (*listed.docs, *listed.hidden) if doc.project in names]
        checked = self._check().check(every, is_all=not references and project is None)
        known = dict(zip(every, checked, strict=True))
        found = [known[doc] for doc in docs]
        with suppress(errors.QuaidError):  # without local.db the check decides alone
            found = apply_stored(found, self._judgements())
        return list(zip(docs, found, strict=True))

    def known(self) -> list[Freshness]:
        """Return the result of the last check of each document, whatever has happened since."""
        return apply_stored(self._check().stored(), self._judgements())

    def changes(self, found: Sequence[Freshness]) -> dict[str, dict[str, str]]:
        """Return the differences that make each stale document so: id -> source -> unified diff."""
        trees = self._trees()
        changes: dict[str, dict[str, str]] = {}
        for freshness in found:
            diffs = changes.setdefault(freshness.doc, {})
            for change in trees.read_changes(freshness.findings):
                path = change.finding.path
                diffs[path if path not in diffs else f"{Path(change.finding.top).name}/{path}"] = change.diff()
        return changes

    def stale(self, references: Sequence[str] = (), project: str | None = None) -> Iterator[OpenDoc | str]:
        """Yield the stale documents, of all or of the named ones, the most certain first, and a sentence for each that
        could not be checked or read.

        Raises:
            BadInputError: as `doc`.
        """
        checked = self.check(references, project)
        yield from dict.fromkeys(why for _, one in checked if one.status == "no history" for why in one.problems)
        trees = self._trees()
        for doc, freshness in sorted(checked, key=lambda pair: (-pair[1].certainty, pair[0].id)):
            try:
                if freshness.is_stale:
                    yield open_stale(trees, doc, freshness)
            except (errors.QuaidError, OSError) as error:
                yield f"{doc.id} could not be looked at: {error}"

    def grown(self, now: datetime) -> Iterator[OpenDoc | str]:
        """Yield the documents that have grown by many additions, none that is stale, and why others are not known."""
        try:
            fresh = [doc for doc, freshness in self.check() if not freshness.is_stale]
            yield from find_grown(self._trees(), fresh, now)
        except (errors.QuaidError, OSError) as error:
            yield f"Which documents have grown is not known: {error}"

    def propose(
        self, references: Sequence[str] = (), project: str | None = None
    ) -> Iterator[tuple[OpenDoc, DocUpdate] | str]:
        """Yield the updates that the deep model proposes for stale documents, all or the named ones, and a sentence for
        each document that could not be checked or updated.

        Raises:
            BadInputError: as `doc`.
            ModelUnavailableError: there is no model.
        """
        models = self._models()
        if models is None:
            raise errors.ModelUnavailableError(
                "A document is brought up to date by a language model, and there is none"
            )
        left = MAX_UPDATES
        for opened in self.stale(references, project):
            if isinstance(opened, str):
                yield opened
                continue
            if not left:
                yield f"More documents are stale; one run updates {MAX_UPDATES}"
                return
            left -= 1
            try:
                yield opened, opened.ask(models, self._judgements())
            except errors.ModelError as error:
                if isinstance(error, errors.TROUBLE_FOR_ALL):
                    raise
                yield f"{opened.doc.id}: {error}"

    def estimate_update(self, doc: Doc, freshness: Freshness) -> PlannedCall | None:
        """Return the call that `propose` would make for a stale document, at its upper bound; None without a model or
        if the document is not stale.
        """
        models = self._models() if freshness.is_stale else None
        if models is None:
            return None
        opened = open_stale(self._trees(), doc, freshness)
        return models.estimate(models.prompt(PROMPTS[opened.task]), opened.inputs())

    def finish_killed(self) -> None:
        """Commit what a killed process has written: a document that is updated already is not stale."""
        transaction.finish_killed(self._root, self._vault.git, self._settings.git.wait_s)

    def apply(self, opened: OpenDoc, update: DocUpdate, *, by_owner: bool = False) -> Proposed | WriteResult:
        """Make a proposed update a commit in the vault, `by_owner` in the owner's name, or a branch in the repository.

        Raises:
            ProposalError, NoteChangedError: nothing was changed, and why.
        """
        doc, edit = opened.doc, opened.make_edit(update)
        if isinstance(edit, SourceEdit):
            return propose_branch(edit, opened.task, opened.key, self._judgements())

        def plan() -> WritePlan:
            if files.read_note(self._root, doc.rel_path) != edit.before:
                raise errors.NoteChangedError(doc.rel_path)
            written = WriteResult(doc.id, doc.rel_path, "set", update.summary)
            return WritePlan(written, (edit,), opened.write_message(update))

        key = make_key("docs update", doc.id, edit.after)
        return Writer(self._vault).write(key, plan, by_owner=by_owner).written

    def follow(self, edited: Mapping[str, float]) -> list[tuple[Doc, str]]:
        """Return the documents that name what an agent changed in the files `edited`, and what, as symbols. `edited` is
        when each file was edited first, in seconds.

        If a document was edited, the index of the documents is brought up to date.
        """
        projects = self.projects()
        inside = {path: at for path, at in edited.items() if catalogue.find_project(self._root, projects, Path(path))}
        if not inside:
            return []
        docs = self.catalogue().docs
        if not {Path(path).resolve() for path in inside}.isdisjoint(doc.file.resolve() for doc in docs):
            self.sync()
        known = {freshness.doc: freshness for freshness in self._check().stored()}
        return list(edits.find_affected(self._trees(), docs, known, inside))

    def _judgements(self) -> Judgements:
        return Judgements(self._vault.state / LOCAL_FILE, datetime.now(UTC).date().isoformat())

    def _models(self) -> Models | None:
        if self._settings.models.provider == "none":
            return None
        models = self._vault.models
        return None if models.describe().provider is None else models.start_run()

    def _check(self) -> StalenessCheck:
        return StalenessCheck(self._root, self._trees(), self._vault.show_progress)

    def _trees(self) -> SourceTrees:
        return SourceTrees(self._root, self.projects(registry.STATES))
