"""MCP over streamable HTTP, for programs on this machine only: loopback, a token, and no pages of a browser."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from quaid.errors import BadInputError
from quaid.local import state_files
from quaid.mcp.server import Server, Surface
from quaid.mcp.stdio import shut_down, shut_down_on_signals
from quaid.mcp.workers import Workers
from quaid.place import state_folder
from quaid.resident import loopback
from quaid.resident.listener import Run
from quaid.resident.loopback import HOST

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken
    from starlette.applications import Starlette

PORT = 7437
PATH = "/mcp"
TOKEN_FILE = "mcp-token"  # noqa: S105 - a name, not the token
TOKEN_VARIABLE = "QUAID_MCP_TOKEN"  # noqa: S105
MIN_TOKEN = 16
MAX_BODY = 64 * 2**20


def serve_http(
    root: Path, surface: Surface, port: int, run_call: Run | None = None, vaults: Mapping[str, Path] | None = None
) -> NoReturn:
    """Serve until told to stop; then exit with 0. `port` 0 takes any that is free. `vaults` are as for `serve_stdio`.

    Raises:
        BadInputError: the port cannot be used, or the token is not valid.
    """
    import anyio
    import uvicorn

    token = find_token(root)
    with closing(loopback.listen(port)) as listening:
        port = listening.getsockname()[1]
        workers = Workers(root, run_call, vaults)
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


def make_app(workers: Workers, surface: Surface, token: str, port: int) -> Starlette:
    """The ASGI application. It answers who has the token and asks this very address, and no page of another."""
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
    origins = [f"http://{host}" for host in hosts]
    server = Server(
        workers,
        surface,
        token_verifier=_OwnerToken(token),
        auth=AuthSettings(issuer_url=origins[0], resource_server_url=None),  # type: ignore[arg-type] # a URL as text
    )
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    return server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security, max_request_body_size=MAX_BODY, host=HOST
    )


def find_token(root: Path) -> str:
    """`$QUAID_MCP_TOKEN`, else the one in the state folder, made when there is none.

    Raises:
        BadInputError: it is so short that it can be guessed, or cannot be kept.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    path = state_folder(root) / TOKEN_FILE
    if token is None:
        try:
            token = _read_or_make_token(path)
        except OSError as error:
            raise BadInputError(f"{path} cannot be used ({error.strerror}). Set {TOKEN_VARIABLE} instead.") from error
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise BadInputError(
            f"The token is {token_location(root)} and must be {MIN_TOKEN} or more letters, digits and signs, "
            "without spaces. Make one with: openssl rand -hex 32"
        )
    return token


def token_location(root: Path) -> str:
    """A phrase that tells where the token is: the token itself is never shown."""
    if TOKEN_VARIABLE in os.environ:
        return f"the one in ${TOKEN_VARIABLE}"
    return f"in {state_folder(root) / TOKEN_FILE}"


def _read_or_make_token(path: Path) -> str:
    """The token in the file. One that others could read is replaced."""
    if path.exists() and path.stat().st_mode & 0o077:
        path.unlink()
    try:
        new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return state_files.read(path).decode("ascii", "replace").strip()
    token = secrets.token_urlsafe(32)
    with os.fdopen(new, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    return token


class _OwnerToken:
    """A token verifier that knows one token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        from mcp.server.auth.provider import AccessToken

        if secrets.compare_digest(token.encode("utf-8", "replace"), self._token):
            return AccessToken(token=token, client_id="owner", scopes=[])
        return None
