"""An open vault: what every operation on one vault shares. It is made once and handed down."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.config import own_names
from quaid.errors import NOT_INDEXED, QuaidError, UnwritableError, VaultNotFoundError
from quaid.index.cache import AnswerCache
from quaid.index.fulltext import Postings
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.index.vectors import VectorMatrix
from quaid.local.model_usage import ModelRecords
from quaid.place import LOCAL_FILE, state_folder
from quaid.settings import Settings
from quaid.sqlite import DamageRetries
from quaid.sync.as_of import PastIndexes
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.embedding import EMBED_BUDGET_S, Embedding, Progress
from quaid.sync.freshness import IndexFreshness
from quaid.sync.indexer import Indexer
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.history.vault_history import History
    from quaid.index.port import IndexConnection
    from quaid.index.sqlite.connection import SqliteIndex
    from quaid.llm import Models


class OpenVault:
    """One vault with its settings, index, embedder, git history and models. One instance belongs to one thread.

    Each part is opened when it is first used. `problem` is why `settings` are not the owner's: then nothing is written.
    `trailers` are added to the message of every commit.
    """

    def __init__(
        self,
        root: Path,
        settings: Settings,
        problem: QuaidError | None = None,
        *,
        embedding: Embedding | None = None,
    ) -> None:
        self.root = root
        self.settings = settings
        self.problem = problem
        self.state = state_folder(root)
        self.layout = Layout.of(settings.vault)
        self.trailers: tuple[tuple[str, str], ...] = ()
        self.embedding = embedding or Embedding(root, settings.embedding)
        self.indexer = Indexer(root, settings, self.embedding)
        self.matrix = VectorMatrix()
        self.postings = Postings()
        self.cache = AnswerCache()
        self.whole_reader = IndexReader(self.indexer.path)
        self.second_reader = IndexReader(self.indexer.path)
        self.freshness = IndexFreshness(self.indexer, self.whole_reader, EMBED_BUDGET_S)
        self.index_in_memory: SqliteIndex | None = None
        self.model_refusal: BaseException | None = None
        """Raised where a recall would call a model; None lets it."""
        self._write_error: UnwritableError | None = None
        self.report_to(None, None)

    def check_settings(self) -> None:
        """Raise `problem`, if any: a vault whose settings cannot be read is not written."""
        if self.problem is not None:
            raise self.problem

    def close(self) -> None:
        self.freshness.close()
        self._close_readers()

    def _close_readers(self) -> None:
        self.whole_reader.close()
        self.second_reader.close()
        if "visible_reader" in self.__dict__:
            self.visible_reader.close()

    # -- parts that are opened when they are first used ----------------------------------------------------------

    @cached_property
    def git(self) -> History:
        """The git history of the vault."""
        from quaid.history.vault_history import History

        return History(self.root, self.settings.git)

    @cached_property
    def models(self) -> Models:
        """The language models, counted in this vault's state. No provider is looked for before the first call."""
        from quaid.llm import Models
        from quaid.llm.prompts import user_prompts

        records = ModelRecords(self.state / LOCAL_FILE)
        return Models(self.settings.models, own_prompts=user_prompts(), usage=records, answers=records)

    @cached_property
    def pasts(self) -> PastIndexes:
        """The indexes of the past."""
        return PastIndexes(self.root, self.settings, self.embedding, self.git)

    @cached_property
    def owners(self) -> frozenset[str]:
        """The names of the owner on whose behalf the vault is open."""
        return own_names(self.root, self.settings)

    @cached_property
    def visible_reader(self) -> IndexReader:
        """The reader of the index without the notes that other owners keep private."""
        return IndexReader(self.indexer.path, self.owners)

    # -- progress ------------------------------------------------------------------------------------------------

    def report_to(self, progress: Progress | None, notify: Callable[[str], None] | None) -> None:
        """Show the progress of long work by `progress`, and what a wait is for by `notify`."""
        self._progress, self._notify = progress, notify

    def show_progress(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)

    def notify(self, text: str) -> None:
        if self._notify is not None:
            self._notify(text)

    # -- the index -----------------------------------------------------------------------------------------------

    def sync(self, options: SyncOptions | None = None) -> SyncReport:
        """Bring the index up to date with the files and embed what is new."""
        return self.indexer.sync(options, self._progress)

    def catch_up(self, only: frozenset[str] | None = None) -> None:
        """Index what was just committed. A failure is only reported: the next read tries again."""
        try:
            self.sync(SyncOptions(only=only, trust_times=only is None))
        except NOT_INDEXED as error:
            problem = f"What was written is committed, but the index is not up to date: {error.reason}."
            self.notify(f"{problem} Set that right, then run: quaid sync")

    def refresh(self, about: Collection[str] | None = None) -> tuple[IndexConnection, tuple[str, ...]]:
        """Return the whole index, up to date with all files or at least with those in `about`, and what prevented that.

        Where no index can be written, one without vectors is built in memory. VaultNotFoundError: there is no vault.
        """
        if self._write_error is None:
            try:
                _, stale = self.freshness.ensure(about)
                connection = self.whole_reader.open()
            except UnwritableError as error:
                return self._build_in_memory(error)
            if connection is None:
                raise VaultNotFoundError(self.root)
            self.index_in_memory = None
            return connection, stale
        return self._build_in_memory(self._write_error)

    def _build_in_memory(self, error: UnwritableError) -> tuple[IndexConnection, tuple[str, ...]]:
        self.index_in_memory = self.indexer.rebuild_in_memory(self.index_in_memory)
        return self.index_in_memory, (f"index: it is kept in memory, without vectors: {error.reason}",)

    def whole_index(self) -> IndexConnection:
        """Return the index, up to date, with the private notes of every owner: for uses that show no content."""
        return self.refresh()[0]

    def index(self) -> IndexConnection:
        """Return the index, up to date, without the notes that other owners keep private."""
        self.refresh()
        return self.visible_index()

    def visible_index(self) -> IndexConnection:
        """Return the same without bringing it up to date first."""
        if self.index_in_memory is not None:
            return database.copy_in_memory(self.index_in_memory, self.owners)
        connection = self.visible_reader.open()
        if connection is None:
            raise VaultNotFoundError(self.root)
        return connection

    def index_retries(self) -> DamageRetries:
        """Return the retries of a query: `while True: with retries: return …`. If the index turns out to be damaged, a
        new one is built, in memory where the damaged one cannot be set aside.
        """
        return _IndexRetries(self)

    def keep_in_memory(self, error: UnwritableError) -> None:
        """Use an index in memory from now on: the file is damaged, and no other can be written because of `error`."""
        self._close_readers()
        self._write_error = error

    @property
    def is_index_unwritable(self) -> bool:
        """Whether the index was damaged and no other could be written: it is in memory from then on."""
        return self._write_error is not None


class _IndexRetries(DamageRetries):
    def __init__(self, vault: OpenVault) -> None:
        super().__init__(vault.indexer.path)
        self._vault = vault

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        try:
            if not isinstance(error, UnwritableError):
                return super().__exit__(kind, error, trace)
        except UnwritableError as refusal:
            error = refusal
        if self._vault.is_index_unwritable:
            return False
        self._vault.keep_in_memory(error)
        return True
