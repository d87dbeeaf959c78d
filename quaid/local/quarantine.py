"""Answers of models that could not be used, or not in whole, as they came: `.quaid/quarantine/`, a JSON file each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from quaid.gate import admit_all

FOLDER = "quarantine"
_MOST_FILES = 200
"""The oldest go first: what nobody has looked at by then, nobody will."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """`raw` is what the model wrote; `left_out` says of each statement that was not kept why."""

    at: str
    about: str
    """What was asked about: a session, a file."""
    problem: str
    model: str = ""
    prompt: str = ""
    raw: str = ""
    left_out: tuple[tuple[str, str], ...] = ()


def put(state: Path, found: Quarantined) -> Path:
    """Keep `found` in the vault's `.quaid` folder; the path of its file."""
    folder = state / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    moment = datetime.fromisoformat(found.at)
    path = folder / f"{moment:%Y%m%d-%H%M%S}-{os.urandom(3).hex()}.json"
    text = json.dumps(admit_all(asdict(found))[0], ensure_ascii=False, indent=1) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")  # half a character, as JSON writes it
    for old in sorted(folder.glob("*.json"))[:-_MOST_FILES]:
        with suppress(OSError):
            old.unlink()
    return path


def count(state: Path) -> int:
    return sum(1 for _ in (state / FOLDER).glob("*.json"))


def read_all(state: Path) -> Iterator[Quarantined]:
    """What is there, oldest first; a file that cannot be read is passed over."""
    for path in sorted((state / FOLDER).glob("*.json")):
        try:
            data: Mapping[str, object] = json.loads(path.read_text(encoding="utf-8"))
            texts = {key: str(data.get(key, "")) for key in ("at", "about", "problem", "model", "prompt", "raw")}
        except (OSError, ValueError, AttributeError):
            continue
        listed = data.get("left_out")
        pairs = [pair for pair in listed if isinstance(pair, list)] if isinstance(listed, list) else []
        left_out = tuple((str(pair[0]), str(pair[1])) for pair in pairs if len(pair) == 2)
        yield Quarantined(**texts, left_out=left_out)
