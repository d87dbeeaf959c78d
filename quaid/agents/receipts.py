"""Receipts: what `quaid install` wrote into which config, so that `uninstall` can remove exactly that.

A receipt holds the hash of the file as Quaid left it and the name of the backup of the file as Quaid found it: while
nobody has changed the file, to uninstall is to put the backup in its place. Lost receipts cost that exactness, no more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from quaid.agents import config_files
from quaid.agents.config_entries import ConfigEntry


@dataclass(frozen=True, slots=True)
class Receipt:
    """`after` is the hash of what was written, empty where no backup equals the file without Quaid. `backup` names the
    copy beside the file, None where there was no file.
    """

    after: str
    backup: str | None
    entries: tuple[ConfigEntry, ...]


def fingerprint(data: bytes | None) -> str:
    """The hash by which receipts know a file; empty where there is none."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def load(path: Path) -> dict[str, Receipt]:
    """All receipts by the config's path; empty where there are none that can be read."""
    try:
        stored = json.loads(config_files.read(path).text or "{}")
        return {
            name: Receipt(
                one["after"],
                one["backup"],
                tuple(
                    ConfigEntry(tuple(item["path"]), item["value"], item["kind"], item["like"])
                    for item in one["entries"]
                ),
            )
            for name, one in stored["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def save(path: Path, receipts: Mapping[str, Receipt]) -> None:
    """Replace them all.

    Raises:
        HostConfigError, LockedError
    """
    stored = {"v": 1, "files": {name: asdict(receipt) for name, receipt in receipts.items()}}
    config_files.replace(config_files.read(path), (json.dumps(stored, ensure_ascii=False, indent=1) + "\n").encode())
