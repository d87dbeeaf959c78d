"""Moments in the zone of the person who lives them: their days are the days that people mean."""

import time
from datetime import UTC, date, datetime, timedelta, tzinfo
from datetime import time as clock
from datetime import timezone as fixed_offset


def localise(moment: datetime, timezone: str = "", other: tzinfo | None = None) -> datetime:
    """Return `moment` with the offset of its speaker: its own, else the `other` one of its conversation, else that of
    the machine's zone at that moment, else, on a machine in UTC (a server, a container), of the zone called `timezone`.

    UTC is no offset of a speaker, as programs write it for people in every zone. A time without an offset is what the
    speaker's clock showed.
    """
    if moment.utcoffset():
        return moment
    zone = other
    # The machine's zone is UTC when it has neither an offset nor a summer time.
    if timezone and zone is None and not (time.timezone or time.daylight):
        from zoneinfo import ZoneInfo

        zone = ZoneInfo(timezone)
    try:
        found = (moment if moment.tzinfo or zone is None else moment.replace(tzinfo=zone)).astimezone(zone)
    except (OverflowError, ValueError, OSError):  # on the first or the last day of the calendar
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Offsets before 1900 have seconds, which not every reader of ISO 8601 accepts.
    minutes = round((found.utcoffset() or timedelta()) / timedelta(minutes=1))
    return found.replace(tzinfo=fixed_offset(timedelta(minutes=minutes)) if minutes else UTC)


def local_now(timezone: str = "") -> datetime:
    """Return the present moment in the zone of the machine, else in `timezone`."""
    return localise(datetime.now(UTC), timezone)


def read_local(iso: str, timezone: str = "") -> datetime | None:
    """Return a moment (ISO 8601) as the clock of this machine shows it, in UTC that of the zone called `timezone`; None
    for a day, and for what is no date. A time without an offset is what that clock showed.
    """
    try:
        moment = datetime.fromisoformat(iso)
        return localise(moment.astimezone(UTC) if moment.tzinfo else moment, timezone) if "T" in iso else None
    except (OverflowError, ValueError):
        return None


def local_time(iso: str, timezone: str = "") -> str:
    """Return a moment by that clock as ISO 8601; a day, and what is no date, stay as they are."""
    local = read_local(iso, timezone)
    return local.isoformat() if local else iso


def local_day(iso: str, timezone: str = "") -> str:
    """Return the day of a moment by that clock, YYYY-MM-DD."""
    return local_time(iso, timezone)[: len("2026-03-14")]


def limit_of_day(day: date, timezone: str = "", *, end: bool = False) -> datetime:
    """Return the first or, with `end`, the last moment of a day by that clock."""
    return localise(datetime.combine(day, clock.max if end else clock.min), timezone)


def order_key(iso: str | None) -> str:
    """Return a key that orders moments (ISO 8601) of all offsets; what is none is its own key."""
    try:
        moment = datetime.fromisoformat(iso or "")
        return moment.astimezone(UTC).isoformat() if moment.tzinfo else iso or ""
    except (ValueError, OverflowError):
        return iso or ""
