"""`quaid mcp`."""

import fcntl
import os
import sys
from enum import StrEnum
from io import TextIOWrapper
from typing import Annotated

import typer

from quaid import trust
from quaid.cli.invocation import Invocation
from quaid.cli.options import flag, option
from quaid.cli.resident import CommandListener
from quaid.cli.terminal import closed_streams
from quaid.errors import QuaidError, UsageError
from quaid.federation import name_vaults
from quaid.history import vault_guard
from quaid.text.invisible import whole_json

SERVER = "quaid mcp"


class Surface(StrEnum):
    """The tools that are offered."""

    DEFAULT = "default"
    ALL = "all"


def run_mcp(
    invocation: Invocation,
    tools: Annotated[
        Surface, typer.Option(help="The tools that most agents need, or all of them.", show_default=True)
    ] = Surface.DEFAULT,
    http: Annotated[bool, flag("Serve over HTTP on this machine instead of stdin and stdout.", "--http")] = False,
    port: Annotated[int | None, option("N", "With --http: the port; 0 picks a free one.")] = None,
) -> None:
    """Serve the memory to agents by the Model Context Protocol.

    A host such as Claude Code or Cursor starts it and speaks to it over stdin and stdout; it ends with the host.
    Several may run on one vault. With --http it listens on 127.0.0.1 and wants the token in
    mcp-token in the state folder (quaid status names it), or $QUAID_MCP_TOKEN, as a bearer token.

    With several --vault an agent may ask all of them, by name and no others; what it stores goes into the first.

    Examples:
      claude mcp add --scope user quaid -- quaid mcp
      quaid mcp --tools all --vault ~/quaid
      quaid mcp --http --port 7437
      quaid mcp --vault ~/quaid --vault ~/team
    """
    if port is not None and not http:
        raise UsageError("--port is for --http. Without it the server has no port.")
    vaults = name_vaults(invocation.vaults) if len(invocation.vaults) > 1 else {}
    for name, folder in vaults.items():
        try:
            vault_guard.check(folder)
        except QuaidError as error:  # it cannot be asked as it is
            invocation.notify(f"quaid: vault {name}: {error}")
    root, remark = trust.locate_vault(next(iter(vaults.values())) if vaults else invocation.vault)
    if remark:
        invocation.notify(remark)
    vault_guard.check(root)
    invocation.root = root
    if not http:
        if closed_streams & {0, 1}:
            raise UsageError("There is no stdin or stdout to serve. A host has to start it, or try: --http")
        streams = claim_streams()  # before anything is imported that may print
        from quaid.mcp.transports import serve_stdio

        serve_stdio(root, tools.value, streams, CommandListener(root, SERVER), vaults)
    from quaid.mcp.transports import PORT, serve_http

    serve_http(root, tools.value, PORT if port is None else port, CommandListener(root, SERVER), vaults)


class JsonLines(TextIOWrapper):
    """Lines of JSON without half characters: a message that cannot be parsed has no id, so its sender would wait for
    the answer forever.
    """

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return whole_json(super().readline(size))


def claim_streams() -> tuple[TextIOWrapper, TextIOWrapper]:
    """Return stdin and stdout, for the protocol alone. Any other user of them (a library in C, a child process) reads
    an end of file and writes to stderr.

    Raises:
        UsageError: one of them is closed.
    """
    try:
        reading, writing = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in (0, 1))
    except OSError as error:
        raise UsageError("There is no stdin or stdout to serve. A host has to start it, or try: --http") from error
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # a host may have closed stderr
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    sys.stdout = sys.stderr
    return (
        JsonLines(os.fdopen(reading, "rb"), encoding="utf-8", errors="replace"),
        TextIOWrapper(os.fdopen(writing, "wb"), encoding="utf-8", errors="replace"),
    )
