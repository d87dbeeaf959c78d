"""MCP over stdin and stdout, which carry nothing but the protocol, and a process that never outlives its host."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from quaid.errors import UsageError
from quaid.text.invisible import whole_json

if TYPE_CHECKING:
    from quaid.mcp.server import Surface
    from quaid.mcp.workers import Workers
    from quaid.resident.listener import Run

HOST_EVERY_S = 1.0
"""The interval at which it is checked that the host still runs."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Streams(NamedTuple):
    """The streams that the host writes (`input`) and reads (`output`)."""

    input: TextIOWrapper
    output: TextIOWrapper


class JsonLines(TextIOWrapper):
    """Lines of JSON without half characters: a message that cannot be parsed has no id, so its sender would wait for
    the answer forever.
    """

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return whole_json(super().readline(size))


def serve_stdio(
    root: Path, surface: Surface, run_call: Run | None = None, vaults: Mapping[str, Path] | None = None
) -> NoReturn:
    """Serve until stdin ends, the host dies or a signal comes; then exit with 0. `vaults` are those that may be asked,
    by their names, where there are more than the one at `root`.

    Raises:
        UsageError: there is no stdin or stdout.
    """
    # Before anything is imported that may print.
    streams = claim_streams()
    import anyio

    from quaid.mcp.server import Server
    from quaid.mcp.workers import Workers

    def watch_host(host: int) -> None:
        while os.getppid() == host:
            time.sleep(HOST_EVERY_S)
        os.kill(os.getpid(), signal.SIGTERM)

    workers = Workers(root, run_call, vaults)
    server = Server(workers, surface)
    gc.freeze()
    gc.set_threshold(10_000)  # a server runs for days
    # Another child of a host that died may hold our stdin open.
    threading.Thread(target=watch_host, args=(os.getppid(),), name="quaid-host", daemon=True).start()

    async def serve() -> None:
        shut_down_on_signals(workers)
        await server.serve(streams.input, streams.output)

    try:
        anyio.run(serve)
    except BaseExceptionGroup as group:
        bug = group.split(OSError)[1]  # a host that died does not read any more
        if bug is not None:
            from quaid.report.bug_report import write_report

            report = write_report(bug, ["mcp"], root)
            print(f"quaid: This is a bug in Quaid. The report is in {report}", file=sys.stderr)
    shut_down(workers)


def claim_streams() -> Streams:
    """Take stdin and stdout for the protocol. Whatever else uses them (a library in C, a child) reads
    an end of file and writes to stderr.

    Raises:
        UsageError: one of them is closed.
    """
    try:
        reading, writing = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in (0, 1))
    except OSError as error:
        raise UsageError("There is no stdin or stdout to serve. A host has to start it, or try: --http") from error
    streams = Streams(
        JsonLines(os.fdopen(reading, "rb"), encoding="utf-8", errors="replace"),
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
    return streams


def shut_down_on_signals(workers: Workers) -> None:
    """Shut down on a signal, by the event loop: a signal handler may need a lock that what it interrupts holds."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, shut_down, workers)


def shut_down(workers: Workers) -> NoReturn:
    """End the process and every one that it has started; call it from the main thread only. What is under way has a
    moment, and what is cut off is finished by the next writer. A thread that waits for a model or stdin is not waited
    for.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    workers.close()
    if claude_code := sys.modules.get("quaid.llm.claude_code"):
        claude_code.kill_all()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(0)
