"""Memory: the one façade that the command line, MCP and hooks call. It wires the rooms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from quaid import gate, trust
from quaid.answers import Answers
from quaid.config import ignored_settings, load_settings, parse_value, settings_for_reading
from quaid.errors import (
    NOT_INDEXED,
    TROUBLE_FOR_ALL,
    BadInputError,
    ConfigError,
    NothingSaidError,
    VaultExistsError,
    VaultNotFoundError,
)
from quaid.index.reader import IndexReader
from quaid.index.views import NoteView, view_note
from quaid.model import Commit, Conversation, Edge, Recall, Turn
from quaid.place import CONFIG_FILE, state_folder
from quaid.recall.options import RecallOptions
from quaid.settings import Settings
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.embedding import Embedding, Progress
from quaid.sync.freshness import Freshness
from quaid.sync.indexer import Indexer
from quaid.vault import template

if TYPE_CHECKING:
    import apsw

    from quaid.analyzing import Analyzed
    from quaid.creation import Created
    from quaid.documentation.facade import Documentation
    from quaid.importing import Imported
    from quaid.learning import Extracted, Learner
    from quaid.provenance import Provenance
    from quaid.sync.follow import Follower
    from quaid.sync.verify import Verification
    from quaid.tidying import Tidier
    from quaid.vault.history import History
    from quaid.writer import Surroundings, Writer, Written


class Memory:
    """A vault, opened. Use it as a context manager; one instance belongs to one thread."""

    def __init__(self, root: Path, settings: Settings, problem: ConfigError | None = None) -> None:
        self.root = root
        self.settings = settings
        self.problem = problem  # why `settings` are not the owner's: then nothing is written
        gate.look_for_numbers(wanted=settings.capture.redact_numbers)
        self.embedding = Embedding(root, settings.embedding)
        self.indexer = Indexer(root, settings, self.embedding)
        self._reader = IndexReader(self.indexer.path)
        self._freshness = Freshness(self.indexer, self._reader.open, settings.recall.embed_budget_s)
        self.answers = Answers(root, settings, self.embedding, self._freshness, self._reader, lambda: self.git, problem)
        self._history: History | None = None
        self._writer: Writer | None = None
        self._learner: Learner | None = None
        self._documentation: Documentation | None = None
        self._progress: Progress | None = None
        self._say: Callable[[str], None] = lambda _: None
        self.remarks: tuple[str, ...] = ()  # what its user should know of how it was opened

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, owner: str | None = None) -> Self:
        """The vault at `path`, else `$QUAID_HOME`, else the one around the working folder, else `~/quaid`.

        Raises:
            VaultNotFoundError: no vault there.
            UntrustedVaultError, ForeignVaultError, StateFolderError: there is one that may not be read.
            ConfigError: the user's own config cannot be read.
        """
        root, remark = trust.locate_vault(path)
        trust.check(root)
        settings, problem = settings_for_reading(root)
        memory = cls(root, replace(settings, owner=owner) if owner else settings, problem)
        memory.remarks = tuple(filter(None, (remark, *(() if problem else ignored_settings(root)))))
        return memory

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> tuple[Self, Created]:
        """Make `path` a vault. A folder with notes is adopted: files are added, none is changed.

        Raises:
            VaultExistsError: it is one already.
        """
        from quaid.creation import fill_vault

        root = Path(path).expanduser().absolute()
        if (root / CONFIG_FILE).exists():
            raise VaultExistsError(root)
        adopted = template.has_notes(root)
        memory = cls(root, load_settings(root))
        return memory, fill_vault(root, memory.git, memory.settings.git.wait_s, memory._tell, adopted=adopted)

    def report_to(self, progress: Progress | None, say: Callable[[str], None]) -> None:
        """Where long work shows how far it is, and where a wait says what it waits for."""
        self._progress, self._say = progress, say

    def warm(self) -> None:
        """Begin to load the embedding model in the background."""
        self.embedding.warm()

    def close(self) -> None:
        self._freshness.close()
        self.answers.close()
        if self._documentation is not None:
            self._documentation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """The memories that answer `query`, best first.

        `as_of` is a revision or a day: what was known then. `options` are the fields of `RecallOptions`. `session` is
        the one that asks, and `door` where it came in, for the recall log; `keep` False leaves no trace in the books.

        Raises:
            RevisionError: no such revision, or none that early.
        """
        wanted = RecallOptions(**{"depth": self.settings.recall.depth, "limit": limit, **_frozen(options)})
        answer = self.answers.ask(lambda: self.answers.answer(query, wanted, as_of=as_of, progress=self._progress))
        if not keep or as_of is not None:
            return answer
        return self.answers.keep(answer, wanted, door=door, session=session)

    def search(self, query: str, limit: int | None = None, **options: Any) -> Recall:
        """Keywords only: no model, no graph."""
        return self.recall(query, limit, keyword_only=True, **options)

    def get(self, reference: str) -> NoteView:
        """One note by id, part of an id, path, name or alias, or one turn (`20-1402-2f1c9a#t3`).

        Raises:
            NoteNotFoundError, AmbiguousReferenceError
        """
        return self.answers.ask(lambda: view_note(self.index(), reference))

    def history(self, reference: str, limit: int = 20) -> list[Commit]:
        """The commits that touched a note, newest first, across renames."""
        document = self.get(reference).document
        life = self.git.life(document.path, None if document.id == document.path else document.id)
        return self.answers.visible_commits().of(revision.commit for revision in life[:limit])

    def why(self, reference: str) -> Provenance:
        """Where a memory comes from, as far as files and history tell. git is asked only here, never by `recall`."""
        from quaid.provenance import explain

        def explained() -> Provenance:
            index = self.index()
            view, seen = view_note(index, reference), self.answers.visible_commits().of
            return explain(view, index, self.git, self.root, self.settings.git.email, seen)

        return self.answers.ask(explained)

    def context(self, tokens: int | None = None, longest: int | None = None, cwd: str | None = None) -> str:
        """What an agent should have before it starts to work in the folder `cwd`, at most `tokens` (else
        `hooks.context_tokens`) and `longest` characters as JSON; may be empty.
        """
        from quaid.context import tell

        most = self.settings.hooks.context_tokens if tokens is None else tokens
        return self.answers.ask(lambda: tell(self.root, self.index(), self.answers.owners(), most, longest, cwd))

    def index(self) -> apsw.Connection:
        """A read-only connection to the index, brought up to date first, without what others keep private."""
        self.answers.fresh()
        return self.answers.visible()

    def whole_index(self) -> apsw.Connection:
        """The same with what all keep private, for what tends the vault and shows nobody what is in it."""
        return self.answers.fresh()[0]

    # -- writing -------------------------------------------------------------------------------------------------

    def remember(self, text: str, **details: Any) -> Written:
        """Store a fact, or confirm the one that says it already. `details` are the fields of `FactDetails`.

        Raises:
            FactTooShortError: fewer than three words.
        """
        from quaid.capture.facts import FactDetails

        known = FactDetails(**{"owner": self.settings.owner, **_frozen(details)})
        return self.writer.remember(text, known)

    def link(self, subject: str, relation: str, target: str) -> Written:
        """Put `subject -relation-> target` into the graph, normalised, with entity notes made on the way."""
        return self.writer.link(Edge(subject, relation, target))

    def forget(self, reference: str) -> Written:
        """Take a fact, an entity, an episode or one turn out of the memory. git keeps it; `restore` brings it back.

        Raises:
            NotOursError: the note is the owner's own.
        """
        return self.writer.forget(reference)

    def restore(self, reference: str) -> Written:
        """Bring back what was forgotten, as it was."""
        return self.writer.restore(reference)

    def configure(self, key: str, raw: str) -> Written:
        """Set one key of quaid.toml, or of the user's own config; `raw` is the value as typed in a shell.

        Raises:
            ConfigError: no such setting, or the value does not fit it.
        """
        return self.writer.configure(key, parse_value(key, raw))

    def note(self, text: str, session: str | None = None) -> int:
        """Queue a line that the next extraction of `session` (or of any) takes along; how many are waiting."""
        from quaid.reading import queue_note

        if not self.indexer.is_there():
            raise VaultNotFoundError(self.root)
        return queue_note(state_folder(self.root), text, session)

    def extract(
        self,
        source: str | os.PathLike[str] | IO[bytes] | Sequence[Turn],
        *,
        session: str | None = None,
        **how: Any,
    ) -> Extracted:
        """Keep a conversation, a transcript file, an open stream, or turns, and learn from what is new in it.

        `how` are the fields of `TakeIn`. That a model could not be asked is in the answer's `problem`, not raised: the
        conversation is kept then and waits.

        Raises:
            BadInputError: it is no transcript Quaid knows, or holds several conversations.
        """
        from itertools import islice

        from quaid.capture.transcripts import read_conversations

        said = (conversation for conversation in read_conversations(source, session) if conversation.turns)
        first = list(islice(said, 2))
        if len(first) > 1:
            raise BadInputError("It holds several conversations, not one. Take each with Memory.extract_each.")
        (done,) = self._extract(first, is_lasting=isinstance(source, (str, os.PathLike)), **how)
        return done

    def extract_each(
        self,
        source: str | os.PathLike[str] | IO[bytes] | Sequence[Turn],
        *,
        session: str | None = None,
        **how: Any,
    ) -> Iterator[Extracted]:
        """The same for every conversation of an archive, one after the other; those in which nobody says anything are
        passed over. Once nobody answers, no model is asked any more.

        Raises:
            BadInputError: it is no transcript Quaid knows, or nobody says anything in any of it.
        """
        from quaid.capture.transcripts import read_conversations

        is_lasting = isinstance(source, (str, os.PathLike))
        return self._extract(read_conversations(source, session), is_lasting=is_lasting, **how)

    def _extract(self, conversations: Iterable[Conversation], *, is_lasting: bool, **how: Any) -> Iterator[Extracted]:
        from quaid.learning import TakeIn

        wanted = TakeIn(**how)
        self.learner.reader.begin_run()
        found = 0
        for conversation in conversations:
            if conversation.turns:
                found += 1
                done = self.learner.take_in(conversation, wanted, is_lasting=is_lasting)
                yield done
                if isinstance(done.problem, TROUBLE_FOR_ALL):
                    wanted = replace(wanted, facts=False)
        if not found:
            raise NothingSaidError
        self._catch_up()

    def extract_waiting(self, **how: Any) -> Iterator[Extracted]:
        """Learn from the conversations that no model has drawn facts from, oldest first. `how` as for `extract`."""
        from quaid.learning import TakeIn
        from quaid.overview import list_waiting

        self.learner.reader.begin_run()
        for path in list_waiting(self):
            yield self.learner.work_off(path, TakeIn(**how))
        self._catch_up()

    def analyze(self, path: str | os.PathLike[str], **how: Any) -> Analyzed:
        """Learn from a text, markdown or PDF file, if it has changed since the last time. `how` are the fields of
        `HowTo`.

        Raises:
            BadInputError: it cannot be read, or is a memory itself.
            ModelError: no model answered.
        """
        from quaid.analyzing import Analyst, HowTo

        done = Analyst(self, self._show).analyze(Path(path), HowTo(**how))
        self._catch_up()
        return done

    def import_from(self, source: str | os.PathLike[str] | IO[bytes], **options: Any) -> Imported:
        """Take in what another memory holds. `options` are the fields of `ImportOptions`.

        Raises:
            BadInputError: it is nothing that Quaid knows.
        """
        from quaid.importing import ImportOptions, import_from

        wanted = ImportOptions(**{"owner": self.settings.owner, **options})
        given = Path(source).expanduser().absolute() if isinstance(source, (str, os.PathLike)) else source
        imported = import_from(self.surroundings, self.writer, given, wanted, progress=self._progress)
        if imported.commit:
            self._catch_up()
        return imported

    def export(self, kinds: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Each note as a line of an export: what it says of itself, and the whole file."""
        from quaid.export import export_notes

        return export_notes(self.root, self.answers.owners(), kinds)

    # -- the index -----------------------------------------------------------------------------------------------

    def sync(self, options: SyncOptions | None = None) -> SyncReport:
        """Bring the index in step with the files and embed what is new."""
        return self.indexer.sync(options, self._progress)

    def _catch_up(self) -> None:
        """Index what was committed just now. That it cannot be is a remark: the next read tries again."""
        try:
            self.sync()
        except NOT_INDEXED as error:
            said = f"What was written is committed, but not in the index yet: {error.reason}."
            self._tell(f"{said} Set that right, then run: quaid sync")

    def reindex(self) -> SyncReport:
        """Build the index from nothing; embeddings come from the cache."""
        return self.sync(SyncOptions(rebuild=True, accept_removals=True))

    def verify(self) -> Verification:
        """Compare the index, brought up to date, with one built from nothing."""
        from quaid.sync.verify import verify

        return verify(self.indexer, self.whole_index())

    def follow(self, report: Callable[[SyncReport], None]) -> Follower:
        """What `quaid watch` runs: keeps the index in step until its `stop` is called."""
        from quaid.sync.follow import Follower

        return Follower(self.indexer, self.settings.sync, report, self._tell)

    # -- wiring --------------------------------------------------------------------------------------------------

    @property
    def git(self) -> History:
        if self._history is None:
            from quaid.vault.history import History

            self._history = History(self.root, self.settings.git)
        return self._history

    @property
    def writer(self) -> Writer:
        if self.problem is not None:
            raise self.problem
        if self._writer is None:
            from quaid.writer import Writer

            self._writer = Writer(self.surroundings)
        return self._writer

    @property
    def learner(self) -> Learner:
        if self._learner is None:
            from quaid.learning import Learner

            self._learner = Learner(self.surroundings, self.writer, self._show)
        return self._learner

    @property
    def documentation(self) -> Documentation:
        """The projects of this vault and their documents."""
        if self._documentation is None:
            from quaid.documentation.facade import Documentation

            self._documentation = Documentation(self, self._show)
        return self._documentation

    @property
    def tidier(self) -> Tidier:
        """The janitor of this vault."""
        from quaid.tidying import Tidier

        if self.problem is not None:
            raise self.problem
        return Tidier(self, self._tell, self._show)

    @property
    def surroundings(self) -> Surroundings:
        """What those who write work with."""
        from quaid.writer import Surroundings

        return Surroundings(
            self.root, self.settings, self.embedding, lambda: self.git, self.whole_index, self.answers.visible,
            self.answers.owners, self._tell,
        )  # fmt: skip

    def _show(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

    def _tell(self, text: str) -> None:
        self._say(text)


def _frozen(options: dict[str, Any]) -> dict[str, Any]:
    """Lists and sets of a caller as the tuples and frozensets that the option classes hold."""
    frozen: dict[type, Callable[[Any], Any]] = {list: tuple, set: frozenset}
    return {key: frozen.get(type(value), lambda same: same)(value) for key, value in options.items()}
