"""What the model services over HTTP have in common: the ladder of ways to ask for JSON, and refusals as sentences."""

from __future__ import annotations

import json
import time
from typing import Any, Protocol

from quaid.errors import ModelAnswerError, ModelTimeoutError, ModelUnavailableError
from quaid.http import Response, UnreachableError, Wire
from quaid.llm.exchange import Reply, Request
from quaid.model import Tier

_NOT_UNDERSTOOD = frozenset({400, 422})
_OTHER_TROUBLE = ("context", "too long", "credit", "billing", "quota", "balance")
"""Words of a 400 that another way of asking would not help."""


class Dialect(Protocol):
    """What one kind of service says differently."""

    name: str
    base_url: str
    path: str
    key_env: str
    """The environment variable the secret is from."""
    key: str
    """The secret itself, to keep it out of messages; empty when there is none."""

    def headers(self) -> dict[str, str]:
        """Headers of every request."""

    def rungs(self, tier: Tier) -> int:
        """How many ways there are to ask for JSON, the strictest first."""

    def payload(self, request: Request, rung: int) -> dict[str, Any]:
        """The body that asks `request` in the way of `rung`."""

    def reply(self, answer: Any, request: Request) -> Reply:
        """What an answer says. Any of KeyError, TypeError, ValueError, IndexError, AttributeError when it is none."""

    def explain(self, status: int, said: str, model: str) -> tuple[str, str]:
        """The problem and the next step, for a status that is not retried or was retried in vain."""


_WORKED: dict[tuple[str, str, Tier], int] = {}
"""The rung a service has understood, by address, model and tier: one that refused is not asked again."""


class RemoteProvider:
    """A model service spoken to over HTTP. Safe to use from several threads."""

    least_s = 0.0
    turns_per_call = 1

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._wire = Wire(dialect.base_url)
        self.name = dialect.name
        self.is_local = self._wire.is_local
        self.goes_to = self._wire.goes_to

    def complete(self, request: Request, deadline: float) -> Reply:
        """The model's answer, asked for in the strictest way that the service understands.

        Raises:
            ModelUnavailableError, ModelTimeoutError, ModelAnswerError: as for `Provider.complete`.
        """
        key_env, secret = self._dialect.key_env, self._dialect.key
        if not (secret.isascii() and secret.isprintable()):
            raise ModelUnavailableError(f"{key_env} holds characters that no key has", "Set that variable again")
        key = (self._dialect.base_url, request.model, request.tier)
        rung = _WORKED.get(key, 0)
        response = self._post(request, rung, deadline)
        while _is_not_understood(response) and rung + 1 < self._dialect.rungs(request.tier):
            rung += 1
            response = self._post(request, rung, deadline)
        if response.status != 200:
            problem, step = self._dialect.explain(response.status, response.said(secret), request.model)
            raise ModelUnavailableError(problem, step)
        _WORKED[key] = rung
        try:
            return self._dialect.reply(json.loads(response.body), request)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            where = f"{self.name} at {self._dialect.base_url}"
            raise ModelAnswerError(request.model, request.prompt, f"{where} speaks another format") from error

    def _post(self, request: Request, rung: int, deadline: float) -> Response:
        """The last answer after retries; trouble with the connection becomes one sentence."""
        limit_s = deadline - time.monotonic()
        payload = self._dialect.payload(request, rung)
        try:
            return self._wire.post(self._dialect.path, payload, self._dialect.headers(), deadline)
        except TimeoutError as error:
            raise ModelTimeoutError(request.model, round(limit_s, 1)) from error
        except UnreachableError as error:
            where = f"{self.name} at {self._dialect.base_url}"
            step = "Is it running? See: quaid doctor"
            raise ModelUnavailableError(f"{where} could not be reached ({error})", step) from error


def bearer(key: str) -> dict[str, str]:
    """The header that carries a key; none where no key is needed."""
    return {"authorization": f"Bearer {key}"} if key else {}


def explain_status(service: str, key_env: str, status: int, said: str, model: str) -> tuple[str, str]:
    """The problem and the next step for the statuses that all services use alike."""
    if status in {401, 403}:
        return f"{service} refused the key in {key_env} ({status}: {said})", "Check that variable"
    if status == 404:
        return f"{service} has no model {model} ({said})", "Check models.deep, models.fast and models.url"
    if status == 429:
        return f"{service} allows no more requests now ({said})", "Try again later"
    if status >= 500:
        return f"{service} is overloaded or broken ({status}: {said})", "Try again later"
    return f"{service} did not take the question ({status}: {said})", "Check models.deep, models.fast and models.url"


def _is_not_understood(response: Response) -> bool:
    if response.status not in _NOT_UNDERSTOOD:
        return False
    said = response.said().lower()
    return not any(word in said for word in _OTHER_TROUBLE)
