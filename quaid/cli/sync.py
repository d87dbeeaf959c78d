"""`quaid sync`, `reindex`, `verify`, `watch` and `conflicts`."""

import shlex
import signal
import sys
from datetime import UTC, datetime
from typing import Annotated

from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, check_one_of, flag, option
from quaid.cli.resident import CommandListener
from quaid.cli.terminal import columns, count, known, lines, seconds, styled
from quaid.errors import BadInputError, QuaidError, UsageError
from quaid.history import merges
from quaid.history.merges import Conflict
from quaid.index.references import resolve_one
from quaid.janitor.settling import settle_merges
from quaid.memory import Memory
from quaid.model import note_name
from quaid.shapes import json_object
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.watcher import read_heartbeat
from quaid.vault import files, merging
from quaid.vault.merging import Side, merge_note


def run_sync(
    invocation: Invocation,
    accept_removals: Annotated[
        bool, flag("Index the vault although many notes are gone.", "--accept-removals")
    ] = False,
    full: Annotated[bool, flag("Read every file, not only those whose size or time has changed.", "--full")] = False,
) -> None:
    """Bring the index up to date with the files and embed what is new.

    Reads do this by themselves; a sync also finishes what they leave for later.

    Examples:
      quaid sync
      quaid sync --full --json
    """
    with invocation.open() as memory, invocation.progress(memory):
        try:
            if merges.read_operation(memory.root) is None:
                joined, questions = settle_merges(memory)
                for path, gone in joined:
                    invocation.notify(f"Two machines had made a note of one thing: {gone} is in {path} now.")
                for question in questions:
                    invocation.notify(f"What two machines have stated cannot both be true: see {question}")
            else:
                for path in merges.keep_forgotten(memory.root, memory.layout):
                    invocation.notify(f"{path} stays forgotten. Another machine had changed it.")
        except QuaidError as error:
            invocation.notify(f"What a merge has left could not be settled: {error}")
        report = memory.sync(SyncOptions(trust_times=not full, accept_removals=accept_removals))
    tell_report(invocation, report)


def run_reindex(invocation: Invocation) -> None:
    """Rebuild the index from the files. Embeddings come from the cache, so this takes seconds.

    Examples:
      quaid reindex
    """
    with invocation.open() as memory, invocation.progress(memory):
        report = memory.reindex()
    tell_report(invocation, report)


def run_verify(invocation: Invocation) -> int:
    """Check that the index says what the files say, by comparing it with a new one.

    The manifest is a hash over all notes: two machines at one commit print the same.

    Examples:
      quaid verify
      quaid verify --json | jq -r .manifest
    """
    with invocation.open() as memory:
        found = memory.verify()
        if memory.settings.embedding.provider == "none":  # then nothing waits for a vector
            found = found._replace(pending=0)
    rows = known(
        ("index", styled("ok", "green") if found.ok else styled("different", "red")),
        ("notes", f"{found.notes:,}"),
        ("manifest", found.manifest),
        ("pending", f"{found.pending:,} chunks without a vector" if found.pending else None),
    )
    text = lines(columns(rows), *(f"  {difference}" for difference in found.differences))
    invocation.respond(text, **json_object(found, "ok", "manifest", "notes", "pending", "differences"))
    if not found.ok:
        invocation.notify("Rebuild the index with: quaid reindex")
    return 0 if found.ok else 1


def tell_report(invocation: Invocation, report: SyncReport) -> None:
    """Print what a sync did."""
    width = max(len(f"{number:,}") for _, number, _ in changes(report))
    details = (
        f"{report.embedded:,} embedded" if report.embedded else "",
        f"{report.pending:,} chunks without a vector" if report.pending else "",
        seconds(report.took_s),
    )
    text = lines(
        f"The index was rebuilt: {report.rebuilt}" if report.rebuilt else "",
        *(f"  {sign} {number:>{width},} {what}" for sign, number, what in changes(report)),
        f"{count(report.total, 'note')}, {', '.join(filter(None, details))}",
    )
    invocation.respond(text, **shape_of_sync(report))
    for sentence in report.degraded:
        invocation.notify(f"quaid: {sentence}")


def shape_of_sync(report: SyncReport) -> dict[str, object]:
    """A sync report as JSON."""
    names = ("added", "modified", "renamed", "removed", "total", "embedded", "pending", "rebuilt", "degraded")
    return json_object(report, *names, took_s=round(report.took_s, 4))


def changes(report: SyncReport) -> tuple[tuple[str, int, str], ...]:
    """The four numbers of a sync, each with its sign and name."""
    return (
        ("+", len(report.added), "added"),
        ("~", len(report.modified), "modified"),
        (">", len(report.renamed), "renamed"),
        ("-", len(report.removed), "removed"),
    )


