"""Models' answers that could not be used in whole, as they came, in quarantine/ of the state folder."""

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from quaid.place import write_private
from quaid.redaction import admit_all

FOLDER = "quarantine"


def put(
    state: Path,
    at: str,
    about: str,
    problem: str,
    model: str = "",
    prompt: str = "",
    raw: str = "",
    left_out: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write an answer into the vault's state folder and return the path of its file. The janitor deletes the oldest of
    many, and says so.

    `about` is the source that was asked about: a session, a file. `raw` is what the model wrote; `left_out` are the
    statements that were not stored, each with the reason.
    """
    found = {"at": at, "about": about, "problem": problem, "model": model, "prompt": prompt, "raw": raw}
    text = json.dumps(admit_all({**found, "left_out": left_out})[0], ensure_ascii=False, indent=1) + "\n"
    path = state / FOLDER / f"{datetime.fromisoformat(at):%Y%m%d-%H%M%S}-{os.urandom(3).hex()}.json"
    write_private(path, text)
    return path


def count(state: Path) -> int:
    return sum(1 for _ in (state / FOLDER).glob("*.json"))
