"""Embeds and scores in this process, with tokenizers and onnxruntime, both loaded at the first text."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from quaid.embed.weights import GRAPH_FILE, TOKENIZER_FILE, VECTORS_FILE, Build, Pooling
from quaid.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_BATCH_TOKENS = 384
"""Padded tokens in one run: enough for full speed, and few enough for the processor's cache."""
_FEW_TEXTS = 8
"""Packing the weights costs as much as this many texts without it."""
_Mode = Literal["cold", "warm"]
"""The way a session runs. "cold" reads the weights from the page cache as they are and opens 40 ms sooner: right for a
process with one question. "warm" has them packed. One core works on each batch, which beats all cores on one batch when
other programs want a core too."""
CENTRE_FILE = "languages.npy"
LAYERS_FILE = "layers.npz"
FUNCTIONS = ("Identity", "Tanh", "GELU", "LayerNorm")
"""What a layer after the pooling may compute."""
_OUTPUTS = ("sentence_embedding", "logits")
"""The outputs that a graph has for a whole text or pair. Without one of them the first output has the states of all
tokens, and what comes after them is computed here."""
_DIRECTIONS = 8
"""Any number from 4 to 12 does nearly as well (docs/explanation/recall.md)."""
_TEXTS, _QUESTIONS = 0, 1


def open_build(build: Build) -> Any:
    """Return the embedder or the reranker of a converted model, by its kind, not yet loaded."""
    kinds = {"static": StaticEmbedder, "reranker": LocalReranker}
    return kinds.get(build.description.kind, LocalEmbedder)(build)


class _BuildModel:
    """What converted models share."""

    is_patient = False

    def __init__(self, build: Build) -> None:
        self._build = build
        self._model = build.description
        self.fingerprint = build.description.fingerprint
        self.dimension = build.description.dimension
        self.duplicate_similarity = build.duplicate_similarity
        self.relevant_similarity = build.relevant_similarity
        self._lock = threading.Lock()

    @contextmanager
    def _loading(self) -> Iterator[None]:
        """Hold the lock, and raise EmbeddingError for whatever goes wrong: onnxruntime and tokenizers raise bare
        Exceptions.
        """
        with self._lock:
            try:
                yield
            except Exception as error:
                raise EmbeddingError(
                    f"The model in {self._build.folder} cannot be loaded ({error}). "
                    "Convert it again with: quaid doctor --fetch"
                ) from error

    def _open_tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._build.folder / TOKENIZER_FILE))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._model.max_tokens)
        return tokenizer


