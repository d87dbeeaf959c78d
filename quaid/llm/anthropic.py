"""Anthropic's Messages API, and gateways that speak it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quaid.llm.exchange import Reply, Request, Stop, read_count
from quaid.llm.schema import for_the_wire
from quaid.llm.wire import RemoteProvider, bearer, explain_status
from quaid.model import ModelUsage, Tier
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
_RUNGS: dict[Tier, tuple[str, ...]] = {
    "deep": ("schema", "tool", "plain"),
    "fast": ("schema, low effort", "schema", "tool", "plain"),
}
"""Older models know no effort, newer ones refuse a forced tool, gateways may know neither."""


class AnthropicProvider(RemoteProvider):
    """`POST {url}/v1/messages`."""

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        super().__init__(_Anthropic(settings, environ))


def key_variable(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """The environment variable the key is taken from, set or not."""
    if settings.api_key_env:
        return settings.api_key_env
    return TOKEN_ENV if environ.get(TOKEN_ENV, "").strip() and not environ.get(KEY_ENV, "").strip() else KEY_ENV


class _Anthropic:
    name = "anthropic"
    path = "/v1/messages"

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        url = settings.url or environ.get(URL_ENV, "").strip() or DEFAULT_URL
        self.base_url = url.rstrip("/").removesuffix("/v1")
        self.key_env = key_variable(settings, environ)
        self.key = environ.get(self.key_env, "").strip()
        self._version = settings.anthropic_version
        self._temperature = settings.temperature

    def headers(self) -> dict[str, str]:
        version = {"anthropic-version": self._version}
        if not self.key:
            return version
        if self.key_env == TOKEN_ENV:
            return version | bearer(self.key)
        return version | {"x-api-key": self.key}

    def rungs(self, tier: Tier) -> int:
        return len(_RUNGS[tier])

    def payload(self, request: Request, rung: int) -> dict[str, Any]:
        way = _RUNGS[request.tier][rung]
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": turn.role, "content": turn.text} for turn in request.turns],
        }
        if self._temperature >= 0:
            body["temperature"] = self._temperature
        schema = for_the_wire(request.schema)
        if way.startswith("schema"):
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
            if way.endswith("low effort"):
                body["output_config"]["effort"] = "low"
        elif way == "tool":
            body["tools"] = [
                {"name": "answer", "description": "Give the answer.", "input_schema": schema, "strict": True}
            ]
            body["tool_choice"] = {"type": "tool", "name": "answer"}
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        blocks = answer["content"]
        used = [json.dumps(block["input"]) for block in blocks if block["type"] == "tool_use"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        stop = _STOPS.get(answer.get("stop_reason") or "", "end")
        model = str(answer.get("model") or request.model)
        return Reply(used[0] if used else text, stop, model, read_usage(answer["usage"], None))

    def explain(self, status: int, said: str, model: str) -> tuple[str, str]:
        return explain_status(f"Anthropic at {self.base_url}", self.key_env, status, said, model)


def read_usage(counts: Mapping[str, Any], cost_usd: float | None) -> ModelUsage:
    """Anthropic counts what came out of its cache, and what went in, beside the rest of the input."""
    written = read_count(counts.get("cache_creation_input_tokens"))
    cached = read_count(counts.get("cache_read_input_tokens"))
    fresh = read_count(counts.get("input_tokens"))
    output = read_count(counts.get("output_tokens"))
    return ModelUsage(fresh + written + cached, output, cached, written, cost_usd, 1)
