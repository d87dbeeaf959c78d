"""The application of `quaid serve` over a real PostgreSQL, asked without a socket: one request from bytes.

The first line is the method and the path, then come headers, an empty line and the body. `@token` stands for a token
that may read the vault `one`, `@forged` for one that nobody gave, `@signature` for the right signature.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import hashlib
import hmac
import json
import logging
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

from served_vaults import SECRET, GitHost, Postgres, fact

_PREFIX = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": "made-up"}).encode()).rstrip(b"=").decode()
FORGED = f"{_PREFIX}.{_PREFIX}.AAAA"


class App:
    """The application, its lifespan kept in a thread, and a token that it knows."""

    def __init__(self) -> None:
        from quaid.mcp.serving import make_app
        from quaid.server import log
        from quaid.server.configuration import load_config
        from quaid.server.tokens import parse_typed_grants
        from quaid.server.vault_server import VaultServer

        folder = Path(tempfile.mkdtemp(prefix="q-fz-"))
        logging.basicConfig(handlers=[log.ContentlessHandler()], level=logging.WARNING, force=True)
        postgres = Postgres(folder / "pg")
        host = GitHost(folder / "git")
        config = folder / "server.toml"
        told = {
            "database": postgres.make_database("fuzz"), "address": "http://127.0.0.1:1", "folder": str(folder / "data"),
            "name": "fuzz", "webhook_secret": SECRET, "poll_s": 3600.0, "rate": 1e9, "burst": 1_000_000_000,
        }  # fmt: skip
        config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items()))
        self.server = VaultServer(load_config(config))
        self.app = make_app(self.server)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._is_up = threading.Event()
        asyncio.run_coroutine_threadsafe(self._live(), self.loop)
        assert self._is_up.wait(120)
        self.server.catalogue.add("one", host.make("one", fact("oat-milk", "Maya takes oat milk.")))
        self.token = self.server.tokens.add("fuzz", parse_typed_grants(["one:read"]))
        self._folder, self._parts = folder, (self.server, host, postgres)
        atexit.register(self.close)

    def close(self) -> None:
        """End the server, its database and its threads."""
        atexit.unregister(self.close)
        for part in self._parts:
            part.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _live(self) -> None:
        async def receive() -> dict[str, Any]:
            if not self._is_up.is_set():
                return {"type": "lifespan.startup"}
            return await self._messages.get()

        async def answer(message: Any) -> None:
            assert message["type"] == "lifespan.startup.complete", message
            self._is_up.set()

        await self.app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, answer)

    async def ask(self, method: str, path: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> tuple[int, bytes]:
        """Answer one request; its status and body."""
        status, parts, is_read, has_begun = 0, [], False, asyncio.Event()

        async def receive() -> dict[str, Any]:
            nonlocal is_read
            if is_read:  # a stream of events would never end
                await has_begun.wait()
                return {"type": "http.disconnect"}
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def answer(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            has_begun.set()
            parts.append(message.get("body", b""))

        name, _, query = path.partition(b"?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": _decode(name), "raw_path": name, "root_path": "", "query_string": query, "headers": headers, "client": ("192.0.2.1", 1),
            "server": ("127.0.0.1", 1), "state": {},
        }  # fmt: skip
        await self.app(scope, receive, answer)
        return status, b"".join(parts)


def _decode(path: bytes) -> str:
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path).decode("utf-8", "replace")


@cache
def start_app() -> App:
    """Start the application once in this process."""
    return App()


def send(data: bytes) -> tuple[int, bytes]:
    """Send the request that `data` describes; the status and the body of the answer."""
    app = start_app()
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, path = first.partition(b" ")
    signature = f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}"
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if colon:
            value = value.strip().replace(b"@token", app.token.encode()).replace(b"@forged", FORGED.encode())
            headers.append((name.strip().lower(), value.replace(b"@signature", signature.encode())))
    asked = app.ask(method.decode("latin-1") or "GET", path or b"/", headers, body)
    return asyncio.run_coroutine_threadsafe(asked, app.loop).result(60)
