"""`quaid serve`: MCP over streamable HTTP for many vaults, as an OAuth 2.1 resource server; beside it news of pushes,
health, figures.

It keeps no session: each request says who asks and of which vault, and any server answers it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quaid.errors import BadInputError, QuaidError
from quaid.mcp.served import SCOPES, ServedCall, ServedTools, current
from quaid.server import log
from quaid.server.catalogue import VaultUnknownError
from quaid.server.database import DatabaseUnreachableError
from quaid.server.limits import TooManyRequestsError
from quaid.server.oauth import KeysUnreachableError
from quaid.server.tokens import METRICS, Caller
from quaid.server.vault_server import ScopeMissingError, VaultServer

METADATA = "/.well-known/oauth-protected-resource"
MAX_PUSH_BYTES = 2**20
MAX_KEY = 200
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_STATUSES = {
    BadInputError: 400, ScopeMissingError: 403, VaultUnknownError: 404, TooManyRequestsError: 429,
    DatabaseUnreachableError: 503, KeysUnreachableError: 503,
}  # fmt: skip
_REQUEST_ID = re.compile(r"[\w.:@/+=-]{1,100}")


def make_app(server: VaultServer) -> ASGIApp:
    """The ASGI application. It starts `server` and closes it at the end."""
    # A token, which no page of a browser has, stands before everything; `_Door` looks at the origin.
    of_one, of_all = (
        ServedTools(server, of_several=several).streamable_http_app(
            streamable_http_path="/mcp",
            stateless_http=True,
            json_response=True,
            max_request_body_size=server.config.max_body_bytes,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        for several in (False, True)
    )

    @asynccontextmanager
    async def live(_app: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(server.start)
        try:
            async with of_one.router.lifespan_context(of_one), of_all.router.lifespan_context(of_all):
                yield
        finally:
            await asyncio.to_thread(server.close)

    operations = _Operations(server)
    # Who issues tokens for this resource (RFC 9728).
    metadata = JSONResponse({
        "resource": server.config.address,
        "authorization_servers": [each.issuer for each in server.config.issuers],
        "bearer_methods_supported": ["header"],
        "resource_name": "Quaid",
    })  # fmt: skip
    routes = [
        Route("/healthz", PlainTextResponse("ok\n"), methods=["GET"]),
        Route("/readyz", operations.show_readiness),
        Route("/metrics", operations.show_metrics),
        Route("/hooks/push", operations.hear_push, methods=["POST"]),
        Route(METADATA, metadata, methods=["GET"]),
        Route(METADATA + "/{rest:path}", metadata, methods=["GET"]),
        # No streams (GET): a server without sessions has nothing to tell, and they would outlive their token.
        Route("/v/{vault}/mcp", _Door(server, of_one), methods=["POST"]),
        Route("/mcp", _Door(server, of_all), methods=["POST"]),
    ]
    handlers = dict.fromkeys((QuaidError, _RefusedError), operations.explain)
    return _Watched(server, Starlette(routes=routes, lifespan=live, exception_handlers=handlers))


class _Operations:
    """What is asked of a server beside its vaults."""

    def __init__(self, server: VaultServer) -> None:
        self._server = server

    async def show_readiness(self, _request: Request) -> Response:
        """Say if a request would be answered."""
        is_ready = await asyncio.to_thread(self._server.is_ready)
        return PlainTextResponse("ready\n" if is_ready else "not ready\n", 200 if is_ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Show the figures to who has a token for them."""
        server = self._server
        caller = await _identify(server, request.scope)
        if caller is None or not caller.grants.get(METRICS):
            return _unauthorised(server)
        gauges = await asyncio.to_thread(server.gauges)
        return PlainTextResponse(server.metrics.render(gauges), media_type="text/plain; version=0.0.4")

    async def hear_push(self, request: Request) -> Response:
        """Have the vaults of a repository brought up to date. The answer does not say if there are any."""
        secret = self._server.config.webhook_secret
        body = await _read_body(request.receive, MAX_PUSH_BYTES)
        if not secret or not _is_signed(request, body, secret):
            return _refusal(401, "invalid_signature", "The message is not signed with the secret of this server.")
        message = _read_json(body)
        await asyncio.to_thread(self._server.hear_of_push, sorted(_list_addresses(message)))
        return JSONResponse({"outcome": "heard"}, 202)

    async def explain(self, _request: Request, error: Exception) -> Response:
        """Say why a request is refused, whichever route it took."""
        if isinstance(error, _RefusedError):
            return error.response
        status = next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)
        response = _refusal(status, getattr(error, "code", "error"), str(error))
        if isinstance(error, TooManyRequestsError):
            response.headers["retry-after"] = str(max(1, round(error.wait_s)))
        if isinstance(error, ScopeMissingError):
            response.headers["www-authenticate"] = (
                f'Bearer error="{error.code}", scope="{error.scope}", resource_metadata="{_metadata(self._server)}"'
            )
        return response


