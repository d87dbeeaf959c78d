"""The server behind every service that a test plays."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LoopbackServer(ThreadingHTTPServer):
    """Listens at a free port of this machine, or at `port`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        # A client that has gone between the look and `accept` would keep it waiting, and `shutdown` with it, for ever.
        self.socket.settimeout(1.0)
