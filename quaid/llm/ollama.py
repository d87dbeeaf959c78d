"""Models of an Ollama server, through its native API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quaid.llm.exchange import Reply, Request, Stop
from quaid.llm.prices import estimate_tokens
from quaid.llm.wire import RemoteProvider, bearer, explain_status, is_local
from quaid.model import ModelUsage, Tier
from quaid.settings import ModelSettings

HOST_ENV = "OLLAMA_HOST"
_DEFAULT_URL = "http://localhost:11434"
_DEFAULT_PORT = 11434
_RUNGS = ("schema", "json", "plain")
_KEEP_LOADED = "5m"


class OllamaProvider(RemoteProvider):
    """`POST /api/chat`."""

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        super().__init__(_Ollama(settings, environ))


def base_url(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """An address to call, from one that may lack scheme and port or be meant for listening (0.0.0.0)."""
    from urllib.parse import urlsplit

    host = (settings.url if settings.provider == "ollama" else "") or environ.get(HOST_ENV, "")
    if not host.strip():
        return _DEFAULT_URL
    has_scheme = "://" in host
    parts = urlsplit(host.strip() if has_scheme else f"http://{host.strip()}")
    name = parts.hostname or "localhost"
    name = "localhost" if name in {"0.0.0.0", "::"} else name  # noqa: S104 - we call it, we don't bind it
    name = f"[{name}]" if ":" in name else name
    port = parts.port or (_DEFAULT_PORT if not has_scheme or parts.scheme == "http" else 443)
    return f"{parts.scheme}://{name}:{port}{parts.path.rstrip('/')}"


def list_models(address: str, within_s: float) -> frozenset[str] | None:
    """The models of the server at `address`; None when nobody answers within `within_s`, asked thrice."""
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(address)
    try:
        # Mostly nobody is there, and then httpx need not be loaded to see it.
        socket.create_connection((parts.hostname or "", parts.port or _DEFAULT_PORT), within_s).close()
    except OSError:
        return None
    import httpx

    try:
        has_tls = not address.lower().startswith("http://")
        with httpx.Client(
            base_url=address, trust_env=not is_local(address), timeout=within_s, verify=has_tls
        ) as client:
            client.get("/api/version").raise_for_status()
            found = client.get("/api/tags").raise_for_status().json()
        return frozenset(str(model["name"]) for model in found["models"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
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
        usage = ModelUsage(int(answer.get("prompt_eval_count") or 0), int(answer.get("eval_count") or 0), calls=1)
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
