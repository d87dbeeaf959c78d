"""Models' answers that could not be used in whole, as they came, in quarantine/ of the state folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from quaid.local import state_files
from quaid.place import write_private
from quaid.redaction import admit_all

FOLDER = "quarantine"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """`raw` is what the model wrote; `left_out` says of each statement that was not kept why."""

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


def read_all(state: Path) -> Iterator[Quarantined]:
    """Yield the answers that are there, oldest first; a file that cannot be read is skipped."""
    for path in sorted((state / FOLDER).glob("*.json")):
        try:
            data: Mapping[str, object] = json.loads(state_files.read(path))
            texts = {key: str(data.get(key, "")) for key in ("at", "about", "problem", "model", "prompt", "raw")}
        except (OSError, ValueError, AttributeError):
            continue
        listed = data.get("left_out")
        pairs = [pair for pair in listed if isinstance(pair, list)] if isinstance(listed, list) else []
        left_out = tuple((str(pair[0]), str(pair[1])) for pair in pairs if len(pair) == 2)
        yield Quarantined(**texts, left_out=left_out)
