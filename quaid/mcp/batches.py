"""Batches of JSON-RPC, which the revision 2025-03-26 of the protocol has and the SDK no longer reads.

The server gets each message of a batch alone, and the client all answers as one array.
"""

import json
from collections.abc import AsyncIterator
from io import TextIOWrapper
from typing import Any

import anyio
import httpx
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REVISION = "2025-03-26"
"""Of a client over HTTP, which it states with each request; later ones have no batches."""
Batch = list[dict[str, Any]]


def read_batch(text: str | bytes) -> Batch | None:
    """Return the messages of a batch; None where it is none: the server refuses what is no message either."""
    if text.lstrip()[:1] not in {"[", b"["}:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if found and all(isinstance(message, dict) for message in found) else None


class BatchStreams:
    """The streams of a client: iterated, the lines that it sends, a message each; written, what the server answers."""

    def __init__(self, read: TextIOWrapper, write: TextIOWrapper) -> None:
        self._read, self._write = anyio.wrap_file(read), anyio.wrap_file(write)
        self._waiting: list[tuple[set[str], Batch]] = []
        """For each batch the ids that have no answer yet, and the answers."""

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._read:
            batch = read_batch(line)
            ids = {json.dumps(message["id"]) for message in batch or () if "id" in message and "method" in message}
            if ids:
                self._waiting.append((ids, []))
            for message in batch or ():
                yield json.dumps(message)
            if batch is None:
                yield line

    async def write(self, text: str) -> None:
        message = json.loads(text) if self._waiting else {}
        answered = "method" not in message and json.dumps(message.get("id"))
        for ids, answers in self._waiting:
            if answered in ids:
                ids.remove(str(answered))
                answers.append(message)
                if not ids:
                    self._waiting.remove((ids, answers))
                    await self._write.write(json.dumps(answers) + "\n")
                return
        await self._write.write(text)

    async def flush(self) -> None:
        await self._write.flush()


class BatchRequests:
    """An ASGI application in front of that of the server."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app, self._max_body = app, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        is_old = headers.get("mcp-protocol-version", REVISION) == REVISION
        length = headers.get("content-length", "")
        if scope.get("method") != "POST" or not is_old or not length.isdigit() or int(length) > self._max_body:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        bodies = [await request.body()]

        async def replay() -> Message:
            return {"type": "http.request", "body": bodies.pop()} if bodies else await receive()

        if (batch := read_batch(bodies[0])) is None:
            await self._app(scope, replay, send)
        else:
            await (await self._answer(request, batch))(scope, receive, send)

    async def _answer(self, request: Request, batch: Batch) -> Response:
        headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        answers = []
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app)) as client:
            for message in batch:
                done = await client.post(str(request.url), content=json.dumps(message), headers=headers)
                if done.is_error:
                    return Response(done.content, done.status_code, {"content-type": done.headers["content-type"]})
                answers += _find_answers(done.text)
        return JSONResponse(answers) if answers else Response(status_code=202)


def _find_answers(text: str) -> Batch:
    """Return the answers in a response: the JSON, or the events that are no notification."""
    lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith(("{", "data:"))]
    messages = [json.loads(line) for line in lines if line.strip()]
    return [message for message in messages if "method" not in message]
