"""The server of `quaid view`: on this machine only, until it is stopped or unused for an hour. An open page is use."""

import asyncio
import socket
import threading
import time
import webbrowser
from contextlib import closing, suppress
from pathlib import Path

import uvicorn
from starlette.types import Receive, Scope, Send

from quaid.place import state_folder
from quaid.resident import loopback
from quaid.web.app import make_app
from quaid.web.guard import KEYS_FILE, Keys

PORT = 7438
IDLE_S = 3600.0
"""Seconds without an open page or a request after which it ends."""


def serve(root: Path, port: int, path: str, *, with_browser: bool) -> None:
    """Serve the pages of a vault until Ctrl-C or an hour without use; begin at `path`. `port` 0 picks a free one.

    Raises:
        BadInputError: the port cannot be used.
    """
    ending = asyncio.Event()

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            ending.set()  # open pages wait for events
            await super().shutdown(sockets)

    with closing(loopback.listen(port)) as listening:
        port, keys = listening.getsockname()[1], Keys.load(state_folder(root) / KEYS_FILE)
        site, used_at, open_requests = make_app(root, keys, port, ending), time.monotonic(), 0

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal used_at, open_requests
            if scope["type"] != "http":  # the lifespan, which is as long as the server's
                await site(scope, receive, send)
                return
            open_requests += 1  # that for events is open as long as its page
            try:
                await site(scope, receive, send)
            finally:
                open_requests -= 1
                used_at = time.monotonic()

        server = Server(
            uvicorn.Config(
                app,
                http=loopback.protocol_with_timeout(),
                ws="none",
                log_level="critical",  # any program of this machine can cause warnings
                proxy_headers=False,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )

        async def end_unused() -> None:
            while open_requests or used_at + IDLE_S > time.monotonic():  # noqa: ASYNC110 - requests postpone it
                await asyncio.sleep(IDLE_S if open_requests else max(0.0, used_at + IDLE_S - time.monotonic()))
            server.should_exit = True

        async def run() -> None:
            unused = asyncio.create_task(end_unused())
            await server.serve([listening])
            if not unused.cancel():  # it has ended
                print("No page was open for an hour, so quaid view has ended.")

        address = f"http://{loopback.HOST}:{port}{path}?token="
        print(f"The memory is at {address}{keys.printed} until Ctrl-C.", flush=True)
        if with_browser:
            # Starting a browser may take long, or never return.
            threading.Thread(target=webbrowser.open, args=[address + keys.started], daemon=True).start()
        with suppress(KeyboardInterrupt):
            asyncio.run(run())
