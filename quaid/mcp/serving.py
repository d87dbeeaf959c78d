"""`quaid serve`: MCP over streamable HTTP for many vaults, as an OAuth 2.1 resource server; also health and metrics.

It has no sessions: each request names its caller and its vault, and any server answers it. The tools are those for one
vault.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import re
import secrets
import signal
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import uvicorn
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import CallToolResult, InputRequiredResult
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quaid.capture.writer import WriteResult
from quaid.errors import BadInputError, QuaidError
from quaid.federation import Federation
from quaid.mcp.server import Server
from quaid.mcp.tools import MemoryTools
from quaid.mcp.workers import Workers
from quaid.resident.loopback import protocol_with_timeout
from quaid.resident.worker import Job, Reporter, Worker
from quaid.server import log
from quaid.server.limits import TooManyRequestsError
from quaid.server.tokens import METRICS, Caller
from quaid.server.vault_server import ScopeMissingError, VaultServer

T = TypeVar("T")
SCOPES = {
    "memory_store": "write",
    "memory_forget": "write",
    "memory_restore": "write",
    "memory_create_edge": "write",
    "memory_questions": "review",
    "memory_answer": "review",
}
"""The scope that a tool needs in addition to `read`."""
FOR_ALL_VAULTS = ("memory_recall", "memory_get", "memory_search")
"""The tools that query all vaults of the caller at once."""
READING = (*FOR_ALL_VAULTS, "memory_history")


class ServedCall(NamedTuple):
    """The request that a tool answers. `key` identifies a write that may be repeated; the tool needs `scope`."""

    caller: Caller
    vault: str
    key: str = ""
    request: str = ""
    scope: str = "read"


current: ContextVar[ServedCall] = ContextVar("current")
"""The request that is being answered."""


class ServedTools(Server):
    """An MCP server whose tools answer from the vault of the request or, with `of_several`, from all vaults that the
    caller may read.
    """

    def __init__(self, server: VaultServer, *, of_several: bool = False) -> None:
        self._server = server
        # Both offer what the tools need of the workers of one vault.
        workers = cast("Workers", _WorkersOfAll(server) if of_several else _ServedWorkers(server))
        names = FOR_ALL_VAULTS if of_several else (*READING, *SCOPES)
        super().__init__(workers, served=[tool for tool in MemoryTools(workers).tools() if tool.name in names])

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool, and time it. ToolError: one sentence that the model should read."""
        started, outcome = time.perf_counter(), "failed"
        known = name if name in self._offered else "unknown"
        # The scope of the tool that runs, whatever was read from the request before.
        call = current.get()._replace(scope=SCOPES.get(name, "read"))
        token = current.set(call)
        try:
            if call.vault:
                self._server.check_scope(call.caller, call.vault, call.scope)
            result = await super().call_tool(name, arguments, context)
            outcome = "done"
        except (ToolError, ScopeMissingError) as error:
            outcome = "refused"
            raise ToolError(str(error)) from None
        finally:
            current.reset(token)
            took_s = time.perf_counter() - started
            self._server.metrics.observe("quaid_tool_seconds", took_s, tool=known, outcome=outcome)
            log.write_line(
                "tool",
                request=call.request,
                client=call.caller.client,
                vault=call.vault or None,
                tool=known,
                outcome=outcome,
                ms=round(took_s * 1000),
            )
        return result


class _ServedWorkers:
    """The workers of the vault that the request names, for the tools."""

    federation: Federation | None = None

    def __init__(self, server: VaultServer) -> None:
        self._server = server
        self.root = server.config.place
        self.reading = self.slow = _Reading(server)
        self.writing = _Writing(server)

    def warm(self) -> None:
        """Nothing is loaded for the first question: the server is warm."""

    async def wait_for_extractions(self, _report: Reporter) -> bool:
        """Return True: no conversation is learned from on a server."""
        return True


class _WorkersOfAll(_ServedWorkers):
    """The workers of all vaults that the caller may read."""

    @property
    def federation(self) -> Federation:  # type: ignore[override] # it differs from request to request
        caller = current.get().caller
        workers = {name: _Reading(self._server, ServedCall(caller, name)) for name in caller.list_readable()}
        return Federation(cast("Mapping[str, Worker]", workers), is_recorded=False)


class _Reading:
    """Queries the vault of a call, by default of the request that is being answered."""

    def __init__(self, server: VaultServer, call: ServedCall | None = None) -> None:
        self._server = server
        self._call = call

    def submit(self, job: Job[T]) -> Future[T]:
        call = self._call or current.get()
        return self._server.read(call.caller, call.vault, job)

    async def run(self, job: Job[T], _report: Reporter | None = None) -> T:
        return await asyncio.wrap_future(self.submit(job))


