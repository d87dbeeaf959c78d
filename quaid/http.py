"""Asking a service over HTTP: within a deadline, for so many bytes at most, and nobody but the one that was named."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 20_000_000
RETRIES = 2
FIRST_WAIT_S = 0.5
"""Before the second attempt, doubled before the third; as the providers' own clients wait."""
_LONGEST_WAIT_S = 8.0
_JITTER = 0.25
_LOCAL_CONNECT_S = 1.0
_REMOTE_CONNECT_S = 5.0
_RETRIED = frozenset({408, 409, 429})


class UnreachableError(Exception):
    """There was no connection, or what came over it was not HTTP; its text says which."""


@dataclass(frozen=True, slots=True)
class Response:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def said(self, secret: str = "") -> str:
        """The service's own words, from {"error": "…"} or {"error": {"message": "…"}}, without `secret`, cut."""
        try:
            error = json.loads(self.body)["error"]
            words = error["message"] if isinstance(error, dict) else error
        except (ValueError, KeyError, TypeError, RecursionError):
            words = self.body[:1000].decode("utf-8", "replace")
        shown = str(words).replace(secret, "…") if secret else str(words)
        return " ".join(shown.split())[:200] or "no reason given"


class Wire:
    """The way to one service. Redirects are answers like any other: a key goes to the address that was set and to no
    other. Safe to use from several threads.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.is_local = is_local(base_url)
        self.goes_to = "" if self.is_local else host_of(base_url)
        """Whom it sends to; empty where that stays on this machine."""
        self._client: httpx.Client | None = None
        self._streams: WeakSet[Any] = WeakSet()
        self._cuts = 0
        self._lock = threading.Lock()

    def post(self, path: str, payload: Mapping[str, Any], headers: Mapping[str, str], deadline: float) -> Response:
        """The last answer to `payload` as JSON, after retries. `deadline` is a time.monotonic().

        Raises:
            TimeoutError: there was none by then.
            UnreachableError: there was no connection.
        """
        content = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json", **headers}
        for attempt in range(RETRIES + 1):
            response: Response | None = None
            try:
                response = self._send("POST", path, content, headers, deadline)
            except _PassingError:
                if attempt == RETRIES:
                    raise
            if response is not None and (attempt == RETRIES or not _is_retried(response)):
                return response
            wait_s = _wait_s(attempt, response)
            if time.monotonic() + wait_s >= deadline:
                if response is not None:
                    return response
                raise TimeoutError
            time.sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    def get(self, path: str, within_s: float) -> Response:
        """The first answer.

        Raises:
            TimeoutError, UnreachableError: as for `post`.
        """
        self._open()  # loading httpx takes longer than a server on this machine may
        return self._send("GET", path, b"", {}, time.monotonic() + within_s)

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        deadline: float,
        *,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        silence_s: float = math.inf,
        follows: bool = False,
    ) -> Iterator[httpx.Response]:
        """An answer whose body is still to be read, by `pieces`. It may pause for `silence_s`; `follows` says whether a
        redirect is followed, which is for requests that carry no key.

        Raises:
            TimeoutError, UnreachableError: as for `post`, while the body is read as well.
        """
        import httpx

        left_s = max(0.05, deadline - time.monotonic())
        connect_s = min(left_s, _LOCAL_CONNECT_S if self.is_local else _REMOTE_CONNECT_S)
        # A timeout is per read, and a service may trickle: even its headers, which nobody sees before they are whole.
        alarm = threading.Timer(left_s, self._cut)
        alarm.daemon = True
        cuts = self._cuts
        try:
            client = self._open()
            alarm.start()
            with client.stream(
                method,
                self.base_url + path,
                content=content,
                headers={**(headers or {}), "accept-encoding": "identity"},
                timeout=httpx.Timeout(min(left_s, silence_s), connect=connect_s),
                follow_redirects=follows,
                extensions={"trace": self._note_stream},
            ) as response:
                yield response
                if self._cuts != cuts:  # an answer without a length looks whole wherever it ends
                    raise httpx.ReadError("it was cut off")
        except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
            raise TimeoutError from error
        except (httpx.RequestError, httpx.InvalidURL) as error:
            if time.monotonic() >= deadline:
                raise TimeoutError from error
            kind = _PassingError if self._may_pass(error) else UnreachableError
            raise kind(str(error) or type(error).__name__) from error
        finally:
            alarm.cancel()

    def _send(self, method: str, path: str, content: bytes, headers: Mapping[str, str], deadline: float) -> Response:
        with self.stream(method, path, deadline, content=content, headers=headers) as response:
            body = b"".join(pieces(response, MAX_BYTES))
        return Response(response.status_code, response.headers, body)

    def _open(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._client is None:
                # A proxy meant for the outside cannot reach this machine's own services. And where nothing is
                # encrypted there is nothing to verify: reading the certificates takes 20 ms.
                is_plain = self.base_url.lower().startswith("http://")
                self._client = httpx.Client(trust_env=not self.is_local, verify=not is_plain)
            return self._client

    def _note_stream(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._streams.add(info["return_value"])

    def _cut(self) -> None:
        """End every connection. A read that another thread waits in ends as well; what was not late is tried again."""
        import socket

        self._cuts += 1
        for stream in list(self._streams):
            with suppress(OSError):
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def _may_pass(self, error: Exception) -> bool:
        """Whether trouble with the connection is worth another try. Nobody starts a server here within a second."""
        import httpx

        if isinstance(error, httpx.UnsupportedProtocol) or not isinstance(error, httpx.TransportError):
            return False
        return not (self.is_local and isinstance(error, httpx.ConnectError))


class _PassingError(UnreachableError):
    """One that may be gone in a moment."""


def pieces(response: httpx.Response, limit: int) -> Iterator[bytes]:
    """The body of `response` as it comes. Nothing is unpacked: a megabyte can be gigabytes.

    Raises:
        httpx.DecodingError: it has more than `limit` bytes, or is packed although nobody asked for that.
    """
    import httpx

    packed = response.headers.get("content-encoding", "identity")
    if packed.lower() != "identity":
        raise httpx.DecodingError(f"its answer is packed as {packed[:20]}, which was not asked for")
    size = 0
    for piece in response.iter_raw():
        size += len(piece)
        if size > limit:
            raise httpx.DecodingError(f"its answer has more than {limit / 1e6:.0f} MB")
        yield piece


def is_local(url: str) -> bool:
    """Whether `url` is on this machine."""
    return host_of(url) in {"localhost", "127.0.0.1", "::1"}


def host_of(url: str) -> str:
    """The host in `url`; all of it where there is none."""
    from urllib.parse import urlsplit

    with suppress(ValueError):
        return urlsplit(url).hostname or url
    return url


def complete_address(given: str, port: int) -> str:
    """An address to call, from one that may lack scheme and port or be meant for listening (0.0.0.0)."""
    from urllib.parse import urlsplit

    given = given.strip() or "localhost"
    has_scheme = "://" in given
    try:
        parts = urlsplit(given if has_scheme else f"http://{given}")
        own_port = parts.port
    except ValueError:
        return given  # whoever calls it says that it is none
    name = parts.hostname or "localhost"
    name = "localhost" if name in {"0.0.0.0", "::"} else name  # noqa: S104 - we call it, we don't bind it
    name = f"[{name}]" if ":" in name else name
    own_port = own_port or (port if parts.scheme == "http" else 443)
    return f"{parts.scheme}://{name}:{own_port}{parts.path.rstrip('/')}"


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

    with suppress(ValueError, TypeError, OverflowError):
        wait_s: float = parsedate_to_datetime(value).timestamp() - time.time()
        return wait_s
    return 0.0
