"""`quaid export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import count, styled


def run_export(
    ctx: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The file to write; the default, -, is stdout.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Only this kind: fact, entity, episode, core, note … or ledger; repeatable."),
    ] = None,
) -> None:
    """Write the memory as JSON lines, a note each: its text and what it says of itself, and the whole file.

    `quaid import` brings it back byte for byte. Settings, attachments and the history are not in it.

    Examples:
      quaid export memory.jsonl
      quaid export --kind fact | jq -r .text
      quaid export | quaid import - --vault ~/other
    """
    from quaid.capture.export import write_export
    from quaid.index import documents

    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        if documents.count(memory.whole_index()) > documents.count(memory.visible_index()):
            invocation.notify("Notes that others keep private are left out. Who asks is $QUAID_OWNER.")
        # ASCII alone: whatever reads the file line by line finds the lines that were written.
        rows = (json.dumps(row) for row in memory.export(kind or ()))
        if file is None or file == "-":
            for row in rows:
                print(row)
            return
        path = Path(file).expanduser().absolute()
        number = write_export(rows, path)
    invocation.respond(f"{styled('Exported', 'green')}: {count(number, 'note')} to {path}", path=path, notes=number)