class _Writing:
    def __init__(self, server: VaultServer) -> None:
        self._server = server

    async def run(self, job: Job[WriteResult], _report: Reporter | None = None, attempts: int = 1) -> WriteResult:
        del attempts  # the server repeats it itself
        call = current.get()
        return await self._server.write(call.caller, call.vault, call.key, job, call.scope)


METADATA = "/.well-known/oauth-protected-resource"
MAX_PUSH_BYTES = 2**20
MAX_KEY = 200
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_REQUEST_ID = re.compile(r"[\w.:@/+=-]{1,100}")
_STATUSES = {
    "bad_input": 400, "insufficient_scope": 403, "vault_unknown": 404, "too_many_requests": 429,
    "database_unreachable": 503, "keys_unreachable": 503,
}  # fmt: skip
"""By the code of an error; any other is a 500."""
_ADDRESS_KEYS = (
    "clone_url",
    "ssh_url",
    "git_url",
    "html_url",
    "git_ssh_url",
    "git_http_url",
    "ssh_url_to_repo",
    "url",
)


class _RefusedError(Exception):
    """A request that does not reach the tools; `response` says why."""

    def __init__(self, status: int, code: str, sentence: str, authenticate: str = "") -> None:
        super().__init__()
        headers = {"www-authenticate": authenticate} if authenticate else None
        self.response = JSONResponse({"error": code, "error_description": sentence}, status, headers)


