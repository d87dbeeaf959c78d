"""A socket that only programs on this machine reach, and HTTP over it that no silent client can block."""

import asyncio
import socket

from quaid.errors import BadInputError

HOST = "127.0.0.1"
REQUEST_S = 10.0
"""The time for a whole request. A client that connects and stays silent would occupy one of a few hundred connections.
"""


def listen(port: int) -> socket.socket:
    """Return a socket on loopback. BadInputError: the port cannot be used."""
    if not 0 <= port <= 65535:
        raise BadInputError(f"There is no port {port}: it must be between 0 and 65535. 0 takes any that is free.")
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        reason = error.strerror or str(error)
        raise BadInputError(f"Port {port} of {HOST} cannot be used ({reason}). Give another: --port 0") from error
    return listening


def protocol_with_timeout() -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, which waits forever for a first request, with a time limit."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class LimitedProtocol(H11Protocol):
        _alarm: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_alarm()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
                self._stop_alarm()
            elif self._alarm is None:
                self._alarm = self.loop.call_later(REQUEST_S, self.transport.abort)

        def _stop_alarm(self) -> None:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

    return LimitedProtocol
