"""An OpenAI-compatible embedding service on a free port, whose cosines are word overlap."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from loopback import LoopbackServer

if TYPE_CHECKING:
    import pytest

DIMENSIONS = {"one": 48, "two": 80}


class EmbeddingService:
    """Every word is a direction, and every model has directions of its own."""

    def __init__(self, port: int = 0) -> None:
        service = self
        self.requests: list[tuple[str, int]] = []
        self.allowed = 10**9
        self.refuse_models: set[str] = set()
        self.bad: dict[str, object] = {}
        """What is given as the vector of a text that has the word."""
        self.answers = threading.Event()
        """Cleared, it hangs: it takes requests and says nothing."""
        self.answers.set()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.requests.append((body["model"], len(body["input"])))
                if len(service.requests) > service.allowed or body["model"] in service.refuse_models:
                    self.send_error(400, "out of order")
                    return
                service.answers.wait()
                rows = [{"index": i, "embedding": service.embed(body["model"], t)} for i, t in enumerate(body["input"])]
                data = json.dumps({"data": rows}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Silence."""

        self._server = LoopbackServer(Handler, port)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def settings(self, model: str) -> dict[str, str]:
        """The environment of whoever asks it."""
        url = f"http://127.0.0.1:{self.port}"
        named = {"PROVIDER": "openai", "URL": url, "MODEL": model}
        return {f"QUAID_EMBEDDING_{name}": value for name, value in named.items()}

    def embed(self, model: str, text: str) -> object:
        return next((vector for word, vector in self.bad.items() if word in text), embed(model, text))

    def stop(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()


def embed(model: str, text: str) -> list[float]:
    vector = np.zeros(DIMENSIONS.get(model, 384))
    for word in re.findall(r"[^\W_]+", text.lower()):
        digest = hashlib.sha256(f"{model} {word}".encode()).digest()
        vector[int.from_bytes(digest[:2]) % len(vector)] += 1 + digest[2] / 256
    return [float(number) for number in vector + 1e-6]


def serve(cache: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> Iterator[EmbeddingService]:
    """Run a service that every vault of a test is set to use, with a cache of its own."""
    running = EmbeddingService()
    monkeypatch.setenv("QUAID_CACHE_DIR", str(cache))
    for name, value in running.settings(model).items():
        monkeypatch.setenv(name, value)
    yield running
    running.stop()
