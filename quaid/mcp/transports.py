"""The transports of the MCP server of one vault: stdin and stdout, and HTTP for programs on this machine."""

import asyncio
import gc
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

import anyio
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from quaid.errors import BadInputError
from quaid.local import state_files
from quaid.mcp.batches import BatchRequests
from quaid.mcp.server import Server, Surface
from quaid.mcp.workers import Workers
from quaid.place import state_folder
from quaid.report.bug_report import write_report
from quaid.resident import loopback
from quaid.resident.listener import Listener
from quaid.resident.loopback import HOST

PORT = 7437
PATH = "/mcp"
TOKEN_FILE = "mcp-token"  # noqa: S105 - a name, not the token
TOKEN_VARIABLE = "QUAID_MCP_TOKEN"  # noqa: S105
MIN_TOKEN = 16
MAX_BODY = 64 * 2**20
HOST_EVERY_S = 1.0
"""The interval at which it is checked that the host still runs."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve_stdio(
    root: Path,
    surface: Surface,
    streams: tuple[TextIOWrapper, TextIOWrapper],
    listener: Listener | None = None,
    vaults: Mapping[str, Path] | None = None,
) -> NoReturn:
    """Serve a client over `streams` until they or the host end, or a signal comes; then exit with 0. `vaults` are the
    vaults that can be queried, by name, if there are more than the one at `root`.
    """
    workers = Workers(root, listener, vaults)
    server = Server(workers, surface)
    gc.freeze()
    gc.set_threshold(10_000)  # a server runs for days
    # Another child of a host that died may hold our stdin open.
    host = os.getppid()

    def end_with_host() -> None:
        while os.getppid() == host:
            time.sleep(HOST_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_host, name="quaid-host", daemon=True).start()

    async def serve() -> None:
        shut_down_on_signals(workers)
        await server.serve(*streams)

    try:
        anyio.run(serve)
    except BaseExceptionGroup as group:
        bug = group.split(OSError)[1]  # a host that died does not read any more
        if bug is not None:
            report = write_report(bug, ["mcp"], root)
            print(f"quaid: This is a bug in Quaid. The report is in {report}", file=sys.stderr)
    shut_down(workers)


def serve_http(
    root: Path, surface: Surface, port: int, listener: Listener | None = None, vaults: Mapping[str, Path] | None = None
) -> NoReturn:
    """Serve until a signal comes; then exit with 0. `port` 0 picks a free one. `vaults` as for `serve_stdio`.

    Raises:
        BadInputError: the port cannot be used, or the token is not valid.
    """
    token = find_token(root)
    with closing(loopback.listen(port)) as listening:
        port = listening.getsockname()[1]
        workers = Workers(root, listener, vaults)
        config = uvicorn.Config(
            make_app(workers, surface, token, port),
            http=loopback.protocol_with_timeout(),
            ws="none",
            log_level="warning",
            timeout_graceful_shutdown=1,
        )
        print(f"Serving {root} at http://{HOST}:{port}{PATH}", file=sys.stderr)
        print(f"Its token is {token_location(root)}. Stop with Ctrl-C.", file=sys.stderr)

        async def serve() -> None:
            shut_down_on_signals(workers)
            await uvicorn.Server(config).serve([listening])

        anyio.run(serve)
    shut_down(workers)


def make_app(workers: Workers, surface: Surface, token: str, port: int) -> ASGIApp:
    """Return the ASGI application. It answers only requests with the token to this very address, and no page of
    another.
    """
    hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
    origins = [f"http://{host}" for host in hosts]
    server = Server(
        workers,
        surface,
        token_verifier=_OwnerToken(token),
        auth=AuthSettings(issuer_url=origins[0], resource_server_url=None),  # type: ignore[arg-type] # a URL as text
    )
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    app = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_request_body_size=MAX_BODY, host=HOST
    )
    return BatchRequests(app, MAX_BODY)


def find_token(root: Path) -> str:
    """Return `$QUAID_MCP_TOKEN`, or the token in the state folder, which is made if there is none.

    Raises:
        BadInputError: it is so short that it can be guessed, or cannot be stored.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if token is None:
        path = state_folder(root) / TOKEN_FILE
        try:
            if path.exists() and path.stat().st_mode & 0o077:  # others could read it
                path.unlink()
            with suppress(FileExistsError):
                new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(new, "w", encoding="ascii") as file:
                    file.write(f"{secrets.token_urlsafe(32)}\n")
            token = state_files.read(path).decode("ascii", "replace").strip()
        except OSError as error:
            raise BadInputError(f"{path} cannot be used ({error.strerror}). Set {TOKEN_VARIABLE} instead.") from error
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise BadInputError(
            f"The token is {token_location(root)} and must be {MIN_TOKEN} or more letters, digits and signs, "
            "without spaces. Make one with: openssl rand -hex 32"
        )
    return token


def token_location(root: Path) -> str:
    """Return a phrase that says where the token is: the token itself is never shown."""
    if TOKEN_VARIABLE in os.environ:
        return f"the one in ${TOKEN_VARIABLE}"
    return f"in {state_folder(root) / TOKEN_FILE}"


class _OwnerToken:
    """A token verifier that knows one token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if secrets.compare_digest(token.encode("utf-8", "replace"), self._token):
            return AccessToken(token=token, client_id="owner", scopes=[])
        return None


def shut_down_on_signals(workers: Workers) -> None:
    """Shut down on a signal, in the event loop: a signal handler may need a lock that the interrupted code holds."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, shut_down, workers)


def shut_down(workers: Workers) -> NoReturn:
    """End the process and all its children; call it from the main thread only.

    Jobs in progress have a moment, and the next writer finishes what is cut off. A thread that waits for a model or for
    stdin is not waited for.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    workers.close()
    if claude_code := sys.modules.get("quaid.llm.claude_code"):
        claude_code.kill_all()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(0)
