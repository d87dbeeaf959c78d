"""Where the machine's zone is UTC, commands reckon days in the zone of the setting `timezone`."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from command_line import quaid

from quaid import Memory


def test_today_is_the_owners_day(vault, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    # At any hour, one of these zones has another day than UTC.
    zone = "Pacific/Kiritimati" if datetime.now(UTC).hour >= 11 else "Etc/GMT+12"
    monkeypatch.setenv("QUAID_TIMEZONE", zone)
    today = datetime.now(ZoneInfo(zone)).date()
    code, out, _ = quaid("stats", "--health", "--json", "--vault", str(vault.root))
    assert (code, json.loads(out)["until"]) == (0, today.isoformat())
    with Memory.open(vault.root) as memory:
        memory.remember("Maya lives in Ghent", valid_from=today.isoformat())
        memory.link("Maya", "lives_in", "Ghent")
        (known,) = memory.get("Maya").known
    assert known.startswith("Maya lives in Ghent")
    _, out, _ = quaid("list", "--kind", "fact", "--since", "today", "--json", "--vault", str(vault.root))
    assert len(json.loads(out)["notes"]) >= 1
