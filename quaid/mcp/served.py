"""The tools over the vaults of a server: the same as for one vault, with the vault and the caller of each request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult

from quaid.federation import Federation
from quaid.mcp.server import Server
from quaid.mcp.tools import MemoryTools
from quaid.resident.worker import Job, Reporter, Worker
from quaid.server import log
from quaid.server.tokens import Caller
from quaid.server.vault_server import ScopeMissingError, VaultServer

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.mcp.workers import Workers
    from quaid.model import Recall

T = TypeVar("T")
SCOPES = {
    "memory_store": "write",
    "memory_forget": "write",
    "memory_restore": "write",
    "memory_create_edge": "write",
    "memory_questions": "review",
    "memory_answer": "review",
}
"""The scope that a tool needs in addition to `read`."""
FOR_ALL_VAULTS = ("memory_recall", "memory_get", "memory_search")
"""The tools that query all vaults of the caller at once."""
READING = (*FOR_ALL_VAULTS, "memory_history")


@dataclass(frozen=True, slots=True)
class ServedCall:
    """The request that a tool answers. `key` identifies a write that may be repeated; the tool needs `scope`."""

    caller: Caller
    vault: str
    key: str = ""
    request: str = ""
    scope: str = "read"


current: ContextVar[ServedCall] = ContextVar("current")
"""The request that is being answered."""


class ServedTools(Server):
    """An MCP server whose tools answer from the vault of the request or, with `of_several`, from all vaults that the
    caller may read.
    """

    def __init__(self, server: VaultServer, *, of_several: bool = False) -> None:
        self._server = server
        # Both offer what the tools need of the workers of one vault.
        workers = cast("Workers", _WorkersOfAll(server) if of_several else _ServedWorkers(server))
        names = FOR_ALL_VAULTS if of_several else (*READING, *SCOPES)
        super().__init__(workers, served=[tool for tool in MemoryTools(workers).tools() if tool.name in names])

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool, and time it. ToolError: one sentence that the model should read."""
        started, outcome = time.perf_counter(), "failed"
        known = name if name in self._offered else "unknown"
        # The scope of the tool that runs, whatever was read from the request before.
        call = replace(current.get(), scope=SCOPES.get(name, "read"))
        token = current.set(call)
        try:
            if call.vault:
                self._server.check_scope(call.caller, call.vault, call.scope)
            result = await super().call_tool(name, arguments, context)
            outcome = "done"
        except (ToolError, ScopeMissingError) as error:
            outcome = "refused"
            raise ToolError(str(error)) from None
        finally:
            current.reset(token)
            took_s = time.perf_counter() - started
            self._server.metrics.observe("quaid_tool_seconds", took_s, tool=known, outcome=outcome)
            log.write_line(
                "tool",
                request=call.request,
                client=call.caller.client,
                vault=call.vault or None,
                tool=known,
                outcome=outcome,
                ms=round(took_s * 1000),
            )
        return result


class _ServedWorkers:
    """The workers of the vault that the request names, for the tools."""

    federation: Federation | None = None

    def __init__(self, server: VaultServer) -> None:
        self._server = server
        self.root = server.config.place
        self.reading = self.slow = _Reading(server)
        self.writing = _Writing(server)

    def warm(self) -> None:
        """Nothing is loaded for the first question: the server is warm."""

    async def wait_for_extractions(self, _report: Reporter) -> bool:
        """Return True: no conversation is learned from on a server."""
        return True


class _WorkersOfAll(_ServedWorkers):
    """The workers of all vaults that the caller may read."""

    @property
    def federation(self) -> Federation:  # type: ignore[override] # it differs from request to request
        caller = current.get().caller
        workers = {name: _Reading(self._server, caller, name) for name in caller.list_readable()}
        return _ServedFederation(cast("Mapping[str, Worker]", workers))


class _ServedFederation(Federation):
    """The vaults of a caller, queried as one without a record of the questions."""

    def recall(self, query: str, **options: Any) -> Recall:
        return super().recall(query, **{**options, "keep": False})


class _Reading:
    """Queries a vault: that of the request, or the one it is made for."""

    def __init__(self, server: VaultServer, caller: Caller | None = None, vault: str = "") -> None:
        self._server = server
        self._caller = caller
        self._vault = vault

    def submit(self, job: Job[T]) -> Future[T]:
        if self._caller is not None:
            return self._server.read(self._caller, self._vault, job)
        call = current.get()
        return self._server.read(call.caller, call.vault, job)

    async def run(self, job: Job[T], _report: Reporter | None = None) -> T:
        return await asyncio.wrap_future(self.submit(job))


class _Writing:
    def __init__(self, server: VaultServer) -> None:
        self._server = server

    async def run(self, job: Job[WriteResult], _report: Reporter | None = None, attempts: int = 1) -> WriteResult:
        del attempts  # the server repeats it itself
        call = current.get()
        return await self._server.write(call.caller, call.vault, call.key, job, call.scope)
