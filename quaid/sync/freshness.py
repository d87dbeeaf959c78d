"""Reads that are never stale: whatever changed since the last one is indexed first."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from quaid.errors import LockedError, MassRemovalError, UnwritableError
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.indexer import Indexer
from quaid.sync.watcher import ChangeListener

READ_WAIT_MS = 5_000
"""The time that a read waits for another process that is indexing, before it answers from what there is and says so."""


class IndexFreshness:
    """Asks the cheapest question that is still certain: notifications once a process keeps asking, a sweep before."""

    def __init__(self, indexer: Indexer, reader: IndexReader, embed_budget_s: float) -> None:
        self._indexer = indexer
        self._reader = reader
        self._options = SyncOptions(embed_budget_s=embed_budget_s, fetch_weights=False, wait_ms=READ_WAIT_MS)
        self._listener: ChangeListener | None = None
        self._asked = 0
        self._pending = False
        self._checks_once = False
        self._stale: tuple[str, ...] | None = None

    def listen(self) -> None:
        """Listen from the next read on, not only from the second: others will follow."""
        self._asked = max(self._asked, 1)

    @contextmanager
    def checked_once(self) -> Iterator[None]:
        """The first read within it brings the index up to date for all of them: a page tells of one moment."""
        self._checks_once = True
        try:
            yield
        finally:
            self._checks_once, self._stale = False, None

    def ensure(self, about: Collection[str] | None = None) -> tuple[SyncReport | None, tuple[str, ...]]:
        """Index what changed; return the report, None if nothing had, and why the answer may still be stale.

        With `about`, a process that asks once looks at these files alone, which spares it the sweep.
        """
        if self._stale is not None and self._reader.open() is not None:
            return None, self._stale
        if about is not None and self._listener is None and not self._pending:
            return (None, ()) if self._is_fresh(about) else self._sync(replace(self._options, only=frozenset(about)))
        self._asked += 1
        changed = self._changed()
        if self._pending or self._reader.open() is None:
            changed, is_same = None, False
        else:
            is_same = self._is_fresh() if changed is None else not changed
        # What is written by way of a mapping may leave size and times as they are.
        options = replace(self._options, only=changed, trust_times=changed is None)
        report, stale = (None, ()) if is_same else self._sync(options)
        if self._checks_once:
            self._stale = stale
        return report, stale

    def close(self) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    def _changed(self) -> frozenset[str] | None:
        """Return the paths that changed; None when only a sweep can tell. Listening begins with the second question,
        before its sweep, so that nothing falls between the two.
        """
        if self._listener is not None:
            if self._listener.is_complete():
                return self._listener.changed.take()
            self.close()  # say because the folder was replaced: begin again
            self._asked = 1
        elif self._asked == 2:
            listener = ChangeListener(self._indexer.root)
            if listener.start():
                self._listener = listener
            else:
                listener.stop()
        return None

    def _is_fresh(self, about: Collection[str] | None = None) -> bool:
        reader = self._reader.open()
        with suppress(database.DatabaseError):  # damaged or half made: the sync that follows rebuilds it
            return reader is not None and self._indexer.is_fresh(reader, about)
        return False

    def _sync(self, options: SyncOptions) -> tuple[SyncReport | None, tuple[str, ...]]:
        self._pending = True  # the notifications of these changes are spent: should this fail, sweep next time
        try:
            report = self._indexer.sync(options)
        except MassRemovalError as error:
            return None, (f"removals: {error}",)
        except (LockedError, UnwritableError) as error:
            if self._reader.open() is None:
                raise
            return None, (f"stale: {error}",)
        self._pending = False
        return report, ()
