"""`quaid view`."""

from __future__ import annotations

from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.options import choosing, flag, option


def run_view(
    invocation: Invocation,
    ref: Annotated[
        str | None, typer.Argument(metavar="REF", help="Begin with this memory.", show_default=False)
    ] = None,
    browser: Annotated[bool, flag("Open the browser, or only print the address.", "--browser/--no-browser")] = True,
    port: Annotated[int | None, option("N", "The port, 7438 else; 0 picks a free one.", show_default=False)] = None,
) -> None:
    """Look at the memory in your browser: ask it, read a note, see where it comes from and how it has changed.

    The page is served to this machine only, and to those who have the address that is printed. It ends with Ctrl-C, or
    after an hour without a request.

    Examples:
      quaid view
      quaid view "Maya Chen"
      quaid view --no-browser --port 0
    """
    path = "/"
    with invocation.open() as memory:
        root = memory.root
        if ref is not None:
            from quaid.web.templating import memory_path

            path = memory_path(choosing(invocation, memory, ref, memory.get).reference)
    from quaid.web.server import PORT, serve

    serve(root, PORT if port is None else port, path, with_browser=browser)
