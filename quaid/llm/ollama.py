"""Models of an Ollama server, through its native API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quaid.http import UnreachableError, Wire, complete_address
from quaid.llm.exchange import Reply, Request, Stop, read_count
from quaid.llm.prices import estimate_tokens
from quaid.llm.wire import RemoteProvider, bearer, explain_status
from quaid.model import ModelUsage, Tier
from quaid.settings import ModelSettings

HOST_ENV = "OLLAMA_HOST"
DEFAULT_PORT = 11434
_RUNGS = ("schema", "json", "plain")
_KEEP_LOADED = "5m"


class OllamaProvider(RemoteProvider):
    """`POST /api/chat`."""

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        super().__init__(_Ollama(settings, environ))


def base_url(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """The address of the server, as the setting or `OLLAMA_HOST` has it."""
    given = (settings.url if settings.provider == "ollama" else "") or environ.get(HOST_ENV, "")
    return complete_address(given, DEFAULT_PORT)


def list_models(address: str, within_s: float) -> frozenset[str] | None:
    """The models of the server at `address`; None when nobody answers within `within_s`, asked thrice."""
    import json
    import socket
    from urllib.parse import urlsplit

    try:
        # Mostly nobody is there, and then httpx need not be loaded to see it.
        parts = urlsplit(address)
        socket.create_connection((parts.hostname or "", parts.port or DEFAULT_PORT), within_s).close()
        wire = Wire(address)
        said = [wire.get(path, within_s) for path in ("/api/version", "/api/tags")]
        if any(response.status != 200 for response in said):
            return None
        return frozenset(str(model["name"]) for model in json.loads(said[-1].body)["models"])
    except (OSError, UnreachableError, ValueError, KeyError, TypeError, RecursionError):
        return None


class _Ollama:
    name = "ollama"
    path = "/api/chat"

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        self.base_url = base_url(settings, environ)
        self.key_env = settings.api_key_env  # a server on another machine may stand behind a gateway
        self.key = environ.get(self.key_env, "").strip()
        self._temperature = max(settings.temperature, 0.0)
        self._context_tokens = settings.context_tokens

    def headers(self) -> dict[str, str]:
        return bearer(self.key)

    def rungs(self, _tier: Tier) -> int:
        return len(_RUNGS)

    def payload(self, request: Request, rung: int) -> dict[str, Any]:
        messages = request.as_messages()
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "stream": False,
            "keep_alive": _KEEP_LOADED,
            "options": {
                "temperature": self._temperature,
                "seed": 1,
                "num_ctx": self._room(messages, request.max_output_tokens),
                "num_predict": request.max_output_tokens,
            },
        }
        if _RUNGS[rung] == "schema":
            # The full schema: what this server makes a grammar of, it holds the model to.
            body |= {"format": dict(request.schema), "think": False}
        elif _RUNGS[rung] == "json":
            body["format"] = "json"
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        usage = ModelUsage(read_count(answer.get("prompt_eval_count")), read_count(answer.get("eval_count")), calls=1)
        stop: Stop = "length" if answer.get("done_reason") == "length" else "end"
        return Reply(str(answer["message"]["content"]), stop, str(answer.get("model") or request.model), usage)

    def explain(self, status: int, said: str, model: str) -> tuple[str, str]:
        if status == 404 and "not found" in said:
            return f"Ollama has no model {model}", f"Fetch it with: ollama pull {model}"
        return explain_status(f"Ollama at {self.base_url}", self.key_env or "models.api_key_env", status, said, model)

    def _room(self, messages: list[dict[str, str]], output_tokens: int) -> int:
        """Tokens to make room for, in doubles of the setting: another size makes the server load the model again.

        With less than the question needs the server would cut its beginning off, and say nothing.
        """
        needed = sum(estimate_tokens(message["content"]) for message in messages) + output_tokens
        room = max(1024, self._context_tokens)
        while room < needed:
            room *= 2
        return room
