"""What the model services over HTTP have in common: one POST with retries, and the ladder of ways to ask for JSON."""

from __future__ import annotations

import json
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from quaid.errors import ModelAnswerError, ModelTimeoutError, ModelUnavailableError
from quaid.llm.exchange import Reply, Request
from quaid.model import Tier

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

RETRIES = 2
FIRST_WAIT_S = 0.5
"""Before the second attempt, doubled before the third; as the providers' own clients wait."""
_LONGEST_WAIT_S = 8.0
_JITTER = 0.25
_LOCAL_CONNECT_S = 1.0
_REMOTE_CONNECT_S = 5.0
_RETRIED = frozenset({408, 409, 429})
_NOT_UNDERSTOOD = frozenset({400, 422})
_OTHER_TROUBLE = ("context", "too long", "credit", "billing", "quota", "balance")
"""Words of a 400 that another way of asking would not help."""
_MOST_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Response:
    """One answer over HTTP, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def said(self) -> str:
        """The service's own words, from {"error": "…"} or {"error": {"message": "…"}}, cut."""
        try:
            error = json.loads(self.body)["error"]
            words = error["message"] if isinstance(error, dict) else error
        except (ValueError, KeyError, TypeError, RecursionError):
            words = self.body[:1000].decode("utf-8", "replace")
        return " ".join(str(words).split())[:200] or "no reason given"


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
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()
        self.name = dialect.name
        self.is_local = is_local(dialect.base_url)
        self.goes_to = "" if self.is_local else host_of(dialect.base_url)

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
            problem, step = self._dialect.explain(response.status, self._said(response), request.model)
            raise ModelUnavailableError(problem, step)
        _WORKED[key] = rung
        try:
            return self._dialect.reply(json.loads(response.body), request)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            where = f"{self.name} at {self._dialect.base_url}"
            raise ModelAnswerError(request.model, request.prompt, f"{where} speaks another format") from error

    def _post(self, request: Request, rung: int, deadline: float) -> Response:
        """The last response after retries; trouble with the connection becomes one sentence."""
        import httpx

        content = json.dumps(self._dialect.payload(request, rung), ensure_ascii=False).encode("utf-8", "replace")
        limit_s = deadline - time.monotonic()
        for attempt in range(RETRIES + 1):
            response: Response | None = None
            try:
                response = self._post_once(content, deadline)
            except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout) as error:
                raise ModelTimeoutError(request.model, round(limit_s, 1)) from error
            except (httpx.RequestError, httpx.InvalidURL) as error:
                if attempt == RETRIES or not self._may_pass(error):
                    raise self._unreachable(error) from error
            if response is not None and (attempt == RETRIES or not _is_retried(response)):
                return response
            wait_s = _wait_s(attempt, response)
            if time.monotonic() + wait_s >= deadline:
                if response is not None:
                    return response
                raise ModelTimeoutError(request.model, round(limit_s, 1))
            time.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def _post_once(self, content: bytes, deadline: float) -> Response:
        import httpx

        with self._lock:
            if self._client is None:
                # A proxy meant for the outside cannot reach this machine's own services. And where nothing is
                # encrypted there is nothing to verify: reading the certificates takes 20 ms.
                is_plain = self._dialect.base_url.lower().startswith("http://")
                self._client = httpx.Client(trust_env=not self.is_local, verify=not is_plain)
        left_s = max(0.05, deadline - time.monotonic())
        connect_s = min(left_s, _LOCAL_CONNECT_S if self.is_local else _REMOTE_CONNECT_S)
        with self._client.stream(
            "POST",
            self._dialect.base_url + self._dialect.path,
            content=content,
            headers={"content-type": "application/json", **self._dialect.headers()},
            timeout=httpx.Timeout(left_s, connect=connect_s),
        ) as response:
            body = b""
            for part in response.iter_bytes():
                body += part
                if time.monotonic() >= deadline:  # a timeout is per read, and a service may trickle
                    raise TimeoutError
                if len(body) > _MOST_BYTES:
                    raise httpx.DecodingError(f"its answer has more than {_MOST_BYTES / 1e6:.0f} MB")
            return Response(response.status_code, response.headers, body)

    def _may_pass(self, error: Exception) -> bool:
        """Whether trouble with the connection is worth another try. Nobody starts a server here within a second."""
        import httpx

        if isinstance(error, httpx.UnsupportedProtocol) or not isinstance(error, httpx.TransportError):
            return False
        return not (self.is_local and isinstance(error, httpx.ConnectError))

    def _unreachable(self, error: Exception) -> ModelUnavailableError:
        where = f"{self.name} at {self._dialect.base_url}"
        return ModelUnavailableError(f"{where} could not be reached ({error})", "Is it running? See: quaid doctor")

    def _said(self, response: Response) -> str:
        said = response.said()
        return said.replace(self._dialect.key, "…") if self._dialect.key else said


def is_local(url: str) -> bool:
    """Whether `url` is on this machine."""
    return host_of(url) in {"localhost", "127.0.0.1", "::1"}


def host_of(url: str) -> str:
    """The host in `url`; all of it where there is none."""
    with suppress(ValueError):
        return urlsplit(url).hostname or url
    return url


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


def _is_retried(response: Response) -> bool:
    """The service's own word goes first; `x-should-retry` is what the providers' clients heed."""
    asked = response.headers.get("x-should-retry", "")
    if asked in {"true", "false"}:
        return asked == "true"
    return response.status in _RETRIED or response.status >= 500


def _wait_s(attempt: int, response: Response | None) -> float:
    asked_s = _retry_after_s(response.headers) if response is not None else 0.0
    if asked_s > 0:
        return asked_s
    wait_s: float = min(FIRST_WAIT_S * 2**attempt, _LONGEST_WAIT_S)
    return wait_s * (1 - _JITTER * random.random())  # noqa: S311 - spreads retries, guards nothing


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """What the service asks us to wait: milliseconds, seconds or a date."""
    with suppress(ValueError):
        return float(headers.get("retry-after-ms", "")) / 1000
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return float(value)
    from email.utils import parsedate_to_datetime

    with suppress(ValueError, TypeError):
        wait_s: float = parsedate_to_datetime(value).timestamp() - time.time()
        return wait_s
    return 0.0