class Encoder(_BuildModel):
    """A converted model that onnxruntime runs. Safe to use from several threads."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        # In a container a process may use fewer cores than the machine has.
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._encode: Any = None
        self._plain: PlainTokenizer | None = None
        """The tokenizer of a plain question: the one of any text takes 50 ms to open."""
        self._centre: Any = None
        self._layers: Mapping[str, Any] = {}
        self._sessions: dict[_Mode, Any] = {}
        self._seen = 0
        self._warming: threading.Thread | None = None

    def warm(self) -> None:
        """Load in the background, after some 50 ms in this thread; `embed` waits for it. Safe to call several times."""
        if self._warming is not None or self._sessions:
            return
        # onnxruntime imports numpy from C: while it does, an `import numpy` in another thread fails as circular. So
        # numpy is imported before.
        import numpy as np  # noqa: F401

        def load() -> None:
            with suppress(EmbeddingError):  # `embed` raises it again
                self._ready(0)

        # Not a daemon: a process that exits while a library is being loaded may crash.
        self._warming = threading.Thread(target=load, name="quaid-warm", daemon=False)
        self._warming.start()

    def _ready(self, count: int) -> Any:
        """Return the session to embed `count` texts with; all that it needs is loaded."""
        with self._loading():
            self._seen += count
            mode: _Mode = "cold" if self._seen <= _FEW_TEXTS else "warm"
            if mode == "warm":
                self._sessions.pop("cold", None)
            if self._encode is None and self._plain is None:
                import numpy as np

                folder = self._build.folder
                self._centre = np.load(folder / CENTRE_FILE) if self._model.centred else None
                self._layers = dict(np.load(folder / LAYERS_FILE)) if (folder / LAYERS_FILE).exists() else {}
                if (folder / PIECES_FILE).exists():
                    self._encode = partial(UnigramTokenizer(folder).encode, limit=self._model.max_tokens)
                elif mode == "cold":
                    self._plain = PlainTokenizer.open(folder)
            if self._encode is None and (mode == "warm" or self._plain is None):
                self._encode = self._open_tokenizer().encode
            if mode not in self._sessions:
                self._sessions[mode] = self._open_session(mode)
            return self._sessions[mode]

    def _open_session(self, mode: _Mode) -> Any:
        onnxruntime = load_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # Joins each int8 product with what comes before and after it: 7 % less work for a text, 2 ms more to open.
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_DISABLE_ALL if mode == "cold" else levels.ORT_ENABLE_EXTENDED
        options.intra_op_num_threads = 1
        if mode == "cold":
            options.add_session_config_entry("session.disable_prepacking", "1")
        path = str(self._build.folder / GRAPH_FILE)
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, text: str) -> npt.NDArray[np.float32]:
        """Return the numbers that the model gives for a text, not normalised."""
        session = self._ready(1)
        numbers: npt.NDArray[np.float32] = self._run(session, [self._tokenize(text)])[0]
        return numbers

    def _tokenize(self, *texts: str) -> npt.NDArray[np.int64]:
        """Return the ids of a text's or a pair's tokens, and which of the two each belongs to: int64 [2, length]."""
        import numpy as np

        # A tokenizer refuses a lone surrogate, which JSON can carry.
        cleaned = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        if self._encode is None and self._plain is not None and len(texts) == 1 and _PLAIN.fullmatch(texts[0]):
            ids = self._plain.encode(texts[0], self._model.max_tokens)
            return np.array([ids, [0] * len(ids)], np.int64)
        if self._encode is None:
            with self._loading():
                self._encode = self._open_tokenizer().encode
        found = self._encode(*(text.lower() if self._model.lowercase else text for text in cleaned))
        ids, types = (found, [0] * len(found)) if isinstance(found, list) else (found.ids, found.type_ids)
        return np.array([ids, types], np.int64)

    def _run(self, session: Any, tokens: Sequence[Any]) -> npt.NDArray[np.float32]:
        """Return what the model gives for each row of tokens; all are padded to the longest."""
        import numpy as np

        length = max(row.shape[1] for row in tokens)
        ids, mask, types = np.zeros((3, len(tokens), length), np.int64)
        for place, row in enumerate(tokens):
            ids[place, : row.shape[1]], types[place, : row.shape[1]] = row
            mask[place, : row.shape[1]] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        wanted = {each.name for each in session.get_inputs()}
        names = [each.name for each in session.get_outputs()]
        output = next((name for name in _OUTPUTS if name in names), names[0])
        try:
            found = session.run([output], {name: given[name] for name in wanted})[0].astype(np.float32, copy=False)
        except Exception as error:  # onnxruntime raises bare ones, and an input that nobody gives is a KeyError
            raise EmbeddingError(f"The model in {self._build.folder} failed: {error}") from error
        if found.ndim == 3:
            found = _apply_layers(_pool(found, mask, self._model.pooling), self._layers)
        result: npt.NDArray[np.float32] = found.reshape(len(tokens), -1)
        return result


def _pool(states: npt.NDArray[np.float32], mask: npt.NDArray[np.int64], pooling: Pooling) -> npt.NDArray[np.float32]:
    """Return one vector for each text, float32 [n, hidden], of the states of its tokens, [n, length, hidden]."""
    import numpy as np

    shares = (mask / mask.sum(axis=1, keepdims=True)).astype(np.float32)
    pooled: npt.NDArray[np.float32] = states[:, 0] if pooling == "cls" else (shares[:, None, :] @ states)[:, 0]
    return pooled


def _apply_layers(vectors: npt.NDArray[np.float32], layers: Mapping[str, Any]) -> npt.NDArray[np.float32]:
    """Return what the layers after the pooling make of the vectors; their weights are as convert.py calls them."""
    import numpy as np

    for layer in dict.fromkeys(name.rpartition(".")[0] for name in layers):
        function, weight, bias = layer.partition(".")[2], layers[f"{layer}.weight"], layers.get(f"{layer}.bias", 0.0)
        if function == "LayerNorm":
            centred = vectors - vectors.mean(axis=-1, keepdims=True)
            spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)  # as torch.nn.LayerNorm has it
            vectors = centred / spread * weight + bias
            continue
        vectors = vectors @ weight.T + bias
        if function == "Tanh":
            vectors = np.tanh(vectors)
        elif function == "GELU":
            vectors = vectors * (1 + np.vectorize(math.erf, otypes=[np.float32])(vectors / math.sqrt(2))) / 2
    return vectors


class LocalEmbedder(Encoder):
    """An embedder that onnxruntime runs. Safe to use from several threads."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return as `Embedder.embed`; equal texts are embedded once."""
        return self._embed(texts, self._model.text_prompt)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return as `Embedder.embed_query`."""
        vector: npt.NDArray[np.float32] = self._embed([text], self._model.query_prompt, are_questions=True)[0]
        return vector

    def _embed(self, texts: Sequence[str], prompt: str, *, are_questions: bool = False) -> npt.NDArray[np.float32]:
        import numpy as np

        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        if not rows:
            return np.zeros((0, self.dimension), np.float32)
        session = self._ready(len(rows))
        # One by one: the tokenizer's own thread pool would complain in every process forked afterwards.
        tokens = [self._tokenize(prompt + text) for text in rows]
        # An int8 run scales its activations over the whole batch, so that a vector would depend on its neighbours;
        # and it is as fast on single texts.
        limit = _BATCH_TOKENS if self._model.precision == "fp32" else 1
        # Batches of about one length, the longest first, so that memory is allocated once.
        order = sorted(range(len(tokens)), key=lambda row: -tokens[row].shape[1])
        batches: list[list[int]] = []
        while order:
            size = max(1, limit // max(1, tokens[order[0]].shape[1]))
            batches.append(order[:size])
            order = order[size:]
        picked = [[tokens[row] for row in batch] for batch in batches]
        if len(tokens) <= _FEW_TEXTS:
            states = [self._run(session, batch) for batch in picked]
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(self._threads) as workers:
                states = list(workers.map(partial(self._run, session), picked))
        vectors = np.concatenate(states)[np.argsort(np.concatenate(batches))]
        _normalise(vectors)
        if self._centre is not None:
            vectors = remove_centre(vectors, self._centre, are_questions=are_questions)
            _normalise(vectors)
        return vectors[[rows[text] for text in texts]]


class LocalReranker(Encoder):
    """A cross-encoder: it reads a question and a text together. Safe to use from several threads."""

    def score(self, question: str, texts: Sequence[str], budget_s: float) -> list[float | None]:
        """Return how well each text answers the question, as the model's logit; None where the time was over, or the
        model gave no number. Loading the model does not count as time.

        Raises:
            EmbeddingError: the model cannot be loaded, or failed.
        """
        from concurrent.futures import ThreadPoolExecutor

        session = self._ready(len(texts))
        deadline = time.perf_counter() + budget_s

        def score(text: str) -> float | None:
            if time.perf_counter() > deadline:
                return None
            # Of two classes, the second is that the text answers: the difference is the logit of its probability.
            numbers = self._run(session, [self._tokenize(question, text)])[0]
            logit = float(numbers[-1] - (numbers[0] if len(numbers) > 1 else 0.0))
            return logit if math.isfinite(logit) else None

        with ThreadPoolExecutor(self._threads) as workers:
            return list(workers.map(score, texts))


def load_onnxruntime() -> Any:
    """Return the library. By default it reports the models that are opened to its makers, with an id of the machine."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def _normalise(vectors: npt.NDArray[np.float32]) -> None:
    import numpy as np

    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


