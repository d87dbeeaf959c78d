"""OpenAI's chat completions, and services that speak the protocol (LM Studio, vLLM, llama.cpp, gateways)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from quaid.llm.exchange import Reply, Request, Stop, read_count, read_text
from quaid.llm.schema import without_limits
from quaid.llm.wire import RemoteProvider
from quaid.model import ModelUsage
from quaid.settings import ModelSettings

DEFAULT_URL = "https://api.openai.com/v1"
KEY_ENV = "OPENAI_API_KEY"
URL_ENV = "OPENAI_BASE_URL"
_REFUSED = re.compile(r"filter|safety|refus|block|prohibited|recitation|moderation|sensitive", re.IGNORECASE)
"""What names a filter in the reason for which an answer ended."""
_MODES = ("json_schema", "json_object", "plain")


class OpenAIProvider(RemoteProvider):
    """`POST {url}/chat/completions`."""

    path = "/chat/completions"
    modes = {"deep": _MODES, "fast": _MODES}  # noqa: RUF012 - declared by the base class

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        url = settings.url.strip() or environ.get(URL_ENV, "").strip() or DEFAULT_URL
        super().__init__("openai", url, settings.api_key_env or KEY_ENV, environ)
        self._temperature = settings.temperature
        self._limit_field = settings.output_limit_field

    def payload(self, request: Request, mode: str) -> dict[str, Any]:
        # OpenAI shows its models the schema. Servers of the same protocol may only make a grammar of it.
        is_shown = mode == "json_schema" and self.base_url == DEFAULT_URL
        # The system part first and unchanged: that is what the service's own prefix cache needs.
        messages = request.as_messages(request.instructions if is_shown else request.system)
        body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": False}
        if self._temperature >= 0:
            body["temperature"] = self._temperature
        if self._limit_field:
            body[self._limit_field] = request.max_output_tokens
        if mode == "json_schema":
            named = {"name": "answer", "strict": True, "schema": without_limits(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        choice = answer["choices"][0] if answer["choices"] else _without_choices(answer)
        message = choice["message"] if "message" in choice else choice["delta"]  # that of a stream
        text, refusal, ended = read_text(message.get("content")), message.get("refusal"), choice.get("finish_reason")
        stop: Stop = "length" if ended == "length" else "end"
        reason = str(ended) if _REFUSED.search(str(ended)) else ""
        if refusal or reason:
            stop, text = "refusal", ": ".join(filter(None, [reason, refusal or text]))
        counts = answer.get("usage") or {}
        details = counts.get("prompt_tokens_details") or {}
        usage = ModelUsage(
            input_tokens=read_count(counts.get("prompt_tokens")),
            output_tokens=read_count(counts.get("completion_tokens")),
            cached_tokens=read_count(details.get("cached_tokens")),
            cost_usd=None,
            calls=1,
        )
        return Reply(text, stop, str(answer.get("model") or request.model), usage)


def _without_choices(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choice of an answer without any: a filter took it, which the answer may name as Gemini's do."""
    told = [f"{key} {value}" for key, value in answer.items() if value and _REFUSED.search(f"{key} {value}")]
    return {"finish_reason": ", ".join(["no answer passed a filter", *told])[:200], "message": {}}
