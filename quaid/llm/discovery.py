"""Choose the provider: the configured one, or the first that this machine has.

Nothing is searched before a model is needed. Then the environment and the PATH are read; a local Ollama is only called
when no key is set, for a fifth of a second at most.
"""

import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quaid.errors import ModelUnavailableError
from quaid.llm.exchange import Provider
from quaid.model import Tier
from quaid.settings import ModelSettings

_OLLAMA_TIMEOUT_S = 0.2
_CHOICE_TTL_S = 60.0
_MODEL_NAMES: dict[str, dict[Tier, str]] = {
    "anthropic": {"deep": "claude-opus-5-5", "fast": "claude-haiku-5-5"},
    "openai": {"deep": "gpt-5.4", "fast": "gpt-5.4-mini"},
    "ollama": {"deep": "qwen2.5:7b", "fast": "qwen2.5:7b"},
    "claude-code": {"deep": "opus", "fast": "haiku"},
}
"""By provider, where the settings name no model."""
_INSTALL = (
    "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start Ollama, or install Claude Code; or do without: "
    "quaid config models.provider none"
)
AGREE = "Agree with: quaid config models.provider auto"
_GO_ONLINE = "Allow it again with: quaid config offline false"
_CHOOSE = "Choose one: quaid config models.provider anthropic (or openai, ollama, claude-code)"


class Choice(NamedTuple):
    """A provider, its models by tier, and why it was chosen."""

    provider: Provider
    models: Mapping[Tier, str]
    why: str


@dataclass(frozen=True, slots=True)
class Description:
    """The models that are used and why. Without a provider: why there is none, and what to do."""

    provider: str | None
    deep: str
    fast: str
    why: str
    next_step: str = ""
    goes_to: str = ""
    """The host that prompts are sent to; empty where they stay on this machine."""


class Discovery:
    """Finds the provider when it is needed, and again after a minute. Safe to use from several threads."""

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._found: Choice | ModelUnavailableError | None = None
        self._found_at = 0.0

    def choose(self) -> Choice:
        """Return the provider to ask.

        Raises:
            ModelUnavailableError: models are off, the provider cannot be used as configured, or none was found.
        """
        with self._lock:
            if self._found is None or time.monotonic() - self._found_at > _CHOICE_TTL_S:
                try:
                    self._found = self._find()
                except ModelUnavailableError as error:
                    self._found = error
                self._found_at = time.monotonic()
            found = self._found
        if isinstance(found, ModelUnavailableError):
            raise ModelUnavailableError(found.problem, found.next_step)
        return found

    def describe(self) -> Description:
        """Return what `choose` would; an explanation where it would raise, or where the configured Ollama is silent."""
        try:
            choice = self.choose()
            if self._settings.provider == "ollama":
                _check_ollama(choice)
        except ModelUnavailableError as error:
            return Description(None, "", "", error.problem, error.next_step)
        deep, fast = choice.models["deep"], choice.models["fast"]
        return Description(choice.provider.name, deep, fast, choice.why, goes_to=choice.provider.goes_to)

    def _find(self) -> Choice:
        provider = self._settings.provider
        if not provider:
            raise ModelUnavailableError("no model is asked before you have agreed to it", AGREE)
        if provider == "none":
            raise ModelUnavailableError("models.provider is none: no model is ever asked", _CHOOSE)
        if provider != "auto":
            return self._open(provider, f"models.provider is {provider}")
        for key in ("url", "api_key_env"):
            if getattr(self._settings, key):
                raise ModelUnavailableError(f"models.{key} is set, but models.provider is auto", _CHOOSE)
        missing = []
        for name in _MODEL_NAMES:
            try:
                return self._open(name, "")
            except ModelUnavailableError as error:
                missing.append(error.problem)
        raise ModelUnavailableError(f"No model was found: {'; '.join(missing)}", _INSTALL)

    def _open(self, name: str, why: str) -> Choice:
        """Return the provider `name`; `why` it is configured, empty when it is tried automatically.

        Raises:
            ModelUnavailableError: it cannot be used.
        """
        from quaid.llm import claude_code, providers

        settings, environ = self._settings, self._environ
        provider: Provider
        if name == "anthropic":
            key_env = providers.anthropic_key_env(settings, environ)
            why = self._explain_key("Anthropic", key_env, why, needs_key=not settings.url)
            provider = providers.AnthropicProvider(settings, environ)
        elif name == "openai":
            url_env = environ.get(providers.OPENAI_URL_ENV, "").strip()
            if url_env and not settings.url:
                why = why or f"{providers.OPENAI_URL_ENV} is set"
            key_env = settings.api_key_env or providers.OPENAI_KEY_ENV
            why = self._explain_key("OpenAI", key_env, why, needs_key=not (settings.url or url_env))
            provider = providers.OpenAIProvider(settings, environ)
        elif name == "ollama":
            provider = providers.OllamaProvider(settings, environ)
        else:
            if environ.get(claude_code.NO_HOOKS):
                problem = f"{claude_code.NO_HOOKS} is set: this is inside a claude that Quaid has started"
                raise ModelUnavailableError(problem)
            executable = shutil.which("claude", path=environ.get("PATH", ""))
            if executable is None:
                step = "Install Claude Code, or choose another provider"
                raise ModelUnavailableError("claude is not on the PATH", step)
            why = why or f"{executable} was found"
            provider = claude_code.ClaudeCodeProvider(executable, environ)
        if settings.offline and not provider.is_local:
            raise ModelUnavailableError(f"offline is set, and {name} is on another machine", _GO_ONLINE)
        usual = _MODEL_NAMES[name]
        models: dict[Tier, str] = {"deep": settings.deep or usual["deep"], "fast": settings.fast or usual["fast"]}
        return Choice(provider, models, why or _check_ollama(Choice(provider, models, why)))

    def _explain_key(self, service: str, key_env: str, why: str, *, needs_key: bool) -> str:
        """Return why a service with a key is chosen: it is configured, or its key is set."""
        has_key = bool(self._environ.get(key_env, "").strip())
        if not has_key and (needs_key or not why):
            step = f"Put your {service} key in that environment variable, or choose another provider"
            raise ModelUnavailableError(f"{key_env} is not set", step)
        return why or f"{key_env} is set"


def _check_ollama(choice: Choice) -> str:
    """Return that the chosen Ollama answers.

    Raises:
        ModelUnavailableError: it does not, or lacks one of the models.
    """
    from quaid.llm.providers import OllamaProvider

    assert isinstance(choice.provider, OllamaProvider)
    address = choice.provider.base_url
    names = choice.provider.list_models(_OLLAMA_TIMEOUT_S)
    if names is None:
        raise ModelUnavailableError(f"Ollama does not answer at {address}", "Start it with: ollama serve")
    for name in choice.models.values():
        if name not in names and f"{name}:latest" not in names:
            raise ModelUnavailableError(f"Ollama has no model {name}", f"Fetch it with: ollama pull {name}")
    return f"Ollama answers at {address}"
