"""Vectors from an Ollama server, or from OpenAI or a service that speaks its protocol (LM Studio, vLLM, gateways)."""

from __future__ import annotations

import os
from typing import Any

from quaid.embed.wire import RemoteEmbedder
from quaid.errors import EmbeddingServiceError
from quaid.http import ollama_address
from quaid.settings import EmbeddingSettings

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
