"""Model services over HTTP: Anthropic, OpenAI, Ollama, and servers that speak their protocols.

Requests ask for JSON in the strictest way that it understands.
"""

import json
import re
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from quaid.errors import ModelAnswerError, ModelRefusedError, ModelTimeoutError, ModelUnavailableError
from quaid.http import Response, Service, ServiceError, UnreachableError, ollama_address, read_json
from quaid.llm.exchange import Reply, Request, Stop, read_count, read_text
from quaid.llm.prices import estimate_tokens
from quaid.llm.schema import without_limits
from quaid.model import ModelUsage, Tier
from quaid.settings import ModelSettings

ANTHROPIC_URL, OPENAI_URL = "https://api.anthropic.com", "https://api.openai.com/v1"
ANTHROPIC_KEY_ENV, OPENAI_KEY_ENV = "ANTHROPIC_API_KEY", "OPENAI_API_KEY"
ANTHROPIC_TOKEN_ENV = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105 - the name of a variable
ANTHROPIC_URL_ENV, OPENAI_URL_ENV = "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"
_FORM = re.compile(r"(?<![a-z])(?:schema|format|grammar)")
"""Names in an error that another way of asking for JSON avoids, whatever its status."""
_FILTER = re.compile(r"content[_ ]?(?:filter|management|policy)|safety|moderation|flagged|prohibited|harmful")
_TOO_LONG = re.compile(r"too (?:long|large|many tokens)|context[_ ](?:length|window|size)|maximum context")
_UNPAID = re.compile(r"credit|billing|quota|balance")
_NO_SYSTEM = re.compile(r"not (?:support|allow|enabl)|developer instruction")
"""Some chat templates, such as Gemma's, have no place for a system message."""
_REFUSED = re.compile(r"filter|safety|refus|block|prohibited|recitation|moderation|sensitive", re.IGNORECASE)
"""Names of a filter in the reason for which an answer ended."""
_ANTHROPIC_STOPS: dict[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refusal",
}

UNDERSTOOD: dict[tuple[str, str, Tier], int] = {}
"""The number of the mode that a service has understood, by address, model and tier: refused ones are not sent again."""
WITHOUT_SYSTEM: set[tuple[str, str, Tier]] = set()
"""The services, models and tiers that take no system message: its text goes before the user's."""
ANTHROPIC_VERSION = "2026-10-21"
OLLAMA_CONTEXT_TOKENS = 8_192


class RemoteProvider(Service, ABC):
    """A provider that is called over HTTP. Safe to use from several threads."""

    modes: ClassVar[Sequence[str]]
    """The ways to ask for JSON, the strictest first."""
    min_s = 0.0
    turns_per_call = 1

    def __init__(self, name: str, base_url: str, key_env: str, environ: Mapping[str, str]) -> None:
        super().__init__(name, base_url, key_env, environ, "models.deep, models.fast and models.url")

    @abstractmethod
    def payload(self, request: Request, mode: str) -> dict[str, Any]:
        """Return the body of `request` in one of `modes`."""

    @abstractmethod
    def reply(self, answer: Any, request: Request) -> Reply:
        """Return the reply in a response body. Any of KeyError, TypeError, ValueError, IndexError, AttributeError where
        it has another format.
        """

    def list_modes(self, _tier: Tier) -> Sequence[str]:
        return self.modes

    def complete(self, request: Request, deadline: float) -> Reply:
        """Return the model's answer, asked for in the strictest mode that the service understands.

        Raises:
            ModelUnavailableError, ModelTimeoutError, ModelAnswerError, ModelRefusedError: as for `Provider.complete`.
        """
        limit_s = deadline - time.monotonic()
        modes = self.list_modes(request.tier)
        key = (self.base_url, request.model, request.tier)
        mode, has_system = UNDERSTOOD.get(key, 0), key not in WITHOUT_SYSTEM
        try:
            while True:
                payload = self.payload(request, modes[mode])
                if not has_system and payload["messages"][0]["role"] == "system":
                    system, first, *rest = payload["messages"]
                    payload["messages"] = [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]
                response = self.ask(payload, deadline)
                if response.status == 200:
                    break
                message = response.message().lower()
                if has_system and ("system" in message or "developer" in message) and _NO_SYSTEM.search(message):
                    has_system = False
                elif mode + 1 < len(modes) and _is_about_form(response, message):
                    mode += 1
                else:
                    raise self._failure(response, message, request)
        except TimeoutError as error:
            raise ModelTimeoutError(request.model, round(limit_s, 1)) from error
        except ServiceError as error:
            raise ModelUnavailableError(error.problem, error.step) from error
        UNDERSTOOD[key] = mode
        if not has_system:
            WITHOUT_SYSTEM.add(key)
        try:
            return self.reply(read_json(response.body), request)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            raise ModelAnswerError(request.model, request.prompt, f"{self.where} speaks another format") from error

    def _failure(self, response: Response, message: str, request: Request) -> Exception:
        """Return the error of a response that no other form of the request would avoid."""
        if response.status < 500 and _FILTER.search(message):
            return ModelRefusedError(request.model, request.prompt, response.message(self.key))
        if response.status in {400, 413, 422} and _TOO_LONG.search(message):
            problem = f"{self.where} did not accept the request: {response.message(self.key)}"
            return ModelAnswerError(request.model, request.prompt, problem)
        return self.refusal(response, request.model)


