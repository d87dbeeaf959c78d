"""Model services over HTTP: each is asked for JSON in the strictest way that it understands."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from quaid.errors import ModelAnswerError, ModelTimeoutError, ModelUnavailableError
from quaid.http import Service, ServiceError
from quaid.llm.exchange import Reply, Request
from quaid.model import Tier

_OTHER_PROBLEMS = ("context", "too long", "credit", "billing", "quota", "balance")
"""Words of a 400 that no other way of asking would avoid."""

UNDERSTOOD: dict[tuple[str, str, Tier], int] = {}
"""The number of the mode that a service has understood, by address, model and tier: refused ones are not sent again."""


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
            ModelUnavailableError, ModelTimeoutError, ModelAnswerError: as for `Provider.complete`.
        """
        limit_s = deadline - time.monotonic()
        modes = self.modes[request.tier]
        key = (self.base_url, request.model, request.tier)
        mode = UNDERSTOOD.get(key, 0)
        try:
            response = self.ask(self.payload(request, modes[mode]), deadline)
            while response.status in {400, 422} and mode + 1 < len(modes):
                message = response.message().lower()
                if any(word in message for word in _OTHER_PROBLEMS):
                    break
                mode += 1
                response = self.ask(self.payload(request, modes[mode]), deadline)
            if response.status != 200:
                raise self.refusal(response, request.model)
        except TimeoutError as error:
            raise ModelTimeoutError(request.model, round(limit_s, 1)) from error
        except ServiceError as error:
            raise ModelUnavailableError(error.problem, error.step) from error
        UNDERSTOOD[key] = mode
        try:
            return self.reply(json.loads(response.body), request)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            raise ModelAnswerError(request.model, request.prompt, f"{self.where} speaks another format") from error
