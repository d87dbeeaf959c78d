"""Models of an Ollama server, through its native API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quaid.http import UnreachableError, ollama_address
from quaid.llm.exchange import Reply, Request, Stop, read_count, read_text
from quaid.llm.prices import estimate_tokens
from quaid.llm.schema import without_limits
from quaid.llm.wire import RemoteProvider
from quaid.model import ModelUsage
from quaid.settings import ModelSettings

_MODES = ("schema", "json", "plain")


class OllamaProvider(RemoteProvider):
    """`POST /api/chat`."""

    path = "/api/chat"
    modes = {"deep": _MODES, "fast": _MODES}  # noqa: RUF012 - declared by the base class
    pull_command = "ollama pull"

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        url = settings.url if settings.provider == "ollama" else ""
        # A server on another machine may stand behind a gateway that asks for a key.
        super().__init__("ollama", ollama_address(url, environ), settings.api_key_env, environ)
        self._temperature = max(settings.temperature, 0.0)
        self._context_tokens = settings.context_tokens

    def list_models(self, within_s: float) -> frozenset[str] | None:
        """Return the names of the server's models; None when it does not answer thrice within `within_s` each."""
        import json
        import socket
        from urllib.parse import urlsplit

        try:
            # Mostly no server is there, and then httpx need not be loaded to see it.
            parts = urlsplit(self.base_url)
            socket.create_connection((parts.hostname or "", parts.port or 0), within_s).close()
            responses = [self.get(path, within_s) for path in ("/api/version", "/api/tags")]
            if any(response.status != 200 for response in responses):
                return None
            return frozenset(str(model["name"]) for model in json.loads(responses[-1].body)["models"])
        except (OSError, UnreachableError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def payload(self, request: Request, mode: str) -> dict[str, Any]:
        # The server makes a grammar of the schema, which the model does not see.
        messages = request.as_messages(request.system)
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "stream": False,
            "keep_alive": "5m",
            "options": {
                "temperature": self._temperature,
                "seed": 1,
                "num_ctx": self._context_size(messages, request.max_output_tokens),
                "num_predict": request.max_output_tokens,
            },
        }
        if mode == "schema":
            # The server makes a grammar of it: llama.cpp refuses one that repeats anything more than 2,000 times, and
            # is slow with one that counts the characters of a text.
            body |= {"format": without_limits(request.schema, is_strict=False), "think": False}
        elif mode == "json":
            body["format"] = "json"
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        usage = ModelUsage(read_count(answer.get("prompt_eval_count")), read_count(answer.get("eval_count")), calls=1)
        stop: Stop = "length" if answer.get("done_reason") == "length" else "end"
        return Reply(read_text(answer["message"]["content"]), stop, str(answer.get("model") or request.model), usage)

    def _context_size(self, messages: list[dict[str, str]], output_tokens: int) -> int:
        """Return the context size in tokens, in doubles of the setting: another size makes the server load the model
        again, and a smaller one than the request needs makes it cut the beginning off without a word.
        """
        needed = sum(estimate_tokens(message["content"]) for message in messages) + output_tokens
        room = max(1024, self._context_tokens)
        while room < needed:
            room *= 2
        return room
