"""The day a fact ends: events stay true, states end. All callers that show or hide facts by it use this rule.

`valid_until` is the last day of a state, "Maya is on leave until 3 May", which is not true the day after. Of an event
it is only the date: "the book club meets on 12 May" is the answer to "when did the book club meet?" for ever.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Protocol

HAPPENED = frozenset({"event", "experience"})
"""The types of facts that have a date and no end."""

_GOES_ON = re.compile(r"\b(?:until|till?|through|thru|up to|as of)\s*(?:the)?\s*\Z", re.IGNORECASE)
"""Words after which a day is the last one of a state."""
_NOW = re.compile(r"\A(?:this|today|tonight|now|current)\b", re.IGNORECASE)
_LEAD_LENGTH = 24


class Lasting(Protocol):
    """The fields of a fact that decide whether it ends; times are ISO 8601."""

    @property
    def text(self) -> str: ...

    @property
    def type(self) -> str | None: ...

    @property
    def durability(self) -> str | None: ...

    @property
    def created(self) -> str | None: ...

    @property
    def valid_from(self) -> str | None: ...

    @property
    def valid_until(self) -> str | None: ...


def find_last_day(fact: Lasting) -> str | None:
    """Return the last day on which a fact is true (YYYY-MM-DD); None for what has no end or happened once.

    Whatever cannot change (`immutable`), an event, an experience, what began and ended on one day, and a plan whose
    statement names its day never end.
    """
    last = (fact.valid_until or "")[:10]
    if not last or fact.durability == "immutable" or fact.type in HAPPENED or (fact.valid_from or "")[:10] == last:
        return None
    from quaid.text.dates import find_dates

    wanted = _parse(last)
    if wanted is None or wanted == date.max:
        return last
    # From the day after, "3 May" is that day and no word like "today" is; only from the day of the statement,
    # "tomorrow" and "next Sunday" are.
    seen_from = [wanted + timedelta(days=1), _parse((fact.created or "")[:10])]
    for moment in filter(None, seen_from):
        for mention in find_dates(fact.text, datetime(moment.year, moment.month, moment.day)):  # noqa: DTZ001 - a day alone
            lead = fact.text[max(0, mention.span[0] - _LEAD_LENGTH) : mention.span[0]]
            is_day = mention.start != date.min and wanted in (mention.start, mention.end)
            if is_day and not _NOW.match(mention.text) and not _GOES_ON.search(lead):
                return None
    return last


def tell_days(fact: Lasting) -> list[str]:
    """Return the days of a fact in words: `since` and `until` of a state, `on` or `between` of what happened or was to
    happen then.
    """
    first, last = (fact.valid_from or "")[:10], (fact.valid_until or "")[:10]
    if fact.type in HAPPENED or first == last:
        days = sorted({first, last} - {""})
        return [f"between {' and '.join(days)}" if len(days) > 1 else f"on {days[0]}"] if days else []
    is_date = last and not first and find_last_day(fact) is None
    since, until = f"since {first}" if first else "", f"{'on' if is_date else 'until'} {last}" if last else ""
    return list(filter(None, (since, until)))


def is_over(fact: Lasting, today: str) -> bool:
    """Return whether a fact was true only until a day before `today` (YYYY-MM-DD)."""
    if fact.valid_until is None or fact.valid_until[:10] >= today:
        return False
    last = find_last_day(fact)
    return last is not None and last < today


def is_true_on(fact: Lasting, day: str, *, is_replaced: bool) -> bool:
    """Return whether a fact had begun and was not over on `day` (YYYY-MM-DD). One that was replaced, nobody knows when,
    was true on none.
    """
    if (fact.valid_from or "")[:10] > day:
        return False
    return day <= (fact.valid_until or "")[:10] if is_replaced else not is_over(fact, day)


def _parse(day: str) -> date | None:
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None
