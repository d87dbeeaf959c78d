"""`quaid import` and `quaid export`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from quaid.capture.export import write_export
from quaid.capture.importer import ImportResult, phrase_counts
from quaid.capture.right_command import hint_for
from quaid.cli.change_output import warn_left
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, flag, option
from quaid.cli.terminal import clipped, count, known, lines, section, short, styled, titled
from quaid.errors import BadInputError, UsageError
from quaid.index import documents
from quaid.shapes import json_object

MAX_SHOWN = 10
_WIDTH = 100


def run_import(
    invocation: Invocation,
    path: Annotated[str | None, argument("PATH", "A file or a folder; - reads a file from stdin.")] = None,
    format_: Annotated[
        str | None,
        option(
            "FORMAT",
            "The format, when the content does not tell: quaid, mem0, basic-memory, markdown, notes.",
            "--from",
        ),
    ] = None,
    owner: Annotated[str | None, option("NAME", "The owner of the facts.")] = None,
    keep_owners: Annotated[bool, flag("Keep each user_id of mem0 as the owner.", "--keep-owners")] = False,
    project: Annotated[str | None, option("NAME", "The project the facts belong to.")] = None,
    into: Annotated[
        str | None,
        option("FOLDER", "The folder of the vault for imported notes; the default is notes/NAME."),
    ] = None,
    dry_run: Annotated[bool, flag("Show what would be written; write nothing.", "--dry-run")] = False,
) -> None:
    """Import another memory: markdown memories (MEMORY.md, daily notes), a basic-memory project, an export
    of mem0, a folder of notes such as an Obsidian vault, or what `quaid export` wrote.

    The format is recognised by the content. No model is asked. Importing again adds only what is new.

    Examples:
      quaid import ~/.openclaw/workspace --dry-run
      quaid import ~/basic-memory
      quaid import mem0.json --owner maya
      quaid import ~/Obsidian/Garden --into garden
    """
    if path is None:
        raise UsageError("What is to be imported? Give a file or a folder: quaid import ~/basic-memory")
    with invocation.open(owner=owner) as memory, invocation.progress(memory):
        try:
            imported = memory.import_from(
                sys.stdin.buffer if path == "-" else path,
                format=format_,
                project=project,
                keep_owners=keep_owners,
                into=into,
                dry_run=dry_run,
            )
        except BadInputError as error:
            hint = hint_for(Path(path).expanduser(), "import") if path != "-" and not (format_ or into) else ""
            raise BadInputError(f"{error}{hint}") from error
    invocation.respond(
        render_imported(imported),
        **json_object(imported, "source", "format", "dry_run"),
        counts={kind: imported.counts.get(kind, 0) for kind in ("facts", "entities", "edges", "notes")},
        **json_object(imported, "known", "left_out", "redacted", "clashes"),
        namesakes=[{"path": path, "other": other} for path, other in imported.namesakes],
        **json_object(imported, "examples", "commit", "left"),
    )
    remark_on_imported(invocation, imported)


def render_imported(imported: ImportResult) -> str:
    """The counts of an import, and what was left out."""
    head = f"Nothing new in {imported.source} ({imported.format})"
    if imported.counts:
        verb = "Would import" if imported.dry_run else styled("Imported", "green")
        head = f"{verb}: {phrase_counts(imported.counts)} from {imported.format}"
    repeated = f"{imported.known:,}" if imported.known else None
    examples = [(clipped(text, _WIDTH),) for text in imported.examples] if imported.dry_run else []
    reasons = sorted(imported.left_out.items(), key=lambda pair: (-pair[1], pair[0]))
    return lines(
        titled(head, known(("known already", repeated), ("commit", short(imported.commit)))),
        section("First of them", examples),
        section("Left out", [(f"{number:,}", reason) for reason, number in reasons]),
    )


def remark_on_imported(invocation: Invocation, imported: ImportResult) -> None:
    """Notify of what was redacted, left as it was or left uncommitted."""
    if imported.redacted:
        places = [f"{place} ({', '.join(secrets)})" for place, secrets in imported.redacted.items()]
        invocation.notify(f"Secrets were taken out of {_first(places)}.")
    if imported.clashes:
        many = count(len(imported.clashes), "path holds", "paths hold")
        invocation.notify(f"{many} something else already and stayed as it was: {_first(imported.clashes)}.")
    if imported.namesakes:
        pairs = [f"{path} and {other}" for path, other in imported.namesakes]
        invocation.notify(f"Of one name, so that a link to it may mean either: {_first(pairs)}.")
    warn_left(invocation, imported.left)


def _first(things: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(things) - MAX_SHOWN:,} more" if len(things) > MAX_SHOWN else ""
    return ", ".join(things[:MAX_SHOWN]) + more


def run_export(
    invocation: Invocation,
    file: Annotated[str | None, argument("FILE", "The file to write; the default, -, is stdout.")] = None,
    kind: Annotated[
        list[str] | None,
        option("KIND", "Only this kind: fact, entity, episode, core, note … or ledger; repeatable."),
    ] = None,
) -> None:
    """Write the memory as JSON lines, a note each: its text and what it says of itself, and the whole file.

    `quaid import` brings it back byte for byte. Settings, attachments and the history are not in it.

    Examples:
      quaid export memory.jsonl
      quaid export --kind fact | jq -r .text
      quaid export | quaid import - --vault ~/other
    """
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
