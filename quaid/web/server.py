"""The server of `quaid view`: on this machine only, until it is stopped or unused for an hour."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import webbrowser
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.resident import loopback
from quaid.web.guard import Keys

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp, Receive, Scope, Send

PORT = 7438
IDLE_S = 3600.0
"""Seconds without a request after which it ends."""


class LastUse:
    """Passes requests on to `app` and measures the time since the last one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._at = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self._at = time.monotonic()
        await self._app(scope, receive, send)

    @property
    def ago_s(self) -> float:
        """Seconds since the last request began."""
        return time.monotonic() - self._at


def serve(root: Path, port: int, path: str, *, with_browser: bool) -> None:
    """Serve the pages of a vault until Ctrl-C or an hour without a request; begin at `path`. `port` 0 picks a free one.

    Raises:
        BadInputError: the port cannot be used.
    """
    import uvicorn

    from quaid.web.app import make_app

    ending = asyncio.Event()

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            ending.set()  # open pages wait for events
            await super().shutdown(sockets)

    with closing(loopback.listen(port)) as listening:
        port, keys = listening.getsockname()[1], Keys.make()
        used = LastUse(make_app(root, keys, port, ending))
        server = Server(
            uvicorn.Config(
                used,
                http=loopback.protocol_with_timeout(),
                ws="none",
                log_level="critical",  # any program of this machine can cause warnings
                proxy_headers=False,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )

        async def run() -> None:
            unused = asyncio.create_task(_end_unused(server, used))
            await server.serve([listening])
            if not unused.cancel():  # it has ended
                print("Nobody has looked for an hour, so quaid view has ended.")

        address = f"http://{loopback.HOST}:{port}{path}?token="
        print(f"The memory is at {address}{keys.printed} until Ctrl-C.", flush=True)
        if with_browser:
            # Starting a browser may take long, or never return.
            threading.Thread(target=webbrowser.open, args=[address + keys.started], daemon=True).start()
        with suppress(KeyboardInterrupt):
            asyncio.run(run())


async def _end_unused(server: uvicorn.Server, used: LastUse) -> None:
    while (left_s := IDLE_S - used.ago_s) > 0:  # noqa: ASYNC110 - requests postpone the end without an event
        await asyncio.sleep(left_s)
    server.should_exit = True
