"""The janitor every night by itself: by a systemd user timer, a launchd agent, else a line in the owner's crontab.

One schedule for each vault. Nothing here asks for more rights than the owner has, and all that is to be done is planned
as steps first, so that a dry run shows the very files and commands.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from quaid.errors import BadInputError, QuaidError, UsageError, VaultReadOnlyError
from quaid.janitor.schedulers import SCHEDULERS, Job, NoSchedulerError, ScheduleStep, environment_file

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def install(root: Path, at: str = "03:30", *, dry_run: bool = False) -> list[str]:
    """Have the janitor run every day `at` HH:MM, local time; a sentence for each thing that was done.

    Done again, it changes what is there. With `dry_run` nothing is done and the sentences say what would be.

    Raises:
        UsageError: `at` is not a time of the day.
        BadInputError: the vault's path cannot be written in a schedule.
        NoSchedulerError: this machine has none that can be used.
        ScheduleError, VaultReadOnlyError: it has one that refused: nothing is scheduled.
    """
    job = _job(root, at)
    chosen = next((scheduler for scheduler in SCHEDULERS if scheduler.is_there()), None)
    if chosen is None:
        raise NoSchedulerError("This machine has neither systemd for users nor launchd nor cron")
    elsewhere = [step for other in SCHEDULERS if other is not chosen for step in other.uninstall(root)]
    steps = [*elsewhere, *chosen.install(job)]
    if not dry_run:
        try:
            _do(steps)
        except QuaidError:
            with suppress(QuaidError):
                _do(chosen.uninstall(root))
            raise
    verb = "would tidy" if dry_run else "tidies"
    return [
        *(step.planned if dry_run else step.done for step in steps),
        f"The janitor {verb} {root} every day at {job.at}, by {chosen.title}.",
        *chosen.remarks(),
        f"Keys that only your shell knows are not known there: put them, as NAME=key, into {environment_file()}",
    ]


def uninstall(root: Path, *, dry_run: bool = False) -> list[str]:
    """Take back what `install` did, by whichever scheduler; a sentence for each thing.

    Raises:
        ScheduleError, VaultReadOnlyError: a scheduler refused.
    """
    steps = [step for scheduler in SCHEDULERS for step in scheduler.uninstall(root)]
    if not dry_run:
        _do(steps)
    told = [step.planned if dry_run else step.done for step in steps]
    return told or [f"The janitor is not scheduled for {root}."]


def describe(root: Path) -> str | None:
    """A sentence that says when the janitor runs by itself and by what; None when it does not."""
    for scheduler in SCHEDULERS:
        at = scheduler.find(root)
        if at is not None:
            return f"The janitor runs every day at {at}, by {scheduler.title}."
    return None


def _job(root: Path, at: str) -> Job:
    time = _TIME.fullmatch(at.strip())
    if time is None:
        raise UsageError(f"{at!r} is not a time of the day. Give hours and minutes: --at 03:30")
    # The program of the installation that this is, else the one on the PATH.
    beside = Path(sys.executable).with_name("quaid")
    program = str(beside) if os.access(beside, os.X_OK) else shutil.which("quaid")
    if program is None:
        raise NoSchedulerError("The program quaid is not on the PATH, so nothing could run it")
    command = (program, "janitor", "run", "-q", "--vault", str(root))
    path = os.environ.get("PATH", os.defpath)
    for text in (*command, path):
        if not text.isprintable():
            raise BadInputError(f"{text!r} cannot be written in a schedule. Rename the folder to printable characters.")
    return Job(root, int(time[1]), int(time[2]), command, path)


def _do(steps: Sequence[ScheduleStep]) -> None:
    for step in steps:
        try:
            step.do()
        except OSError as error:
            raise VaultReadOnlyError(error.filename, error.strerror or str(error)) from error
