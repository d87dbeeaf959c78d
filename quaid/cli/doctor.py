"""`quaid status` and `quaid doctor`."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from shlex import quote
from typing import Annotated

from quaid.agents.installation import this_machine
from quaid.cli import terminal as ui
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, flag
from quaid.cli.remote import describe_distance
from quaid.errors import BadInputError, QuaidError, UsageError
from quaid.history import merge_driver
from quaid.history.repository import find_repository
from quaid.local import hook_log
from quaid.memory import Memory
from quaid.model import Finding
from quaid.remotes.exchange import RemoteState
from quaid.report.canary import check_hosts
from quaid.report.checks import describe_outbound, examine
from quaid.report.repository_size import examine_size, measure
from quaid.report.secrets import find_secrets
from quaid.report.status import EMPTY_DAYS, Status, WatcherStatus, status_of
from quaid.shapes import json_object
from quaid.trust import locate_vault

MAX_PATHS = 5
_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}
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
    with opened as memory, memory.freshness.checked_once():
        status = status_of(memory)
    invocation.respond(render_status(status), **json_object(status))


def render_status(status: Status) -> str:
    """Return the status as rows, and below them what needs attention."""
    embedding, repository = status.embedding, status.repository
    branch = "detached HEAD" if repository.detached else f"branch {repository.branch}"
    commit = f"at {ui.short(repository.head)}" if repository.head else "no commit yet"
    git = f"{branch}, {commit}{f', {repository.operation} in progress' if repository.operation else ''}"
    ready = "" if embedding.ready else ui.styled(" (not ready)", "yellow")
    notes = [ui.count(number, *_NAMES.get(kind, (kind, None))) for kind, number in status.counts.items()]
    waiting = f"{ui.count(len(status.waiting_episodes), 'conversation')} no facts were drawn from yet"
    set_aside = (
        f"{ui.count(status.quarantined, 'answer')} of models that could not be used in whole, in the state folder"
    )
    taught_nothing = f"{ui.count(status.taught_nothing, 'conversation')} taught nothing in {EMPTY_DAYS} days"
    resident = "not running (every call opens the memory itself)"
    if at := status.resident:
        resident = f"process {at.pid} ({at.what}) since {ui.moment(at.since)}, {at.memory_mb:,} MB"
    rows = ui.known(
        ("vault", status.vault),
        ("git", ui.styled(repository.problem, "red") if repository.problem else git),
        *(("remote", _describe_remote(remote, status.sync)) for remote in status.remotes),
        ("notes", ", ".join(notes) or "none yet"),
        ("index", _describe_index(status)),
        ("embedding", f"{embedding.provider}, {embedding.model}{ready}" if embedding.provider != "none" else "off"),
        ("watcher", _describe_watcher(status.watcher)),
        ("resident", resident),
        ("state", status.state),
        ("outbound", describe_outbound(status.leaves, offline=status.offline)),
        ("waiting", f"{waiting}: quaid extract --pending" if status.waiting_episodes else None),
        ("in vain", taught_nothing if status.taught_nothing else None),
        ("set aside", set_aside if status.quarantined else None),
        (
            "queued",
            f"{ui.count(status.queued_notes, 'line')} for the next quaid extract" if status.queued_notes else None,
        ),
    )
    attention = []
    for item in status.attention:
        is_error = item.level == "error"
        what = ui.styled(item.what, "red") if is_error else item.what
        attention.append(f"{ui.styled('!', 'red' if is_error else 'yellow')} {what}")
        attention += ui.first([f"    {path}" for path in item.paths], MAX_PATHS, "    … and {:,} more (--json has all)")
        attention += [f"  Next: {item.next_step}"] if item.next_step else []
    return ui.paragraphs(ui.columns(rows), "\n".join(attention))


def _describe_remote(remote: RemoteState, sync: str) -> str:
    if remote.trust == "no":
        return f"{remote.name}, not confirmed: quaid remote trust {remote.name}"
    parts = [f"{remote.name} ({sync})", describe_distance(remote)]
    if remote.offline_since:
        parts.append(ui.styled(f"offline since {ui.moment(remote.offline_since)}", "yellow"))
    elif remote.reached:
        parts.append(f"as of {ui.moment(remote.reached)}")
    if remote.janitor:
        parts.append(f"janitor on {remote.janitor} until {ui.moment(remote.janitor_until)}")
    return ", ".join(parts)


def _describe_index(status: Status) -> str:
    index = status.index
    states = {"fresh": "up to date", "updated": f"up to date, {ui.count(index.changed, 'change')} taken in just now"}
    state = states.get(index.state, ui.styled("not up to date", "red"))
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
        return ui.styled(f"died (process {watcher.pid})", "yellow")
    process = f"process {watcher.pid} by {watcher.mode}"
    if not watcher.last_sync:
        return process
    age_s = (datetime.now(UTC) - datetime.fromisoformat(watcher.last_sync)).total_seconds()
    return f"{process}, last sync {f'{age_s:.0f} s' if age_s < 120 else f'{age_s / 60:.0f} min'} ago"


def run_doctor(
    invocation: Invocation,
    model: Annotated[str | None, argument("[reranker]", "With --fetch: download this model alone.")] = None,
    fetch: Annotated[bool, flag("Download the models that are set and missing first.", "--fetch")] = False,
    hooks: Annotated[
        bool, flag("Start what is installed in other programs and check that it works.", "--hooks")
    ] = False,
    secrets: Annotated[bool, flag("Look for secrets in the whole history, and do nothing else.", "--secrets")] = False,
    repo: Annotated[bool, flag("Measure the git repository: what takes space, who maintains it.", "--repo")] = False,
) -> int:
    """Check everything Quaid needs on this machine; exit code 1 when something is broken.

    Examples:
      quaid doctor
      quaid doctor --fetch
      quaid doctor --fetch reranker
      quaid doctor --hooks
      quaid doctor --secrets
      quaid doctor --repo
      quaid doctor --json | jq '.findings[] | select(.level != "ok")'
    """
    if repo and (fetch or hooks or secrets):
        raise UsageError("--repo does nothing else. Ask for it alone.")
    root, remark = locate_vault(invocation.vault)
    if remark:
        invocation.notify(remark)
    if secrets:
        return _list_secrets(invocation)
    if repo:
        return _measure_repository(invocation)
    if fetch or model:
        from quaid.cli.init import fetch_models  # imports all that reads conversations, which `status` would wait for

        fetch_models(invocation, model)
    with suppress(QuaidError, OSError), Memory.open(root) as memory:  # why it cannot be opened is a finding
        if merge_driver.set_up(memory.root):
            invocation.notify("git has Quaid merge notes here from now on.")
    findings = list(examine(root))
    for found in check_hosts(this_machine()) if hooks else ():
        if isinstance(found, str):
            invocation.notify(found)
        else:
            findings.append(found)
    is_ok = all(finding.level != "error" for finding in findings)
    invocation.respond(render_findings(findings), ok=is_ok, vault=root, findings=findings)
    return 0 if is_ok else 1


def _list_secrets(invocation: Invocation) -> int:
    """Name where the history holds secrets, never the secrets themselves; 1 when there are some."""
    with invocation.open() as memory, invocation.progress(memory) as bar:
        secrets, objects, scanned, left_out = find_secrets(memory.root, bar.update)
    text = ui.lines(
        *(f"{one.kind}  {one.path or 'a message'}  {one.commit[:10] or 'never committed'}" for one in secrets),
        f"Looked at {objects:,} files and messages, {scanned / 1e6:.1f} MB; secrets: {len(secrets):,}",
        f"Too large to be looked at: {left_out:,}" if left_out else "",
        "Next: change each secret where it is used, then: quaid purge --text -" if secrets else "",
    )
    invocation.respond(text, secrets=secrets, objects=objects, bytes=scanned, left_out=left_out, ok=not secrets)
    return 1 if secrets else 0


def _measure_repository(invocation: Invocation) -> int:
    """Show what the repository takes, its biggest files, and what to do about it."""
    with invocation.open() as memory, invocation.progress(memory) as bar:
        repository = find_repository(memory.root)
        if repository is None:
            raise BadInputError(
                f"{memory.root} is in no git repository. Make one with: git init {quote(str(memory.root))}"
            )
        found = measure(repository, is_off=memory.settings.git.maintenance == "off", progress=bar.update)
    findings = examine_size(repository, found)
    sizes = (("today", found.today_bytes), ("older", found.past_bytes), ("commits and folders", found.other_bytes))
    files, absent = found.files, ["its old versions"] * found.partial + ["its old commits"] * found.shallow
    packs = f"{files.packed:,} in {ui.count(files.packs, 'pack')} ({ui.size(files.pack_bytes)})"
    lacks = f"This clone lacks some of {' and '.join(absent)}: the figures are of what is here."
    rows = ui.known(
        ("repository", f"{found.folder}, {ui.size(found.folder_bytes)}"),
        ("holds", ", ".join(f"{name} {ui.size(taken)}" for name, taken in sizes)),
        ("history", f"{ui.count(found.commits, 'commit')}, {ui.count(found.today_files, 'file')} today"),
        ("objects", f"{packs}, {files.loose:,} loose"),
        ("left out", lacks if absent else None),
    )
    tables = []
    for title, big in (("Biggest files today", found.biggest_today), ("Biggest older versions", found.biggest_past)):
        table = [
            (
                ui.size(file.bytes),
                f"{ui.size(file.disk_bytes)} on disk",
                ui.one_line(file.path) or f"{file.blob[:10]} (no branch has it)",
            )
            for file in big
        ]
        tables.append(ui.section(title, table, right=(0, 1)))
    text = ui.paragraphs(ui.columns(rows), *tables, render_findings(findings))
    invocation.respond(text, ok=True, **json_object(found, findings=findings))
    return 0


def render_findings(findings: Sequence[Finding]) -> str:
    """Return one line a finding, and below it the next step."""
    names = max(len(finding.name) for finding in findings)
    levels = max(len(finding.level) for finding in findings)
    rows = []
    for finding in findings:
        level = ui.styled(finding.level.ljust(levels), _COLOURS[finding.level])
        rows.append(f"{level}  {finding.name.ljust(names)}  {finding.sentence}")
        if finding.next_step:
            rows.append(f"{'':{levels}}  {'':{names}}  Next: {finding.next_step}")
    return "\n".join(rows)
