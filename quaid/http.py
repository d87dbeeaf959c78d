"""Requests over HTTP: within a deadline, up to a number of bytes, and to no address but the one that was set.

A body is a payload that `stream` redacts, and there is no other way to send one: nobody can forget it.

`Wire` sends to any address; `Service` is a wire to a model service, with its key and its errors as sentences.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from quaid.redaction import admit_payload

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 20_000_000
RETRIES = 2
FIRST_WAIT_S = 0.5
"""Before the second attempt, doubled before the third; as the providers' own clients wait."""
_MAX_WAIT_S = 8.0
_JITTER = 0.25
_LOCAL_CONNECT_S = 1.0
_REMOTE_CONNECT_S = 5.0
_RETRIED = frozenset({408, 409, 429})
_PROXIES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
_STREAMED = frozenset({"content", "text", "partial_json", "refusal"})
"""The properties whose texts come in pieces."""
OLLAMA_HOST_ENV = "OLLAMA_HOST"
_OLLAMA_PORT = 11434
_Payload = Mapping[str, Any] | None


class UnreachableError(Exception):
    """There was no connection, or what came over it was not HTTP; the text says which, `step` what its user can do."""

    step = "Is it running? See: quaid doctor"


class ClientError(UnreachableError):
    """No request could be made at all: a variable of the environment names a proxy or certificates that do not work."""

    step = "Correct that variable, or unset it"


class ServiceError(Exception):
    """A model service cannot be used as it is: the problem, and the next step of its user."""

    def __init__(self, problem: str, step: str) -> None:
        super().__init__(f"{problem}. {step}.")
        self.problem = problem
        self.step = step