def run_watch(invocation: Invocation) -> None:
    """Follow changes of the files until stopped: whatever edits them, the index is up to date within a second.

    Watching is optional: without it, every read checks the files itself. With it, reads are faster and new notes are
    embedded early.

    Examples:
      quaid watch
      quaid watch --json >> syncs.jsonl
    """

    def show(report: SyncReport) -> None:
        if invocation.as_json:
            invocation.print_json(**shape_of_sync(report))
            sys.stdout.flush()
            return
        numbers = "  ".join(f"{sign} {number:,}" for sign, number, _ in changes(report))
        embedded = f"{report.embedded:,} embedded, " if report.embedded else ""
        now = f"{datetime.now():%H:%M:%S}"  # noqa: DTZ005 - local time
        invocation.notify(f"{now}  {numbers}  {embedded}{seconds(report.took_s)}")

    with invocation.open() as memory:
        other = read_heartbeat(memory.state)
        if other is not None and other.is_alive(datetime.now(UTC)):
            invocation.notify(f"Process {other.pid} follows this vault already. Two do no harm; one is enough.")
        follower = memory.follow(show)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: follower.stop())
        CommandListener(memory.root, "quaid watch").start()
        invocation.notify(f"Following {memory.root}. Stop with Ctrl-C.")
        follower.run()
    invocation.notify("Stopped.")


def run_conflicts(
    invocation: Invocation,
    ref: Annotated[str | None, argument("REF", "The note to settle: its path or name, or all.")] = None,
    settle: Annotated[str | None, option("SIDE", "Keep ours, theirs or both in the note REF.", "--settle")] = None,
) -> int:
    """List the notes that a merge could not solve, or settle them; exit code 1 while there are any.

    Both sides of such a note are searched meanwhile. ours is this machine's side; in a rebase it is the other one's.

    Examples:
      quaid conflicts
      quaid conflicts --settle both Garden.md
      quaid conflicts --settle theirs all
    """
    check_one_of("settle", [settle] if settle else None, merging.SIDES)
    if (settle is None) != (ref is None):
        raise UsageError("--settle needs a SIDE and a REF. Try: quaid conflicts --settle both REF")
    with invocation.open() as memory:
        found = merges.list_conflicts(memory.root)
        settled: list[str] = []
        chosen = [one for one in found if ref in {"all", one.path, note_name(one.path), one.path.rpartition("/")[2]}]
        if ref not in {None, "all"} and not chosen:
            path = resolve_one(memory.index(), str(ref)).document.path
            raise BadInputError(
                f"{path} is not in conflict: git knows of no merge that it left, so marks in it are text. "
                "Remove them in an editor if they should not be there."
            )
        for conflict in chosen:
            _settle(memory, conflict, next(side for side in merging.SIDES if side == settle))
            settled.append(conflict.path)
        left = [conflict for conflict in found if conflict.path not in settled]
        operation = merges.read_operation(memory.root)
    shapes = []
    for one in left:
        what = "changed on both sides" if one.base or one.is_committed else "added on both sides"
        if one.is_removed:
            what = "changed here, removed there" if one.ours else "removed here, changed there"
        shapes.append({"path": one.path, "what": what})
    text = lines(
        *(f"Settled: {path}" for path in settled),
        count(len(left), "conflict") if left else "",
        columns([(shape["path"], shape["what"]) for shape in shapes]),
    )
    invocation.respond(text or "No note is in conflict.", settled=settled, conflicts=shapes, operation=operation)
    if left and not settled:
        invocation.notify(f"Settle one with: quaid conflicts --settle both {shlex.quote(left[0].path)}")
    elif operation in {"merge", "rebase", "cherry-pick", "revert"} and all(conflict.is_committed for conflict in left):
        invocation.notify(f"All is settled. End the {operation} with: git {operation} --continue")
    return 1 if left else 0


def _settle(memory: Memory, conflict: Conflict, side: Side) -> None:
    """Write the note without marks. Both sides are merged by their parts, so that no key is in it twice."""
    now = files.read_note(memory.root, conflict.path)
    base, ours, theirs = (merges.read_side(memory.root, blob) or b"" for blob in conflict[1:4])
    if now is None or not merging.find_conflicts(now, ours, theirs):
        blobs = {"ours": conflict.ours, "theirs": conflict.theirs, "both": conflict.ours or conflict.theirs}
        if side == "both" and None not in (conflict.ours, conflict.theirs):
            raise BadInputError(f"{conflict.path} cannot hold both sides. Settle it with ours or theirs.")
        merges.settle_conflict(memory.root, conflict.path, merges.read_side(memory.root, blobs[side]))
        return
    after = None
    if side == "both":
        our_part, their_part = (merging.choose_side(now, each, ours, theirs) for each in ("ours", "theirs"))
        is_new = base in (our_part, their_part)
        after = merge_note(b"" if is_new else base, our_part, their_part, conflict.path)
    if after is None:
        after = merging.choose_side(now, side, ours, theirs)
    if conflict.is_committed:
        memory.writer.save_edit(conflict.path, now, after)
    else:
        merges.settle_conflict(memory.root, conflict.path, after)
