"""A line for each event of a hook: when, which, how long it took and what was wrong: `.quaid/log/hooks.log`."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LOG_FILE = "hooks.log"
LONGEST_LOG = 1_000_000
MOST_READ = 200
_LINE = re.compile(r"(\S+Z)  (\S*)  (\d+) ms(?:  (.*))?")


class Call(NamedTuple):
    """One event; `at` is ISO, in UTC."""

    at: str
    event: str
    took_ms: int
    problem: str


def write(state: Path, event: str, took_ms: float, problem: str) -> None:
    """Add a line to the log in the vault's `.quaid`. One write: those of two hooks do not mix."""
    path = state / "log" / LOG_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.stat().st_size > LONGEST_LOG:
            path.replace(path.with_name(f"{LOG_FILE}.1"))
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name = re.sub(r"\s+", "-", event)[:40]
    line = f"{when}  {name}  {took_ms:.0f} ms  {' '.join(problem.split())}".rstrip() + "\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line.encode("utf-8", "backslashreplace"))
    finally:
        os.close(handle)


def read(state: Path) -> list[Call]:
    """The last calls, oldest first."""
    try:
        lines = (state / "log" / LOG_FILE).read_text("utf-8", errors="replace").splitlines()[-MOST_READ:]
    except OSError:
        return []
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    return [Call(match[1], match[2], int(match[3]), match[4] or "") for match in found]
