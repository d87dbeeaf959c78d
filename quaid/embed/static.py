"""Embeds by looking up each token's vector and adding them: a hundred times as fast as a model, and a little less apt.

Source of such models: model2vec, which distils them from a sentence-transformers model.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quaid.embed.build import TOKENIZER_FILE, VECTORS_FILE, Build
from quaid.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class StaticEmbedder:
    """A table of token vectors. Safe to use from several threads."""

    is_patient = False

    def __init__(self, build: Build) -> None:
        self._build = build
        self.fingerprint = build.description.fingerprint
        self.dimension = build.description.dimension
        self.duplicate_similarity = build.duplicate_similarity
        self.relevant_similarity = build.relevant_similarity
        self._lock = threading.Lock()
        self._tokenizer: Any = None
        self._unknown: int | None = None
        self._vectors: Any = None

    def warm(self) -> None:
        """Do nothing: it loads in 20 ms."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, float32 [n, dimension], in the order of `texts`. One without a known token is like
        no other text.

        Raises:
            EmbeddingError: the model's files cannot be loaded.
        """
        import numpy as np

        self._load()
        sums = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            # The tokenizer refuses a lone surrogate, which JSON can carry.
            clean = text.encode("utf-8", "replace").decode("utf-8")
            ids = [
                token for token in self._tokenizer.encode(clean, add_special_tokens=False).ids if token != self._unknown
            ]
            # A mean but for its length, which does not count.
            sums[row] = self._vectors[ids].sum(axis=0) if ids else _own_direction(clean, self.dimension)
        sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        return sums

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return the unit vector, float32 [dimension], of a question.

        Raises:
            EmbeddingError: as for `embed`.
        """
        vector: npt.NDArray[np.float32] = self.embed([text])[0]
        return vector

    def _load(self) -> None:
        import numpy as np

        with self._lock:
            if self._vectors is not None:
                return
            folder = self._build.folder
            try:
                from tokenizers import Tokenizer

                tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
                tokenizer.no_padding()
                tokenizer.enable_truncation(self._build.description.max_tokens)
                self._unknown = tokenizer.token_to_id("[UNK]")
                self._tokenizer, self._vectors = tokenizer, np.load(folder / VECTORS_FILE, mmap_mode="r")
            except Exception as error:  # tokenizers raises bare Exceptions
                raise EmbeddingError(
                    f"The embedding model in {folder} cannot be loaded ({error}). "
                    "Convert it again with: quaid doctor --fetch"
                ) from error


def _own_direction(text: str, dimension: int) -> npt.NDArray[np.float32]:
    """Return numbers that depend on `text` alone: a vector of zeros has no cosine."""
    import numpy as np

    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
