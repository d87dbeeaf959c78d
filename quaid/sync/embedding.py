"""Chunks without a vector get one, from the cache or the model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
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

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, total)."""

BATCH = 256
_Vectors = dict[str, bytes]


def ignore_progress(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The result of embedding; `degraded` says why vectors are missing."""

    embedded: int = 0
    pending: int = 0
    degraded: tuple[str, ...] = ()


class Embedding:
    """The vault's embedder and its cache. Opens both when first needed and remembers why it cannot."""

    def __init__(self, root: Path, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._embedder: Embedder | None = None
        self._former: dict[str, Embedder | None] = {}
        self._cache = EmbeddingCache(state_folder(root) / CACHE_FILE)
        self.problem: QuaidError | None = None

    def embedder(self) -> Embedder | None:
        """Return the configured embedder; None when it is switched off, or `problem` says what is missing."""
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
        """Return that of the configured embedder; None without one, or while its service cannot be asked for it."""
        return _fingerprint(self.embedder())

    def embedder_of(self, row: EmbedderRow) -> Embedder | None:
        """Return the embedder that made the vectors of `row`: not the configured one while the model is changed."""
        if self._settings.provider == "none":
            return None
        if self.fingerprint() == row.fingerprint:
            return self.embedder()
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
        """Return float32 vectors of texts that are about to be notes, kept so that nobody computes them again.

        Raises:
            EmbeddingError: the service did not answer as it should.
        """
        keys = [documents.text_key(text) for text in texts]
        found = self._look_up(embedder, dict(zip(keys, texts, strict=True)), _embed)
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
        done = 0
        try:
            row = self._row(connection, embedder)  # a service is asked for its dimension the first time
            if budget_s is None:  # nobody is waiting: what was refused before may go through by now
                vectors.retry_failed(connection)
            pending = vectors.count_pending(connection)
            deadline = math.inf if budget_s is None else time.monotonic() + budget_s
            while pending and (batch := vectors.list_pending(connection, BATCH)):
                progress("Embedding", done, pending)
                if not self._fill_batch(connection, embedder, row, batch):
                    break
                done += len(batch)
                progress("Embedding", done, pending)
                if time.monotonic() > deadline:
                    break
        except EmbeddingError as error:
            return Filled(done, vectors.count_pending(connection), (str(error),))
        left = vectors.count_pending(connection) if pending else 0
        if not left:
            _activate(connection)
        return Filled(done, left)

    def _row(self, connection: apsw.Connection, embedder: Embedder) -> EmbedderRow:
        known = vectors.list_embedders(connection)
        if known and known[-1].fingerprint == embedder.fingerprint:
            return known[-1]
        with transaction(connection):
            return vectors.use_embedder(connection, embedder.fingerprint, embedder.dimension, asdict(self._settings))

    def _fill_batch(
        self, connection: apsw.Connection, embedder: Embedder, row: EmbedderRow, batch: list[tuple[int, str, str]]
    ) -> bool:
        """Embed and store one batch; False when another process rebuilt the index or changed the model meanwhile."""
        found = self._look_up(embedder, {key: text for _, key, text in batch}, _embed_what_passes)
        with transaction(connection):
            newest = vectors.list_embedders(connection)[-1:]
            if not newest or newest[0].fingerprint != row.fingerprint or newest[0].embedder_id != row.embedder_id:
                return False
            vectors.insert(connection, row, [(chunk_id, key, found[key]) for chunk_id, key, _ in batch if key in found])
            vectors.mark_failed(connection, [chunk_id for chunk_id, key, _ in batch if key not in found])
        return True

    def _look_up(
        self, embedder: Embedder, texts: Mapping[str, str], embed: Callable[[Embedder, Mapping[str, str]], _Vectors]
    ) -> _Vectors:
        """Vectors of `texts` (key -> text), from the cache or else by `embed`, and then kept."""
        found = self._cache.get_many(embedder.fingerprint, list(texts))
        missing = {key: text for key, text in texts.items() if key not in found}
        if missing:
            fresh = embed(embedder, missing)
            self._cache.put_many(embedder.fingerprint, fresh.items())
            found |= fresh
        return found


def _embed(embedder: Embedder, texts: Mapping[str, str]) -> _Vectors:
    matrix = embedder.embed(list(texts.values()))
    return {key: row.astype("<f4", copy=False).tobytes() for key, row in zip(texts, matrix, strict=True)}


def _embed_what_passes(embedder: Embedder, texts: Mapping[str, str]) -> _Vectors:
    """Like `_embed`, but when a batch is refused, one text may be to blame: then they go one by one."""
    try:
        return _embed(embedder, texts)
    except EmbeddingError:
        if len(texts) == 1:
            raise
    fresh: _Vectors = {}
    for key, text in texts.items():
        try:
            fresh |= _embed(embedder, {key: text})
        except EmbeddingError:
            if not fresh:  # nothing goes through: the service is down, the text is not to blame
                raise
    return fresh


def _activate(connection: apsw.Connection) -> None:
    """Let the newest vectors take over once none is missing."""
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
    return former if _fingerprint(former) == row.fingerprint else None


def _fingerprint(embedder: Embedder | None) -> str | None:
    try:
        return None if embedder is None else embedder.fingerprint
    except EmbeddingError:  # a service that cannot be asked for its dimension now
        return None
