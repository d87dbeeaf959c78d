"""What the owner is told of a run, and how it gets there: terminal, desktop, a file, a webhook.

News are never worth a failed run: what could not be delivered is a remark.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from quaid.errors import QuaidError
from quaid.janitor.report import Report
from quaid.local.runs import Runs
from quaid.recall.safety import neutralise
from quaid.settings import NotificationSettings
from quaid.vault import layout

Level = Literal["off", "summary", "full"]
Feature = Literal["janitor", "extraction", "retrieval", "docs"]
NEWS_FILE = "news.log"
OVERDUE = timedelta(hours=48)
WEBHOOK_TIMEOUT_S = 5.0
DESKTOP_TIMEOUT_S = 10
LONGEST_POPUP = 240
LONGEST_FILE = 1_000_000
"""Bytes of the news file; then it is begun anew, and the one before is kept beside it."""
LONGEST_LIST = 100
_FILE_ENDINGS = (".log", ".txt")
"""quaid.toml travels with the vault: whoever can change it must not make Quaid write into a shell's start-up file."""
_PRESETS: dict[str, dict[Feature, Level]] = {
    "quiet": {"janitor": "off", "extraction": "off", "retrieval": "off", "docs": "off"},
    "normal": {"janitor": "summary", "extraction": "off", "retrieval": "summary", "docs": "summary"},
    "verbose": {"janitor": "summary", "extraction": "summary", "retrieval": "summary", "docs": "summary"},
    "debug": {"janitor": "full", "extraction": "full", "retrieval": "full", "docs": "full"},
}
_DONE = {
    "approve": "approved",
    "rewrite": "reworded",
    "reject": "rejected",
    "date": "dated",
    "merge": "merged",
    "supersede": "replaced",
    "keep_both": "kept side by side",
    "forget": "forgotten",
    "pin": "pinned",
    "graduate": "made active",
    "promote": "taken into core notes",
    "fold": "folded",
    "distil": "distilled",
    "trim": "shortened",
}
_HOUSEKEEPING = {"digest", "ledger"}


def level_of(settings: NotificationSettings, feature: Feature) -> Level:
    """How much is told of `feature`: its own setting, else what the level says."""
    own: Level | Literal[""] = getattr(settings, feature)
    return own or _PRESETS[settings.level][feature]


def render_news(report: Report, level: Level, *, questions: int = 0) -> str:
    """A run as a message; empty when `level` is off. `questions` wait for the owner in all.

    A summary is a few sentences; in full every decision has its line.
    """
    if level == "off":
        return ""
    sentences = [_decided(report), *_waiting(report, questions), *_problems(report), _cost(report), _next(report)]
    summary = " ".join(sentence for sentence in sentences if sentence)
    if level == "summary":
        return summary
    lists = (
        ("Done", [decision.subject for decision in report.done]),
        ("Asked", [f"{decision.subject}: {decision.why}" for decision in report.asked]),
        ("Held back", [f"{decision.subject}: {reason}" for decision, reason in report.held_back]),
        ("Would be lost", report.lost),
        ("Failed", [f"{task}: {problem}" for task, problem in report.failed.items()]),
        ("Remarks", report.remarks),
    )
    return "\n\n".join([summary, *(_listed(title, lines) for title, lines in lists if lines)])


def deliver(root: Path, settings: NotificationSettings, feature: Feature, text: str) -> list[str]:
    """Send news of `feature` through the channels of the settings; a remark for each that could not.

    `text` is disarmed first: what is quoted from memories must not act on a terminal or a desktop.
    """
    if not text.strip() or level_of(settings, feature) == "off":
        return []
    shown = neutralise(text).strip()
    ways: dict[str, Callable[[], None]] = {
        "terminal": lambda: _to_terminal(shown),
        "desktop": lambda: _to_desktop(shown),
        "file": lambda: _to_file(root, settings.file, shown),
        "webhook": lambda: _to_webhook(settings.webhook, shown),
    }
    remarks = []
    for channel in dict.fromkeys(name.strip().lower() for name in settings.channels.split(",") if name.strip()):
        if channel not in ways:
            remarks.append(f"notifications.channels names {channel!r}, which is none of {', '.join(ways)}")
            continue
        try:
            ways[channel]()
        except (OSError, ValueError) as error:
            remarks.append(f"The news could not be delivered by {channel}: {error}")
    return remarks


def overdue(runs: Runs, now: datetime) -> str | None:
    """A warning when the janitor has run here and not ended well for 48 hours; None when all is well."""
    try:
        last, newest = runs.last_success(), runs.list(1)
    except QuaidError as error:
        return f"Whether the janitor has run is not known: {error}"
    if not newest or (last is not None and now - datetime.fromisoformat(last.started) <= OVERDUE):
        return None
    since = f"for {(now - datetime.fromisoformat(last.started)).days} days" if last else "to its end yet"
    problem = f" The last time: {newest[0].problem}" if newest[0].problem else ""
    steps = "Run it with: quaid janitor run; every night with: quaid janitor install"
    return f"The janitor has not run {since}.{problem} {steps}"


