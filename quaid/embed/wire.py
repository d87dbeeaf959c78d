"""Embedding services over HTTP: their dimension is remembered and their answers are checked."""

from __future__ import annotations

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from quaid.embed.weights import DUPLICATE_SIMILARITY, RELEVANT_SIMILARITY, cache_folder
from quaid.errors import EmbeddingError
from quaid.http import Service, ServiceError
from quaid.redaction import admit
from quaid.settings import EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_BATCH_TEXTS = 64
_BATCH_CHARACTERS = 100_000


class RemoteEmbedder(Service, ABC):
    """An embedder that asks a service. Safe to use from several threads."""

    options: ClassVar[Mapping[str, Any]] = {}
    """Further fields of every request."""

    def __init__(self, name: str, base_url: str, model: str, key_env: str, settings: EmbeddingSettings) -> None:
        super().__init__(name, base_url, key_env, os.environ, "embedding.model and embedding.url")
        self.model = model
        self._settings = settings
        self._known_dimension = settings.dimensions
        self.duplicate_similarity = settings.duplicate_similarity or DUPLICATE_SIMILARITY
        self.relevant_similarity = settings.relevant_similarity or RELEVANT_SIMILARITY

    @abstractmethod
    def vectors(self, answer: Any) -> list[list[float]]:
        """Return the vectors in an answer, in the order of the texts. KeyError, TypeError, ValueError: it has none."""

    @property
    def fingerprint(self) -> str:
        """The provider, address, model and dimension; asks the service once, the first time ever."""
        return f"{self.name}/{self.base_url}/{self.model}/{self.dimension}"

    @property
    def dimension(self) -> int:
        """The numbers in a vector: configured, remembered from an earlier process, or else asked of the service.

        Raises:
            EmbeddingError: the service had to be asked and did not answer as it should.
        """
        if not self._known_dimension:
            self._known_dimension = self._read_dimension() or self._ask_dimension()
        return self._known_dimension

    def warm(self) -> None:
        """Do nothing: the service is elsewhere."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, float32 [n, dimension], in the order of `texts`.

        Raises:
            EmbeddingError: the service did not answer, refused, or answered something else than n vectors.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        rows: list[list[float]] = []
        start, characters = 0, 0
        for end, text in enumerate(texts):
            if end > start and (end - start >= _BATCH_TEXTS or characters + len(text) > _BATCH_CHARACTERS):
                rows += self._ask(texts[start:end])
                start, characters = end, 0
            characters += len(text)
        rows += self._ask(texts[start:])
        vectors = self._as_array(rows)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return the unit vector, float32 [dimension], of a question.

        Raises:
            EmbeddingError: as for `embed`.
        """
        vector: npt.NDArray[np.float32] = self.embed([text])[0]
        return vector

    def _as_array(self, rows: list[list[float]]) -> npt.NDArray[np.float32]:
        import numpy as np

        wrong = {len(row) for row in rows} - {self.dimension}
        if wrong:
            self._dimension_path().unlink(missing_ok=True)
            raise self._failure(
                f"answered vectors of {max(wrong)} numbers where {self.dimension} were expected. Set "
                "embedding.dimensions to what the model gives, or to 0 and run: quaid reindex"
            )
        try:
            vectors = np.array(rows, np.float32)
        except (TypeError, ValueError) as error:
            raise self._garbled() from error
        if not np.isfinite(vectors).all():
            raise self._failure("answered a vector of numbers that are not finite. Try another model.")
        return vectors

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        if self.goes_to:
            texts = [admit(text).text for text in texts]
        # JSON carries no lone surrogate, and some services refuse an empty text.
        texts = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        body: dict[str, Any] = {"model": self.model, "input": texts, **self.options}
        if self._settings.dimensions:
            body["dimensions"] = self._settings.dimensions
        timeout_s = self._settings.timeout_s
        try:
            response = self.ask(body, time.monotonic() + timeout_s)
            if response.status != 200:
                raise self.refusal(response, self.model)
        except TimeoutError as error:
            raise self._failure(f"did not answer in {timeout_s:g} s. Is the service running?") from error
        except ServiceError as error:
            raise EmbeddingError(str(error)) from error
        try:
            rows = self.vectors(json.loads(response.body))
            counts = [len(row) for row in rows]
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            raise self._garbled() from error
        if len(counts) != len(texts) or not all(counts):
            raise self._failure(f"answered {len(counts)} vectors for {len(texts)} texts. Is embedding.url right?")
        return rows

    def _failure(self, what: str) -> EmbeddingError:
        return EmbeddingError(f"{self.where} {what}")

    def _garbled(self) -> EmbeddingError:
        return self._failure("answered something that is not a list of vectors. Is embedding.url right?")

    def _dimension_path(self) -> Path:
        named = json.dumps([self.name, self.base_url, self.model, self._settings.dimensions])
        return cache_folder() / "dimensions" / f"{hashlib.sha256(named.encode()).hexdigest()[:24]}.json"

    def _read_dimension(self) -> int:
        try:
            return int(json.loads(self._dimension_path().read_text(encoding="utf-8"))["dimension"])
        except (OSError, ValueError, TypeError, KeyError):
            return 0

    def _ask_dimension(self) -> int:
        """Return the length of a vector that is asked for, and keep it for later processes."""
        dimension = len(self._ask(["dimension"])[0])
        path = self._dimension_path()
        draft = path.with_suffix(f".{os.getpid()}")
        content = {"dimension": dimension, "model": self.model, "url": self.base_url}
        with suppress(OSError):  # not kept: it is asked for again
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(content), encoding="utf-8")
            draft.replace(path)
        return dimension