class _Door:
    """Lets through to the tools who may use them."""

    def __init__(self, server: VaultServer, inner: ASGIApp) -> None:
        self._server = server
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server, vault = self._server, str(scope["path_params"].get("vault", ""))  # none stands for all one may read
        origin = Headers(scope=scope).get("origin")
        if origin and origin.rstrip("/") != _origin_of(server.config.address):
            raise _RefusedError(_refusal(403, "foreign_origin", "Pages of other addresses are not answered."))
        caller = await _identify(server, scope)
        if caller is None:
            raise _RefusedError(_unauthorised(server))
        scope["state"]["client"] = caller.client
        server.limit.take(f"{caller.client}\0{caller.owner}")
        if vault or not caller.list_readable():
            server.check_scope(caller, vault, "read")
        body = await _read_body(receive, server.config.max_body_bytes)
        message = _read_json(body) if body else None
        if vault:
            server.check_scope(caller, vault, _scope_of(message))
        key = Headers(scope=scope).get("idempotency-key", "")[:MAX_KEY]
        token = current.set(ServedCall(caller, vault, key, scope["state"].get("request", "")))
        try:
            await self._inner({**scope, "path": "/mcp", "raw_path": b"/mcp"}, _replay(body, receive), send)
        finally:
            current.reset(token)


class _RefusedError(Exception):
    """A request that does not come as far as the tools; `response` says why."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


class _Watched:
    """Gives each request an id, counts and times it, and writes its line of the log."""

    def __init__(self, server: VaultServer, app: ASGIApp) -> None:
        self._server = server
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        state = scope["state"] = {**scope.get("state", {}), "request": request}
        started, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request.encode())]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            took_s = time.perf_counter() - started
            self._server.metrics.count("quaid_requests_total", route=route, status=str(status))
            self._server.metrics.observe("quaid_request_seconds", took_s, route=route)
            if route not in {"/healthz", "/readyz", "/metrics"}:
                log.write_line(
                    "request", request=request, client=state.get("client"), route=route, method=scope["method"],
                    status=status, ms=round(took_s * 1000),
                )  # fmt: skip


async def _identify(server: VaultServer, scope: Scope) -> Caller | None:
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    address = scope["client"][0] if scope.get("client") else ""
    return await server.identify(token.strip() if scheme.lower() == "bearer" else "", address)


def _read_json(body: bytes) -> Any:
    """Parse a body. Raises BadInputError: it is not JSON, or has a text that no database and no file takes."""
    try:
        text = body.decode()
        message = json.loads(text)
        json.dumps(message, ensure_ascii=False).encode()  # raises for half of a surrogate pair
        is_sound = not _NUL.search(text)
    except (ValueError, RecursionError):
        is_sound = False
    if not is_sound:
        raise BadInputError("The message is not JSON of UTF-8 text without NUL characters.")
    return message


def _scope_of(message: Any) -> str:
    """Return the scope that a request takes; the tool checks its own again."""
    named = message.get("params") if isinstance(message, dict) else None
    tool = named.get("name") if isinstance(named, dict) else None
    return SCOPES.get(tool, "read") if isinstance(tool, str) else "read"


def _is_signed(request: Request, body: bytes, secret: str) -> bool:
    """Return whether a message of GitHub, Gitea, Forgejo or GitLab is from one who has the secret."""
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = request.headers
    signed = headers.get("x-hub-signature-256", "").removeprefix("sha256=") or headers.get("x-gitea-signature", "")
    if signed:
        return hmac.compare_digest(signed.encode(), expected.encode())
    return hmac.compare_digest(headers.get("x-gitlab-token", "").encode(), secret.encode())


def _list_addresses(message: Any) -> set[str]:
    """The addresses of the repository that a message is about, in all forms that it gives."""
    parts = [message.get(key) for key in ("repository", "project")] if isinstance(message, dict) else []
    keys = ("clone_url", "ssh_url", "git_url", "html_url", "git_ssh_url", "git_http_url", "ssh_url_to_repo", "url")
    named = [part.get(key) for part in parts if isinstance(part, dict) for key in keys]
    found = {each for each in named if isinstance(each, str) and each}
    return found | {each.removesuffix(".git") for each in found} | {f"{each}.git" for each in found}


async def _read_body(receive: Receive, limit: int) -> bytes:
    """The body of a request. Raises _RefusedError: it is longer than `limit`, or its sender went away."""
    parts: list[bytes] = []
    size, has_more = 0, True
    while has_more:
        message = await receive()
        if message["type"] != "http.request":
            raise _RefusedError(_refusal(400, "bad_input", "The request was not sent to its end."))
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        has_more = message.get("more_body", False)
        if size > limit:
            raise _RefusedError(_refusal(413, "too_large", "The request is too large."))
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """What receives a body that was read already, and then what comes after it."""
    is_read = False

    async def again() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _origin_of(address: str) -> str:
    return "/".join(address.split("/")[:3])


def _unauthorised(server: VaultServer) -> Response:
    response = _refusal(401, "invalid_token", "A valid token is needed.")
    response.headers["www-authenticate"] = f'Bearer error="invalid_token", resource_metadata="{_metadata(server)}"'
    return response


def _metadata(server: VaultServer) -> str:
    return f"{_origin_of(server.config.address)}{METADATA}"


def _refusal(status: int, code: str, sentence: str) -> Response:
    return JSONResponse({"error": code, "error_description": sentence}, status)


def serve(server: VaultServer) -> None:
    """Serve until a signal comes; then take no more requests, end those that are being answered, and return."""
    import uvicorn

    from quaid.resident.loopback import protocol_with_timeout

    config = server.config
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn, which has served all it had to, raises it once more
    log.write_line("started", server=config.identity, port=config.port)
    app = make_app(server)
    log.silence_libraries()
    uvicorn.run(
        app,
        host=config.host,
        port=config.port,
        http=protocol_with_timeout(),
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        forwarded_allow_ips=config.proxies,
        timeout_graceful_shutdown=round(config.stop_s),
    )
    log.write_line("stopped", server=config.identity)
