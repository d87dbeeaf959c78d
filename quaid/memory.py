"""Memory: the one façade that the command line, MCP and hooks call. It wires the rooms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from quaid import trust
from quaid.config import ignored_settings, load_settings, parse_value, settings_for_reading
from quaid.errors import (
    NOT_INDEXED,
    TROUBLE_FOR_ALL,
    BadInputError,
    ConfigError,
    NothingSaidError,
    SettingError,
    VaultExistsError,
    VaultNotFoundError,
)
from quaid.history import vault_guard
from quaid.index.sqlite.reader import IndexReader
from quaid.index.views import NoteView, view_note
from quaid.model import Commit, Conversation, Edge, Recall, Turn
from quaid.place import CONFIG_FILE, LOCAL_FILE, state_folder
from quaid.recall.answers import Answers
from quaid.recall.options import RecallOptions
from quaid.settings import Settings
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.embedding import Embedding, Progress
from quaid.sync.freshness import IndexFreshness
from quaid.sync.indexer import Indexer
from quaid.text.invisible import whole
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.capture.dependencies import Dependencies
    from quaid.capture.extractor import Extractor, ExtractResult
    from quaid.capture.files.analyzer import AnalyzeResult
    from quaid.capture.importer import ImportResult
    from quaid.capture.writer import Writer, WriteResult
    from quaid.docs.documentation import Documentation
    from quaid.history.creation import Created
    from quaid.history.vault_history import History
    from quaid.index.port import IndexConnection
    from quaid.janitor.janitor import Janitor
    from quaid.llm import Models
    from quaid.recall.provenance import Provenance
    from quaid.remotes.exchange import Exchange
    from quaid.sync.follow import Follower
    from quaid.sync.verify import Verification
    from quaid.timeline.timeline import Timeline


class Memory:
    """A vault, opened. Use it as a context manager; one instance belongs to one thread."""

    def __init__(self, root: Path, settings: Settings, problem: ConfigError | None = None) -> None:
        self.root = root
        self.settings = settings
        self.problem = problem  # why `settings` are not the owner's: then nothing is written
        self.embedding = Embedding(root, settings.embedding)
        self.indexer = Indexer(root, settings, self.embedding)
        self._reader = IndexReader(self.indexer.path)
        self._freshness = IndexFreshness(self.indexer, self._reader.open, settings.recall.embed_budget_s)
        later = (lambda: self.git), (lambda: self.models)
        self.answers = Answers(root, settings, self.embedding, self._freshness, self._reader, *later, problem)
        self.remarks: tuple[str, ...] = ()  # what its user should know of how it was opened
        self.report_to(None, lambda _: None)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, owner: str | None = None) -> Self:
        """Open the vault at `path`, else `$QUAID_HOME`, else the one around the working folder, else `~/quaid`.

        Raises:
            VaultNotFoundError: no vault there.
            UntrustedVaultError, ForeignVaultError, StateFolderError: there is one that may not be read.
            ConfigError: the user's own config cannot be read.
        """
        root, remark = trust.locate_vault(path)
        vault_guard.check(root)
        settings, problem = settings_for_reading(root)
        memory = cls(root, replace(settings, owner=owner) if owner else settings, problem)
        memory.embedding.resume()
        memory.remarks = tuple(filter(None, (remark, *(() if problem else ignored_settings(root)))))
        return memory

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], owner_names: Sequence[str] = (), folder: str | None = None
    ) -> tuple[Self, Created]:
        """Make `path` a vault, Quaid's folders in `folder`. One with notes is adopted: files are added, none changes.

        `owner_names` are the name of the owner, who gets a note, and other names of the same person. VaultExistsError:
        it is one already; BadInputError: `folder` cannot hold notes, or the first of `owner_names` means any owner.
        """
        from quaid.capture.owner_note import plan_vault
        from quaid.history.creation import fill_vault

        if ((root := Path(path).expanduser().absolute()) / CONFIG_FILE).exists():
            raise VaultExistsError(root)
        made = cls(root, load_settings(root))
        plan = plan_vault(root, owner_names, folder)
        created = fill_vault(root, made.git, made.settings.git.wait_s, made._tell, plan)
        return cls(root, load_settings(root)), created

    def report_to(self, progress: Progress | None, say: Callable[[str], None]) -> None:
        """Show how far long work is by `progress`, and tell what a wait waits for by `say`."""
        self._progress, self._say = progress, say

    def warm(self) -> None:
        """Begin to load the embedding model in the background."""
        self.embedding.warm()

    def close(self) -> None:
        self._freshness.close()
        self.answers.close()
        if "documentation" in self.__dict__:
            self.documentation.close()
        if self.settings.git.sync == "auto":
            from quaid.remotes.background import leave_exchange

            leave_exchange(self.root, self.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading -------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str,
        limit: int | None = None,
        *,
        as_of: str | None = None,
        session: str | None = None,
        door: str = "python",
        keep: bool = True,
        **options: Any,
    ) -> Recall:
        """Return the memories that answer `query`, best first.

        `as_of` is a revision or a day. `options` are the fields of `RecallOptions`. `session` and `door` say in the
        recall log who asked; with `keep` False nothing is logged. RevisionError: no such revision, or none that early.
        """
        wanted = RecallOptions(**{"depth": self.settings.recall.depth, "limit": limit, **whole(options)})
        query, as_of, session = whole((query, as_of, session))
        answer = self.answers.ask(lambda: self.answers.answer(query, wanted, as_of=as_of, progress=self._progress))
        if not keep or as_of is not None or not query.strip():
            return answer
        return self.answers.keep(answer, wanted, door=door, session=session)

    def search(self, query: str, limit: int | None = None, **options: Any) -> Recall:
        """Keywords only: no model, no graph."""
        return self.recall(query, limit, keyword_only=True, **options)

    def get(self, reference: str) -> NoteView:
        """Return the note, turn or section that `reference` means; NoteNotFoundError, AmbiguousReferenceError."""
        return self.answers.view(reference)

    def history(self, reference: str, limit: int = 20) -> list[Commit]:
        """The commits that touched a note, newest first, across renames."""
        document = self.get(reference).document
        life = self.git.note_history(document.path, None if document.id == document.path else document.id)
        return self.answers.see_parts(revision.commit for revision in life[:limit])

    def why(self, reference: str) -> Provenance:
        """Return where a memory comes from, as far as files and history tell. `recall` never asks git, this does."""
        from quaid.recall.provenance import explain

        def explained() -> Provenance:
            index, seen = self.index(), self.answers.see_parts
            git, names = self.settings.git, self.answers.helpers().owner_names
            return explain(view_note(index, reference), index, self.git, self.root, git, seen, names)

        return self.answers.ask(explained)

    def context(self, tokens: int | None = None, longest: int | None = None, cwd: str | None = None) -> str:
        """Return what an agent should know before it works in the folder `cwd`, in `tokens` and `longest` at most."""
        from quaid.agents.session_context import build_session_context as build

        answers, place = self.answers, Layout.of(self.settings.vault)
        most = self.settings.hooks.context_tokens if tokens is None else tokens
        return answers.ask(lambda: build(self.root, self.index(), answers.owners(), most, longest, cwd, place=place))

    def index(self) -> IndexConnection:
        """Return a read-only connection to the index, brought up to date, without what others keep private."""
        self.answers.fresh()
        return self.answers.visible()

    def whole_index(self) -> IndexConnection:
        """Return the same with the private notes of all, for uses that show no content."""
        return self.answers.fresh()[0]

    # -- writing -------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, replaces: str | None = None, by_owner: bool = False, **details: Any
    ) -> WriteResult:
        """Store a fact, or confirm the one that says it; the one that it `replaces` (an id, or its words) holds no
        longer. `details` are the fields of `FactDetails`. FactTooShortError, NothingToReplaceError. The commit is
        Quaid's, or `by_owner` in the owner's name, here as below.
        """
        from quaid.capture.fact_note import FactDetails

        known = FactDetails(**{"owner": self.settings.owner, **whole(details)})
        return self.writer.remember(whole(text), known, whole(replaces), by_owner=by_owner)

    def link(self, subject: str, relation: str, target: str) -> WriteResult:
        """Put `subject -relation-> target` into the graph, normalised, with entity notes made on the way."""
        return self.writer.link(Edge(*whole((subject, relation, target))))

    def forget(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Take a fact, an entity, an episode or one turn out; git keeps it. NotOursError: the note is its owner's."""
        return self.writer.forget(reference, by_owner=by_owner)

    def restore(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Bring back what was forgotten, as it was, or let a fact that was replaced hold again."""
        return self.writer.restore(reference, by_owner=by_owner)

    def configure(self, key: str, raw: str) -> WriteResult:
        """Set one key of quaid.toml or of the user's own config, as typed in a shell. ConfigError: it does not fit."""
        value = parse_value(key, whole(raw))
        self.problem = None if isinstance(self.problem, SettingError) else self.problem  # this may repair it
        return self.writer.configure(key, value)

    def note(self, text: str, session: str | None = None) -> int:
        """Queue a line for the next extraction of `session` (or of any), and return how many are waiting."""
        from quaid.capture.conversation_reader import queue_note

        if not self.indexer.is_there():
            raise VaultNotFoundError(self.root)
        return queue_note(state_folder(self.root), *whole((text, session)))

    def extract(
        self, source: str | os.PathLike[str] | IO[bytes] | Sequence[Turn], *, session: str | None = None, **how: Any
    ) -> ExtractResult:
        """Keep a conversation (a transcript file, an open stream, or turns) and learn from what is new in it.

        `how` are the fields of `ExtractOptions`. That a model could not be asked is a `problem` of the result.
        BadInputError: it is not a transcript Quaid knows, or holds several conversations.
        """
        from quaid.capture.transcripts import read_conversations

        said = (conversation for conversation in read_conversations(source, session) if conversation.turns)
        first = list(islice(said, 2))
        if len(first) > 1:
            raise BadInputError("It holds several conversations, not one. Take each with Memory.extract_each.")
        (done,) = self._extract(first, is_lasting=isinstance(source, (str, os.PathLike)), **how)
        return done

    def extract_each(
        self, source: str | os.PathLike[str] | IO[bytes] | Sequence[Turn], *, session: str | None = None, **how: Any
    ) -> Iterator[ExtractResult]:
        """Do the same for every conversation of an archive that has turns. Once nobody answers, no model is asked.
        BadInputError: it is not a transcript Quaid knows, or nobody says anything in any of it.
        """
        from quaid.capture.transcripts import read_conversations

        is_lasting = isinstance(source, (str, os.PathLike))
        return self._extract(read_conversations(source, session), is_lasting=is_lasting, **how)

    def _extract(
        self, conversations: Iterable[Conversation], *, is_lasting: bool, **how: Any
    ) -> Iterator[ExtractResult]:
        from quaid.capture.extractor import ExtractOptions

        options = ExtractOptions(**how)
        self.extractor.reader.begin_run()
        is_empty = True
        for conversation in conversations:
            if conversation.turns:
                is_empty = False
                done = self.extractor.extract(conversation, options, is_lasting=is_lasting)
                yield done
                if isinstance(done.problem, TROUBLE_FOR_ALL):
                    options = replace(options, facts=False)
        if is_empty:
            raise NothingSaidError
        self._catch_up()

    def list_waiting(self) -> tuple[str, ...]:
        """Return the paths of the episodes that no model has drawn facts from, oldest first."""
        from quaid.capture.note_finder import list_waiting

        return list_waiting(self.root, self.index())

    def extract_waiting(self, **how: Any) -> Iterator[ExtractResult]:
        """Learn from the conversations that no model has drawn facts from, oldest first. `how` as for `extract`."""
        from quaid.capture.extractor import ExtractOptions

        self.extractor.reader.begin_run()
        for path in self.list_waiting():
            yield self.extractor.extract_kept(path, ExtractOptions(**how))
        self._catch_up()

    def analyze(self, path: str | os.PathLike[str], **how: Any) -> AnalyzeResult:
        """Learn from a text, markdown or PDF file if it has changed. `how` are the fields of `AnalyzeOptions`.
        BadInputError: it cannot be read, or is a memory itself; ModelError: no model answered.
        """
        from quaid.capture.files.analyzer import AnalyzeOptions, FileAnalyzer

        analyzer = FileAnalyzer(self.dependencies, self.writer, self.extractor.reader, self._show)
        done = analyzer.analyze(Path(path), AnalyzeOptions(**how))
        self._catch_up()
        return done

    def import_from(self, source: str | os.PathLike[str] | IO[bytes], **options: Any) -> ImportResult:
        """Take in another memory, `options` as the fields of `ImportOptions`. BadInputError: Quaid does not know it."""
        from quaid.capture.importer import ImportOptions, import_from

        wanted = ImportOptions(**{"owner": self.settings.owner, **options})
        given = Path(source).expanduser().absolute() if isinstance(source, (str, os.PathLike)) else source
        imported = import_from(self.dependencies, self.writer, given, wanted, progress=self._progress)
        if imported.commit:
            self._catch_up()
        return imported

    def export(self, kinds: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Each note as a line of an export: what it says of itself, and the whole file."""
        from quaid.capture.export import export_notes

        return export_notes(self.root, self.answers.owners(), kinds)

    # -- the index -----------------------------------------------------------------------------------------------

    def sync(self, options: SyncOptions | None = None) -> SyncReport:
        """Bring the index up to date with the files and embed what is new."""
        return self.indexer.sync(options, self._progress)

    def _catch_up(self, only: frozenset[str] | None = None) -> None:
        """Index what was committed just now. That it cannot be is a remark: the next read tries again."""
        try:
            self.sync(SyncOptions(only=only, trust_times=only is None))
        except NOT_INDEXED as error:
            said = f"What was written is committed, but the index is not up to date: {error.reason}."
            self._say(f"{said} Set that right, then run: quaid sync")

    def reindex(self) -> SyncReport:
        """Build the index from nothing; embeddings come from the cache."""
        return self.sync(SyncOptions(rebuild=True, accept_removals=True))

    def verify(self) -> Verification:
        """Compare the index, brought up to date, with one built from nothing."""
        from quaid.sync.verify import verify

        return verify(self.indexer, self.whole_index())

    def follow(self, report: Callable[[SyncReport], None], what: str | None = None) -> Follower:
        """Return what `quaid watch` runs, or the command `what` beside its work: it keeps the index up to date until
        its `stop` is called.
        """
        from quaid.sync.follow import WATCH, Follower

        return Follower(self.indexer, self.settings.sync, report, self._tell, what or WATCH)

    # -- wiring --------------------------------------------------------------------------------------------------

    @cached_property
    def git(self) -> History:
        from quaid.history.vault_history import History

        return History(self.root, self.settings.git)

    @cached_property
    def models(self) -> Models:
        """The language models, counted in this vault's state; none is looked for before one is asked."""
        from quaid.llm import Models
        from quaid.llm.prompts import user_prompts
        from quaid.local.model_usage import ModelRecords

        records = ModelRecords(state_folder(self.root) / LOCAL_FILE)
        return Models(self.settings.models, own_prompts=user_prompts(), usage=records, answers=records)

    @cached_property
    def writer(self) -> Writer:
        from quaid.capture.writer import Writer

        if self.problem is not None:
            raise self.problem
        return Writer(self.dependencies)

    @cached_property
    def extractor(self) -> Extractor:
        from quaid.capture.extractor import Extractor

        return Extractor(self.dependencies, self.writer, lambda: self.models, self._show)

    @cached_property
    def documentation(self) -> Documentation:
        """The projects of this vault and their documents."""
        from quaid.docs.documentation import Documentation

        helpers = self.answers.helpers
        return Documentation(self.dependencies, lambda: self.writer, lambda: self.models, helpers, self._show)

    @property
    def remotes(self) -> Exchange:
        """The remotes that this vault is exchanged with."""
        from quaid.janitor.settling import settle_merges
        from quaid.remotes.exchange import Exchange

        later = (lambda: self.git), self._catch_up, (lambda: settle_merges(self.dependencies, self.writer))
        return Exchange(self.root, self.settings, *later, self._tell, self._show)

    @property
    def janitor(self) -> Janitor:
        """The janitor of this vault."""
        from quaid.janitor.janitor import Janitor

        return Janitor(
            self.dependencies, lambda: self.writer, self.documentation, lambda: self.models, self.sync,
            lambda root: Memory(root, self.settings), self._show, self.remotes.hold_lease,
        )  # fmt: skip

    @property
    def timeline(self) -> Timeline:
        """The history of this vault: what changed and what it meant, undo, branches."""
        from quaid.timeline.timeline import Timeline

        return Timeline(self.dependencies, lambda: self.writer, self.answers, self._catch_up, self._show)

    @property
    def dependencies(self) -> Dependencies:
        """Return the dependencies of everything that writes."""
        from quaid.capture.dependencies import Dependencies

        return Dependencies(
            self.root, self.settings, self.embedding, self.answers.matrix, lambda: self.git, self.whole_index,
            self.index, self.answers.visible, self.answers.owners, self._tell,
        )  # fmt: skip

    def _show(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

    def _tell(self, text: str) -> None:
        self._say(text)
