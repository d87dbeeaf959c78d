"""`quaid watch`."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.resident import CommandListener
from quaid.cli.sync import changes, shape_of_sync
from quaid.cli.terminal import seconds
from quaid.place import state_folder
from quaid.sync.derived_index import SyncReport
from quaid.sync.follow import read_heartbeat


def run_watch(ctx: typer.Context) -> None:
    """Follow changes of the files until stopped: whatever edits them, the index is up to date within a second.

    Watching is optional: without it, every read checks the files itself. With it, reads are faster and new notes are
    embedded early.

    Examples:
      quaid watch
      quaid watch --json >> syncs.jsonl
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        other = read_heartbeat(state_folder(memory.root))
        if other is not None and other.is_alive(datetime.now(UTC)):
            invocation.notify(f"Process {other.pid} follows this vault already. Two do no harm; one is enough.")
        follower = memory.follow(lambda report: _show(invocation, report))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: follower.stop())
        CommandListener(memory.root, "quaid watch").start()
        invocation.notify(f"Following {memory.root}. Stop with Ctrl-C.")
        follower.run()
    invocation.notify("Stopped.")


def _show(invocation: Invocation, report: SyncReport) -> None:
    if invocation.as_json:
        invocation.print_json(**shape_of_sync(report))
        sys.stdout.flush()
        return
    numbers = "  ".join(f"{sign} {number:,}" for sign, number, _ in changes(report))
    embedded = f"{report.embedded:,} embedded, " if report.embedded else ""
    invocation.notify(f"{datetime.now():%H:%M:%S}  {numbers}  {embedded}{seconds(report.took_s)}")  # noqa: DTZ005 - local time
