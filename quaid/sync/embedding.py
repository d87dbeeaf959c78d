"""Chunks without a vector get one, from the cache or the model."""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from quaid.embed import AUTO, Embedder, fetch_weights, find_quick, open_embedder, resolve
from quaid.embed.cache import EmbeddingCache, is_unit
from quaid.embed.weights import MULTILINGUAL_MODEL
from quaid.errors import EmbeddingError, EmbeddingServiceError, QuaidError, WeightsMissingError
from quaid.index import vectors
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.local import locks, recall_trail
from quaid.place import CACHE_FILE, LOG_DIR, state_folder
from quaid.settings import EmbeddingSettings
from quaid.text.language import ENGLISH, language

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, total)."""

BATCH = 256
EMBED_BUDGET_S = 2.0
"""A read embeds new chunks for at most this long; `degraded` names how many are left."""
MANY = 2_000
"""Chunks from which on quick vectors come first: the model embeds some hundred in a second."""
MAX_REFUSED = 8
"""A service that refuses so many texts, and has taken none, refuses all."""
_Vectors = dict[str, bytes]


def ignore_progress(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


class Filled(NamedTuple):
    """The result of embedding; `degraded` says why vectors are missing."""

    embedded: int = 0
    pending: int = 0
    degraded: tuple[str, ...] = ()


class Embedding:
    """The vault's embedder and its cache. Opens both when first needed and remembers why it cannot."""

    def __init__(self, root: Path, settings: EmbeddingSettings) -> None:
        self._root = root
        self._configured = settings
        self._settings = resolve(settings)
        self._embedder: Embedder | None = None
        self._former: dict[str, Embedder | None] = {}
        self._cache = EmbeddingCache(state_folder(root) / CACHE_FILE)
        self.problem: QuaidError | None = None
        self.is_changing = False  # another set than the configured one answers, at the last `fill`

    def resume(self) -> None:
        """Go on in the background with what a process did that was killed."""
        if (state_folder(self._root) / MARKER).exists():
            leave_embedding(self._root)

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
            former = None
            with suppress(WeightsMissingError, EmbeddingError, TypeError):
                # Whoever has chosen another embedder has not agreed that questions still go to the service they left.
                former = open_embedder(replace(EmbeddingSettings.of(row.settings), offline=True))
            self._former[row.fingerprint] = former if _fingerprint(former) == row.fingerprint else None
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

    def fetch_quick(self, progress: Progress) -> None:
        """Fetch the model for the first minutes, where it is wanted; without it words are found in these."""
        settings = find_quick(self._configured)
        if settings is not None:
            with suppress(QuaidError):
                fetch_weights(settings, progress=partial(progress, f"Fetching {settings.model}"))

    def vectors_of(self, embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
        """Return float32 vectors of texts that are about to be notes, cached so that nobody computes them again; zero
        for a text whose vector cannot be used.

        Raises:
            EmbeddingError: the service did not answer as it should.
        """
        embedder.is_patient = False
        keys = [vectors.text_key(text) for text in texts]
        found = self._look_up(embedder, dict(zip(keys, texts, strict=True)))
        return [found.get(key, bytes(4 * embedder.dimension)) for key in keys]

    def fill(
        self,
        connection: IndexConnection,
        progress: Progress,
        *,
        budget_s: float | None,
        fetch: bool,
        may_leave: bool = False,
    ) -> Filled:
        """Give every pending chunk its vector, within `budget_s` seconds.

        While the model is changed, questions are answered with the old set, which stays whole, until the new one is
        whole and takes its place. With `may_leave` a large vault gets quick vectors first, and a process in the
        background makes what takes longer.
        """
        if self._settings.provider == "none":
            return Filled()
        if self.embedder() is None and fetch and isinstance(self.problem, WeightsMissingError):
            self.fetch(progress)
        deadline = math.inf if budget_s is None else time.monotonic() + budget_s
        for waited_for in filter(None, (self.embedder(), *self._former.values())):
            waited_for.is_patient = budget_s is None
        done = 0
        try:
            if may_leave:
                self._begin_quickly(connection)
            serving = vectors.active_embedder(connection)
            # The embedder of the set that answers now, where that is not the configured one's.
            is_other = serving is not None and self.fingerprint() != serving.fingerprint
            other = self.embedder_of(serving) if serving is not None and is_other else None
            self.is_changing = other is not None
            if serving is not None and other is not None:
                done += self._fill_set(connection, other, serving, progress, deadline)
            embedder = self.embedder()
            if embedder is None:
                return Filled(done, vectors.count_pending(connection), (str(self.problem),))
            row = self._row(connection, embedder)  # a service is asked for its dimension the first time
            if budget_s is None:  # nobody is waiting: what was refused before may go through by now
                vectors.retry_failed(connection)
            waiting = vectors.count_pending(connection)
            if may_leave and other is not None and budget_s is not None and waiting > BATCH:
                leave_embedding(self._root)
                return Filled(done, waiting)
            done += self._fill_set(connection, embedder, row, progress, deadline)
        except EmbeddingError as error:
            return Filled(done, vectors.count_pending(connection), (str(error),))
        vectors.activate_newest(connection)
        return Filled(done, vectors.count_pending(connection))

    def _begin_quickly(self, connection: IndexConnection) -> None:
        """Let the quick model answer the first questions where the configured one would take long."""
        quick = self.quick()
        waiting = vectors.count_pending(connection)
        if quick is None or waiting <= MANY or vectors.list_embedders(connection):
            return
        fingerprint = self.fingerprint()
        keys = vectors.list_pending_keys(connection) if fingerprint else []
        if fingerprint is None or waiting - self._cache.count(fingerprint, keys) > MANY:
            self._row(connection, quick)

    def quick(self) -> Embedder | None:
        """Return the model for the first minutes; None where it is not wanted or not there."""
        settings = find_quick(self._configured)
        with suppress(WeightsMissingError):
            return None if settings is None else open_embedder(settings)
        return None

    def _fill_set(
        self, connection: IndexConnection, embedder: Embedder, row: EmbedderRow, progress: Progress, deadline: float
    ) -> int:
        """Give chunks that lack one a vector in the set of `row`, until `deadline`; return their number."""
        is_newest = _is_newest(connection, row)
        size = 1 if deadline < math.inf and self._settings.provider != "local" else BATCH
        total = vectors.count_pending(connection) if is_newest else vectors.count_missing(connection)
        done = 0
        while total:
            if is_newest:
                recalls = islice(recall_trail.list_recalls(state_folder(self._root)), 20)
                batch = vectors.list_pending(connection, size, [given[0] for each in recalls for given in each.given])
            else:
                batch = vectors.list_missing(connection, row, size)
            if not batch:
                break
            progress("Embedding", done, total)
            began = time.monotonic()
            if not self._fill_batch(connection, embedder, row, batch):
                break
            done += len(batch)
            progress("Embedding", done, total)
            if (now := time.monotonic()) > deadline:
                break
            if size < BATCH:  # as many as fit into half of the time that is left
                size = int(min(BATCH, max(1, len(batch) * (deadline - now) / max(now - began, 1e-3) / 2)))
        return done

    def _row(self, connection: IndexConnection, embedder: Embedder) -> EmbedderRow:
        known = vectors.list_embedders(connection)
        if known and known[-1].fingerprint == embedder.fingerprint:
            return known[-1]
        settings = self._settings if embedder is self._embedder else find_quick(self._configured)
        with connection.transaction():
            return vectors.use_embedder(
                connection, embedder.fingerprint, embedder.dimension, asdict(settings or self._settings)
            )

    def _fill_batch(
        self, connection: IndexConnection, embedder: Embedder, row: EmbedderRow, batch: list[tuple[int, str, str]]
    ) -> bool:
        """Embed and store one batch; False when another process rebuilt the index or changed the model meanwhile."""
        found = self._look_up(embedder, {key: text for _, key, text in batch})
        with connection.transaction():
            known = [(each.embedder_id, each.fingerprint) for each in vectors.list_embedders(connection)]
            if (row.embedder_id, row.fingerprint) not in known:
                return False
            vectors.insert(connection, row, [(chunk_id, key, found[key]) for chunk_id, key, _ in batch if key in found])
            if _is_newest(connection, row):
                vectors.mark_failed(connection, [chunk_id for chunk_id, key, _ in batch if key not in found])
                return True
        return bool(found)

    def _look_up(self, embedder: Embedder, texts: Mapping[str, str]) -> _Vectors:
        """Vectors of `texts` (key -> text), from the cache, or computed and cached."""
        found = _list_units(self._cache.get_many(embedder.fingerprint, list(texts)), embedder)
        missing = {key: text for key, text in texts.items() if key not in found}
        if missing:
            fresh = _list_units(_embed(embedder, missing), embedder)
            self._cache.put_many(embedder.fingerprint, fresh.items())
            found |= fresh
        return found


def _list_units(found: _Vectors, embedder: Embedder) -> _Vectors:
    """Return the vectors that can be used: a service, or a damaged cache, may give any."""
    return {key: vector for key, vector in found.items() if is_unit(vector, embedder.dimension)}


def _embed(embedder: Embedder, texts: Mapping[str, str]) -> _Vectors:
    """Vectors of `texts`. When a batch is refused, one of them may be to blame: then they go one by one."""
    fresh: _Vectors = {}
    try:
        matrix = embedder.embed(list(texts.values()))
        return {key: row.astype("<f4", copy=False).tobytes() for key, row in zip(texts, matrix, strict=True)}
    except EmbeddingServiceError:
        raise
    except EmbeddingError:
        if len(texts) > 1:
            for place, text in enumerate(texts.items()):
                fresh |= _embed(embedder, dict([text]))
                if not fresh and place + 1 >= min(len(texts), MAX_REFUSED):  # the texts are not to blame
                    raise
    return fresh


def _is_newest(connection: IndexConnection, row: EmbedderRow) -> bool:
    return vectors.list_embedders(connection)[-1].embedder_id == row.embedder_id


def _fingerprint(embedder: Embedder | None) -> str | None:
    with suppress(EmbeddingError):  # a service that cannot be asked for its dimension now
        return None if embedder is None else embedder.fingerprint
    return None


# -- embedding in the background --------------------------------------------------------------------------------------

MARKER = "embedding.todo"
_PROGRAM = "quaid.cli.background"


def start_embedding(root: Path) -> bool:
    """Start a process that embeds what has no vector yet; return whether it could be started."""
    from quaid.local.state_files import start_detached

    state = state_folder(root)
    try:
        (state / MARKER).touch(mode=0o600)
        start_detached(_PROGRAM, [str(root)], state / LOG_DIR / "embedding.log")
    except OSError:
        return False
    return True


def leave_embedding(root: Path) -> None:
    """See that a process embeds what has no vector yet: one that is at it, or another."""
    if not locks.is_held(state_folder(root) / locks.EMBEDDING_LOCK):
        start_embedding(root)


# -- languages that the vectors do not serve --------------------------------------------------------------------------

FOREIGN_SHARE = 0.1
"""Share of notes in other languages from which another embedding model is proposed."""
MIN_FOREIGN = 3
"""Texts in other languages: one quotation is not a language."""
MAX_SAMPLE, SMALL_SAMPLE = 1_000, 40
"""Texts that a report reads, and a question."""
MULTILINGUAL_STEP = f"quaid config embedding.model {MULTILINGUAL_MODEL}"
LEFT_OPEN = ("local", AUTO)
"""Provider and model where the owner has chosen none: only then another is proposed."""
_PROPOSAL = f"to find them by meaning too, run: {MULTILINGUAL_STEP} (a download of 75 MB, once)"


def propose_model(connection: IndexConnection, settings: EmbeddingSettings) -> str:
    """Return the sentence that proposes the multilingual model; empty where a model was chosen or notes are English."""
    is_open = (settings.provider, settings.model) == LEFT_OPEN
    known, foreign = count_languages(connection, MAX_SAMPLE) if is_open else (0, 0)
    if foreign < max(MIN_FOREIGN, FOREIGN_SHARE * known):
        return ""
    return (
        f"{foreign / known:.0%} of the notes are not in English, and the embedding model knows English only; "
        "another finds them by meaning too (a download of 75 MB; meanwhile the present one answers)"
    )


def propose_for_question(sample: tuple[int, int], question: str) -> list[str]:
    """Return the sentence for an answer, where the question or most notes of the `sample` are in another language."""
    if language(question) in ENGLISH and 2 * sample[1] <= sample[0]:
        return []
    return [f"language: the embedding model knows English only, and finds other languages by their words; {_PROPOSAL}"]


def propose_for_memory(connection: IndexConnection, text: str) -> str | None:
    """Return the sentence for the fact `text` that will be the third in another language; None for others."""
    if language(text) in ENGLISH:
        return None
    newest = connection.execute(
        "SELECT c.chunk_id FROM chunks c JOIN documents d USING (doc_id) WHERE d.kind = 'fact' AND c.ordinal = 0 "
        "ORDER BY c.chunk_id DESC LIMIT 200"
    )
    if _count(connection, [chunk_id for (chunk_id,) in newest])[1] != MIN_FOREIGN - 1:
        return None
    return f"Three memories are not in English, the only language that the embedding model knows; {_PROPOSAL}"


def count_languages(connection: IndexConnection, most: int = SMALL_SAMPLE) -> tuple[int, int]:
    """Return of how many texts of a sample the language is known, and how many are not in English."""
    newest = connection.execute("SELECT max(chunk_id) FROM chunks").fetchone()
    last = int((newest and newest[0]) or 0)
    return _count(connection, range(last, 0, -max(1, last // most)))


def _count(connection: IndexConnection, chunk_ids: Iterable[int]) -> tuple[int, int]:
    among = "SELECT text FROM chunks WHERE chunk_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))"
    languages = [language(str(text)) for (text,) in connection.execute(among, (json.dumps([*chunk_ids]),))]
    return len(languages) - languages.count(None), sum(each not in ENGLISH for each in languages)
