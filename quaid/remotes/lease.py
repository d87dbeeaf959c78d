"""The lease of the janitor: of the machines that share a vault, one tidies it. Pure.

It is a commit without files in a ref that only moves on, so that of two machines that want it the first to push has
it. It says who holds it until when; a holder renews it each night, and one that stays away loses it.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from quaid.text.invisible import without_unseen

LASTS = timedelta(hours=36)
_MAX_NAME = 60


class Lease(NamedTuple):
    """Who tidies: the id and the name of a clone, and until when in UTC."""

    holder: str
    name: str
    until: datetime


def parse_lease(text: str) -> Lease | None:
    """Return the lease that a commit's message tells; None if it is none."""
    try:
        stored = json.loads(text)
        until = datetime.fromisoformat(stored["until"]).astimezone(UTC)
        name = " ".join(without_unseen(str(stored["name"])).split())[:_MAX_NAME]
        return Lease(str(stored["holder"])[:_MAX_NAME], name or "another machine", until)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def render_lease(device: tuple[str, str], now: datetime) -> str:
    """Return the lease of this clone from `now` on, as the message of its commit."""
    until = (now + LASTS).astimezone(UTC).replace(microsecond=0)
    return json.dumps({"holder": device[0], "name": device[1], "until": until.isoformat()})


def blocks_run(lease: Lease, device: tuple[str, str], now: datetime) -> bool:
    """Return whether another clone holds a lease that counts. One that claims to last longer than any is given does
    not.
    """
    return lease.holder != device[0] and now < lease.until <= now + 2 * LASTS
