"""Memory: the one façade that the command line, MCP and hooks call. It wires the rooms."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from quaid import gate
from quaid.answers import Answers
from quaid.config import load_settings, parse_value
from quaid.errors import TROUBLE_FOR_ALL, BadInputError, NothingSaidError, VaultExistsError, VaultNotFoundError
from quaid.index import database
from quaid.index.reader import IndexReader
from quaid.index.views import NoteView, view_note
from quaid.model import Commit, Conversation, Edge, Recall, Turn
from quaid.place import CONFIG_FILE, locate_vault, state_folder
from quaid.recall.options import RecallOptions
from quaid.settings import Settings
from quaid.sync.embedding import Embedding, Progress
from quaid.sync.freshness import Freshness
from quaid.sync.indexer import Indexer, SyncOptions, SyncReport
from quaid.vault import layout, template

Answer = TypeVar("Answer")

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

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root = root
        self.settings = settings
        gate.look_for_numbers(wanted=settings.capture.redact_numbers)
        self.embedding = Embedding(root, settings.embedding)
        self.indexer = Indexer(root, settings, self.embedding)
        self._reader = IndexReader(self.indexer.path)
        self._freshness = Freshness(self.indexer, self._reader.open, settings.recall.embed_budget_s)
        self.answers = Answers(root, settings, self.embedding, self._freshness, self._reader, lambda: self.git)
        self._history: History | None = None
        self._writer: Writer | None = None
        self._learner: Learner | None = None
        self._documentation: Documentation | None = None
        self._progress: Progress | None = None
        self._say: Callable[[str], None] = lambda _: None

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, owner: str | None = None) -> Self:
        """The vault at `path`, else `$QUAID_HOME`, else the one around the working folder, else `~/quaid`.

        Raises:
            VaultNotFoundError: no vault there.
            ConfigError: its quaid.toml cannot be read.
        """
        root = locate_vault(path)
        if not (root / CONFIG_FILE).is_file():
            raise VaultNotFoundError(root)
        settings = load_settings(root)
        return cls(root, replace(settings, owner=owner) if owner else settings)

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
        template.make_state_folder(root)
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
        answer = self._ask(lambda: self.answers.answer(query, wanted, as_of=as_of, progress=self._progress))
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
        return self._ask(lambda: view_note(self.index(), reference))

    def history(self, reference: str, limit: int = 20) -> list[Commit]:
        """The commits that touched a note, newest first, across renames."""
        document = self.get(reference).document
        life = self.git.life(document.path, None if document.id == document.path else document.id)
        return [revision.commit for revision in life[:limit]]

    def why(self, reference: str) -> Provenance:
        """Where a memory comes from, as far as files and history tell. git is asked only here, never by `recall`."""
        from quaid.provenance import explain

        def explained() -> Provenance:
            index = self.index()
            return explain(view_note(index, reference), index, self.git, self.root, self.settings.git.email)

        return self._ask(explained)

    def context(self, tokens: int | None = None, longest: int | None = None, cwd: str | None = None) -> str:
        """What an agent should have before it starts to work in the folder `cwd`, at most `tokens` (else
        `hooks.context_tokens`) and `longest` characters as JSON; may be empty.
        """
        from quaid.context import tell

        wanted = self.settings.hooks.context_tokens if tokens is None else tokens
        return self._ask(lambda: tell(self.root, self.index(), self.answers.owners(), wanted, longest, cwd))

    def index(self) -> apsw.Connection:
        """A read-only connection to the index, brought up to date first."""
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
        """Set one key of quaid.toml; `raw` is the value as typed in a shell.

        Raises:
            ConfigError: no such setting, or the value does not fit it.
        """
        return self.writer.configure(key, parse_value(key, raw))

    def note(self, text: str, session: str | None = None) -> int:
        """Queue a line that the next extraction of `session` (or of any) takes along; how many are waiting."""
        from datetime import UTC, datetime

        from quaid.local.notes_to_self import NotesToSelf

        line = " ".join(gate.admit(text).text.split())
        if not line:
            raise BadInputError("There is nothing to note. Give the line in quotes: quaid note 'call Maya back'")
        if not self.indexer.is_there():
            raise VaultNotFoundError(self.root)
        queue = NotesToSelf(state_folder(self.root) / layout.LOCAL_FILE)
        try:
            queue.add(line, session, datetime.now(UTC))
            return queue.count()
        finally:
            queue.close()

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
        self.sync()

    def extract_waiting(self, **how: Any) -> Iterator[Extracted]:
        """Learn from the conversations that no model has drawn facts from, oldest first. `how` as for `extract`."""
        from quaid.learning import TakeIn
        from quaid.overview import list_waiting

        self.learner.reader.begin_run()
        for path in list_waiting(self):
            yield self.learner.work_off(path, TakeIn(**how))
        self.sync()

    def analyze(self, path: str | os.PathLike[str], **how: Any) -> Analyzed:
        """Learn from a text, markdown or PDF file, if it has changed since the last time. `how` are the fields of
        `HowTo`.

        Raises:
            BadInputError: it cannot be read, or is a memory itself.
            ModelError: no model answered.
        """
        from quaid.analyzing import Analyst, HowTo

        done = Analyst(self, self._show).analyze(Path(path), HowTo(**how))
        self.sync()
        return done

    def import_from(self, source: str | os.PathLike[str] | IO[bytes], **options: Any) -> Imported:
        """Take in what another memory holds. `options` are the fields of `ImportOptions`.

        Raises:
            BadInputError: it is nothing that Quaid knows.
        """
        from quaid.importing import ImportOptions, import_from

        wanted = ImportOptions(**{"owner": self.settings.owner, **options})
        given = Path(source).expanduser().absolute() if isinstance(source, (str, os.PathLike)) else source
        imported = import_from(self.writer, self.root, self.index, given, wanted, progress=self._progress)
        if imported.commit:
            self.sync()
        return imported

    def export(self, kinds: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Each note as a line of an export: what it says of itself, and the whole file."""
        from quaid.export import export_notes

        return export_notes(self.root, kinds)

    # -- the index -----------------------------------------------------------------------------------------------

    def sync(self, options: SyncOptions | None = None) -> SyncReport:
        """Bring the index in step with the files and embed what is new."""
        return self.indexer.sync(options, self._progress)

    def reindex(self) -> SyncReport:
        """Build the index from nothing; embeddings come from the cache."""
        return self.sync(SyncOptions(rebuild=True, accept_removals=True))

    def verify(self) -> Verification:
        """Compare the index, brought up to date, with one built from nothing."""
        from quaid.sync.verify import verify

        return verify(self.indexer, self.index())

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

        return Tidier(self, self._tell, self._show)

    @property
    def surroundings(self) -> Surroundings:
        """What those who write work with."""
        from quaid.writer import Surroundings

        return Surroundings(
            self.root, self.settings, self.embedding, lambda: self.git, self.index, self._rebuild, self._tell
        )

    def _show(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

    def _tell(self, text: str) -> None:
        self._say(text)

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        """Ask the index, and once more when it turns out to be damaged: it is built anew then."""
        try:
            return question()
        except database.BROKEN:
            self._rebuild()
            return question()

    def _rebuild(self) -> None:
        self.answers.release()
        budget_s = self.settings.recall.embed_budget_s
        self.sync(SyncOptions(rebuild=True, accept_removals=True, embed_budget_s=budget_s, fetch_weights=False))


def _frozen(options: dict[str, Any]) -> dict[str, Any]:
    """Lists and sets of a caller as the tuples and frozensets that the option classes hold."""
    return {key: _freeze(value) for key, value in options.items()}


def _freeze(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return frozenset(value) if isinstance(value, set) else value
