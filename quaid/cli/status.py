"""`quaid status`."""

from __future__ import annotations

from datetime import UTC, datetime

from quaid.cli.invocation import Invocation
from quaid.cli.remote import describe_distance
from quaid.cli.terminal import columns, count, known, moment, paragraphs, short, styled
from quaid.errors import QuaidError
from quaid.local import hook_log
from quaid.remotes.exchange import RemoteState
from quaid.report.checks import describe_outbound
from quaid.report.status import EMPTY_DAYS, RepositoryStatus, Status, WatcherStatus, status_of
from quaid.shapes import json_object
from quaid.trust import locate_vault

MAX_PATHS = 5
_NAMES = {
    "entity": ("entity", "entities"),
    "core": ("core note", None),
    "note": ("note of your own", "notes of your own"),
}


def run_status(invocation: Invocation) -> None:
    """Show how the vault is: its repository, its index, and what needs attention, each with the next step.

    Examples:
      quaid status
      quaid status --json | jq .attention
    """
    try:
        opened = invocation.open()
    except QuaidError:
        for failure in hook_log.read_failures(locate_vault(invocation.vault)[0]):
            invocation.notify(str(failure))
        raise
    with opened as memory:
        status = status_of(memory)
    invocation.respond(render_status(status), **json_object(status))


def render_status(status: Status) -> str:
    """The status as rows, and below them what needs attention."""
    embedding = status.embedding
    ready = "" if embedding.ready else styled(" (not ready)", "yellow")
    notes = [count(number, *_NAMES.get(kind, (kind, None))) for kind, number in status.counts.items()]
    waiting = f"{count(len(status.waiting_episodes), 'conversation')} no facts were drawn from yet"
    set_aside = f"{count(status.quarantined, 'answer')} of models that could not be used in whole, in the state folder"
    taught_nothing = f"{count(status.taught_nothing, 'conversation')} taught nothing in {EMPTY_DAYS} days"
    queued = f"{count(status.queued_notes, 'line')} for the next quaid extract"
    resident_text = "not running (every call opens the memory itself)"
    if resident := status.resident:
        since = f"since {moment(resident.since)}, {resident.memory_mb:,} MB"
        resident_text = f"process {resident.pid} ({resident.what}) {since}"
    rows = known(
        ("vault", status.vault),
        ("git", _describe_git(status.repository)),
        *(("remote", _describe_remote(remote, status.sync)) for remote in status.remotes),
        ("notes", ", ".join(notes) or "none yet"),
        ("index", _describe_index(status)),
        ("embedding", f"{embedding.provider}, {embedding.model}{ready}" if embedding.provider != "none" else "off"),
        ("watcher", _describe_watcher(status.watcher)),
        ("resident", resident_text),
        ("state", status.state),
        ("outbound", describe_outbound(status.leaves, offline=status.offline)),
        ("waiting", f"{waiting}: quaid extract --pending" if status.waiting_episodes else None),
        ("in vain", taught_nothing if status.taught_nothing else None),
        ("set aside", set_aside if status.quarantined else None),
        ("queued", queued if status.queued_notes else None),
    )
    attention = []
    for item in status.attention:
        more = len(item.paths) - MAX_PATHS
        mark = styled("!", "red" if item.level == "error" else "yellow")
        what = styled(item.what, "red") if item.level == "error" else item.what
        attention += [f"{mark} {what}", *(f"    {path}" for path in item.paths[:MAX_PATHS])]
        attention += [f"    … and {more:,} more (--json has all)"] if more > 0 else []
        attention += [f"  Next: {item.next_step}"] if item.next_step else []
    return paragraphs(columns(rows), "\n".join(attention))


def _describe_git(repository: RepositoryStatus) -> str:
    if repository.problem:
        return styled(repository.problem, "red")
    branch = "detached HEAD" if repository.detached else f"branch {repository.branch}"
    commit = f"at {short(repository.head)}" if repository.head else "no commit yet"
    return f"{branch}, {commit}{f', {repository.operation} in progress' if repository.operation else ''}"


def _describe_remote(remote: RemoteState, sync: str) -> str:
    if remote.trust == "no":
        return f"{remote.name}, not confirmed: quaid remote trust {remote.name}"
    parts = [f"{remote.name} ({sync})", describe_distance(remote)]
    if remote.offline_since:
        parts.append(styled(f"offline since {moment(remote.offline_since)}", "yellow"))
    elif remote.reached:
        parts.append(f"as of {moment(remote.reached)}")
    if remote.janitor:
        parts.append(f"janitor on {remote.janitor} until {moment(remote.janitor_until)}")
    return ", ".join(parts)


def _describe_index(status: Status) -> str:
    index = status.index
    states = {"fresh": "up to date", "updated": f"up to date, {count(index.changed, 'change')} taken in just now"}
    state = states.get(index.state, styled("not up to date", "red"))
    if not index.pending or status.embedding.provider == "none":
        return state
    done = f"{state}, {index.chunks - index.pending:,} of {index.chunks:,} chunks embedded"
    if index.serving:
        done += f" by {status.embedding.model}; {index.serving} answers until all are"
    if not index.embedding:
        return done
    return f"{done}; a process does the rest{'' if index.serving else ', words are found meanwhile'}"


def _describe_watcher(watcher: WatcherStatus | None) -> str:
    if watcher is None:
        return "not running (every read checks for itself)"
    if not watcher.alive:
        return styled(f"died (process {watcher.pid})", "yellow")
    process = f"process {watcher.pid} by {watcher.mode}"
    if not watcher.last_sync:
        return process
    age_s = (datetime.now(UTC) - datetime.fromisoformat(watcher.last_sync)).total_seconds()
    return f"{process}, last sync {f'{age_s:.0f} s' if age_s < 120 else f'{age_s / 60:.0f} min'} ago"
