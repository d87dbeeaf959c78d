"""Model services over HTTP: each is asked for JSON in the strictest way that it understands."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from quaid.errors import ModelAnswerError, ModelRefusedError, ModelTimeoutError, ModelUnavailableError
from quaid.http import Response, Service, ServiceError, read_json
from quaid.llm.exchange import Reply, Request
from quaid.model import Tier

_FORM = re.compile(r"(?<![a-z])(?:schema|format|grammar)")
"""What an error names that another way of asking for JSON avoids, whatever its status."""
_FILTER = re.compile(r"content[_ ]?(?:filter|management|policy)|safety|moderation|flagged|prohibited|harmful")
_TOO_LONG = re.compile(r"too (?:long|large|many tokens)|context[_ ](?:length|window|size)|maximum context")
_UNPAID = re.compile(r"credit|billing|quota|balance")
_NO_SYSTEM = re.compile(r"not (?:support|allow|enabl)|developer instruction")
"""Some chat templates, such as Gemma's, have no place for a system message."""

UNDERSTOOD: dict[tuple[str, str, Tier], int] = {}
"""The number of the mode that a service has understood, by address, model and tier: refused ones are not sent again."""
WITHOUT_SYSTEM: set[tuple[str, str, Tier]] = set()
"""The services, models and tiers that take no system message: its text goes before the user's."""


class RemoteProvider(Service, ABC):
    """A provider that is asked over HTTP. Safe to use from several threads."""

    modes: ClassVar[Mapping[Tier, Sequence[str]]]
    """The ways to ask for JSON, the strictest first."""
    min_s = 0.0
    turns_per_call = 1

    def __init__(self, name: str, base_url: str, key_env: str, environ: Mapping[str, str]) -> None:
        super().__init__(name, base_url, key_env, environ, "models.deep, models.fast and models.url")

    @abstractmethod
    def payload(self, request: Request, mode: str) -> dict[str, Any]:
        """Return the body that asks `request` in one of `modes`."""

    @abstractmethod
    def reply(self, answer: Any, request: Request) -> Reply:
        """Return what a response body says. Any of KeyError, TypeError, ValueError, IndexError, AttributeError where it
        has another format.
        """

    def complete(self, request: Request, deadline: float) -> Reply:
        """Return the model's answer, asked for in the strictest mode that the service understands.

        Raises:
            ModelUnavailableError, ModelTimeoutError, ModelAnswerError, ModelRefusedError: as for `Provider.complete`.
        """
        limit_s = deadline - time.monotonic()
        modes = self.modes[request.tier]
        key = (self.base_url, request.model, request.tier)
        mode, has_system = UNDERSTOOD.get(key, 0), key not in WITHOUT_SYSTEM
        try:
            while (response := self._ask(request, modes[mode], deadline, has_system=has_system)).status != 200:
                message = response.message().lower()
                if has_system and ("system" in message or "developer" in message) and _NO_SYSTEM.search(message):
                    has_system = False
                elif mode + 1 < len(modes) and _is_of_form(response, message):
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
        """Return what a response means that no other form of the request would avoid."""
        if response.status < 500 and _FILTER.search(message):
            return ModelRefusedError(request.model, request.prompt, response.message(self.key))
        if response.status in {400, 413, 422} and _TOO_LONG.search(message):
            problem = f"{self.where} did not accept the request: {response.message(self.key)}"
            return ModelAnswerError(request.model, request.prompt, problem)
        return self.refusal(response, request.model)

    def _ask(self, request: Request, mode: str, deadline: float, *, has_system: bool) -> Response:
        payload = self.payload(request, mode)
        if not has_system and payload["messages"][0]["role"] == "system":
            system, first, *rest = payload["messages"]
            payload["messages"] = [{**first, "content": f"{system['content']}\n\n{first['content']}"}, *rest]
        return self.ask(payload, deadline)


def _is_of_form(response: Response, message: str) -> bool:
    """Return whether another way of asking for JSON may avoid an error."""
    text = response.body[:2_000].decode("utf-8", "replace").lower()
    is_other = any(words.search(message) for words in (_FILTER, _TOO_LONG, _UNPAID))
    return _FORM.search(text) is not None or (response.status in {400, 422} and not is_other)
