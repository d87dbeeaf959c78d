"""The hooks that fail, since when and why: a file in the vault's state folder, or in that of all vaults where the vault
itself is what is missing.

An event is in it from its first failure to its next success, and each session is told of it once. Losing the file costs
the date.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from quaid.local import state_files
from quaid.place import state_folder, state_home, write_private
from quaid.redaction import admit
from quaid.text.invisible import escaped

FILE = "hook-failures.json"
MAX_VAULTS, MAX_SESSIONS = 20, 50
"""The last that are remembered."""
MAX_PROBLEM = 300


class HookFailure(NamedTuple):
    """What has failed `times` times, first at `since` (ISO 8601, UTC) in `event`."""

    event: str
    since: str
    times: int
    problem: str

    def __str__(self) -> str:
        times = "once" if self.times == 1 else f"{self.times:,} times"
        since = self.since[:16].replace("T", " ")
        return f"Quaid's hook {self.event} has failed since {since} UTC ({times}): {self.problem}"


def failed(vault: Path, event: str, problem: str, *, is_there: bool) -> None:
    """Record that `event` failed; `is_there` says whether the vault can be reached."""
    said = escaped(" ".join(admit(problem).text.split()))[:MAX_PROBLEM]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def add(known: dict[str, Any]) -> None:
        since, times, _ = known["events"].get(event, (now, 0, ""))
        known["events"][event] = [since, times + 1, said]

    _change(_path(vault, is_there=is_there), str(vault), add)


def succeeded(vault: Path, event: str) -> None:
    """Record that `event` went well, and with it whatever failed for the reason that it had failed for."""

    def remove(known: dict[str, Any]) -> None:
        _, _, problem = known["events"].pop(event, (None, None, None))
        known["events"] = {name: told for name, told in known["events"].items() if told[2] != problem}

    if (path := _path(vault, is_there=True)).exists():
        _change(path, str(vault), remove)
    if (path := _path(vault, is_there=False)).exists():
        _change(path, str(vault), lambda known: known["events"].clear())


def read(vault: Path) -> list[HookFailure]:
    """Return what fails for the vault at `vault`, each problem once, what has failed longest first."""
    found: list[HookFailure] = []
    for is_there in (True, False):
        known = _read(_path(vault, is_there=is_there)).get(str(vault), {})
        with suppress(AttributeError, TypeError, ValueError):
            found += [HookFailure(event, *told) for event, told in known.get("events", {}).items()]
    problems: dict[str, HookFailure] = {}
    for failure in sorted(found, key=lambda failure: failure.since):
        first = problems.get(failure.problem, failure._replace(times=0))
        problems[failure.problem] = first._replace(times=first.times + failure.times)
    return list(problems.values())


def tell(vault: Path, session: str, *, is_there: bool) -> str:
    """Return the news of what has failed longest, on one line; empty if nothing fails, or `session` was told."""
    failures, name = read(vault), state_files.file_stem(session)
    is_news = bool(failures)

    def note(known: dict[str, Any]) -> None:
        nonlocal is_news
        is_news = name not in known["told"]
        known["told"] = [*(each for each in known["told"] if each != name), name][-MAX_SESSIONS:]

    if failures:
        _change(_path(vault, is_there=is_there), str(vault), note)
    return str(failures[0]) if is_news else ""


def _path(vault: Path, *, is_there: bool) -> Path:
    return (state_folder(vault) if is_there else state_home()) / FILE


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        known = json.loads(state_files.read(path))
        if isinstance(known, dict):
            return known
    return {}


def _change(path: Path, vault: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the file knows of `vault`; where it cannot be read or written, it begins anew or stays as it is."""
    vaults = _read(path)
    known = vaults.pop(vault, {})
    with suppress(OSError, AttributeError, TypeError, ValueError, IndexError):
        known = {"events": dict(known.get("events", {})), "told": list(known.get("told", []))}
        change(known)
        kept = dict([*vaults.items(), (vault, known)][-MAX_VAULTS:]) if known["events"] else vaults
        if kept:
            write_private(path, json.dumps(kept))
        else:
            path.unlink(missing_ok=True)