# -- the tokenizer of BERT ---------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[ -Z\\-~]{0,300}")
"""Short ASCII without control characters and without brackets, in which a text can name a mark of the model."""
_BERT = (
    '"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,',
    '"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"}',
    '"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,',
)
_MAX_WORD = 100


class PlainTokenizer:
    """Splits plain texts as BERT does. It reads no vocabulary, but looks for the pieces of one text in the file."""

    def __init__(self, vocabulary: str) -> None:
        self._vocabulary = vocabulary

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """Return that of a converted model; None where its tokenizer is another one."""
        text = (folder / TOKENIZER_FILE).read_text(encoding="utf-8")
        is_bert = all(part in text for part in _BERT) and text.endswith("}}}")
        return cls(text.partition('"vocab":{')[2]) if is_bert else None

    def encode(self, text: str, limit: int) -> list[int]:
        """Return the pieces of a plain text between the marks of start and end, `limit` with these at most."""
        ids = [piece for word in re.findall(r"[a-z0-9]+|[^a-z0-9 ]", text.lower()) for piece in self._split(word)]
        return [*self._find("[CLS]"), *ids[: limit - 2], *self._find("[SEP]")]

    def _split(self, word: str) -> list[int]:
        start, ids = 0, []
        while start < len(word) <= _MAX_WORD:
            for end in range(len(word), start, -1):
                if found := self._find("##" * bool(start) + word[start:end]):
                    break
            else:
                return self._find("[UNK]")
            ids += found
            start = end
        return ids or self._find("[UNK]")

    def _find(self, piece: str) -> list[int]:
        key = f"{json.dumps(piece)}:"
        start = self._vocabulary.find(key) + len(key)
        return [] if start < len(key) else [int(re.split("[,}]", self._vocabulary[start : start + 9])[0])]


