"""MCP over stdin and stdout, which carry the protocol and nothing else, and a process that never stays behind."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import re
import signal
import sys
import threading
import time
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.mcp.server import Surface
    from quaid.mcp.workers import Desks

HOST_EVERY_S = 1.0
"""So often is looked whether the host is still there."""
_ESCAPE = re.compile(
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""A backslash, a whole pair of surrogates, or one alone."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wire(NamedTuple):
    """The streams that the host reads and writes."""

    input: TextIOWrapper
    output: TextIOWrapper


class _Asked(TextIOWrapper):
    """Lines of JSON. Half a character, which some hosts leave when they cut a text, is replaced: a message that cannot
    be parsed has no id, and whoever sent it would wait for an answer for ever.
    """

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        line = super().readline(size)
        return _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], line) if "\\u" in line else line


def serve_stdio(root: Path, surface: Surface) -> NoReturn:
    """Serve until stdin ends, the host dies or a signal comes; then leave with 0.

    Raises:
        UsageError: there is no stdin or stdout.
    """
    # Before anything is imported that may print.
    wire = claim_wire()
    import anyio

    from quaid.mcp.server import Server
    from quaid.mcp.workers import Desks

    desks = Desks(root)
    server = Server(desks, surface)
    gc.freeze()
    gc.set_threshold(10_000)  # this one runs for days
    _leave_with_host()

    async def serve() -> None:
        leave_on_signals(desks)
        await server.serve(wire.input, wire.output)

    try:
        anyio.run(serve)
    except BaseExceptionGroup as group:
        bug = group.split(OSError)[1]  # a host that died does not read any more
        if bug is not None:
            from quaid.report.bug_report import write_report

            print(
                f"quaid: This is a bug in Quaid. The report is in {write_report(bug, ['mcp'], root)}", file=sys.stderr
            )
    leave(desks)


def claim_wire() -> Wire:
    """Take stdin and stdout for the protocol. Whatever else reads or writes them, this process, a library in C or a
    child, gets an end of file, and stderr.

    Raises:
        UsageError: there is none.
    """
    try:
        reading, writing = _above_standard(0), _above_standard(1)
    except OSError as error:
        raise UsageError("There is no stdin or stdout to serve. A host has to start it, or try: --http") from error
    wire = Wire(
        _Asked(os.fdopen(reading, "rb"), encoding="utf-8", errors="replace"),
        TextIOWrapper(os.fdopen(writing, "wb"), encoding="utf-8", errors="replace"),
    )
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # a host may have closed stderr
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    sys.stdout = sys.stderr
    return wire


def leave_on_signals(desks: Desks) -> None:
    """Leave when told to. By the event loop: a handler of signals may find a lock held by what it interrupts."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, leave, desks)


def leave(desks: Desks) -> NoReturn:
    """End the process, and every one it has started. What is under way has a moment; what is cut off is finished by the
    next writer. No thread that waits for a model or for stdin holds it up. Only for the main thread.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    desks.close()
    if claude_code := sys.modules.get("quaid.llm.claude_code"):
        claude_code.kill_all()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(0)


def _leave_with_host() -> None:
    """Another child of a host that died may hold our stdin open."""
    host = os.getppid()

    def watch() -> None:
        while os.getppid() == host:
            time.sleep(HOST_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="quaid-host", daemon=True).start()


def _above_standard(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
