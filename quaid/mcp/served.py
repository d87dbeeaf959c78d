"""The tools over the vaults of a server: the same as over one vault, each call for the vault and the caller of its
request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult

from quaid.mcp.recall_tools import RecallTools
from quaid.mcp.server import Server
from quaid.mcp.toolbox import Tool
from quaid.mcp.write_tools import WriteTools
from quaid.resident.worker import Reporter
from quaid.server import log
from quaid.server.tokens import Caller
from quaid.server.vault_server import VaultServer

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.mcp.workers import Workers
    from quaid.memory import Memory

T = TypeVar("T")
SCOPES = {
    "memory_store": "write", "memory_forget": "write", "memory_restore": "write", "memory_create_edge": "write",
}  # fmt: skip
"""What a tool takes beside `read`."""
READING = ("memory_recall", "memory_get", "memory_search", "memory_history")


@dataclass(frozen=True, slots=True)
class ServedCall:
    """The request that a tool answers: who asks, of which vault, under which key it may be repeated, its id."""

    caller: Caller
    vault: str
    key: str = ""
    request: str = ""


current: ContextVar[ServedCall] = ContextVar("current")
"""The request that is being answered."""


class ServedTools(Server):
    """An MCP server whose tools answer from the vault that the request names."""

    def __init__(self, server: VaultServer) -> None:
        self._server = server
        # It offers what the tools ask of the workers of one vault.
        workers = cast("Workers", _ServedWorkers(server))
        tools = [*RecallTools(workers).tools(), *WriteTools(workers).tools()]
        super().__init__(workers, served=list(_select(tools)))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool, and time it. Raises ToolError: one sentence that the model should read."""
        started, outcome, call = time.perf_counter(), "failed", current.get()
        known = name if name in self._offered else "unknown"
        try:
            result = await super().call_tool(name, arguments, context)
            outcome = "done"
        except ToolError:
            outcome = "refused"
            raise
        finally:
            self._server.time_tool(known, started, outcome)
            ms = round((time.perf_counter() - started) * 1000)
            log.write_line(
                "tool", request=call.request, client=call.caller.client, vault=call.vault, tool=known,
                outcome=outcome, ms=ms,
            )  # fmt: skip
        return result


def _select(tools: list[Tool]) -> Iterator[Tool]:
    """What asks a model or needs this machine's own files is not among them."""
    return (tool for tool in tools if tool.name in SCOPES or tool.name in READING)


class _ServedWorkers:
    """What the tools know as the workers of a vault."""

    def __init__(self, server: VaultServer) -> None:
        self.root = server.config.place
        self.reading = self.slow = _Reading(server)
        self.writing = _Writing(server)

    def warm(self) -> None:
        """Nothing waits for a first question: the server is warm."""

    async def wait_for_extractions(self, _report: Reporter) -> bool:
        """Return whether no conversation is being learned from: none is, on a server."""
        return True


class _Reading:
    def __init__(self, server: VaultServer) -> None:
        self._server = server

    async def run(self, job: Callable[[Memory], T], _report: Reporter | None = None) -> T:
        call = current.get()
        return await self._server.read(call.caller, call.vault, job)


class _Writing:
    def __init__(self, server: VaultServer) -> None:
        self._server = server

    async def run(self, job: Callable[[Memory], WriteResult], _report: Reporter | None = None) -> WriteResult:
        call = current.get()
        return await self._server.write(call.caller, call.vault, call.key, job)
