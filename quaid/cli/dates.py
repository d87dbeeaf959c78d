"""Days and moments as they are typed behind an option."""

from __future__ import annotations

from datetime import UTC, date, datetime

from quaid.errors import UsageError
from quaid.text.dates import parse_day


def parse_option_day(option: str, text: str | None, now: datetime, *, end: bool) -> date | None:
    """Return the first, or with `end` the last, day of a typed date; None where the option was not given.

    Raises:
        UsageError: it is not a date.
    """
    if text is None:
        return None
    try:
        return parse_day(text, now, end=end)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error


def parse_option_moment(option: str, text: str | None, now: datetime) -> datetime | None:
    """Return a moment such as `2026-11-20T14:30`, else the beginning of a day; in UTC where no offset is given.

    Raises:
        UsageError: it is neither.
    """
    if text is None:
        return None
    if "T" in text or ":" in text:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            pass
        else:
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    day = parse_option_day(option, text, now, end=False)
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


def check_period(since_option: str, first: date | None, until_option: str, last: date | None) -> None:
    """Refuse a period that ends before it begins.

    Raises:
        UsageError
    """
    if first and last and first > last:
        raise UsageError(
            f"{since_option} {first} is after {until_option} {last}, so nothing is between them. Swap the two."
        )
