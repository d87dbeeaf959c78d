"""Chunks without a vector get one, from the cache or the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.embed import Embedder, EmbeddingCache, fetch_weights, open_embedder
from quaid.errors import EmbeddingError, QuaidError, WeightsMissingError
from quaid.index import documents, vectors
from quaid.index.vectors import EmbedderRow
from quaid.place import CACHE_FILE, state_folder
from quaid.settings import EmbeddingSettings
from quaid.sqlite import transaction

if TYPE_CHECKING:
    import apsw
    import numpy as np
    import numpy.typing as npt

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, total)."""

BATCH = 256


@dataclass(frozen=True, slots=True)
class Filled:
    """How far embedding came; `degraded` says in words why vectors are missing."""

    embedded: int = 0
    pending: int = 0
    degraded: tuple[str, ...] = ()


class Embedding:
    """The vault's embedder and its cache. Opens both when first needed and remembers why it cannot."""

    def __init__(self, root: Path, settings: EmbeddingSettings) -> None:
        self._root = root
        self._settings = settings
        self._embedder: Embedder | None = None
        self._former: dict[str, Embedder | None] = {}
        self._cache: EmbeddingCache | None = None
        self.problem: QuaidError | None = None

    def embedder(self) -> Embedder | None:
        """The configured embedder, or None: switched off, or `problem` says what is missing."""
        if self._embedder is None and self.problem is None:
            try:
                self._embedder = open_embedder(self._settings)
            except (WeightsMissingError, EmbeddingError) as error:
                self.problem = error
        return self._embedder

    def warm(self) -> None:
        """Begin to load the model in the background, if it is one that has to be loaded."""
        warm = getattr(self.embedder(), "warm", None)
        if warm is not None:
            warm()

    def fingerprint(self) -> str | None:
        """That of the configured embedder; None without one, or while its service cannot be asked for it."""
        embedder = self.embedder()
        return None if embedder is None else _fingerprint(embedder)

    def embedder_of(self, row: EmbedderRow) -> Embedder | None:
        """The embedder that made the vectors of `row`, which during a change of model is not the configured one."""
        if self._settings.provider == "none":
            return None
        configured = self.embedder()
        if configured is not None and _fingerprint(configured) == row.fingerprint:
            return configured
        if row.fingerprint not in self._former:
            self._former[row.fingerprint] = _open_former(row)
        return self._former[row.fingerprint]

    def fetch(self, progress: Progress, *, force: bool = False) -> None:
        """Fetch the weights of a built-in model, once; a failure is remembered in `problem`. `force` tries again
        even if the last try failed a moment ago.
        """
        what = f"Fetching {self._settings.model}"
        try:
            fetch_weights(self._settings, progress=lambda done, total: progress(what, done, total), force=force)
            self.problem = None
        except QuaidError as error:
            self.problem = error

    def vectors_of(self, embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
        """float32 vectors of texts that are about to be notes, kept so that nobody computes them again.

        Raises:
            EmbeddingError: the service did not answer as it should.
        """
        cache = self._open_cache()
        keys = [documents.text_key(text) for text in texts]
        found = cache.get_many(embedder.fingerprint, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            fresh = dict(zip(missing, _as_bytes(embedder.embed(list(missing.values()))), strict=True))
            cache.put_many(embedder.fingerprint, fresh.items())
            found |= fresh
        return [found[key] for key in keys]

    def fill(self, connection: apsw.Connection, progress: Progress, *, budget_s: float | None, fetch: bool) -> Filled:
        """Give every pending chunk its vector, within `budget_s` seconds."""
        if self._settings.provider == "none":
            return Filled()
        if self.embedder() is None and fetch and isinstance(self.problem, WeightsMissingError):
            self.fetch(progress)
        embedder = self.embedder()
        if embedder is None:
            return Filled(pending=vectors.count_pending(connection), degraded=(str(self.problem),))
        try:
            row = self._row(connection, embedder)
        except EmbeddingError as error:  # a service is asked for its dimension the first time
            return Filled(pending=vectors.count_pending(connection), degraded=(str(error),))
        if budget_s is None:  # nobody is waiting: what was refused before may go through by now
            vectors.retry_failed(connection)
        pending = vectors.count_pending(connection)
        if not pending:
            self._finish(connection)
            return Filled()
        return self._fill(connection, embedder, row, pending, progress, budget_s)

    def _row(self, connection: apsw.Connection, embedder: Embedder) -> EmbedderRow:
        known = vectors.list_embedders(connection)
        if known and known[-1].fingerprint == embedder.fingerprint:
            return known[-1]
        with transaction(connection):
            return vectors.use_embedder(connection, embedder.fingerprint, embedder.dimension, asdict(self._settings))

    def _fill(
        self,
        connection: apsw.Connection,
        embedder: Embedder,
        row: EmbedderRow,
        pending: int,
        progress: Progress,
        budget_s: float | None,
    ) -> Filled:
        deadline = None if budget_s is None else time.monotonic() + budget_s
        done = 0
        degraded: tuple[str, ...] = ()
        try:
            while batch := vectors.list_pending(connection, BATCH):
                progress("Embedding", done, pending)
                if not self._embed_batch(connection, embedder, row, batch):
                    break
                done += len(batch)
                if deadline is not None and time.monotonic() > deadline:
                    break
        except EmbeddingError as error:
            degraded = (str(error),)
        progress("Embedding", done, pending)
        left = vectors.count_pending(connection)
        if not left:
            self._finish(connection)
        return Filled(done, left, degraded)

    def _embed_batch(
        self, connection: apsw.Connection, embedder: Embedder, row: EmbedderRow, batch: list[tuple[int, str, str]]
    ) -> bool:
        """Embed and store one batch; False when another process rebuilt the index or changed the model meanwhile."""
        cache = self._open_cache()
        found = cache.get_many(embedder.fingerprint, [key for _, key, _ in batch])
        missing = {key: text for _, key, text in batch if key not in found}
        failed: set[str] = set()
        if missing:
            fresh, failed = self._embed(embedder, list(missing), list(missing.values()))
            cache.put_many(embedder.fingerprint, fresh.items())
            found |= fresh
        with transaction(connection):
            newest = vectors.list_embedders(connection)[-1:]
            if not newest or newest[0].fingerprint != row.fingerprint or newest[0].embedder_id != row.embedder_id:
                return False
            vectors.insert(connection, row, [(chunk_id, key, found[key]) for chunk_id, key, _ in batch if key in found])
            vectors.mark_failed(connection, [chunk_id for chunk_id, key, _ in batch if key in failed])
        return True

    def _embed(
        self, embedder: Embedder, keys: Sequence[str], texts: Sequence[str]
    ) -> tuple[dict[str, bytes], set[str]]:
        """Vectors by key. When a batch is refused, one text may be to blame: then they go one by one."""
        try:
            return dict(zip(keys, _as_bytes(embedder.embed(texts)), strict=True)), set()
        except EmbeddingError:
            if len(texts) == 1:
                raise
        fresh: dict[str, bytes] = {}
        failed: set[str] = set()
        for key, text in zip(keys, texts, strict=True):
            try:
                fresh[key] = _as_bytes(embedder.embed([text]))[0]
            except EmbeddingError:
                if not fresh:  # nothing goes through: the service is down, the text is not to blame
                    raise
                failed.add(key)
        return fresh, failed

    def _open_cache(self) -> EmbeddingCache:
        if self._cache is None:
            self._cache = EmbeddingCache(state_folder(self._root) / CACHE_FILE)
        return self._cache

    @staticmethod
    def _finish(connection: apsw.Connection) -> None:
        rows = vectors.list_embedders(connection)
        if rows and (len(rows) > 1 or not rows[-1].active):
            with transaction(connection):
                if not vectors.count_pending(connection):
                    vectors.activate_newest(connection)


def _open_former(row: EmbedderRow) -> Embedder | None:
    try:
        # Whoever has chosen another embedder has not agreed that questions still go to the service they left.
        settings = replace(EmbeddingSettings(**row.settings), offline=True)  # type: ignore[arg-type]
        former = open_embedder(settings)
    except (WeightsMissingError, EmbeddingError, TypeError):
        return None
    return former if former is not None and _fingerprint(former) == row.fingerprint else None


def _fingerprint(embedder: Embedder) -> str | None:
    try:
        return embedder.fingerprint
    except EmbeddingError:  # a service that cannot be asked for its dimension now
        return None


def _as_bytes(matrix: npt.NDArray[np.float32]) -> list[bytes]:
    return [row.astype("<f4", copy=False).tobytes() for row in matrix]