def _is_about_form(response: Response, message: str) -> bool:
    """Return whether another way of asking for JSON may avoid an error."""
    text = response.body[:2_000].decode("utf-8", "replace").lower()
    is_other = any(words.search(message) for words in (_FILTER, _TOO_LONG, _UNPAID))
    return _FORM.search(text) is not None or (response.status in {400, 422} and not is_other)


# -- Anthropic -------------------------------------------------------------------------------------------------------


class AnthropicProvider(RemoteProvider):
    """Anthropic's Messages API, and gateways that speak it."""

    path = "/v1/messages"
    modes = ("schema", "tool", "plain")

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        url = settings.url or environ.get(ANTHROPIC_URL_ENV, "").strip() or ANTHROPIC_URL
        url = url.strip().rstrip("/").removesuffix("/v1")
        super().__init__("anthropic", url, anthropic_key_env(settings, environ), environ)

    def list_modes(self, tier: Tier) -> Sequence[str]:
        # Older models do not know effort, newer ones refuse a forced tool, gateways may know neither.
        return ("schema, low effort", *self.modes) if tier == "fast" else self.modes

    def headers(self) -> dict[str, str]:
        key = {"x-api-key": self.key} if self.key and self.key_env != ANTHROPIC_TOKEN_ENV else super().headers()
        return {"anthropic-version": ANTHROPIC_VERSION, **key}

    def payload(self, request: Request, mode: str) -> dict[str, Any]:
        # Where it is given the schema, the service shows it to the model itself.
        system = request.system if mode == "plain" else request.instructions
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": role, "content": text} for role, text in request.turns],
        }
        # What may be left out costs nothing; the service accepts 24 such properties, and 16 that are of several types.
        schema = without_limits(request.schema, is_strict=False)
        if mode.startswith("schema"):
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
            if mode.endswith("low effort"):
                body["output_config"]["effort"] = "low"
        elif mode == "tool":
            tool = {"name": "answer", "description": "Give the answer.", "input_schema": schema, "strict": True}
            body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": "answer"}}
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        if "delta" in answer:  # the joined pieces of a stream
            joined = {"type": "text", "text": answer["delta"].get("text") or answer["delta"].get("partial_json")}
            begun = answer["message"]
            usage = {**begun["usage"], **answer.get("usage", {})}
            answer = {**begun, **answer["delta"], "content": [joined], "usage": usage}
        blocks = answer["content"]
        inputs = [json.dumps(block["input"]) for block in blocks if block["type"] == "tool_use"]
        text, ended = read_text(blocks), answer.get("stop_reason") or ""
        stop = _ANTHROPIC_STOPS.get(ended, "end")
        if stop == "refusal":
            inputs, text = [], f"stop_reason {ended}: {text or answer.get('stop_details') or ''}"
        model = str(answer.get("model") or request.model)
        return Reply(inputs[0] if inputs else text, stop, model, read_anthropic_usage(answer["usage"], None))


