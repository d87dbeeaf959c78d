"""True now, or on another day: `valid_from <= day < valid_until`, and not replaced. Every reader uses this rule.

A state has days, "Maya is on leave until 3 May". Of an event `valid_until` is only the date: "the book club meets on
12 May" is the answer to "when did the book club meet?" for ever. Like the periods of SQL:2011, a state does not hold on
the day of its end, so that of two homes one holds on the day of the move. It does where its text includes that day:
"through 3 May", "this week", "until the end of June".
"""

import re
from datetime import date, datetime, timedelta
from typing import Protocol

HAPPENED = frozenset({"event", "experience"})
"""The types of facts that have a date and no end."""

_GOES_ON = re.compile(r"\b(?:until|till?|through|thru|up to|as of)\s*(?:the)?\s*\Z", re.IGNORECASE)
"""Words after which a day is the last one of a state."""
_INCLUDING = re.compile(r"\b(?:through|thru|up to|including)\s*(?:the)?\s*\Z", re.IGNORECASE)
"""Those of them after which the day belongs to the state."""
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


class Replaceable(Lasting, Protocol):
    """The same of a fact that another may have replaced."""

    @property
    def superseded_by(self) -> str | None: ...


def find_end(fact: Lasting) -> str | None:
    """Return the first day on which a fact is no longer true (YYYY-MM-DD); None for what has no end or happened once.

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
    includes_day = False
    for moment in filter(None, seen_from):
        clock = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - a day alone
        for mention in find_dates(fact.text, clock):
            if wanted not in {mention.start, mention.end}:
                continue
            lead = fact.text[max(0, mention.span[0] - _LEAD_LENGTH) : mention.span[0]]
            is_until, is_now = mention.start == date.min, _NOW.match(mention.text) is not None
            if not is_until and not is_now and not _GOES_ON.search(lead):
                return None
            named = find_dates(mention.text.partition(" ")[2], clock) if is_until else (mention,)
            is_period = any(each.start < each.end for each in named)
            includes_day |= is_now or is_period or _INCLUDING.search(lead) is not None
    return (wanted + timedelta(days=includes_day)).isoformat()


def tell_days(fact: Lasting) -> list[str]:
    """Return the days of a fact in words: `since` and `until` of a state, `from` of one that was to begin after the
    statement, `on` or `between` of what happened or was to happen then.
    """
    first, last = (fact.valid_from or "")[:10], (fact.valid_until or "")[:10]
    if fact.type in HAPPENED or first == last:
        days = sorted({first, last} - {""})
        on = "on" if days and len(days[0]) == len("2026-11-20") else "in"
        return [f"between {' and '.join(days)}" if len(days) > 1 else f"{on} {days[0]}"] if days else []
    is_date = last and not first and find_end(fact) is None
    since = f"{'from' if first > (fact.created or '9')[:10] else 'since'} {first}" if first else ""
    return list(filter(None, (since, f"{'on' if is_date else 'until'} {last}" if last else "")))


def is_coming(fact: Lasting, today: str) -> bool:
    """Return whether a fact describes a state that begins after `today`; what will happen is known today."""
    return (fact.valid_from or "")[:10] > today and fact.type not in HAPPENED


def is_over(fact: Replaceable, day: str, replaced_on: str | None = None) -> bool:
    """Return whether a fact had ended or been replaced by `day` (YYYY-MM-DD). One that was replaced, nobody knows when
    (`replaced_on`), was over on every day.
    """
    if fact.superseded_by is not None and (replaced_on or "")[:10] <= day:
        return True
    if fact.valid_until is None or fact.valid_until[:10] > day:
        return False
    end = find_end(fact)
    return end is not None and end <= day


def is_true_on(fact: Replaceable, day: str, replaced_on: str | None = None) -> bool:
    """Return whether a fact had begun and was not over on `day` (YYYY-MM-DD)."""
    return (fact.valid_from or "")[:10] <= day and not is_over(fact, day, replaced_on)


def list_days(fact: Lasting) -> tuple[str, str]:
    """Return the first and the last day on which a fact was true, as far as it says: without a first day it was true
    when it was stated, without a last day it is for ever.
    """
    first, last = (fact.valid_from or "")[:10], (fact.valid_until or "")[:10]
    end = _parse(find_end(fact) or "")
    if end is not None and end < date.max:
        last = (end - timedelta(days=1)).isoformat()
    last = last or (first if fact.type in HAPPENED else date.max.isoformat())
    return first or min((fact.created or last)[:10], last), last


def _parse(day: str) -> date | None:
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None
