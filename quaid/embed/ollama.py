"""Vectors from an Ollama server."""

from __future__ import annotations

import os
from typing import Any

from quaid.embed.wire import RemoteEmbedder
from quaid.http import ollama_address
from quaid.settings import EmbeddingSettings


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
