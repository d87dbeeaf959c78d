"""Anthropic's Messages API, and gateways that speak it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quaid.llm.exchange import Reply, Request, Stop, read_count, read_text
from quaid.llm.schema import without_limits
from quaid.llm.wire import RemoteProvider
from quaid.model import ModelUsage
from quaid.settings import ModelSettings

DEFAULT_URL = "https://api.anthropic.com"
KEY_ENV = "ANTHROPIC_API_KEY"
TOKEN_ENV = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - the name of a variable
URL_ENV = "ANTHROPIC_BASE_URL"
_STOPS: dict[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refusal",
}
_MODES = ("schema", "tool", "plain")


def key_variable(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """Return the environment variable the key is taken from, set or not."""
    if settings.api_key_env:
        return settings.api_key_env
    return TOKEN_ENV if environ.get(TOKEN_ENV, "").strip() and not environ.get(KEY_ENV, "").strip() else KEY_ENV


class AnthropicProvider(RemoteProvider):
    """`POST {url}/v1/messages`."""

    path = "/v1/messages"
    # Older models do not know effort, newer ones refuse a forced tool, gateways may know neither.
    modes = {"deep": _MODES, "fast": ("schema, low effort", *_MODES)}  # noqa: RUF012 - declared by the base class

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        url = (settings.url or environ.get(URL_ENV, "").strip() or DEFAULT_URL).strip().rstrip("/").removesuffix("/v1")
        super().__init__("anthropic", url, key_variable(settings, environ), environ)
        self._version = settings.anthropic_version
        self._temperature = settings.temperature

    def headers(self) -> dict[str, str]:
        key = {"x-api-key": self.key} if self.key and self.key_env != TOKEN_ENV else super().headers()
        return {"anthropic-version": self._version, **key}

    def payload(self, request: Request, mode: str) -> dict[str, Any]:
        # Where it is given the schema, the service shows it to the model itself.
        system = request.system if mode == "plain" else request.instructions
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": turn.role, "content": turn.text} for turn in request.turns],
        }
        if self._temperature >= 0:
            body["temperature"] = self._temperature
        schema = without_limits(request.schema)
        if mode.startswith("schema"):
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
            if mode.endswith("low effort"):
                body["output_config"]["effort"] = "low"
        elif mode == "tool":
            body["tools"] = [
                {"name": "answer", "description": "Give the answer.", "input_schema": schema, "strict": True}
            ]
            body["tool_choice"] = {"type": "tool", "name": "answer"}
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        if "delta" in answer:  # the pieces of a stream, joined
            said = {"type": "text", "text": answer["delta"].get("text") or answer["delta"].get("partial_json")}
            begun = answer["message"]
            usage = {**begun["usage"], **answer.get("usage", {})}
            answer = {**begun, **answer["delta"], "content": [said], "usage": usage}
        blocks = answer["content"]
        inputs = [json.dumps(block["input"]) for block in blocks if block["type"] == "tool_use"]
        text, ended = read_text(blocks), answer.get("stop_reason") or ""
        stop = _STOPS.get(ended, "end")
        if stop == "refusal":
            inputs, text = [], f"stop_reason {ended}: {text or answer.get('stop_details') or ''}"
        model = str(answer.get("model") or request.model)
        return Reply(inputs[0] if inputs else text, stop, model, read_usage(answer["usage"], None))


def read_usage(counts: Mapping[str, Any], cost_usd: float | None) -> ModelUsage:
    """Return what a call took. Anthropic counts cached input, read and written, beside the rest of the input."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    uncached, written, cached, output = (read_count(counts.get(name)) for name in names)
    return ModelUsage(uncached + written + cached, output, cached, written, cost_usd, 1)
