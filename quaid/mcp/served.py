"""The tools over the vaults of a server: the same as over one vault, each call for the vault and the caller of its
request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult

from quaid.federation import Federation, Question
from quaid.mcp.recall_tools import RecallTools
from quaid.mcp.review_tools import ReviewTools
from quaid.mcp.server import Server
from quaid.mcp.write_tools import WriteTools
from quaid.resident.worker import Reporter
from quaid.server import log
from quaid.server.served_memory import ServedMemory
from quaid.server.tokens import Caller
from quaid.server.vault_server import ScopeMissingError, VaultServer

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.mcp.workers import Workers
    from quaid.memory import Memory
    from quaid.model import Recall
    from quaid.resident.worker import Worker

T = TypeVar("T")
SCOPES = {
    "memory_store": "write", "memory_forget": "write", "memory_restore": "write", "memory_create_edge": "write",
    "memory_questions": "review", "memory_answer": "review",
}  # fmt: skip
"""What a tool takes beside `read`."""
OF_ALL = ("memory_recall", "memory_get", "memory_search")
"""The tools that ask several vaults at once."""
READING = ("memory_recall", "memory_get", "memory_search", "memory_history")


@dataclass(frozen=True, slots=True)
class ServedCall:
    """The request that a tool answers: who asks, of which vault, under which key it may be repeated, its id, and the
    scope that the tool takes.
    """

    caller: Caller
    vault: str
    key: str = ""
    request: str = ""
    scope: str = "read"


current: ContextVar[ServedCall] = ContextVar("current")
"""The request that is being answered."""


class ServedTools(Server):
    """An MCP server whose tools answer from the vault that the request names, or, `of_several`, from all that
    the caller may read.
    """

    def __init__(self, server: VaultServer, *, of_several: bool = False) -> None:
        self._server = server
        # Both offer what the tools ask of the workers of one vault.
        workers = cast("Workers", _WorkersOfAll(server) if of_several else _ServedWorkers(server))
        groups = (RecallTools(workers), WriteTools(workers), ReviewTools(workers))
        names = OF_ALL if of_several else (*READING, *SCOPES)
        super().__init__(workers, served=[tool for group in groups for tool in group.tools() if tool.name in names])

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool, and time it. Raises ToolError: one sentence that the model should read."""
        started, outcome = time.perf_counter(), "failed"
        known = name if name in self._offered else "unknown"
        # By the tool that runs, whatever the door has read of the request.
        call = replace(current.get(), scope=SCOPES.get(name, "read"))
        token = current.set(call)
        try:
            if call.vault:
                self._server.check_scope(call.caller, call.vault, call.scope)
            result = await super().call_tool(name, arguments, context)
            outcome = "done"
        except ToolError:
            outcome = "refused"
            raise
        except ScopeMissingError as error:
            outcome = "refused"
            raise ToolError(str(error)) from None
        finally:
            current.reset(token)
            took_s = time.perf_counter() - started
            self._server.metrics.observe("quaid_tool_seconds", took_s, tool=known, outcome=outcome)
            log.write_line(
                "tool", request=call.request, client=call.caller.client, vault=call.vault or None, tool=known,
                outcome=outcome, ms=round(took_s * 1000),
            )  # fmt: skip
        return result


class _ServedWorkers:
    """What the tools know as the workers of a vault."""

    federation: Federation | None = None

    def __init__(self, server: VaultServer) -> None:
        self._server = server
        self.root = server.config.place
        self.reading = self.slow = _Reading(server)
        self.writing = _Writing(server)

    def warm(self) -> None:
        """Nothing waits for a first question: the server is warm."""

    async def wait_for_extractions(self, _report: Reporter) -> bool:
        """Return whether no conversation is being learned from: none is, on a server."""
        return True


class _WorkersOfAll(_ServedWorkers):
    """The same for all vaults that the caller may read."""

    @property
    def federation(self) -> Federation:  # type: ignore[override] # it differs from request to request
        return _ServedFederation(self._server, current.get().caller)


class _ServedFederation(Federation):
    """The vaults that a caller may read, asked as one; which questions they are asked is not recorded."""

    def __init__(self, server: VaultServer, caller: Caller) -> None:
        workers = {name: _Reading(server, caller, name) for name in caller.list_readable()}
        super().__init__(cast("Mapping[str, Worker]", workers))

    def recall(self, question: Question, among: Collection[str] = ()) -> Recall:
        """Return the memories of all of them, or of those in `among`, that answer, best first. Raises as ever."""
        return super().recall(question._replace(keep=False), among)


class _Reading:
    """Asks a vault: the one of the request, or the one that it is made for."""

    def __init__(self, server: VaultServer, caller: Caller | None = None, vault: str = "") -> None:
        self._server = server
        self._caller = caller
        self._vault = vault

    def submit(self, job: Callable[[Memory], T]) -> Future[T]:
        caller, vault = self._caller, self._vault
        if caller is None:
            call = current.get()
            caller, vault = call.caller, call.vault
        return self._server.read(caller, vault, cast("Callable[[ServedMemory], T]", job))

    async def run(self, job: Callable[[Memory], T], _report: Reporter | None = None) -> T:
        return await asyncio.wrap_future(self.submit(job))


class _Writing:
    def __init__(self, server: VaultServer) -> None:
        self._server = server

    async def run(self, job: Callable[[Memory], WriteResult], _report: Reporter | None = None) -> WriteResult:
        call = current.get()
        return await self._server.write(call.caller, call.vault, call.key, job, call.scope)
