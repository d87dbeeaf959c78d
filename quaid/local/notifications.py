"""News of background work, sent to the owner: to the terminal, the desktop, a file or a webhook.

News that could not be delivered never fail a run: they leave a remark.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from quaid.http import UnreachableError, Wire
from quaid.local import state_files
from quaid.place import LOG_DIR, state_folder
from quaid.redaction import admit
from quaid.settings import NotificationSettings
from quaid.text.quoting import neutralise

Level = Literal["off", "summary", "full"]
Feature = Literal["janitor", "extraction", "retrieval", "docs"]
NEWS_FILE = "news.log"
WEBHOOK_TIMEOUT_S = 5.0
DESKTOP_TIMEOUT_S = 10
MAX_POPUP_CHARS = 240
MAX_FILE_BYTES = 1_000_000
"""The maximum size of the news file; a longer one is renamed, and a new one begun."""
_FILE_ENDINGS = (".log", ".txt")
"""quaid.toml is part of the vault: a change of it must not make Quaid write into a shell's start-up file."""
CHANNELS = ("terminal", "desktop", "file", "webhook")
_PRESETS: dict[str, dict[Feature, Level]] = {
    "quiet": {"janitor": "off", "extraction": "off", "retrieval": "off", "docs": "off"},
    "normal": {"janitor": "summary", "extraction": "off", "retrieval": "summary", "docs": "summary"},
    "verbose": {"janitor": "summary", "extraction": "summary", "retrieval": "summary", "docs": "summary"},
    "debug": {"janitor": "full", "extraction": "full", "retrieval": "full", "docs": "full"},
}


def level_of(settings: NotificationSettings, feature: Feature) -> Level:
    """Return how much is reported of `feature`."""
    return _PRESETS[settings.level][feature]


def list_channels(settings: NotificationSettings) -> list[str]:
    """Return the names of the channels that are set, known or not."""
    return list(dict.fromkeys(name.strip().lower() for name in settings.channels.split(",") if name.strip()))


def deliver(
    root: Path, settings: NotificationSettings, feature: Feature, text: str, only: Collection[str] = CHANNELS
) -> list[str]:
    """Send news of `feature` through those channels of the settings that are in `only`; return a remark for each that
    failed.

    `text` is redacted and its control characters are removed: quoted memories must not act on a terminal or a desktop.
    """
    if not text.strip() or level_of(settings, feature) == "off":
        return []
    shown = neutralise(admit(text).text).strip()
    remarks = []
    for channel in list_channels(settings):
        try:
            if channel not in CHANNELS:
                remarks.append(f"notifications.channels names {channel!r}, which is not one of {', '.join(CHANNELS)}")
            elif channel not in only:
                continue
            elif channel == "terminal" and sys.stderr.isatty():
                print(shown, file=sys.stderr)
            elif channel == "desktop":
                _to_desktop(shown)
            elif channel == "file":
                _to_file(root, settings.file, shown)
            elif channel == "webhook":
                _to_webhook(settings.webhook, shown)
        except (OSError, ValueError) as error:
            remarks.append(f"The news could not be delivered by {channel}: {error}")
    return remarks


def _to_desktop(text: str) -> None:
    """Show a popup where there is a desktop, and do not wait for it."""
    import textwrap

    body = textwrap.shorten(text, MAX_POPUP_CHARS, placeholder=" …")
    if sys.platform == "darwin":
        script = ("on run argv", "display notification (item 1 of argv) with title (item 2 of argv)", "end run")
        _start(["osascript", *(part for line in script for part in ("-e", line)), body, "Quaid"])
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        markup = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        _start(["notify-send", "--app-name=Quaid", "--", "Quaid", markup])


def _start(argv: list[str]) -> None:
    """Run a program that outlives this one, though not for long."""
    import shutil
    import subprocess

    if shutil.which(argv[0]) is None:
        raise FileNotFoundError(f"{argv[0]} is not installed")
    limit = ["timeout", str(DESKTOP_TIMEOUT_S)] if shutil.which("timeout") else []
    nowhere = subprocess.DEVNULL
    subprocess.Popen([*limit, *argv], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _to_file(root: Path, setting: str, text: str) -> None:
    state = state_folder(root) / LOG_DIR
    path = root / Path(setting).expanduser() if setting else state / NEWS_FILE
    if path.suffix not in _FILE_ENDINGS:
        raise ValueError(f"notifications.file is {setting!r}, and must end in {' or '.join(_FILE_ENDINGS)}")
    if not setting:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_files.rotate(path, MAX_FILE_BYTES)
    lines = "\n".join(f"  {line}".rstrip() for line in text.splitlines())
    entry = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}{lines}\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "ab") as file:
        file.write(entry.encode())  # one write: two processes do not mix their lines


def _to_webhook(address: str, text: str) -> None:
    """POST {"text": …}. The address may be a secret: no remark shows more than its host."""
    import time
    from urllib.parse import urlsplit

    if not address:
        raise ValueError("notifications.webhook is empty; set it with QUAID_NOTIFICATIONS_WEBHOOK")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("notifications.webhook must begin with https:// or http://")
    headers = {"user-agent": "quaid"}
    deadline = time.monotonic() + WEBHOOK_TIMEOUT_S
    try:
        with Wire(address).stream("", deadline, payload={"text": text}, headers=headers) as response:
            status = response.status_code
    except TimeoutError as error:
        raise OSError(f"{parts.hostname} did not answer in {WEBHOOK_TIMEOUT_S:g} s") from error
    except UnreachableError as error:
        raise OSError(f"{parts.hostname} could not be reached") from error
    if not 200 <= status < 300:
        raise OSError(f"{parts.hostname} answered {status}")