class _Routes:
    """The endpoints of a server. It is started and closed with the application."""

    def __init__(self, server: VaultServer) -> None:
        self._server = server
        self._origin = "/".join(server.config.address.split("/")[:3])
        self._metadata = f"{self._origin}{METADATA}"
        # The origin is checked in `call_tool`, and no page of a browser has a token.
        self._one_vault, self._all_vaults = (
            ServedTools(server, of_several=several).streamable_http_app(
                streamable_http_path="/mcp",
                stateless_http=True,
                json_response=True,
                max_request_body_size=server.config.max_body_bytes,
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            for several in (False, True)
        )

    def make_app(self) -> Starlette:
        config = self._server.config
        # Who issues tokens for this resource (RFC 9728).
        metadata = JSONResponse({
            "resource": config.address,
            "authorization_servers": [each.issuer for each in config.issuers],
            "bearer_methods_supported": ["header"],
            "resource_name": "Quaid",
        })  # fmt: skip
        routes = [
            Route("/healthz", PlainTextResponse("ok\n"), methods=["GET"]),
            Route("/readyz", self.show_readiness),
            Route("/metrics", self.show_metrics),
            Route("/hooks/push", self.receive_push, methods=["POST"]),
            Route(METADATA, metadata, methods=["GET"]),
            Route(METADATA + "/{rest:path}", metadata, methods=["GET"]),
            # No streams (GET): a server without sessions has nothing to send, and they would outlive their token.
            Route("/v/{vault}/mcp", partial(self.call_tool, self._one_vault), methods=["POST"]),
            Route("/mcp", partial(self.call_tool, self._all_vaults), methods=["POST"]),
        ]

        @asynccontextmanager
        async def run(_app: Starlette) -> AsyncIterator[None]:
            await asyncio.to_thread(self._server.start)
            one, every = self._one_vault, self._all_vaults
            try:
                async with one.router.lifespan_context(one), every.router.lifespan_context(every):
                    yield
            finally:
                await asyncio.to_thread(self._server.close)

        handlers = dict.fromkeys((QuaidError, _RefusedError), self.explain)
        return Starlette(routes=routes, lifespan=run, exception_handlers=handlers)

    async def show_readiness(self, _request: Request) -> Response:
        is_ready = await asyncio.to_thread(self._server.is_ready)
        return PlainTextResponse("ready\n" if is_ready else "not ready\n", 200 if is_ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Show the metrics to a caller with a token for them."""
        if not (await self._identify(request)).grants.get(METRICS):
            raise self._unauthorised()
        gauges = await asyncio.to_thread(self._server.gauges)
        return PlainTextResponse(self._server.metrics.render(gauges), media_type="text/plain; version=0.0.4")

    async def receive_push(self, request: Request) -> Response:
        """Queue the vaults of a repository that was pushed to. The answer does not say whether there are any."""
        secret, headers = self._server.config.webhook_secret.encode(), request.headers
        body = await _read_body(request, MAX_PUSH_BYTES)
        # As GitHub, Gitea and Forgejo sign, or GitLab.
        signed = headers.get("x-hub-signature-256", "").removeprefix("sha256=") or headers.get("x-gitea-signature", "")
        expected = hmac.new(secret, body, hashlib.sha256).hexdigest().encode() if signed else secret
        given = signed or headers.get("x-gitlab-token", "")
        if not secret or not hmac.compare_digest(given.encode(), expected):
            raise _RefusedError(401, "invalid_signature", "The message is not signed with the secret of this server.")
        message = _read_json(body)
        parts = [message.get(key) for key in ("repository", "project")] if isinstance(message, dict) else []
        values = [part.get(key) for part in parts if isinstance(part, dict) for key in _ADDRESS_KEYS]
        found = {each.removesuffix(".git") for each in values if isinstance(each, str) and each}
        addresses = sorted({*found, *(f"{each}.git" for each in found)})
        await asyncio.to_thread(self._server.update_pushed, addresses)
        return JSONResponse({"outcome": "heard"}, 202)

    async def explain(self, _request: Request, error: Exception) -> Response:
        """Return why a request is refused."""
        if isinstance(error, _RefusedError):
            return error.response
        code = getattr(error, "code", "error")
        response = _RefusedError(_STATUSES.get(code, 500), code, str(error)).response
        if isinstance(error, TooManyRequestsError):
            response.headers["retry-after"] = str(max(1, round(error.wait_s)))
        if isinstance(error, ScopeMissingError):
            response.headers["www-authenticate"] = (
                f'Bearer error="{error.code}", scope="{error.scope}", resource_metadata="{self._metadata}"'
            )
        return response

    async def call_tool(self, tools: ASGIApp, request: Request) -> ASGIApp:
        """Return the answer of the tools to a request, if its caller may use them."""
        server, vault = self._server, str(request.path_params.get("vault", ""))  # empty for all readable vaults
        origin = request.headers.get("origin")
        if origin and origin.rstrip("/") != self._origin:
            raise _RefusedError(403, "foreign_origin", "Pages of other addresses are not answered.")
        caller = await self._identify(request)
        request.scope["state"]["client"] = caller.client
        server.limit.take(f"{caller.client}\0{caller.owner}")
        if vault or not caller.list_readable():
            server.check_scope(caller, vault, "read")
        body = await _read_body(request, server.config.max_body_bytes)
        message = _read_json(body) if body else None
        if vault:
            params = message.get("params") if isinstance(message, dict) else None
            tool = params.get("name") if isinstance(params, dict) else None
            # The tool checks its own scope again.
            server.check_scope(caller, vault, SCOPES.get(tool, "read") if isinstance(tool, str) else "read")
        key = request.headers.get("idempotency-key", "")[:MAX_KEY]
        call = ServedCall(caller, vault, key, request.scope["state"].get("request", ""))
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            async def receive_again() -> Message:
                return unread.pop() if unread else await receive()

            token = current.set(call)
            try:
                await tools({**scope, "path": "/mcp", "raw_path": b"/mcp"}, receive_again, send)
            finally:
                current.reset(token)

        return answer

    async def _identify(self, request: Request) -> Caller:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        address = request.client.host if request.client else ""
        caller = await self._server.identify(token.strip() if scheme.lower() == "bearer" else "", address)
        if caller is None:
            raise self._unauthorised()
        return caller

    def _unauthorised(self) -> _RefusedError:
        authenticate = f'Bearer error="invalid_token", resource_metadata="{self._metadata}"'
        return _RefusedError(401, "invalid_token", "A valid token is needed.", authenticate)


class _Watched:
    """Gives each request an id, counts and times it, and logs it."""

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
                client, took_ms = state.get("client"), round(took_s * 1000)
                fields = {"route": route, "method": scope["method"], "status": status, "ms": took_ms}
                log.write_line("request", request=request, client=client, **fields)


def _read_json(body: bytes) -> Any:
    """Parse a body. BadInputError: it is not JSON, or has a text that no database and no file accepts."""
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


async def _read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request. _RefusedError: it is longer than `limit`, or its sender went away."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > limit:
                raise _RefusedError(413, "too_large", "The request is too large.")
    except ClientDisconnect:
        raise _RefusedError(400, "bad_input", "The request was not sent to its end.") from None
    return bytes(body)


def make_app(server: VaultServer) -> ASGIApp:
    """Return the ASGI application."""
    return _Watched(server, _Routes(server).make_app())


def serve(server: VaultServer) -> None:
    """Serve until a signal comes; then accept no more requests, answer the current ones, and return."""
    config = server.config
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises it once more in the end
    log.write_line("started", server=config.identity, port=config.port)
    app = make_app(server)
    logging.basicConfig(handlers=[log.ContentlessHandler()], level=logging.WARNING, force=True)
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