# -- static models ----------------------------------------------------------------------------------------------------


class StaticEmbedder(_BuildModel):
    """A table of token vectors. Safe to use from several threads."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self._tokenizer: Any = None
        self._unknown: int | None = None
        self._vectors: Any = None

    def warm(self) -> None:
        """Do nothing: it loads in 20 ms."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return as `Embedder.embed`. A text without a known token is like no other."""
        import numpy as np

        with self._loading():
            if self._vectors is None:
                self._tokenizer = self._open_tokenizer()
                self._unknown = self._tokenizer.token_to_id("[UNK]")
                self._vectors = np.load(self._build.folder / VECTORS_FILE, mmap_mode="r")
        sums = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            clean = text.encode("utf-8", "replace").decode("utf-8")
            found = self._tokenizer.encode(clean, add_special_tokens=False).ids
            if ids := [token for token in found if token != self._unknown]:
                sums[row] = self._vectors[ids].sum(axis=0)  # a mean but for its length, which does not count
            else:  # numbers that depend on the text alone: a vector of zeros has no cosine
                seed = int.from_bytes(hashlib.sha256(clean.encode()).digest()[:8], "big")
                sums[row] = np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        _normalise(sums)
        return sums

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return as `Embedder.embed_query`."""
        vector: npt.NDArray[np.float32] = self.embed([text])[0]
        return vector


# -- the tokenizer of XLM-RoBERTa -------------------------------------------------------------------------------------

PIECES_FILE = "pieces.txt"
SCORES_FILE = "scores.bin"
_SPACE = "▁"
"""U+2581, a space in a piece."""
_START, _END, _UNKNOWN = 0, 2, 3
_SPECIAL = 4
"""The first pieces are marks of the model, which no text contains."""
_UNKNOWN_PENALTY = 10.0
"""The score of an unknown character under that of the worst piece, as SentencePiece has it."""
_CACHED_WORDS = 20_000
_LEFT_OUT = dict.fromkeys((*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F))
_SPACES = dict.fromkeys(map(ord, "\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\ufeff\ufffd▁"), " ")
_NORMALISED = re.compile("[^\uff5e]+")
"""The normaliser of SentencePiece, nmt_nfkc, spares the full-width tilde."""


class UnigramTokenizer:
    """Splits a text into the pieces that are most probable together. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        pieces = (folder / PIECES_FILE).read_text(encoding="utf-8").split("\n")
        scores = np.fromfile(folder / SCORES_FILE, "<f4")
        if len(pieces) != len(scores):
            raise ValueError(f"{PIECES_FILE} has {len(pieces)} pieces and {SCORES_FILE} {len(scores)} scores")
        self._ids = dict(zip(pieces[_SPECIAL:-1], range(_SPECIAL, len(pieces) - 1), strict=True))
        self._scores = scores.tolist()
        self._longest = max(map(len, self._ids))
        self._unknown_score = float(scores.min()) - _UNKNOWN_PENALTY
        self._split = lru_cache(_CACHED_WORDS)(self._split_word)

    def encode(self, text: str, limit: int) -> list[int]:
        """Return the pieces of `text` between the marks of start and end, `limit` with these at most."""
        ids = [_START]
        for word in normalise(text).split(" "):
            ids += self._split(_SPACE + word)
            if len(ids) >= limit:
                break
        return [*ids[: limit - 1], _END]

    def _split_word(self, word: str) -> tuple[int, ...]:
        """Return the pieces of `word` by Viterbi's algorithm: no piece reaches over a space."""
        end = len(word)
        best = [0.0] + [float("-inf")] * end
        last: list[tuple[int, int]] = [(0, 0)] * (end + 1)  # (where the piece begins, its id)
        ids, scores = self._ids, self._scores
        for start in range(end):
            so_far = best[start]
            for stop in range(start + 1, min(end, start + self._longest) + 1):
                piece = ids.get(word[start:stop])
                if piece is not None and so_far + scores[piece] > best[stop]:
                    best[stop] = so_far + scores[piece]
                    last[stop] = start, piece
            if so_far + self._unknown_score > best[start + 1]:
                best[start + 1] = so_far + self._unknown_score
                last[start + 1] = start, _UNKNOWN
        found = []
        while end:
            end, piece = last[end]
            found.append(piece)
        return tuple(reversed(found))


