"""A host of the MCP server: the official client, beside it in one process or over a real one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from quaid.mcp.server import Server
from quaid.mcp.workers import Workers

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"},
}}  # fmt: skip
OLD_HELLO = HELLO | {"params": HELLO["params"] | {"protocolVersion": "2025-03-26"}}
BATCH = [
    {"jsonrpc": "2.0", "id": 2, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": "three", "method": "tools/list"},
]  # fmt: skip
EVERYTHING = (
    "memory_recall", "memory_get", "memory_store", "memory_note", "memory_forget", "memory_extract",
    "memory_search", "memory_history", "memory_stats", "memory_restore", "memory_undo", "memory_create_edge",
    "docs_search", "docs_read", "docs_list", "docs_register", "project_create",
    "notes_list", "notes_read", "notes_create", "notes_edit", "notes_insert", "notes_rename", "notes_delete",
)  # fmt: skip
DEFAULT = EVERYTHING[:6]


def talk(
    root: Path,
    body: Callable[[Client], Awaitable[None]],
    surface: str = "all",
    mode: str = "auto",
    vaults: Mapping[str, Path] | None = None,
) -> None:
    """Run `body` with a client of a server in this very process, which may ask `vaults` too."""

    async def run() -> None:
        workers = Workers(root, vaults=vaults)
        try:
            async with Client(Server(workers, surface), mode=mode) as client:
                await body(client)
        finally:
            workers.close()

    anyio.run(run)


@asynccontextmanager
async def hosted(root: Path, *arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of `quaid mcp`, started as a host does it."""
    command = StdioServerParameters(
        command="quaid", args=["mcp", "--vault", str(root), *arguments], env=dict(os.environ)
    )
    async with Client(command, mode=mode) as client:
        yield client


async def call(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """What a tool answers; it must not fail."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refusal(client: Client, name: str, /, **arguments: Any) -> str:
    """Why a tool refuses: one sentence or two, without a traceback or what was given."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result
    (content,) = result.content
    assert "Traceback" not in content.text
    assert len(content.text) < 600, content.text[:200]
    return content.text