@dataclass(frozen=True, slots=True)
class Response:
    """One response, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def message(self, secret: str = "") -> str:
        """Return the error message in {"error": "…"} or {"error": {"message": "…"}}, else the body.

        It is without `secret` and 200 characters long at most.
        """
        try:
            error = json.loads(self.body)["error"]
            text = str(error["message"] if isinstance(error, dict) else error)
        except (ValueError, KeyError, TypeError, RecursionError):
            text = self.body[:1000].decode("utf-8", "replace")
        text = text.replace(secret, "…") if secret else text
        return " ".join(text.split())[:200] or "no reason given"


class Wire:
    """A client of one address. Redirects are not followed: a key goes to the address that was set and to no other.
    Safe to use from several threads.
    """

    def __init__(self, base_url: str) -> None:
        # Azure and gateways of its kind want a query, such as ?api-version=…, behind the path of every request.
        self.base_url, mark, query = base_url.strip().partition("?")
        self._query = mark + query
        self.is_local = is_local(base_url)
        self.goes_to = "" if self.is_local else host_of(base_url)
        """The host that texts are sent to; empty where they stay on this machine."""
        self._client: httpx.Client | None = None
        self._streams: WeakSet[Any] = WeakSet()
        self._cuts = 0
        self._lock = threading.Lock()

    def post(self, path: str, payload: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> Response:
        """Send `payload` as JSON and return the last response, after retries. `deadline` is a time.monotonic().

        Raises:
            TimeoutError: no response came by then.
            UnreachableError: there was no connection.
        """
        for attempt in range(RETRIES + 1):
            response: Response | None = None
            try:
                response = _as_it_says(self._send(path, payload, headers, deadline))
            except _PassingError:
                if attempt == RETRIES:
                    raise
            if response is not None:
                # `x-should-retry` overrides the status, as in the providers' own clients.
                advice = response.headers.get("x-should-retry", "")
                is_passing = response.status in _RETRIED or response.status >= 500
                is_retried = advice == "true" if advice in {"true", "false"} else is_passing
                if attempt == RETRIES or not is_retried:
                    return response
            wait_s = _retry_after_s(response.headers) if response is not None else 0.0
            if wait_s <= 0:
                jitter = 1 - _JITTER * random.random()  # noqa: S311 - spreads retries, guards nothing
                wait_s = min(FIRST_WAIT_S * 2**attempt, _MAX_WAIT_S) * jitter
            if time.monotonic() + wait_s >= deadline:
                if response is not None:
                    return response
                raise TimeoutError
            time.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def get(self, path: str, within_s: float) -> Response:
        """Return the first response. TimeoutError, UnreachableError: as for `post`."""
        self._open()  # loading httpx takes longer than a server on this machine may
        return self._send(path, None, {}, time.monotonic() + within_s)

    @contextmanager
    def stream(
        self,
        path: str,
        deadline: float,
        *,
        payload: _Payload = None,
        headers: Mapping[str, str] | None = None,
        silence_s: float = math.inf,
        follows: bool = False,
    ) -> Iterator[httpx.Response]:
        """Send `payload` as JSON without secrets, also to services on this machine: they may pass it on. Yield the
        response, whose body is read by `pieces`. It may pause for `silence_s`; `follows` allows redirects, for requests
        without a key.

        Raises:
            TimeoutError, UnreachableError: as for `post`, while the body is read as well.
        """
        import httpx

        content, headers = b"", {"accept-encoding": "identity", **(headers or {})}
        if payload is not None:
            content = json.dumps(admit_payload(payload), ensure_ascii=False).encode("utf-8", "replace")
            headers = {"content-type": "application/json", **headers}
        left_s = max(0.05, deadline - time.monotonic())
        connect_s = min(left_s, _LOCAL_CONNECT_S if self.is_local else _REMOTE_CONNECT_S)
        # A timeout is per read, and a service may send slowly: even headers are visible only when they are complete.
        alarm = threading.Timer(left_s, self._cut)
        alarm.daemon = True
        cuts = self._cuts

        def note_stream(event: str, info: Mapping[str, Any]) -> None:
            if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
                self._streams.add(info["return_value"])

        try:
            client = self._open()
            alarm.start()
            with client.stream(
                "GET" if payload is None else "POST",
                self.base_url + path + self._query,
                content=content,
                headers=headers,
                timeout=httpx.Timeout(min(left_s, silence_s), connect=connect_s),
                follow_redirects=follows,
                extensions={"trace": note_stream},
            ) as response:
                yield response
                if self._cuts != cuts:  # a response without a length looks whole wherever it ends
                    raise httpx.ReadError("the response was cut off")
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise TimeoutError from error
        except (httpx.RequestError, httpx.InvalidURL) as error:
            if time.monotonic() >= deadline:
                raise TimeoutError from error
            # Nobody starts a server on this machine within a second.
            is_final = self.is_local and isinstance(error, httpx.ConnectError)
            is_final |= isinstance(error, httpx.UnsupportedProtocol) or not isinstance(error, httpx.TransportError)
            kind = UnreachableError if is_final else _PassingError
            proxies = _list_set(_PROXIES) if isinstance(error, httpx.ConnectError | httpx.ProxyError) else []
            through = f", through the proxy in {' or '.join(proxies)}" if proxies and not self.is_local else ""
            raise kind(f"{str(error) or type(error).__name__}{through}") from error
        finally:
            alarm.cancel()

    def _send(self, path: str, payload: _Payload, headers: Mapping[str, str], deadline: float) -> Response:
        with self.stream(path, deadline, payload=payload, headers=headers) as response:
            body = b"".join(pieces(response, MAX_BYTES))
        return Response(response.status_code, response.headers, body)

    def _open(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._client is None:
                # A proxy for the outside cannot reach this machine's own services. And where nothing is
                # encrypted there is nothing to verify: reading the certificates takes 20 ms.
                is_plain = self.base_url.lower().startswith("http://")
                try:
                    self._client = httpx.Client(trust_env=not self.is_local, verify=not is_plain)
                except Exception as error:  # its dependencies raise ImportError, OSError, ValueError and errors of ssl
                    # Which variable keeps httpx from making a client; its value may be secret.
                    is_file = isinstance(error, OSError)
                    found = _list_set(("SSL_CERT_FILE", "SSL_CERT_DIR") if is_file else _PROXIES)
                    reason = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
                    named = " or ".join(found) or "the environment"
                    raise ClientError(f"{named} cannot be used: {reason}") from error
            return self._client

    def _cut(self) -> None:
        """Close every connection. Reads of other threads end too; requests that were not late are tried again."""
        import socket

        self._cuts += 1
        for stream in list(self._streams):
            with suppress(OSError):
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


class _PassingError(UnreachableError):
    """A failure that may pass in a moment: another attempt may succeed."""


class Service(Wire):
    """A model service. `name` is the provider in the settings, `path` where it is asked; `key` comes from the
    environment variable `key_env`; `settings` are the keys to check when it refuses.
    """

    path = ""
    pull_command = ""
    """The command that downloads a missing model, where there is one."""

    def __init__(self, name: str, base_url: str, key_env: str, environ: Mapping[str, str], settings: str) -> None:
        address, mark, query = base_url.strip().partition("?")
        super().__init__(address.rstrip("/").removesuffix(self.path).rstrip("/") + mark + query)
        self.name = name
        self.where = f"{name} at {self.base_url}"
        self.key_env = key_env
        self.key = environ.get(key_env, "").strip()
        self._settings_to_check = settings

    def headers(self) -> dict[str, str]:
        """Return the headers of every request: the key as a bearer token, if there is one."""
        return {"authorization": f"Bearer {self.key}"} if self.key else {}

    def ask(self, payload: Mapping[str, Any], deadline: float) -> Response:
        """Return the response to `payload`, as `post` does.

        Raises:
            TimeoutError: as for `post`.
            ServiceError: the service could not be reached, or the key is not one.
        """
        if not (self.key.isascii() and self.key.isprintable()):
            raise ServiceError(f"{self.key_env} holds characters that no key has", "Set that variable again")
        try:
            return self.post(self.path, payload, self.headers(), deadline)
        except UnreachableError as error:
            raise ServiceError(f"{self.where} could not be reached ({error})", error.step) from error

    def refusal(self, response: Response, model: str) -> ServiceError:
        """Return what a response other than 200 means for the user of `model`."""
        status, message = response.status, response.message(self.key)
        check = f"Check {self._settings_to_check}"
        if status in {401, 403}:
            key = f"the key in {self.key_env}" if self.key_env else "a request without a key"
            problem, step = f"refused {key} ({status}: {message})", "Check that variable" if self.key_env else check
        elif status == 404:
            can_pull = self.pull_command and "not found" in message
            step = f"Fetch it with: {self.pull_command} {model}" if can_pull else check
            problem = f"has no model {model} ({message})"
        elif status == 429:
            problem, step = f"allows no more requests now ({message})", "Try again later"
        elif status >= 500:
            problem, step = f"is overloaded or broken ({status}: {message})", "Try again later"
        else:
            problem, step = f"did not accept the request ({status}: {message})", check
        return ServiceError(f"{self.where} {problem}", step)


def pieces(response: httpx.Response, limit: int) -> Iterator[bytes]:
    """Yield the body of `response` as it comes. Nothing is decompressed: a megabyte can be gigabytes.

    Raises:
        httpx.DecodingError: it has more than `limit` bytes, or is compressed although that was not requested.
    """
    import httpx

    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise httpx.DecodingError(f"the response is compressed as {encoding[:20]}, which was not requested")
    size = 0
    for piece in response.iter_raw():
        size += len(piece)
        if size > limit:
            raise httpx.DecodingError(f"the response has more than {limit / 1e6:.0f} MB")
        yield piece


def is_local(url: str) -> bool:
    """Return whether `url` is on this machine."""
    return host_of(url) in {"localhost", "127.0.0.1", "::1"}


def host_of(url: str) -> str:
    """Return the host in `url`; all of it where there is none."""
    from urllib.parse import urlsplit

    with suppress(ValueError):
        return urlsplit(url).hostname or url
    return url


def ollama_address(url: str, environ: Mapping[str, str]) -> str:
    """Return the address of an Ollama server: `url`, else `OLLAMA_HOST`, which may lack scheme and port or be for
    listening (0.0.0.0).
    """
    from urllib.parse import urlsplit

    given = (url or environ.get(OLLAMA_HOST_ENV, "")).strip() or "localhost"
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        port = parts.port or (_OLLAMA_PORT if parts.scheme == "http" else 443)
    except ValueError:
        return given  # the request says that it is not an address
    host = parts.hostname or "localhost"
    host = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - we call it, we don't bind it
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"


def read_json(body: bytes) -> Any:
    """Return the JSON in `body`; the pieces of a stream, which some gateways send in any case, are joined."""
    try:
        return json.loads(body)
    except ValueError:
        lines = (line.removeprefix(b"data:").strip() for line in body.splitlines())
        pieces = [json.loads(line) for line in lines if line.startswith(b"{")]
        if not pieces:
            raise
        return reduce(_joined, pieces)


def _joined(whole: Any, piece: Any, key: str = "") -> Any:
    """Return `whole` with the next piece of a stream: texts grow, everything else is replaced."""
    if isinstance(whole, dict) and isinstance(piece, dict):
        return {**whole, **{name: _joined(whole.get(name), piece[name], name) for name in piece}}
    if isinstance(whole, list) and isinstance(piece, list):
        return [*map(_joined, whole, piece), *whole[len(piece) :], *piece[len(whole) :]]
    is_text = key in _STREAMED and isinstance(whole, str) and isinstance(piece, str)
    return whole if piece is None else whole + piece if is_text else piece


def _as_it_says(response: Response) -> Response:
    """Return `response` with the status of the error in it: gateways send 200 before their model has answered."""
    if response.status != 200 or b'"error"' not in response.body:
        return response
    try:
        found = read_json(response.body)
        error = found.get("error") or found["choices"][0]["error"]
        code = str(error.get("code") or error.get("type")) if isinstance(error, dict) else ""
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return response
    usual = 400 if re.search("invalid|filter|policy", code) else 500
    status = int(code) if re.fullmatch("[45][0-9][0-9]", code) else usual
    return replace(response, status=status, body=json.dumps({"error": error}).encode()) if error else response


def _list_set(names: Sequence[str]) -> list[str]:
    return [name for key in names for name in (key, key.lower()) if os.environ.get(name)]


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds to wait as the service requests, in milliseconds, seconds or as a date."""
    with suppress(ValueError):
        return float(headers.get("retry-after-ms", "")) / 1000
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return float(value)
    from email.utils import parsedate_to_datetime

    with suppress(ValueError, TypeError, OverflowError):
        return float(parsedate_to_datetime(value).timestamp() - time.time())
    return 0.0
