"""Vectors from an Ollama server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from quaid.embed.wire import RemoteEmbedder
from quaid.settings import EmbeddingSettings

_DEFAULT_URL = "http://localhost:11434"
_DEFAULT_PORT = 11434


class OllamaEmbedder(RemoteEmbedder):
    """`POST /api/embed`."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(_Ollama(settings), settings)


class _Ollama:
    provider = "ollama"
    path = "/api/embed"

    def __init__(self, settings: EmbeddingSettings) -> None:
        # The setting's default is the local model's name; the same model has another name there.
        self.model = "all-minilm" if settings.model == EmbeddingSettings().model else settings.model
        self.base_url = _base_url(settings.url or os.environ.get("OLLAMA_HOST", ""))
        self._dimensions = settings.dimensions

    def headers(self) -> dict[str, str]:
        return {}

    def payload(self, texts: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts), "truncate": True}
        return {**body, "dimensions": self._dimensions} if self._dimensions else body

    def vectors(self, answer: Any) -> list[list[float]]:
        rows: list[list[float]] = list(answer["embeddings"])
        return rows

    def explain(self, status: int, said: str) -> str:
        if status == 404 and "not found" in said:
            return f"Ollama has no model {self.model}. Fetch it with: ollama pull {self.model}"
        return f"Ollama at {self.base_url} answered {status}: {said}. Look into its log, or run: ollama ps"


def _base_url(host: str) -> str:
    """An address to call, from one that may lack scheme and port or be meant for listening (0.0.0.0)."""
    from urllib.parse import urlsplit

    if not host.strip():
        return _DEFAULT_URL
    has_scheme = "://" in host
    parts = urlsplit(host.strip() if has_scheme else f"http://{host.strip()}")
    name = parts.hostname or "localhost"
    name = "localhost" if name in {"0.0.0.0", "::"} else name  # noqa: S104 (we call it, we don't bind it)
    name = f"[{name}]" if ":" in name else name
    port = parts.port or (_DEFAULT_PORT if not has_scheme or parts.scheme == "http" else 443)
    return f"{parts.scheme}://{name}:{port}{parts.path.rstrip('/')}"
