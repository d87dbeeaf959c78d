"""What this machine remembers of its remotes between two calls: when they were asked, since when they do not answer.

A file of the vault's state folder. Losing it loses nothing: the next call finds out.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quaid.place import state_folder, write_private
from quaid.vault import files

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
    """How far apart the two were then, where the owner wants to be told; else empty."""


def read_contact(root: Path, name: str) -> Contact:
    """Return what is known of the remote `name` of the vault at `root`."""
    said = _read(root).get("remotes", {})
    found = said.get(name) if isinstance(said, dict) else None
    if not isinstance(found, dict):
        return Contact()
    return Contact(**{key: str(found.get(key, "")) for key in asdict(Contact())})


def list_reminders(root: Path) -> list[str]:
    """Return a sentence for each remote about which its owner should do something; asks nobody."""
    remotes = _read(root).get("remotes", {})
    names = sorted(remotes) if isinstance(remotes, dict) else []
    contacts = {name: read_contact(root, name) for name in names}
    return [contact.problem or contact.reminder for contact in contacts.values() if contact.problem or contact.reminder]


def write_contact(root: Path, name: str, contact: Contact | None) -> None:
    """Remember `contact`, or nothing any more. A disk that takes no writes is no reason to fail."""
    told = _read(root)
    remotes = told.get("remotes", {}) if isinstance(told.get("remotes"), dict) else {}
    remotes.pop(name, None)
    if contact is not None:
        remotes[name] = asdict(contact)
    _write(root, {**told, "remotes": remotes})


def device(root: Path) -> tuple[str, str]:
    """Return the id and the name of this clone: two clones on one machine are two devices."""
    told = _read(root)
    known = told.get("device")
    if isinstance(known, str) and known:
        return known, os.uname().nodename
    made = os.urandom(8).hex()
    _write(root, {**told, "device": made})
    return made, os.uname().nodename


def _read(root: Path) -> dict[str, Any]:
    try:
        told = json.loads(files.read_note(state_folder(root), _FILE, _MAX_BYTES) or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _write(root: Path, told: dict[str, Any]) -> None:
    try:
        write_private(state_folder(root) / _FILE, json.dumps(told))
    except OSError:
        return
