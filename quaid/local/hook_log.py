"""The log of hook calls: a line each, with time, event, duration and problem, in log/hooks.log of the state folder."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import NamedTuple

from quaid.local import state_files
from quaid.redaction import admit
from quaid.text.invisible import escaped

LOG_FILE = "hooks.log"
MAX_LOG_BYTES = 1_000_000
MAX_CALLS = 200
_LINE = re.compile(r"(\S+Z)  (\S*)  (\d+) ms(?:  (.*))?")


class HookCall(NamedTuple):
    """One call; `at` is ISO, in UTC."""

    at: str
    event: str
    took_ms: int
    problem: str


def write(state: Path, event: str, took_ms: float, problem: str) -> None:
    """Add a line to the log in the vault's state folder."""
    path = state / "log" / LOG_FILE
    state_files.rotate(path, MAX_LOG_BYTES)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name = escaped(re.sub(r"\s+", "-", event)[:40])
    said = escaped(" ".join(admit(problem).text.split()))
    state_files.append(path, f"{when}  {name}  {took_ms:.0f} ms  {said}".rstrip())


def read(state: Path) -> list[HookCall]:
    """Return the last `MAX_CALLS` calls, oldest first."""
    try:
        data = state_files.read(state / "log" / LOG_FILE)
    except OSError:
        return []
    lines = data.decode("utf-8", "replace").splitlines()[-MAX_CALLS:]
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    return [HookCall(match[1], match[2], int(match[3]), match[4] or "") for match in found]
