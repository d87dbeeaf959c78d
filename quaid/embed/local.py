"""Embeds in this process, with tokenizers and onnxruntime, both loaded at the first text."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from quaid.embed.build import GRAPH_FILE, TOKENIZER_FILE, Build
from quaid.embed.centre import CENTRE_FILE, remove_centre
from quaid.embed.runtime import load_onnxruntime
from quaid.embed.unigram import PIECES_FILE, UnigramTokenizer
from quaid.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.embed import Embedder

_BATCH_TOKENS = 384
"""Padded tokens in one run: enough for full speed, and few enough for the processor's cache."""
_FEW_TEXTS = 8
"""Packing the weights costs as much as this many texts without it."""
_MAX_WARM_THREADS = 4
"""More only wait for each other over a single text."""
_Mode = Literal["cold", "warm", "bulk"]
"""The way a session runs. "cold" reads the weights from the page cache as they are and opens 40 ms sooner: right for a
process with one question. "warm" has them packed and all cores on one text. "bulk" has them packed and one core on each
batch, which beats all cores on one batch when other programs want a core too."""


def open_build(build: Build) -> Embedder:
    """Return the embedder of a converted model, by its kind, not yet loaded."""
    if build.description.kind == "static":
        from quaid.embed.static import StaticEmbedder

        return StaticEmbedder(build)
    return LocalEmbedder(build)


