"""Vectors from an Ollama server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from quaid.embed.wire import RemoteEmbedder
from quaid.http import complete_address
from quaid.settings import EmbeddingSettings

_DEFAULT_PORT = 11434


class OllamaEmbedder(RemoteEmbedder):
    """`POST /api/embed`."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(_Ollama(settings), settings)


class _Ollama:
    provider = "ollama"
    path = "/api/embed"
    key = ""

    def __init__(self, settings: EmbeddingSettings) -> None:
        # The setting's default is the local model's name; the same model has another name there.
        self.model = "all-minilm" if settings.model == EmbeddingSettings().model else settings.model
        self.base_url = complete_address(settings.url or os.environ.get("OLLAMA_HOST", ""), _DEFAULT_PORT)
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
