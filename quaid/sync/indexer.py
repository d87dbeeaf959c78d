"""Record -> index, one way. `quaid sync`, `reindex`, `watch` and the freshness check all come through here.

Words first, vectors after: one SQLite write transaction brings documents, words and graph in step with the files
(it is also the lock that keeps two syncs apart), then what has no vector yet is embedded outside of any
transaction and added in batches. A kill in between leaves chunks pending, and the next sync goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from quaid.errors import MassRemovalError, QuaidError, VaultNotFoundError
from quaid.index import database, documents
from quaid.index.documents import Known
from quaid.place import CONFIG_FILE, INDEX_FILE, state_folder
from quaid.settings import Settings
from quaid.sqlite import BUSY_MS, heal, transaction, translated
from quaid.sync import diff
from quaid.sync.embedding import Embedding, Progress
from quaid.sync.watcher import remove_stale_cookies
from quaid.trust import make_state_folder
from quaid.vault import files

if TYPE_CHECKING:
    import apsw

    from quaid.model import Note

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How thorough and how patient a sync is."""

    rebuild: bool = False
    """Forget the index and read every file again."""
    trust_times: bool = True
    """False reads every file even where size and times say it is unchanged."""
    accept_removals: bool = False
    embed_budget_s: float | None = None
    """Stop embedding after so long and leave the rest pending; None goes on to the end."""
    fetch_weights: bool = True
    only: frozenset[str] | None = None
    """Look at these paths alone: whoever asks knows that nothing else changed."""
    wait_ms: int = BUSY_MS
    """How long another process may keep the index before this one gives up."""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did. Paths are relative to the vault; `pending` chunks still wait for their vector."""

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    removed: tuple[str, ...] = ()
    total: int = 0
    embedded: int = 0
    pending: int = 0
    rebuilt: str | None = None
    degraded: tuple[str, ...] = ()
    took_s: float = 0.0

    @property
    def changed(self) -> int:
        return len(self.added) + len(self.modified) + len(self.renamed) + len(self.removed)


@dataclass(slots=True)
class _Written:
    """What the word phase found, path -> content hash."""

    added: dict[str, str] = field(default_factory=dict)
    modified: list[str] = field(default_factory=list)
    removed: dict[str, str] = field(default_factory=dict)


class Indexer:
    """Keeps one vault's index.db equal to its files."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding) -> None:
        self.root = root
        self.path = state_folder(root) / INDEX_FILE
        self._settings = settings
        self._embedding = embedding

    def is_there(self) -> bool:
        """Whether the vault is: an unmounted disk leaves an empty folder behind, and that is not an empty vault."""
        return (self.root / CONFIG_FILE).exists()

    def is_fresh(self, reader: apsw.Connection) -> bool:
        """A stat sweep against the index, nothing read and nothing written: about 40 ms for 10,000 notes."""
        if database.schema_version(reader) != database.SCHEMA_VERSION:
            return False
        listed = self._list()
        if diff.compare(listed.notes, documents.list_known(reader)):
            return False
        return listed.passed_over == documents.list_passed_over(reader)

    def sync(self, options: SyncOptions | None = None, progress: Progress | None = None) -> SyncReport:
        """Bring the index in step with the files; a damaged or outdated index is built anew.

        Raises:
            MassRemovalError: too many notes vanished at once; the index is left as it was.
            LockedError: another process has been indexing for longer than the busy timeout.
        """
        started = time.monotonic()
        options = options or SyncOptions()
        remove_stale_cookies(self.root)
        report = in_health(self.path, lambda why: self._sync(options, progress or silent, why))
        return replace(report, took_s=time.monotonic() - started)

    def rebuild_in_memory(self, known: apsw.Connection | None = None) -> apsw.Connection:
        """An index without a file and without vectors, made from nothing: what `verify` compares with. Or `known`,
        which was made so, brought in step.
        """
        connection = known or database.make_in_memory()
        self._sync_words(connection, SyncOptions(accept_removals=True), silent)
        return connection

    def _sync(self, options: SyncOptions, progress: Progress, rebuilt: str | None) -> SyncReport:
        with self._writer(options.wait_ms) as (connection, outdated):
            report = self._sync_words(connection, options, progress)
            filled = self._embedding.fill(
                connection, progress, budget_s=options.embed_budget_s, fetch=options.fetch_weights
            )
        reason = rebuilt or ("it was made by another version of Quaid" if outdated else None)
        return replace(
            report, rebuilt=reason, embedded=filled.embedded, pending=filled.pending, degraded=filled.degraded
        )

    @contextmanager
    def _writer(self, wait_ms: int) -> Iterator[tuple[apsw.Connection, bool]]:
        if not self.is_there():
            raise VaultNotFoundError(self.root)
        with open_writer(self.root, self.path, wait_ms) as opened:
            yield opened

    def _list(self) -> files.NoteListing:
        try:
            return files.list_notes(self.root)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise VaultNotFoundError(self.root) from error

    def _sync_words(self, connection: apsw.Connection, options: SyncOptions, progress: Progress) -> SyncReport:
        with transaction(connection):
            if options.rebuild:
                database.clear(connection)
            known = documents.list_known(connection, options.only)
            listed = self._list() if options.only is None else files.list_some(self.root, options.only)
            found = diff.compare(listed.notes, known, trust_times=options.trust_times)
            if not options.accept_removals:
                self._brake(found, documents.count(connection))
            written = self._write(connection, listed, known, found, progress)
            documents.replace_passed_over(connection, listed.passed_over, options.only)
        renamed = diff.pair_renames(written.added, written.removed)
        return SyncReport(
            added=tuple(path for path in written.added if path not in renamed.values()),
            modified=tuple(written.modified),
            renamed=tuple(renamed.items()),
            removed=tuple(path for path in written.removed if path not in renamed),
            total=documents.count(connection),
        )

    def _brake(self, found: diff.Diff, known: int) -> None:
        """A vanished mount or a stray `rm -r` looks like removals; what git itself took away does not count."""
        limits = self._settings.sync
        gone = found.removed
        if not diff.looks_like_accident(gone, known, limits.removal_brake_count, limits.removal_brake_share):
            return
        from quaid.history.vault_history import History

        try:
            missing = History(self.root, self._settings.git).tracked_missing(gone)
        except QuaidError:  # git cannot say why: then nothing says that they are gone for good
            raise MassRemovalError(len(gone), known) from None
        if diff.looks_like_accident(missing, known, limits.removal_brake_count, limits.removal_brake_share):
            raise MassRemovalError(len(missing), known)

    def _write(
        self,
        connection: apsw.Connection,
        listed: files.NoteListing,
        known: dict[str, Known],
        found: diff.Diff,
        progress: Progress,
    ) -> _Written:
        written = _Written()
        for path in found.removed:
            documents.remove_document(connection, path)
            written.removed[path] = known[path].content_hash
        to_read = [*found.added, *found.suspects]
        for done, path in enumerate(to_read):
            progress("Reading notes", done, len(to_read))
            self._write_one(connection, path, listed.notes[path], known.get(path), written)
        progress("Reading notes", len(to_read), len(to_read))
        return written

    def _write_one(
        self, connection: apsw.Connection, path: str, stat: files.FileStat, old: Known | None, written: _Written
    ) -> None:
        from quaid.vault import notes

        read_ns = time.time_ns()
        data = self._read(path)
        if data is None:  # gone, or swapped for a link, since the listing: the next sync sees it
            return
        row = Known(stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode, read_ns, notes.content_hash(data))
        if old is not None and old.content_hash == row.content_hash:
            documents.touch(connection, path, row)
            return
        documents.replace_document(connection, parse_note(path, data, self._settings), row)
        if old is None:
            written.added[path] = row.content_hash
        else:
            written.modified.append(path)

    def _read(self, path: str) -> bytes | None:
        try:
            return files.read_note(self.root, path)
        except PermissionError:
            return b""


