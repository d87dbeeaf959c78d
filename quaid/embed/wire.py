"""What the embedding services have in common: a dimension remembered, answers checked."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from quaid.embed.weights import DUPLICATE_SIMILARITY, RELEVANT_SIMILARITY, cache_folder
from quaid.errors import EmbeddingError
from quaid.http import UnreachableError, Wire
from quaid.redaction import admit
from quaid.settings import EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_BATCH_TEXTS = 64
_BATCH_CHARACTERS = 100_000


class Dialect(Protocol):
    """What one kind of service says differently."""

    provider: str
    model: str
    base_url: str
    path: str
    key: str
    """The secret of the service, to keep it out of messages; empty when there is none."""

    def headers(self) -> dict[str, str]:
        """Headers of every request. Raises EmbeddingError when a key is needed and not there."""

    def payload(self, texts: Sequence[str]) -> dict[str, Any]:
        """The body that asks for the vectors of `texts`."""

    def vectors(self, answer: Any) -> list[list[float]]:
        """The vectors in an answer, in the order of the texts. KeyError, TypeError, ValueError when it has none."""

    def explain(self, status: int, said: str) -> str:
        """One sentence and the next step, for a status that is not retried or was retried in vain."""


class RemoteEmbedder:
    """An embedding service spoken to over HTTP. Safe to use from several threads."""

    def __init__(self, dialect: Dialect, settings: EmbeddingSettings) -> None:
        self._dialect = dialect
        self._timeout_s = settings.timeout_s
        self._asked_dimension = settings.dimensions
        self._known_dimension = settings.dimensions
        self._wire = Wire(dialect.base_url)
        self.goes_to = self._wire.goes_to
        """Whom texts are sent to; empty where they stay on this machine."""
        self.duplicate_similarity = settings.duplicate_similarity or DUPLICATE_SIMILARITY
        self.relevant_similarity = settings.relevant_similarity or RELEVANT_SIMILARITY

    @property
    def fingerprint(self) -> str:
        """Provider, address, model and dimension; asks the service once, the first time ever."""
        dialect = self._dialect
        return f"{dialect.provider}/{dialect.base_url}/{dialect.model}/{self.dimension}"

    @property
    def dimension(self) -> int:
        """Numbers in a vector: configured, remembered from an earlier process, or else asked of the service.

        Raises:
            EmbeddingError: the service had to be asked and did not answer as it should.
        """
        if not self._known_dimension:
            remembered = self._recall_dimension()
            self._known_dimension = remembered or len(self._ask(["dimension"])[0])
            if not remembered:
                self._remember_dimension()
        return self._known_dimension

    def warm(self) -> None:
        """Nothing to load: the service is elsewhere."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors, float32 [n, dimension], in the order of `texts`.

        Raises:
            EmbeddingError: the service did not answer, refused, or answered something else than n vectors.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        rows: list[list[float]] = []
        for batch in _batches(texts):
            rows += self._ask(batch)
        vectors = self._as_array(rows)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: npt.NDArray[np.float32] = vectors / np.maximum(norms, 1e-12)
        return unit

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """The unit vector, float32 [dimension], of a question.

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
            raise self._failure("answered a vector that holds no finite numbers. Try another model.")
        return vectors

    def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        if self.goes_to:
            texts = [admit(text).text for text in texts]
        answer = self._post(self._dialect.payload([_cleaned(text) for text in texts]))
        try:
            rows = self._dialect.vectors(answer)
            counts = [len(row) for row in rows]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise self._garbled() from error
        if len(counts) != len(texts) or not all(counts):
            raise self._failure(f"answered {len(counts)} vectors for {len(texts)} texts. Is embedding.url right?")
        return rows

    def _post(self, payload: dict[str, Any]) -> Any:
        """What the service answered; trouble with the connection becomes one sentence."""
        dialect = self._dialect
        try:
            deadline = time.monotonic() + self._timeout_s
            response = self._wire.post(dialect.path, payload, dialect.headers(), deadline)
        except TimeoutError as error:
            raise self._failure(f"did not answer in {self._timeout_s:g} s. Is the service running?") from error
        except UnreachableError as error:
            raise self._failure(f"could not be reached ({error}). Is it running? See: quaid doctor") from error
        if response.status != 200:
            raise EmbeddingError(dialect.explain(response.status, response.said(dialect.key)))
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise self._garbled() from error

    def _failure(self, what: str) -> EmbeddingError:
        return EmbeddingError(f"{self._dialect.provider} at {self._dialect.base_url} {what}")

    def _garbled(self) -> EmbeddingError:
        return self._failure("answered something that is no list of vectors. Is embedding.url right?")

    def _dimension_path(self) -> Path:
        import hashlib

        dialect = self._dialect
        named = json.dumps([dialect.provider, dialect.base_url, dialect.model, self._asked_dimension])
        return cache_folder() / "dimensions" / f"{hashlib.sha256(named.encode()).hexdigest()[:24]}.json"

    def _recall_dimension(self) -> int:
        try:
            return int(json.loads(self._dimension_path().read_text(encoding="utf-8"))["dimension"])
        except (OSError, ValueError, TypeError, KeyError):
            return 0

    def _remember_dimension(self) -> None:
        path = self._dimension_path()
        content = {"dimension": self._known_dimension, "model": self._dialect.model, "url": self._dialect.base_url}
        draft = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # not remembered: it is asked for again
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(content), encoding="utf-8")
            draft.replace(path)


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    start, characters = 0, 0
    for end, text in enumerate(texts):
        full = end - start >= _BATCH_TEXTS or characters + len(text) > _BATCH_CHARACTERS
        if full and end > start:
            yield texts[start:end]
            start, characters = end, 0
        characters += len(text)
    yield texts[start:]


def _cleaned(text: str) -> str:
    """JSON for the wire carries no lone surrogate, and some services refuse an empty text."""
    return text.encode("utf-8", "replace").decode("utf-8") or " "
