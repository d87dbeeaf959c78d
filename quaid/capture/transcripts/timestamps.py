"""The ways transcripts write a moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORMATS = (
    "%I:%M %p on %d %B, %Y",
    "%I:%M %p on %d %B %Y",
    "%d %B, %Y",
    "%d %B %Y",
    "%d %B %Y %H:%M",
    "%d %B %Y, %H:%M",
    "%d %B %Y %I:%M %p",
    "%B %d, %Y",
    "%B %d, %Y %H:%M",
    "%B %d, %Y %I:%M %p",
    "%B %d, %Y at %I:%M %p",
    "%d %b %Y",
    "%d %b %Y %H:%M",
    "%b %d, %Y",
    "%b %d, %Y %H:%M",
    "%b %d, %Y %I:%M %p",
    "%a, %d %b %Y %H:%M:%S %z",
    "%Y-%m-%d %I:%M %p",
    "%Y-%m-%d, %H:%M",
    "%Y-%m-%d, %H:%M:%S",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y, %H:%M",
    "%d.%m.%y, %H:%M",
)
_CLOCKS = ("", ", %H:%M", ", %H:%M:%S", ", %I:%M %p", ", %I:%M:%S %p", " %H:%M", " %H:%M:%S", " %I:%M %p")
_DATES_DAY_FIRST = ("%d/%m/%Y", "%d/%m/%y")
_DATES_MONTH_FIRST = ("%m/%d/%Y", "%m/%d/%y")
_SLASHED = tuple(date + clock for date in (*_DATES_DAY_FIRST, *_DATES_MONTH_FIRST) for clock in _CLOCKS)

_EPOCH = re.compile(r"[0-9]{9,13}(?:\.[0-9]+)?")
_HALF_OF_DAY = re.compile(r"\b([ap])\.?m\b\.?", re.IGNORECASE)
_EARLIEST_MILLISECONDS = 100_000_000_000


def parse_timestamp(value: object) -> datetime | None:
    """`value` as a UTC time; None when it cannot be read as one, or could be read as two.

    ISO 8601, epoch seconds or milliseconds (number or digits), and the written forms of chat logs such as
    `1:56 pm on 8 May, 2023`. A time without a zone is taken as UTC. Never raises.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_epoch(value)
    if not isinstance(value, str) or len(value) > 64:
        return None
    text = _HALF_OF_DAY.sub(r"\1m", " ".join(value.split()))
    if _EPOCH.fullmatch(text):
        return _from_epoch(float(text))
    moment = _parse(text)
    if moment or not any(character.isdigit() for character in text):
        return moment
    for form in _FORMATS:
        if moment := _parse(text, form):
            return moment
    # 3/4/2026 is the third of April or the fourth of March, and no one can tell.
    readings = {moment for form in _SLASHED if (moment := _parse(text, form))}
    return readings.pop() if len(readings) == 1 else None


def _from_epoch(number: float) -> datetime | None:
    try:
        seconds = number / 1000 if abs(number) >= _EARLIEST_MILLISECONDS else number
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _parse(text: str, form: str | None = None) -> datetime | None:
    """The time that ISO 8601, or the format `form`, reads in `text`."""
    try:
        moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007 - most have no zone
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
