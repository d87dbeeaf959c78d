"""`quaid status`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, count, styled
from quaid.report.attention import Attention
from quaid.report.status import Status, status_of

MAX_PATHS = 5
_NAMES = {
    "entity": ("entity", "entities"),
    "core": ("core note", None),
    "note": ("note of your own", "notes of your own"),
}


def run_status(ctx: typer.Context) -> None:
    """How the vault is: its repository, its index, and what needs attention, each with the next step.

    Examples:
      quaid status
      quaid status --json | jq .attention
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        status = status_of(memory)
    invocation.tell(lambda: _render_status(status), **asdict(status))


def _render_status(status: Status) -> str:
    rows = [
        ("vault", status.vault),
        ("git", _git_line(status)),
        ("notes", ", ".join(_counted(kind, number) for kind, number in status.counts.items()) or "none yet"),
        ("index", _index_line(status)),
        ("embedding", _embedding_line(status)),
        ("watcher", _watcher_line(status)),
        ("state", status.state),
        (
            "leaves",
            f"{'; '.join(status.leaves) or 'nothing'}{' (offline)' if status.offline else ''}",
        ),
    ]
    if status.waiting_episodes:
        waiting = count(len(status.waiting_episodes), "conversation")
        rows.append(("waiting", f"{waiting} no facts were drawn from yet: quaid extract --pending"))
    if status.quarantined:
        answers = count(status.quarantined, "answer")
        rows.append(("set aside", f"{answers} of models that could not be used in whole, in the state folder"))
    if status.queued_notes:
        rows.append(("queued", f"{count(status.queued_notes, 'line')} for the next quaid extract"))
    attention = "\n".join(_render_attention(item) for item in status.attention)
    return "\n\n".join(part for part in (columns(rows), attention) if part)


def _counted(kind: str, number: int) -> str:
    return count(number, *_NAMES.get(kind, (kind, None)))


def _git_line(status: Status) -> str:
    repository = status.repository
    if repository.problem:
        return styled(repository.problem, "red")
    parts = ["detached HEAD" if repository.detached else f"branch {repository.branch}"]
    parts.append(f"at {repository.head[:10]}" if repository.head else "no commit yet")
    parts += [f"{repository.operation} in progress"] if repository.operation else []
    return ", ".join(parts)


def _index_line(status: Status) -> str:
    index = status.index
    state = {"fresh": "up to date", "updated": f"up to date, {count(index.changed, 'change')} taken in just now"}
    parts = [state.get(index.state, styled("not up to date", "red"))]
    parts += (
        [f"{index.pending:,} of {index.chunks:,} chunks without a vector"]
        if index.pending and status.embedding.provider != "none"
        else []
    )
    return ", ".join(parts)


def _embedding_line(status: Status) -> str:
    embedding = status.embedding
    if embedding.provider == "none":
        return "off"
    return f"{embedding.provider}, {embedding.model}" + ("" if embedding.ready else styled(" (not ready)", "yellow"))


def _watcher_line(status: Status) -> str:
    watcher = status.watcher
    if watcher is None:
        return "not running (every read checks for itself)"
    if not watcher.alive:
        return styled(f"died (process {watcher.pid})", "yellow")
    synced = f", last sync {_age(watcher.last_sync)} ago" if watcher.last_sync else ""
    return f"process {watcher.pid} by {watcher.mode}{synced}"


def _age(iso: str) -> str:
    age_s = (datetime.now(UTC) - datetime.fromisoformat(iso)).total_seconds()
    return f"{age_s:.0f} s" if age_s < 120 else f"{age_s / 60:.0f} min"


def _render_attention(item: Attention) -> str:
    lines = [f"{styled('!', 'yellow')} {item.what}"]
    lines += [f"    {path}" for path in item.paths[:MAX_PATHS]]
    if len(item.paths) > MAX_PATHS:
        lines.append(f"    … and {len(item.paths) - MAX_PATHS:,} more (--json has all)")
    return "\n".join([*lines, *([f"  Next: {item.next_step}"] if item.next_step else [])])
