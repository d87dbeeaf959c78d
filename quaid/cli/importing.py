"""`quaid import`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import clipped, columns, count, section, styled
from quaid.cli.write_output import warn_left
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.capture.importer import ImportResult

_MOST_SHOWN = 10
_WIDTH = 100


def run_import(
    ctx: typer.Context,
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="A file or a folder; - reads a file from stdin.")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="What it is, if that is not told by its content: quaid, mem0, basic-memory, markdown, notes.",
        ),
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Whose facts these are.")] = None,
    keep_owners: Annotated[
        bool, typer.Option("--keep-owners", help="Each memory of mem0 belongs to its user_id.")
    ] = False,
    project: Annotated[str | None, typer.Option(metavar="NAME", help="The project the facts belong to.")] = None,
    into: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where in the vault a folder of notes goes; else notes/NAME.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written; write nothing.")] = False,
) -> None:
    """Take in what another memory holds: markdown memories (MEMORY.md, daily notes), a basic-memory project, an export
    of mem0, a folder of notes such as an Obsidian vault, or what `quaid export` wrote.

    What it is is told by its content. No model is asked. Doing it again adds only what is new.

    Examples:
      quaid import ~/.openclaw/workspace --dry-run
      quaid import ~/basic-memory
      quaid import mem0.json --owner maya
      quaid import ~/Obsidian/Garden --into garden
    """
    if path is None:
        raise UsageError("What is to be imported? Give a file or a folder: quaid import ~/basic-memory")
    invocation: Invocation = ctx.obj
    with invocation.open(owner=owner) as memory, invocation.progress(memory):
        imported = memory.import_from(
            sys.stdin.buffer if path == "-" else path,
            format=format_, project=project, keep_owners=keep_owners, into=into, dry_run=dry_run,
        )  # fmt: skip
    invocation.tell(lambda: _render(imported), **_as_shape(imported))
    _warn(invocation, imported)


def _as_shape(imported: ImportResult) -> dict[str, object]:
    return {
        "source": imported.source,
        "format": imported.format,
        "dry_run": imported.dry_run,
        "counts": {kind: imported.counts.get(kind, 0) for kind in ("facts", "entities", "edges", "notes")},
        "known": imported.known,
        "left_out": imported.left_out,
        "redacted": imported.redacted,
        "clashes": imported.clashes,
        "namesakes": [{"path": path, "other": other} for path, other in imported.namesakes],
        "examples": imported.examples,
        "commit": imported.commit,
        "left": imported.left,
    }


def _render(imported: ImportResult) -> str:
    from quaid.capture.importer import phrase_counts

    if imported.counts:
        verb = "Would import" if imported.dry_run else styled("Imported", "green")
        head = f"{verb}: {phrase_counts(imported.counts)} from {imported.format}"
    else:
        head = f"Nothing new in {imported.source} ({imported.format})"
    rows = [("known already", f"{imported.known:,}")] if imported.known else []
    if imported.commit:
        rows.append(("commit", imported.commit[:10]))
    parts = [head, *(f"  {line}" for line in columns(rows).splitlines())]
    if imported.dry_run:
        parts.append(section("First of them", [(clipped(text, _WIDTH),) for text in imported.examples]))
    reasons = sorted(imported.left_out.items(), key=lambda pair: (-pair[1], pair[0]))
    parts.append(section("Left out", [(f"{number:,}", reason) for reason, number in reasons]))
    return "\n".join(filter(None, parts))


def _warn(invocation: Invocation, imported: ImportResult) -> None:
    if imported.redacted:
        places = [f"{place} ({', '.join(secrets)})" for place, secrets in imported.redacted.items()]
        invocation.say(f"Secrets were taken out of {_first(places)}.")
    if imported.clashes:
        many = count(len(imported.clashes), "path holds", "paths hold")
        invocation.say(f"{many} something else already and stayed as it was: {_first(imported.clashes)}.")
    if imported.namesakes:
        pairs = [f"{path} and {other}" for path, other in imported.namesakes]
        invocation.say(f"Of one name, so that a link to it may mean either: {_first(pairs)}.")
    if imported.left:
        warn_left(invocation, imported.left)


def _first(things: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(things) - _MOST_SHOWN:,} more" if len(things) > _MOST_SHOWN else ""
    return ", ".join(things[:_MOST_SHOWN]) + more
