"""`quaid sync`, `reindex` and `verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, count, seconds, styled
from quaid.sync.derived_index import SyncOptions, SyncReport

if TYPE_CHECKING:
    from quaid.sync.verify import Verification


def run_sync(
    ctx: typer.Context,
    accept_removals: Annotated[
        bool, typer.Option("--accept-removals", help="Yes, all those notes are really gone.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Read every file; do not trust sizes and times.")] = False,
) -> None:
    """Bring the index in step with the files and embed what is new.

    Reads do this by themselves; a sync also finishes what they leave for later.

    Examples:
      quaid sync
      quaid sync --full --json
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        report = memory.sync(SyncOptions(trust_times=not full, accept_removals=accept_removals))
    tell_report(invocation, report)


def run_reindex(ctx: typer.Context) -> None:
    """Build the index from nothing. Embeddings come from the cache, so this takes seconds.

    Examples:
      quaid reindex
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        report = memory.reindex()
    tell_report(invocation, report)


def run_verify(ctx: typer.Context) -> int:
    """Prove that the index says what the files say, by comparing it with one built from nothing.

    The manifest is a hash over all notes: two machines at one commit print the same.

    Examples:
      quaid verify
      quaid verify --json | jq -r .manifest
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        found = memory.verify()
        if memory.settings.embedding.provider == "none":  # then nothing waits for a vector
            found = replace(found, pending=0)
    shape = {
        "ok": found.ok, "manifest": found.manifest, "notes": found.notes, "pending": found.pending,
        "differences": list(found.differences),
    }  # fmt: skip
    invocation.tell(lambda: _render_verification(found), **shape)
    if not found.ok:
        invocation.say("Build the index anew with: quaid reindex")
    return 0 if found.ok else 1


def tell_report(invocation: Invocation, report: SyncReport) -> None:
    """What a sync did."""
    invocation.tell(lambda: _render_report(report), **as_shape(report))
    for sentence in report.degraded:
        invocation.say(f"quaid: {sentence}")


def as_shape(report: SyncReport) -> dict[str, object]:
    """The fields of a sync report by name."""
    return {
        "added": report.added,
        "modified": report.modified,
        "renamed": [list(pair) for pair in report.renamed],
        "removed": report.removed,
        "total": report.total,
        "embedded": report.embedded,
        "pending": report.pending,
        "rebuilt": report.rebuilt,
        "degraded": report.degraded,
        "took_s": round(report.took_s, 4),
    }


def changes(report: SyncReport) -> tuple[tuple[str, int, str], ...]:
    """The four numbers of a sync, each with its sign."""
    return (
        ("+", len(report.added), "added"),
        ("~", len(report.modified), "modified"),
        (">", len(report.renamed), "renamed"),
        ("-", len(report.removed), "removed"),
    )


def _render_report(report: SyncReport) -> str:
    width = max(len(f"{number:,}") for _, number, _ in changes(report))
    lines = [f"  {sign} {number:>{width},} {what}" for sign, number, what in changes(report)]
    details = [f"{report.embedded:,} embedded" if report.embedded else ""]
    details += [f"{report.pending:,} chunks without a vector" if report.pending else "", seconds(report.took_s)]
    head = [f"The index was built anew: {report.rebuilt}"] if report.rebuilt else []
    tail = f"{count(report.total, 'note')}, {', '.join(part for part in details if part)}"
    return "\n".join([*head, *lines, tail])


def _render_verification(found: Verification) -> str:
    verdict = styled("ok", "green") if found.ok else styled("different", "red")
    rows = [("index", verdict), ("notes", f"{found.notes:,}"), ("manifest", found.manifest)]
    if found.pending:
        rows.append(("pending", f"{found.pending:,} chunks without a vector"))
    return "\n".join([columns(rows), *(f"  {difference}" for difference in found.differences)])
