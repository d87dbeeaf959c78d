"""Texts to vectors, and pairs to scores: local models, services, weights and a cache.

May import the base only; numpy, onnxruntime and httpx wait until a vector is asked for.
Begin with local.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from quaid.embed.weights import ENGLISH_MODEL, QUICK_MODEL, Build, find_build
from quaid.errors import EmbeddingError
from quaid.settings import EmbeddingSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.embed.local import LocalReranker
    from quaid.embed.services import RemoteEmbedder

AUTO = "auto"
"""The setting that leaves the choice of the local model to Quaid."""


class Embedder(Protocol):
    """Turns texts into L2-normalised float32 vectors."""

    @property
    def fingerprint(self) -> str:
        """Names all that a vector depends on: vectors of equal fingerprints are comparable."""

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""

    @property
    def duplicate_similarity(self) -> float:
        """The cosine from which two facts say the same, under this model."""

    @property
    def relevant_similarity(self) -> float:
        """The cosine from which a text answers a question without having a word of it, under this model."""

    is_patient: bool
    """Whether `embed` lets a service take `timeout_s`, and calls one that failed a moment ago."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, float32 [n, dimension], in the order of `texts`; n may be 0. A vector that a service
        failed to give is NaN.

        Raises:
            EmbeddingError: the model or the service failed.
        """

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """Return the unit vector, float32 [dimension], of a question, with the model's query prompt if it has one.

        Raises:
            EmbeddingError: the model or the service failed.
        """

    def warm(self) -> None:
        """Load in the background what the first `embed` would wait for. Safe to call any number of times."""


def open_embedder(settings: EmbeddingSettings) -> Embedder | None:
    """Return the configured embedder, not yet loaded; None when the provider is "none".

    Raises:
        WeightsMissingError: the local model is not in the cache folder yet (see `fetch_weights`).
        EmbeddingError: the service is on another machine, and `settings.offline` is set; or the model scores pairs.
    """
    settings = resolve(settings)
    if settings.provider == "none":
        return None
    if settings.provider == "local":
        build = find_build(settings)
        if build.description.kind == "reranker":
            raise EmbeddingError(f"{settings.model} is a reranker. Name it in recall.reranker, not in embedding.model")
        return cast(Embedder, _open_local(build))
    service = _open_remote(settings)
    if settings.offline and service.goes_to:
        raise EmbeddingError(f"offline is set, and {settings.provider} is at {service.goes_to}")
    return service


def open_reranker(model: str) -> LocalReranker:
    """Return the cross-encoder of this name or in this folder, not yet loaded.

    Raises:
        WeightsMissingError: it is not in the cache folder yet (see `fetch_weights`).
        EmbeddingError: the model gives vectors of texts, not scores of pairs.
    """
    build = find_build(EmbeddingSettings(model=model))
    if build.description.kind != "reranker":
        raise EmbeddingError(f"{model} is an embedding model. Name it in embedding.model, not in recall.reranker")
    return cast("LocalReranker", _open_local(build))


def resolve(settings: EmbeddingSettings) -> EmbeddingSettings:
    """Return the settings with the local model that `auto` means."""
    is_open = settings.provider == "local" and settings.model == AUTO
    return replace(settings, model=ENGLISH_MODEL) if is_open else settings


def find_quick(settings: EmbeddingSettings) -> EmbeddingSettings | None:
    """Return the settings of the model for the first minutes of a large vault, a hundred times as quick as the local
    one; None where a model was chosen, since it knows English only.
    """
    if settings.provider != "local" or settings.model != AUTO:
        return None
    return replace(settings, model=QUICK_MODEL)


def destination(settings: EmbeddingSettings) -> str:
    """Return the host that texts are sent to for embedding; empty where they stay on this machine."""
    is_sent = settings.provider not in {"local", "none"} and not settings.offline
    return _open_remote(settings).goes_to if is_sent else ""


def _open_remote(settings: EmbeddingSettings) -> RemoteEmbedder:
    from quaid.embed.services import OllamaEmbedder, OpenAIEmbedder

    return OllamaEmbedder(settings) if settings.provider == "ollama" else OpenAIEmbedder(settings)


@lru_cache(maxsize=4)
def _open_local(build: Build) -> Any:
    """Return one model per process, however many memories are open: it is large, and safe to share."""
    from quaid.embed.local import open_build

    return open_build(build)


def fetch_weights(
    settings: EmbeddingSettings, progress: Callable[[int, int], None] | None = None, *, force: bool = False
) -> None:
    """Download, check and convert what is missing of the local model.

    `progress` gets the bytes done and the bytes in total while downloading. A failed download is not tried again for
    ten minutes, and none is tried offline. `force` tries at once, and checks and converts again what is there. Several
    processes may call at the same time; one of them works.

    Raises:
        WeightsMissingError: the weights could not be downloaded, or are not the expected bytes.
        EmbeddingError: Quaid cannot run the model in that folder.
        LockedError: another process has been downloading for a quarter of an hour.
    """
    if settings.provider == "local":
        from quaid.embed.fetch import make_ready

        for done, total in make_ready(resolve(settings), force=force):
            if progress is not None:
                progress(done, total)