def _decided(report: Report) -> str:
    if report.is_dry_run:
        begin = "Quaid's janitor would do this"
    elif report.lost:
        return f"Quaid's janitor merged nothing: {_counted(len(report.lost), 'answer')} would have been lost."
    else:
        begin = "Quaid's janitor"
    kinds = Counter(decision.kind for decision in report.done if decision.kind not in _HOUSEKEEPING)
    parts = [f"{number:,} {_DONE.get(kind, kind)}" for kind, number in kinds.most_common()]
    parts += [f"{_counted(len(report.answered), 'answer')} of yours carried out"] if report.answered else []
    return f"{begin}: {', '.join(parts)}." if parts else f"{begin}: nothing to do."


def _waiting(report: Report, questions: int) -> list[str]:
    found = []
    if questions:
        verb = "waits" if questions == 1 else "wait"
        new = f", {len(report.asked):,} of them new" if report.asked else ""
        found.append(f"{_counted(questions, 'question')} {verb} for you in review/{new}.")
    if report.held_back:
        found.append(f"{_counted(len(report.held_back), 'decision')} held back.")
    if report.waiting:
        found.append(f"Waiting for a model: {', '.join(report.waiting)}.")
    return found


def _problems(report: Report) -> list[str]:
    skipped = f", so {', '.join(report.skipped)} did not run" if report.skipped else ""
    return [f"Failed: {', '.join(report.failed)}{skipped}."] if report.failed else []


def _cost(report: Report) -> str:
    if not report.usage.calls:
        return ""
    cost = report.usage.cost_usd
    dollars = "an unknown price" if cost is None else f"${cost:.2f}" if cost >= 0.01 else "less than $0.01"
    return f"{_counted(report.usage.calls, 'call')} of models for {dollars}."


def _next(report: Report) -> str:
    return f"See it with: quaid janitor show {report.run[-6:]}" if report.commit else ""


def _listed(title: str, lines: list[str]) -> str:
    shown = [f"- {' '.join(line.split())}" for line in lines[:LONGEST_LIST]]
    more = len(lines) - len(shown)
    return "\n".join([f"{title}:", *shown, *([f"- … and {more:,} more"] if more else [])])


def _counted(number: int, thing: str) -> str:
    return f"1 {thing}" if number == 1 else f"{number:,} {thing}s"


def _to_terminal(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def _to_desktop(text: str) -> None:
    """A popup where there is a desktop. Nobody waits for it."""
    body = textwrap.shorten(text, LONGEST_POPUP, placeholder=" …")
    if sys.platform == "darwin":
        script = ("on run argv", "display notification (item 1 of argv) with title (item 2 of argv)", "end run")
        _start(["osascript", *(part for line in script for part in ("-e", line)), body, "Quaid"])
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        markup = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        _start(["notify-send", "--app-name=Quaid", "--", "Quaid", markup])


def _start(argv: list[str]) -> None:
    """Run a program that outlives this one, though not for long."""
    if shutil.which(argv[0]) is None:
        raise FileNotFoundError(f"{argv[0]} is not installed")
    limit = ["timeout", str(DESKTOP_TIMEOUT_S)] if shutil.which("timeout") else []
    nowhere = subprocess.DEVNULL
    subprocess.Popen([*limit, *argv], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _to_file(root: Path, setting: str, text: str) -> None:
    state = root / layout.STATE_DIR / layout.LOG_DIR
    path = root / Path(setting).expanduser() if setting else state / NEWS_FILE
    if path.suffix not in _FILE_ENDINGS:
        raise ValueError(f"notifications.file is {setting!r}, and must end in {' or '.join(_FILE_ENDINGS)}")
    if not setting:
        state.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.lstat().st_size > LONGEST_FILE:
            path.replace(path.with_name(f"{path.name}.1"))
    when = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    entry = "\n".join(_indented(text.splitlines(), when)) + "\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(entry.encode())  # one write: two processes do not mix their lines


def _indented(lines: Iterable[str], when: str) -> Iterable[str]:
    for number, line in enumerate(lines):
        yield f"{when}  {line}" if number == 0 else f"  {line}".rstrip()


def _to_webhook(address: str, text: str) -> None:
    """POST {"text": …}. The address may be a secret: no remark shows more than its host."""
    import json
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.parse import urlsplit
    from urllib.request import Request, urlopen

    if not address:
        raise ValueError("notifications.webhook is empty; set it with QUAID_NOTIFICATIONS_WEBHOOK")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("notifications.webhook must begin with https:// or http://")
    body = json.dumps({"text": text}).encode()
    try:
        request = Request(address, body, {"Content-Type": "application/json", "User-Agent": "quaid"})  # noqa: S310 - http alone
        with urlopen(request, timeout=WEBHOOK_TIMEOUT_S):  # noqa: S310
            pass
    except HTTPError as error:
        raise OSError(f"{parts.hostname} answered {error.code}") from error
    except URLError as error:
        raise OSError(f"{parts.hostname} could not be reached ({error.reason})") from error
    except (HTTPException, ValueError, OSError) as error:
        raise OSError(f"{parts.hostname} could not be asked ({type(error).__name__})") from error
