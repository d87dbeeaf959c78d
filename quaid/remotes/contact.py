"""What this machine remembers of its remotes between two calls: when they were asked, since when they do not answer;
and the process that exchanges with them when that is due.

A file of the vault's state folder. Losing it loses nothing: the next call finds out.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quaid.history import repository as repositories
from quaid.local import locks
from quaid.local.state_files import start_detached
from quaid.place import LOG_DIR, state_folder, write_private
from quaid.remotes.trusted import list_trusted
from quaid.settings import Settings
from quaid.vault import files

LOCK = "exchange.lock"
PROGRAM = "quaid.cli.background"
EXCHANGE = "exchange"
EXCHANGE_EVERY = timedelta(minutes=10)
PAUSE = timedelta(seconds=5)
"""Writes that follow each other closely go together."""
_FILE = "remotes.json"
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Contact:
    """One remote: when it was last `asked` and last `reached`, since when it is `offline_since`, and a `problem` that
    waits for the owner. Times are ISO 8601 in UTC.
    """

    asked: str = ""
    reached: str = ""
    offline_since: str = ""
    problem: str = ""
    reminder: str = ""
    """How far apart the two were then, if the owner wants a reminder."""


def read_contact(root: Path, name: str) -> Contact:
    """Return what is known of the remote `name` of the vault at `root`."""
    return _read(root)[1].get(name, Contact())


def list_reminders(root: Path) -> list[str]:
    """Return a sentence for each remote about which its owner should do something; asks nobody.

    Agents read them, so how to accept what agents obey is left out: that is for the owner, whom `quaid status` tells.
    """
    notices = [contact.problem or contact.reminder for _, contact in sorted(_read(root)[1].items())]
    return [notice.partition(" To take exactly that:")[0] for notice in notices if notice]


def write_contact(root: Path, name: str, contact: Contact | None) -> None:
    """Remember `contact`, or nothing any more. A disk that takes no writes is no reason to fail."""
    known, contacts = _read(root)
    contacts.pop(name, None)
    _write(root, known, contacts if contact is None else contacts | {name: contact})


def device(root: Path) -> tuple[str, str]:
    """Return the id and the name of this clone: two clones on one machine are two devices."""
    known, contacts = _read(root)
    if not known:
        known = os.urandom(8).hex()
        _write(root, known, contacts)
    return known, os.uname().nodename


def _read(root: Path) -> tuple[str, dict[str, Contact]]:
    """The id of this clone, empty where it has none yet, and each remote by name."""
    try:
        stored = json.loads(files.read_note(state_folder(root), _FILE, _MAX_BYTES) or b"{}")
        remotes = stored.get("remotes", {}).items()
        contacts = {
            name: Contact(**{key: str(entry.get(key, "")) for key in asdict(Contact())}) for name, entry in remotes
        }
        return str(stored.get("device", "")), contacts
    except (OSError, ValueError, RecursionError, AttributeError):
        return "", {}


def _write(root: Path, known: str, contacts: Mapping[str, Contact]) -> None:
    stored = {"device": known, "remotes": {name: asdict(contact) for name, contact in contacts.items()}}
    with suppress(OSError):
        write_private(state_folder(root) / _FILE, json.dumps(stored))


def schedule_exchange(root: Path, settings: Settings) -> bool:
    """Start a process that exchanges with the remotes if that is due; return whether one was started.

    Call it when a command or a process ends that has had the vault open.
    """
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
    for name in list_trusted(root):
        contact = read_contact(root, name)
        age = now - datetime.fromisoformat(contact.asked) if contact.asked else EXCHANGE_EVERY
        if age >= EXCHANGE_EVERY or age < timedelta():
            return True
        repository = repositories.find_repository(root)
        is_well = not contact.offline_since and not contact.problem
        if settings.git.sync == "auto" and is_well and age >= PAUSE and repository is not None:
            state = repositories.read_state(repository)
            pushed = repositories.read_ref(repository.common_dir, f"{repositories.MERGED}/{name}/heads/{state.branch}")
            if state.head is not None and state.branch is not None and state.head != pushed:
                return True
    return False
