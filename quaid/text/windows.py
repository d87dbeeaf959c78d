"""Whole days, weeks, months and years around a day."""

from __future__ import annotations

from datetime import date, timedelta

Window = tuple[date, date]
"""First and last day, both included."""

_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def month_of(year: int, month: int) -> Window:
    return unit_of(date(year, month, 1), "month")


def season_of(year: int, month: int) -> Window:
    """Return the three months that begin with `month`."""
    return date(year, month, 1), shift(date(year, month, 1), 3, "month") - timedelta(days=1)


def quarter_of(year: int, quarter: int) -> Window:
    return season_of(year, 3 * quarter - 2)


def unit_of(day: date, unit: str) -> Window:
    """Return the whole calendar unit that holds `day`; of a weekend, the one of its week."""
    monday = day - timedelta(days=day.weekday())
    if unit == "day":
        return day, day
    if unit == "week":
        return monday, monday + timedelta(days=6)
    if unit == "weekend":
        return monday + timedelta(days=5), monday + timedelta(days=6)
    months = _MONTHS_IN[unit]
    past = (day.year * 12 + day.month - 1) % months
    first = shift(day.replace(day=1), -past, "month")
    return first, shift(first, months, "month") - timedelta(days=1)


def span_up_to(today: date, count: int, unit: str) -> Window:
    """Return the last `count` units, today included."""
    return shift(today, -count, unit) + timedelta(days=1), today


def shift(day: date, count: int, unit: str) -> date:
    """Return `day` some `unit`s later, or earlier for a negative count; the 31st becomes the last of a short month."""
    from dateutil.relativedelta import relativedelta

    if unit in {"day", "week", "weekend"}:
        return day + timedelta(days=count * (1 if unit == "day" else 7))
    found: date = day + relativedelta(months=count * _MONTHS_IN[unit])
    return found


def nearest(day: date, weekday: int, step: int) -> date:
    """Return `day` itself or the closest such weekday before (-1) or after (1) it."""
    from dateutil.relativedelta import relativedelta, weekdays

    found: date = day + relativedelta(weekday=weekdays[weekday](step))
    return found
