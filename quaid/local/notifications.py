"""News of background work, sent to the owner: to the terminal, the desktop, a file, a webhook or the agent's program.

News that could not be delivered never fail a run: they leave a remark.
"""

import os
import sys
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from quaid.http import UnreachableError, Wire
from quaid.local import state_files
from quaid.place import LOG_DIR, state_folder
from quaid.redaction import admit
from quaid.settings import NotificationSettings
from quaid.text.quoting import neutralise

Level = Literal["off", "summary", "full"]
Feature = Literal["janitor", "extraction", "retrieval", "docs", "digest", "search"]
"""`digest` is what was learned since the last run, `search` a search of an agent in the documents of projects."""
NEWS_FILE = "news.log"
HOST_FILE = "news-for-host.txt"
MAX_HOST_CHARS = 2_000
"""Of the news that waited for the owner to go on in a program of an agent, the newest."""
MAX_HOST_BYTES = 100_000
WEBHOOK_TIMEOUT_S = 5.0
DESKTOP_TIMEOUT_S = 10
MAX_POPUP_CHARS = 240
MAX_FILE_BYTES = 1_000_000
"""The maximum size of the news file; a longer one is renamed, and a new one begun."""
_FILE_ENDINGS = (".log", ".txt")
"""quaid.toml is part of the vault: a change of it must not make Quaid write into a shell's start-up file."""
CHANNELS = ("terminal", "desktop", "file", "webhook", "host")
_FEATURES: tuple[Feature, ...] = get_args(Feature)
_LEVELS: tuple[Level, ...] = get_args(Level)
_OFF: dict[Feature, Level] = dict.fromkeys(_FEATURES, "off")
_PRESETS: dict[str, dict[Feature, Level]] = {
    "quiet": _OFF,
    "normal": {**_OFF, "janitor": "summary", "retrieval": "summary", "docs": "summary"},
    "verbose": dict.fromkeys(_FEATURES, "summary"),
    "debug": dict.fromkeys(_FEATURES, "full"),
}


def level_of(settings: NotificationSettings, feature: Feature) -> Level:
    """Return how much is reported of `feature`."""
    own = [level for level in _LEVELS if level in _list_own(settings, feature)]
    return own[-1] if own else _PRESETS[settings.level][feature]


def list_channels(settings: NotificationSettings, feature: Feature) -> list[str]:
    """Return the names of the channels that are set for `feature`, known or not."""
    own = [value for value in _list_own(settings, feature) if value not in _LEVELS]
    return own or _split(settings.channels)


def _list_own(settings: NotificationSettings, feature: Feature) -> list[str]:
    """Return the levels and channels that `notifications.features` has for `feature`."""
    pairs = (entry.partition("=") for entry in _split(settings.features))
    return [value.strip() for name, _, value in pairs if name.strip() == feature]


def _split(setting: str) -> list[str]:
    return list(dict.fromkeys(part.strip().lower() for part in setting.split(",") if part.strip()))


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
    wanted = list_channels(settings, feature)
    known = ", ".join(CHANNELS)
    remarks = [
        f"notifications.* names {name!r}, which is not one of {known}" for name in wanted if name not in CHANNELS
    ]
    for channel in [name for name in wanted if name in only]:
        try:
            if channel == "terminal" and sys.stderr.isatty():
                print(shown, file=sys.stderr)
            elif channel == "desktop":
                _to_desktop(shown)
            elif channel == "file":
                _to_file(root, settings.file, shown)
            elif channel == "webhook":
                _to_webhook(settings.webhook, shown)
            elif channel == "host":  # the next event of a program that an agent runs in: there its owner is
                state_files.rotate(path := state_folder(root) / HOST_FILE, MAX_HOST_BYTES)
                state_files.append(path, shown)
        except (OSError, ValueError) as error:
            remarks.append(f"The news could not be delivered by {channel}: {error}")
    return remarks


def take_host_news(root: Path) -> str:
    """Return the news that wait for the program in which the owner goes on next, once; empty if there are none."""
    path = state_folder(root) / HOST_FILE
    taken = path.with_suffix(".taken")
    with suppress(OSError):
        path.replace(taken)  # two sessions that begin at once: one of them has it
        return taken.read_text(encoding="utf-8", errors="replace").strip()[-MAX_HOST_CHARS:]
    return ""


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
