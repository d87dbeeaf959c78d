"""The exchange with remotes that nobody waits for: a process of its own, when one is due.

Who has the vault open asks whether one is: each command at its end, and the process that answers for others.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from quaid.history import repository as repositories
from quaid.history.remotes import MERGED
from quaid.local import locks
from quaid.local.state_files import start_detached
from quaid.place import LOG_DIR, state_folder
from quaid.remotes.contact import read_contact
from quaid.remotes.exchange import LOCK
from quaid.remotes.trusted import list_trusted
from quaid.settings import Settings

PROGRAM = "quaid.cli.background"
EXCHANGE = "exchange"
EXCHANGE_EVERY = timedelta(minutes=10)
PAUSE = timedelta(seconds=5)
"""Writes that follow each other closely go together."""


def leave_exchange(root: Path, settings: Settings) -> bool:
    """See that a process exchanges with the remotes if that is due; return whether one was started."""
    if settings.git.sync == "off" or not is_due(root, settings, datetime.now(UTC)):
        return False
    state = state_folder(root)
    if locks.is_held(state / LOCK):
        return False
    try:
        start_detached(PROGRAM, [str(root), EXCHANGE], state / LOG_DIR / "exchange.log")
    except OSError:
        return False
    return True


def is_due(root: Path, settings: Settings, now: datetime) -> bool:
    """Return whether a trusted remote was not asked for long, or lacks what was written since. Costs no process."""
    every = EXCHANGE_EVERY
    for name in list_trusted(root):
        contact = read_contact(root, name)
        age = now - datetime.fromisoformat(contact.asked) if contact.asked else every
        if age >= every or age < timedelta():
            return True
        is_well = not contact.offline_since and not contact.problem
        if settings.git.sync == "auto" and is_well and age >= PAUSE and _has_news(root, name):
            return True
    return False


def _has_news(root: Path, name: str) -> bool:
    """Return whether the branch is not what the remote was last given."""
    repository = repositories.find_repository(root)
    if repository is None:
        return False
    state = repositories.read_state(repository)
    given = repositories.read_ref(repository.common_dir, f"{MERGED}/{name}/heads/{state.branch}")
    return state.head is not None and state.branch is not None and state.head != given
