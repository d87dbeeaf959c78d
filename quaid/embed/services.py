"""Vectors from an Ollama server, or from OpenAI or a service that speaks its protocol (LM Studio, vLLM, gateways)."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from quaid.embed.cache import is_unit
from quaid.embed.weights import DUPLICATE_SIMILARITY, RELEVANT_SIMILARITY, cache_folder
from quaid.errors import EmbeddingError, EmbeddingServiceError
from quaid.http import Service, ServiceError, ollama_address
from quaid.place import write_private
from quaid.redaction.private_spans import without_private
from quaid.settings import EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


TIMEOUT_S = 60.0
_BATCH_TEXTS = 64
_BATCH_CHARACTERS = 100_000
QUESTION_WAIT_S, FURTHER_WAIT_S = 2.0, 0.25
"""Seconds that a caller waits for the vector of one text, and for each further one in the same request."""
_OF_A_TEXT = frozenset({400, 413, 422})
"""What a service answers that takes others: a text is too long for it, say."""
PAUSE_S = 30.0
"""A service that failed is not called again for this long, by any process."""


class RemoteEmbedder(Service, ABC):
    """An embedder that asks a service. Safe to use from several threads."""

    is_patient = False
    options: ClassVar[Mapping[str, Any]] = {}
    """Further fields of every request."""

    def __init__(self, name: str, base_url: str, model: str, key_env: str, settings: EmbeddingSettings) -> None:
        super().__init__(name, base_url, key_env, os.environ, "embedding.model and embedding.url")
        self.model = model
        self._settings = settings
        self._known_dimension = settings.dimensions
        self.duplicate_similarity = DUPLICATE_SIMILARITY
        self.relevant_similarity = RELEVANT_SIMILARITY

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
        with suppress(OSError, ValueError, TypeError, KeyError):
            self._known_dimension = self._known_dimension or int(
                json.loads(self._dimension_path().read_text(encoding="utf-8"))["dimension"]
            )
        if not self._known_dimension:
            self._known_dimension = len(_read_numbers(self._ask(["dimension"], is_patient=self.is_patient)[0]))
            if not self._known_dimension:
                raise self._garbled()
            content = {"dimension": self._known_dimension, "model": self.model, "url": self.base_url}
            with suppress(OSError):  # not stored: the next process asks again
                write_private(self._dimension_path(), json.dumps(content))
        return self._known_dimension

    def warm(self) -> None:
        """Do nothing."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return as `Embedder.embed`; NaN for a vector that is not a list of finite numbers, or is zero.

        Raises:
            EmbeddingServiceError: the service did not answer, or is overloaded.
            EmbeddingError: it refused, or answered something else than n vectors.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        rows: list[Any] = []
        start, characters = 0, 0
        for end, text in enumerate(texts):
            if end > start and (end - start >= _BATCH_TEXTS or characters + len(text) > _BATCH_CHARACTERS):
                rows += self._ask(texts[start:end], is_patient=self.is_patient)
                start, characters = end, 0
            characters += len(text)
        rows += self._ask(texts[start:], is_patient=self.is_patient)
        return self._as_array(rows)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return as `Embedder.embed_query`."""
        vector: npt.NDArray[np.float32] = self._as_array(self._ask([text], is_patient=False))[0]
        if not is_unit(vector.tobytes(), self.dimension):
            raise self._unusable()
        return vector

    def _as_array(self, rows: Sequence[Any]) -> npt.NDArray[np.float32]:
        import numpy as np

        numbers = [_read_numbers(row) for row in rows]
        lengths = {len(each) for each in numbers}
        if self.dimension not in lengths and (wrong := max(lengths)):
            self._dimension_path().unlink(missing_ok=True)
            raise self._failure(
                f"answered vectors of {wrong} numbers where {self.dimension} were expected. Set "
                "embedding.dimensions to what the model gives, or to 0 and run: quaid reindex"
            )
        nothing = np.full(self.dimension, np.nan)
        vectors = np.array([each if len(each) == self.dimension else nothing for each in numbers])
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.where((norms > 0) & (norms < np.inf), norms, np.nan)
        if len(rows) > 1 and np.isnan(vectors).any(axis=1).all():
            raise self._unusable()
        return vectors.astype(np.float32)

    def _ask(self, texts: Sequence[str], *, is_patient: bool) -> list[Any]:
        """Return what the service gives as the vectors of `texts`, unchecked."""
        # JSON carries no lone surrogate, and some services refuse an empty text.
        texts = [without_private(text).encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        body: dict[str, Any] = {"model": self.model, "input": texts, **self.options}
        if self._settings.dimensions:
            body["dimensions"] = self._settings.dimensions
        answer = self._call(body, math.inf if is_patient else QUESTION_WAIT_S + FURTHER_WAIT_S * (len(texts) - 1))
        try:
            rows = list(self.vectors(json.loads(answer)))
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            raise self._garbled() from error
        if len(rows) != len(texts):
            raise self._failure(f"answered {len(rows)} vectors for {len(texts)} texts. Is embedding.url right?")
        return rows

    def _call(self, body: Mapping[str, Any], wait_s: float) -> bytes:
        """Return the answer to `body`. A service that failed is called again after a pause only, or if nobody waits."""
        path = self._dimension_path().with_suffix(".failed")
        timeout_s = min(TIMEOUT_S, wait_s)
        with suppress(OSError):
            if wait_s < math.inf and 0 <= time.time() - path.stat().st_mtime < PAUSE_S:
                raise EmbeddingServiceError(path.read_text(encoding="utf-8"))
        try:
            response = self.ask(body, time.monotonic() + timeout_s)
            failure = "" if response.status == 200 else str(self.refusal(response, self.model))
            if response.status in _OF_A_TEXT:
                raise EmbeddingError(failure)
        except TimeoutError:
            failure = f"{self.where} did not answer in {timeout_s:g} s. Is the service running?"
        except ServiceError as error:
            failure = str(error)
        with suppress(OSError):  # not noted: the next call waits again
            if not failure:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(failure, encoding="utf-8")
        if failure:
            raise EmbeddingServiceError(failure)
        return response.body

    def _failure(self, what: str) -> EmbeddingError:
        return EmbeddingError(f"{self.where} {what}")

    def _garbled(self) -> EmbeddingError:
        return self._failure("answered something that is not a list of vectors. Is embedding.url right?")

    def _unusable(self) -> EmbeddingError:
        return self._failure("answered no vector of finite numbers other than zero. Try another model.")

    def _dimension_path(self) -> Path:
        named = json.dumps([self.name, self.base_url, self.model, self._settings.dimensions])
        return cache_folder() / "dimensions" / f"{hashlib.sha256(named.encode()).hexdigest()[:24]}.json"


def _read_numbers(row: Any) -> npt.NDArray[np.float64]:
    """Return a flat list of numbers as an array; an empty one for anything else."""
    import numpy as np

    try:
        numbers = np.array(row, np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)
    return numbers if numbers.ndim == 1 else np.empty(0)


# -- the services -----------------------------------------------------------------------------------------------------

_DEFAULT_URL = "https://api.openai.com/v1"
_DEFAULT_MODEL = "text-embedding-3-small"


class OllamaEmbedder(RemoteEmbedder):
    """`POST /api/embed`."""

    path = "/api/embed"
    pull_command = "ollama pull"
    options = {"truncate": True}  # noqa: RUF012 - declared by the base class

    def __init__(self, settings: EmbeddingSettings) -> None:
        # The setting's default is the local model's name; the same model has another name there.
        model = "all-minilm" if settings.model == EmbeddingSettings().model else settings.model
        super().__init__("ollama", ollama_address(settings.url, os.environ), model, "", settings)

    def vectors(self, answer: Any) -> list[list[float]]:
        return list(answer["embeddings"])


class OpenAIEmbedder(RemoteEmbedder):
    """`POST {url}/embeddings`."""

    path = "/embeddings"

    def __init__(self, settings: EmbeddingSettings) -> None:
        is_unset = settings.model == EmbeddingSettings().model and not settings.url
        model = _DEFAULT_MODEL if is_unset else settings.model
        super().__init__("openai", (settings.url or _DEFAULT_URL).rstrip("/"), model, settings.api_key_env, settings)

    def headers(self) -> dict[str, str]:
        if not self.key and self.base_url == _DEFAULT_URL:
            raise EmbeddingServiceError(
                f"OpenAI needs a key and {self.key_env} is not set. Put your key in that environment variable, "
                'or embed on this machine: embedding.provider = "local"'
            )
        return super().headers()

    def vectors(self, answer: Any) -> list[list[float]]:
        return [item["embedding"] for item in sorted(answer["data"], key=lambda item: int(item["index"]))]