def anthropic_key_env(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    """Return the environment variable the key is read from, set or not."""
    if settings.api_key_env:
        return settings.api_key_env
    has_token = environ.get(ANTHROPIC_TOKEN_ENV, "").strip() and not environ.get(ANTHROPIC_KEY_ENV, "").strip()
    return ANTHROPIC_TOKEN_ENV if has_token else ANTHROPIC_KEY_ENV


def read_anthropic_usage(counts: Mapping[str, Any], cost_usd: float | None) -> ModelUsage:
    """Return the usage of a call. Anthropic counts cached input, read and written, separately."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    uncached, written, cached, output = (read_count(counts.get(name)) for name in names)
    return ModelUsage(uncached + written + cached, output, cached, written, cost_usd, 1)


# -- OpenAI ----------------------------------------------------------------------------------------------------------


class OpenAIProvider(RemoteProvider):
    """OpenAI's chat completions, and services that speak the protocol (LM Studio, vLLM, llama.cpp, gateways)."""

    path = "/chat/completions"
    modes = ("json_schema", "json_object", "plain")

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        url = settings.url.strip() or environ.get(OPENAI_URL_ENV, "").strip() or OPENAI_URL
        super().__init__("openai", url, settings.api_key_env or OPENAI_KEY_ENV, environ)

    def payload(self, request: Request, mode: str) -> dict[str, Any]:
        # OpenAI shows its models the schema. Servers of the same protocol may only make a grammar of it.
        is_shown = mode == "json_schema" and self.base_url == OPENAI_URL
        # The system part first and unchanged: that is what the service's own prefix cache needs.
        messages = request.as_messages(request.instructions if is_shown else request.system)
        body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": False}
        if mode == "json_schema":
            named = {"name": "answer", "strict": True, "schema": without_limits(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        choices = answer["choices"]
        if not choices:  # a filter removed the answer, which may name it as Gemini's do
            named = [f"{key} {value}" for key, value in answer.items() if value and _REFUSED.search(f"{key} {value}")]
            reason = ", ".join(["no answer passed a filter", *named])[:200]
            choices = [{"finish_reason": reason, "message": {}}]
        choice = choices[0]
        message = choice["message"] if "message" in choice else choice["delta"]  # of a stream
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


# -- Ollama ----------------------------------------------------------------------------------------------------------


class OllamaProvider(RemoteProvider):
    """An Ollama server, through its native API."""

    path = "/api/chat"
    modes = ("schema", "json", "plain")
    pull_command = "ollama pull"

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        url = settings.url if settings.provider == "ollama" else ""
        # A server on another machine may be behind a gateway that asks for a key.
        super().__init__("ollama", ollama_address(url, environ), settings.api_key_env, environ)

    def list_models(self, within_s: float) -> frozenset[str] | None:
        """Return the names of the server's models; None when it does not answer thrice within `within_s` each."""
        try:
            # Mostly there is no server, and then httpx is not loaded to find that out.
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
        # The context size in doubles of the setting: another size makes the server load the model again, and a smaller
        # one than the request needs makes it cut off the beginning without notice.
        needed = sum(estimate_tokens(message["content"]) for message in messages) + request.max_output_tokens
        context_tokens = OLLAMA_CONTEXT_TOKENS
        while context_tokens < needed:
            context_tokens *= 2
        body: dict[str, Any] = {
            "model": request.model,
            "messages": messages,
            "stream": False,
            "keep_alive": "5m",
            "options": {
                "temperature": 0.0,
                "seed": 1,
                "num_ctx": context_tokens,
                "num_predict": request.max_output_tokens,
            },
        }
        if mode == "schema":
            # llama.cpp refuses a grammar that repeats anything more than 2,000 times, and is slow with one that counts
            # the characters of a text.
            body |= {"format": without_limits(request.schema, is_strict=False), "think": False}
        elif mode == "json":
            body["format"] = "json"
        return body

    def reply(self, answer: Any, request: Request) -> Reply:
        usage = ModelUsage(read_count(answer.get("prompt_eval_count")), read_count(answer.get("eval_count")), calls=1)
        stop: Stop = "length" if answer.get("done_reason") == "length" else "end"
        return Reply(read_text(answer["message"]["content"]), stop, str(answer.get("model") or request.model), usage)