def parse_note(path: str, data: bytes, settings: Settings) -> Note:
    """A note as every index of this vault holds it."""
    from quaid.vault import notes  # not above: a read that finds nothing new parses nothing

    return notes.parse_note(path, data, max_note_bytes(settings))


def max_note_bytes(settings: Settings) -> int:
    """How much of a note is searched."""
    from quaid.vault import notes

    return int(settings.sync.max_note_mb * notes.MEGABYTE)


@contextmanager
def open_writer(root: Path, path: Path, wait_ms: int) -> Iterator[tuple[apsw.Connection, bool]]:
    """A connection that may write an index of the vault at `root`, and whether it was outdated and is empty now."""
    make_state_folder(root)
    connection, outdated = database.connect_writer(path, wait_ms)
    try:
        yield connection, outdated
    finally:
        connection.close()


def in_health(path: Path, work: Callable[[str | None], Result]) -> Result:
    """What `work` makes of the index at `path`; when that was damaged, of a new one, and it is told so.

    Raises:
        DiskFullError, DiskFailedError, LockedError, VaultReadOnlyError: as they say.
    """
    with translated(path, busy="Another Quaid is bringing the index up to date"):
        return heal(path, lambda again: work("the index was damaged" if again else None))


def silent(_what: str, _done: int, _total: int) -> None:
    """The progress nobody looks at."""
