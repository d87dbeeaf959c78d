"""Vectors from OpenAI or a service that speaks its protocol (LM Studio, vLLM, llama.cpp, gateways)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from quaid.embed.wire import RemoteEmbedder
from quaid.errors import EmbeddingError
from quaid.settings import EmbeddingSettings

_DEFAULT_URL = "https://api.openai.com/v1"
_DEFAULT_MODEL = "text-embedding-3-small"


class OpenAIEmbedder(RemoteEmbedder):
    """`POST {url}/embeddings`."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(_OpenAI(settings), settings)


class _OpenAI:
    provider = "openai"
    path = "/embeddings"

    def __init__(self, settings: EmbeddingSettings) -> None:
        self.base_url = (settings.url or _DEFAULT_URL).rstrip("/")
        is_unset = settings.model == EmbeddingSettings().model and not settings.url
        self.model = _DEFAULT_MODEL if is_unset else settings.model
        self._key_name = settings.api_key_env
        self.key = os.environ.get(self._key_name, "").strip()
        self._dimensions = settings.dimensions

    def headers(self) -> dict[str, str]:
        if not (self.key.isascii() and self.key.isprintable()):
            raise EmbeddingError(f"{self._key_name} holds characters that no key has. Set that variable again.")
        if self.key:
            return {"Authorization": f"Bearer {self.key}"}
        if self.base_url == _DEFAULT_URL:
            raise EmbeddingError(
                f"OpenAI needs a key and {self._key_name} is not set. Put your key in that environment variable, "
                'or embed on this machine: embedding.provider = "local"'
            )
        return {}

    def payload(self, texts: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        return {**body, "dimensions": self._dimensions} if self._dimensions else body

    def vectors(self, answer: Any) -> list[list[float]]:
        return [item["embedding"] for item in sorted(answer["data"], key=lambda item: int(item["index"]))]

    def explain(self, status: int, said: str) -> str:
        if status in {401, 403}:
            return f"{self.base_url} refused the key in {self._key_name} ({status}: {said}). Check that variable."
        if status == 404:
            return f"{self.base_url} has no model {self.model} ({said}). Check embedding.model and embedding.url."
        if status == 429:
            return f"{self.base_url} allows no more requests now ({said}). Try again later."
        return f"{self.base_url} answered {status}: {said}. Check embedding.model and embedding.url."