class LocalEmbedder:
    """A converted BERT-type model. Safe to use from several threads."""

    is_patient = False

    def __init__(self, build: Build) -> None:
        self._build = build
        self._model = build.description
        # In a container a process may use fewer cores than the machine has.
        has_affinity = hasattr(os, "sched_getaffinity")
        self._threads = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
        self.fingerprint = self._model.fingerprint
        self.dimension = self._model.dimension
        self.duplicate_similarity = build.duplicate_similarity
        self.relevant_similarity = build.relevant_similarity
        self._lock = threading.Lock()
        self._encode: Any = None
        self._centre: Any = None
        self._sessions: dict[_Mode, Any] = {}
        self._few_seen = 0
        self._warming: threading.Thread | None = None

    def warm(self) -> None:
        """Load in the background, after some 50 ms in this thread; `embed` waits for it. Safe to call several times."""
        if self._warming is not None or self._sessions:
            return
        # onnxruntime imports numpy from C: while it does, an `import numpy` in another thread fails as circular. So
        # numpy is imported before.
        import numpy as np  # noqa: F401

        # Not a daemon: a process that exits while a library is being loaded may crash.
        self._warming = threading.Thread(target=self._warm, name="quaid-warm", daemon=False)
        self._warming.start()

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, float32 [n, dimension], in the order of `texts`; equal texts are embedded once.

        Raises:
            EmbeddingError: the model's files cannot be loaded.
        """
        return self._embed(texts, self._model.text_prompt)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return the unit vector, float32 [dimension], of a question.

        Raises:
            EmbeddingError: the model's files cannot be loaded.
        """
        vector: npt.NDArray[np.float32] = self._embed([text], self._model.query_prompt, of_questions=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], prompt: str, *, of_questions: bool = False) -> npt.NDArray[np.float32]:
        import numpy as np

        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        if not rows:
            return np.zeros((0, self.dimension), np.float32)
        session = self._ready(len(rows))
        tokens = [self._tokenize(prompt + text) for text in rows]
        vectors = np.empty((len(rows), self.dimension), np.float32)
        for batch, pooled in self._run(session, tokens):
            vectors[batch] = pooled
        _normalise(vectors)
        if self._centre is not None:
            vectors = remove_centre(vectors, self._centre, of_questions=of_questions)
            _normalise(vectors)
        return vectors[[rows[text] for text in texts]]

    def _tokenize(self, text: str) -> npt.NDArray[np.int64]:
        import numpy as np

        # One by one: the tokenizer's own thread pool would complain in every process forked afterwards. It refuses a
        # lone surrogate, which JSON can carry.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return np.array(self._encode(clean.lower() if self._model.lowercase else clean), np.int64)

    def _run(self, session: Any, tokens: list[Any]) -> Iterator[tuple[list[int], npt.NDArray[np.float32]]]:
        # An int8 run scales its activations over the whole batch, so that a vector would depend on its neighbours;
        # and it is as fast on single texts.
        limit = _BATCH_TOKENS if self._model.precision == "fp32" else 1
        batches = list(_batches([len(ids) for ids in tokens], limit))
        picked = ([tokens[row] for row in batch] for batch in batches)
        if len(tokens) <= _FEW_TEXTS:
            yield from zip(batches, (_pool(session, batch) for batch in picked), strict=True)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._threads) as workers:
            yield from zip(batches, workers.map(partial(_pool, session), picked), strict=True)

    def _ready(self, count: int) -> Any:
        """Return the session to embed `count` texts with; all that it needs is loaded."""
        with self._lock:
            mode = self._choose_mode(count)
            try:
                if self._encode is None:
                    import numpy as np

                    self._centre = np.load(self._build.folder / CENTRE_FILE) if self._model.centred else None
                    self._encode = self._load_tokenizer()
                if mode not in self._sessions:
                    self._sessions[mode] = self._open_session(mode)
            except Exception as error:  # onnxruntime and tokenizers raise bare Exceptions
                raise EmbeddingError(
                    f"The embedding model in {self._build.folder} cannot be loaded ({error}). "
                    "Convert it again with: quaid doctor --fetch"
                ) from error
            return self._sessions[mode]

    def _choose_mode(self, count: int) -> _Mode:
        if count > _FEW_TEXTS:
            return "bulk"
        self._few_seen += count
        if self._few_seen <= _FEW_TEXTS:
            return "cold"
        self._sessions.pop("cold", None)
        return "warm"

    def _warm(self) -> None:
        with suppress(EmbeddingError):  # `embed` raises it again
            self._ready(0)

    def _load_tokenizer(self) -> Callable[[str], list[int]]:
        """Return what turns a text into token ids."""
        if (self._build.folder / PIECES_FILE).exists():
            return partial(UnigramTokenizer(self._build.folder).encode, limit=self._model.max_tokens)
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._build.folder / TOKENIZER_FILE))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._model.max_tokens)
        return lambda text: list(tokenizer.encode(text).ids)

    def _open_session(self, mode: _Mode) -> Any:
        onnxruntime = load_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # Joins each int8 product with what comes before and after it: 7 % less work for a text, 2 ms more to open.
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_DISABLE_ALL if mode == "cold" else levels.ORT_ENABLE_EXTENDED
        is_parallel = mode == "warm" and self._model.precision == "fp32"
        options.intra_op_num_threads = min(self._threads, _MAX_WARM_THREADS) if is_parallel else 1
        if mode == "cold":
            options.add_session_config_entry("session.disable_prepacking", "1")
        path = str(self._build.folder / GRAPH_FILE)
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _normalise(vectors: npt.NDArray[np.float32]) -> None:
    import numpy as np

    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _batches(lengths: list[int], limit_tokens: int) -> Iterator[list[int]]:
    """Yield row numbers grouped by length, longest first, so that memory is allocated once; padded, a group has
    `limit_tokens` at most.
    """
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    start = 0
    while start < len(order):
        size = max(1, limit_tokens // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


def _pool(session: Any, tokens: list[Any]) -> npt.NDArray[np.float32]:
    """Return the pooled states, float32 [n, dimension], of n token rows, padded to the longest."""
    import numpy as np

    length = max(map(len, tokens))
    ids = np.zeros((len(tokens), length), np.int64)
    mask = np.zeros_like(ids)
    for row, row_ids in enumerate(tokens):
        ids[row, : len(row_ids)] = row_ids
        mask[row, : len(row_ids)] = 1
    pooled: npt.NDArray[np.float32] = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return pooled