def normalise(text: str) -> str:
    """Return `text` as the model was taught: NFKC, without control characters, every space one space."""
    spaced = text.translate(_SPACES).translate(_LEFT_OUT)
    composed = _NORMALISED.sub(lambda run: unicodedata.normalize("NFKC", run[0]), spaced)
    return re.sub(" +", " ", composed).removeprefix(" ")


def write_vocabulary(folder: Path, pieces: Iterable[str], scores: npt.ArrayLike) -> None:
    """Write the files that a tokenizer reads."""
    import numpy as np

    (folder / PIECES_FILE).write_text("\n".join(pieces), encoding="utf-8")
    np.asarray(scores, "<f4").tofile(folder / SCORES_FILE)


def find_centre(texts: npt.NDArray[np.float32], questions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return what a multilingual model's vectors have of their language, and of nothing.

    The cosines of multilingual-e5-small lie between .7 and .9 whatever is compared, as all its vectors share one large
    part; and a question is more like any text of its own language than like its answer in another. Without these parts
    the cosines spread around zero as those of other models do, so that one scale serves thresholds, diversity and
    duplicates. Where the same text is in many languages, its mean is what all vectors share, and the directions in
    which the languages differ most are the language and not the content.

    The parts are float32 [2 + directions, dimension]: the means of texts and of questions, then the directions, which
    are orthonormal. The vectors are those of the parallel sentences, [languages, sentences, dimension] and
    [any number, dimension].
    """
    import numpy as np

    mean = texts.reshape(-1, texts.shape[-1]).mean(axis=0)
    *_, directions = np.linalg.svd(texts.mean(axis=1) - mean, full_matrices=False)
    return np.vstack([mean, questions.mean(axis=0), directions[:_DIRECTIONS]])


def remove_centre(
    vectors: npt.NDArray[np.float32], centre: npt.NDArray[np.float32], *, are_questions: bool
) -> npt.NDArray[np.float32]:
    """Return unit vectors without the parts that `find_centre` has found; they are not of unit length any more."""
    centred: npt.NDArray[np.float32] = vectors - centre[_QUESTIONS if are_questions else _TEXTS]
    directions = centre[_QUESTIONS + 1 :]
    centred -= (centred @ directions.T) @ directions
    return centred
