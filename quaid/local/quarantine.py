"""Models' answers that could not be used in whole, as they came, in quarantine/ of the state folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from quaid.place import write_private
from quaid.redaction import admit_all

FOLDER = "quarantine"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """`raw` is what the model wrote; `left_out` are the statements that were not stored, each with the reason."""

    at: str
    about: str
    """The source that was asked about: a session, a file."""
    problem: str
    model: str = ""
    prompt: str = ""
    raw: str = ""
    left_out: tuple[tuple[str, str], ...] = ()


def put(state: Path, found: Quarantined) -> Path:
    """Write `found` into the vault's state folder and return the path of its file. The janitor deletes the oldest of
    many, and says so.
    """
    moment = datetime.fromisoformat(found.at)
    path = state / FOLDER / f"{moment:%Y%m%d-%H%M%S}-{os.urandom(3).hex()}.json"
    text = json.dumps(admit_all(asdict(found))[0], ensure_ascii=False, indent=1) + "\n"
    write_private(path, text)
    return path


def count(state: Path) -> int:
    return sum(1 for _ in (state / FOLDER).glob("*.json"))
