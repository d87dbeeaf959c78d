"""The log of hook calls: a line each, with time, event, duration and problem, in log/hooks.log of the state folder."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from quaid.local import state_files
from quaid.place import state_folder, state_home, write_private
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
    name = escaped(re.sub(r"\s+", "-", event)[:40])
    state_files.append(path, f"{_now()}  {name}  {took_ms:.0f} ms  {_on_one_line(problem)}".rstrip())


def read(state: Path) -> list[HookCall]:
    """Return the last `MAX_CALLS` calls, oldest first."""
    try:
        data = state_files.read(state / "log" / LOG_FILE)
    except OSError:
        return []
    lines = data.decode("utf-8", "replace").splitlines()[-MAX_CALLS:]
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    return [HookCall(match[1], match[2], int(match[3]), match[4] or "") for match in found]


# -- failures of hooks ------------------------------------------------------------------------------------------------

FAILURES_FILE = "hook-failures.json"
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


def record_failure(vault: Path, event: str, problem: str, *, is_there: bool) -> None:
    """Record that `event` failed; `is_there` says whether the vault can be reached."""
    reason = _on_one_line(problem)[:MAX_PROBLEM]
    with _changing_failures(_failures_path(vault, is_there=is_there), str(vault)) as known:
        since, times, _ = known["events"].get(event, (_now(), 0, ""))
        known["events"][event] = [since, times + 1, reason]


def record_success(vault: Path, event: str) -> None:
    """Record that `event` went well, and with it whatever failed for the reason that it had failed for."""
    for is_there in (True, False):
        if (path := _failures_path(vault, is_there=is_there)).exists():
            with _changing_failures(path, str(vault)) as known:
                _, _, problem = known["events"].pop(event, (None, None, None))
                left = known["events"].items() if is_there else ()
                known["events"] = {name: entry for name, entry in left if entry[2] != problem}


def read_failures(vault: Path) -> list[HookFailure]:
    """Return what fails for the vault at `vault`, each problem once, what has failed longest first."""
    found: list[HookFailure] = []
    for is_there in (True, False):
        known = _read_failures(_failures_path(vault, is_there=is_there)).get(str(vault), {})
        with suppress(AttributeError, TypeError, ValueError):
            found += [HookFailure(event, *entry) for event, entry in known.get("events", {}).items()]
    problems: dict[str, HookFailure] = {}
    for failure in sorted(found, key=lambda failure: failure.since):
        first = problems.get(failure.problem, failure._replace(times=0))
        problems[failure.problem] = first._replace(times=first.times + failure.times)
    return list(problems.values())


def take_news(vault: Path, session: str, *, is_there: bool) -> str:
    """Return the longest failure, on one line; empty if nothing fails or `session` knows it already."""
    failures, name = read_failures(vault), state_files.file_stem(session)
    is_news = bool(failures)
    if failures:
        with _changing_failures(_failures_path(vault, is_there=is_there), str(vault)) as known:
            is_news = name not in known["told"]
            known["told"] = [*(each for each in known["told"] if each != name), name][-MAX_SESSIONS:]
    return str(failures[0]) if is_news else ""


def _failures_path(vault: Path, *, is_there: bool) -> Path:
    return (state_folder(vault) if is_there else state_home()) / FAILURES_FILE


def _read_failures(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        known = json.loads(state_files.read(path))
        if isinstance(known, dict):
            return known
    return {}


@contextmanager
def _changing_failures(path: Path, vault: str) -> Iterator[dict[str, Any]]:
    """Yield what the file knows of `vault`, to be changed; where it cannot be read or written, it begins anew or stays
    as it is.
    """
    vaults = _read_failures(path)
    known: dict[str, Any] = {"events": {}, "told": []}
    with suppress(AttributeError, TypeError, ValueError):
        stored = vaults.pop(vault, {})
        known = {"events": dict(stored.get("events", {})), "told": list(stored.get("told", []))}
    with suppress(OSError, AttributeError, TypeError, ValueError, IndexError):
        yield known
        remaining = dict([*vaults.items(), (vault, known)][-MAX_VAULTS:]) if known["events"] else vaults
        if remaining:
            write_private(path, json.dumps(remaining))
        else:
            path.unlink(missing_ok=True)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _on_one_line(problem: str) -> str:
    return escaped(" ".join(admit(problem).text.split()))
