"""Date expressions of English and their windows of whole days. Loaded when a text looks dated: compiling takes time.

Each rule is a pattern and the function that reads its match, which returns None where it is no date after all. The
group `date`, where there is one, is the date without its preposition.
"""

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import TypeVar

T = TypeVar("T")
Window = tuple[date, date]
"""First and last day, both included."""
Resolve = Callable[[re.Match[str], date], Window | None]
ResolveLead = Callable[[re.Match[str], Window], Window | None]

_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_MONTH_NAMES = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_NEEDS_A_PREPOSITION = frozenset({"march", "april", "may", "june", "august"} | (_MONTHS.keys() - {*_MONTH_NAMES}))
"""Verbs, names of people and short forms."""
_VERBS = frozenset({"may", "march", "mar"})
_DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_WEEKDAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
_WEEKDAYS |= {name[:3]: number for name, number in _WEEKDAYS.items()}
_WEEKDAYS |= {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = {
    "a": (1, 1), "an": (1, 1), "one": (1, 1), "two": (2, 2), "three": (3, 3), "four": (4, 4), "five": (5, 5),
    "six": (6, 6), "seven": (7, 7), "eight": (8, 8), "nine": (9, 9), "ten": (10, 10),
    "eleven": (11, 11), "twelve": (12, 12), "couple": (2, 2), "few": (2, 5), "several": (3, 8),
}  # fmt: skip
"""Least and most."""
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": 4}
_AFTER_A_YEAR = frozenset(
    "and are did do does he i is it or she they through till to until was we were what when".split()  # noqa: SIM905
)
_LIKELY_SINCE, _LIKELY_AHEAD = 1990, 5
"""Four digits alone are a year from the first on, up to this many years from now."""
_YEAR = r"((?:19|20)[0-9]{2})"
_NUMBER = r"([0-9]{1,3}|" + "|".join(_NUMBERS) + ")"
_ANY_MONTH = "|".join(_MONTHS)
_ANY_WEEKDAY = "|".join(_WEEKDAYS)
_DAY = r"([0-9]{1,2})(st|nd|rd|th)?"
_BEFORE = "after|around|before|during|early|in|late|mid|since|through|till|until"
_PART = r"(?:beginning|end|half|middle|start|weekend|weeks?)\s+of"
_WHOLE_OF = r"(?:the\s+)?(?:(?:beginning|start|middle|end|early|late|mid)(?:\s+of)?[\s-]+)?"

RULES: list[tuple[re.Pattern[str], Resolve]] = []
"""The patterns of dates by themselves, given today."""
LEADS: list[tuple[re.Pattern[str], ResolveLead]] = []
"""The patterns that change the window of the date that they precede."""


def _register(rules: list[tuple[re.Pattern[str], T]], pattern: str) -> Callable[[T], T]:
    def register(resolve: T) -> T:
        rules.append((re.compile(pattern, re.IGNORECASE), resolve))
        return resolve

    return register


_rule = partial(_register, RULES)
_lead = partial(_register, LEADS)


@_rule(rf"(?<![\w-]){_YEAR}[-/]([0-9]{{1,2}})[-/]([0-9]{{1,2}})(?![0-9/-])")
def _iso_day(match: re.Match[str], _today: date) -> Window:
    day = date(int(match[1]), int(match[2]), int(match[3]))
    return day, day


@_rule(rf"(?<![\w-]){_YEAR}-(0[1-9]|1[0-2])(?![\w-])")
def _iso_month(match: re.Match[str], _today: date) -> Window:
    return month_of(int(match[1]), int(match[2]))


@_rule(rf"(?<![\w./])([0-9]{{1,2}})([/.])([0-9]{{1,2}})\2{_YEAR}\b")
def _numeric(match: re.Match[str], _today: date) -> Window | None:
    """`25/12/2022` and `8.5.2023`; `08/05/2023` is May here and August there."""
    first, second = int(match[1]), int(match[3])
    if match[2] == "/" and first != second and max(first, second) <= 12:
        return None
    number, month = (second, first) if second > 12 else (first, second)
    day = date(int(match[4]), month, number)
    return day, day


@_rule(rf"\b(?:{_DAY}\s*(?:-|–|to|and)\s*)?{_DAY}(\s+of)?\s+([a-z]{{3,9}})\b\.?(?:,?\s+{_YEAR}\b)?")  # noqa: RUF001
def _day_month(match: re.Match[str], today: date) -> Window | None:
    word, is_ordinal = match[6], bool(match[4] or match[5])
    month = _MONTHS.get(word.lower())
    if month is None or (word in _VERBS and not is_ordinal and match[7] is None):
        return None
    return _days_of(match[1] or match[3], match[3], month, match[7], today)


@_rule(rf"\b([a-z]{{3,9}})\.?\s+{_DAY}\b(?:\s*[-–]\s*([0-9]{{1,2}})\b)?(?:,?\s+{_YEAR}\b)?")  # noqa: RUF001
def _month_day(match: re.Match[str], today: date) -> Window | None:
    month = _MONTHS.get(match[1].lower())
    if month is None or (match[1] in _VERBS and not match[3] and match[5] is None):
        return None
    return _days_of(match[2], match[4] or match[2], month, match[5], today)


@_rule(rf"\b([a-z]{{3,9}})\.?,?(?:\s+of)?[\s-]+{_YEAR}\b(?![-/][0-9])")
def _month_year(match: re.Match[str], _today: date) -> Window | None:
    month = _MONTHS.get(match[1].lower())
    return month_of(int(match[2]), month) if month else None


@_rule(rf"\b(?:({_BEFORE}|{_PART})[\s-]+)?(?P<date>(?:(coming|last|next|past|this)\s+)?({_ANY_MONTH}))\b(?!['’]s)")  # noqa: RUF001
def _month(match: re.Match[str], today: date) -> Window | None:
    lead, word = (match[3] or "").lower(), match[4]
    month = _MONTHS.get(word.lower())
    if month is None or (word.lower() in _NEEDS_A_PREPOSITION and not (lead or match[1])):
        return None
    if lead == "this":
        return month_of(today.year, month) if word not in _VERBS else None
    if lead in {"next", "coming"}:
        return month_of(today.year + (month <= today.month), month)
    is_past = month < today.month or (month == today.month and lead not in {"last", "past"})
    return month_of(today.year - (not is_past), month)


@_rule(rf"\b(?:between|from)\s+({_ANY_MONTH})\s+(?:and|to|until|till|through)\s+({_ANY_MONTH})(?:\s+{_YEAR})?\b")
def _months(match: re.Match[str], today: date) -> Window | None:
    first, last = _MONTHS.get(match[1].lower()), _MONTHS.get(match[2].lower())
    if first is None or last is None:
        return None
    year = int(match[3]) if match[3] else today.year - (last > today.month)
    return month_of(year - (first > last), first)[0], month_of(year, last)[1]


@_rule(
    rf"(?<![\w$€£#./-])(?:({_BEFORE}|by|from|of|year)[\s-]+)?(?P<date>{_YEAR}(s?))\b(?![-/.][0-9])"
    r"(?=(\s+[\w-]+)?)"
)
def _year(match: re.Match[str], today: date) -> Window | None:
    """A number alone is a year at the end of a clause only; `2000 people` are not, even after `by`."""
    lead, year, is_decade, following = match[1], int(match[3]), bool(match[4]), (match[5] or "").strip().lower()
    if is_decade:
        return (date(year, 1, 1), date(year + 9, 12, 31)) if year % 10 == 0 else None
    if not lead and not _LIKELY_SINCE <= year <= today.year + _LIKELY_AHEAD:
        return None
    is_counted = following.endswith("s") or following == "people"
    if following and following not in _AFTER_A_YEAR and (not lead or is_counted):
        return None
    return date(year, 1, 1), date(year, 12, 31)


@_rule(r"\bthe\s+['’]?([0-9]0)s\b")  # noqa: RUF001
def _decade(match: re.Match[str], _today: date) -> Window:
    first = int(match[1]) + (1900 if int(match[1]) >= 30 else 2000)
    return date(first, 1, 1), date(first + 9, 12, 31)


@_rule(
    rf"\b(?:(?:({_BEFORE})\s+(?:the\s+)?)?(?P<date>(?:(coming|last|past|this|next)\s+)?"
    rf"(spring|summer|autumn|fall|winter)\b(?:,?(?:\s+of)?\s+{_YEAR}\b)?))(?!\s+of\b)"
)
def _season(match: re.Match[str], today: date) -> Window | None:
    lead, month = (match[3] or "").lower(), _SEASONS.get(match[4].lower())
    if month is None or not (lead or match[5] or match[1]):
        return None
    if match[5]:
        return season_of(int(match[5]), month)
    windows = [season_of(year, month) for year in range(today.year - 2, today.year + 3)]
    if lead in {"last", "past"}:
        return [window for window in windows if window[1] < today][-1]
    if lead in {"next", "coming"}:
        return next(window for window in windows if window[0] > today)
    if not lead:
        return [window for window in windows if window[0] <= today][-1]
    return next(window for window in windows if window[1] >= today)


@_rule(rf"\b(?:(?:Q([1-4])[\s,]*(?:of\s+)?|(\w+)\s+quarter\s+of\s+){_YEAR}|{_YEAR}[\s-]?Q([1-4]))\b")
def _quarter(match: re.Match[str], _today: date) -> Window | None:
    number = match[1] or match[5]
    quarter = int(number) if number else _ORDINALS.get(match[2].lower())
    return quarter_of(int(match[3] or match[4]), quarter) if quarter else None


@_rule(rf"\b(?:{_BEFORE}|last|this)\s+(?P<date>Q([1-4]))\b")
def _latest_quarter(match: re.Match[str], today: date) -> Window:
    quarter = int(match[2])
    return quarter_of(today.year - (3 * quarter - 2 > today.month), quarter)


@_rule(
    r"\b(?:the\s+)?(day\s+before\s+yesterday|day\s+after\s+tomorrow|(?:yesterday|tomorrow)(?:\s+(?:morning|afternoon|evening|night))?"
    r"|today|tonight|last\s+night|this\s+(?:morning|afternoon|evening))\b"
)
def _near_day(match: re.Match[str], today: date) -> Window:
    words = " ".join(match[1].lower().split())
    offsets = {"day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1, "day after tomorrow": 2}
    day = today + timedelta(days=offsets.get(words, offsets.get(words.split()[0], 0)))
    return day, day


@_rule(
    r"\b(the\s+)?(last|past|previous|this|current|next|coming)\s+(week|weekend|month|quarter|year|decade)\b"
    r"(?!\s+of\b)"
)
def _calendar_unit(match: re.Match[str], today: date) -> Window:
    """`last week` is the one before this; `the past week` are the seven days up to today, `the past weekend` the last
    whole one, and `the coming weekend` the first that has not begun.
    """
    lead, unit = match[2].lower(), match[3].lower()
    if unit == "weekend" and lead == "coming":
        return unit_of(today + timedelta(days=2), unit)
    if unit != "weekend" and (lead == "past" or (match[1] and lead == "last")):
        return span_up_to(today, 1, unit)
    step = {"last": -1, "previous": -1, "past": -1, "next": 1, "coming": 1}.get(lead, 0)
    return unit_of(shift(today, step, unit), unit)


@_rule(r"\b(?:the\s+)?(week|weekend|month|year)\s+(before\s+last|after\s+next)\b")
def _next_but_one(match: re.Match[str], today: date) -> Window:
    unit = match[1].lower()
    return unit_of(shift(today, -2 if match[2].lower().endswith("last") else 2, unit), unit)


@_rule(
    rf"\b(?:on\s+)?(?P<date>({_ANY_WEEKDAY})\s+(?:of\s+)?(last|this|next)\s+week"
    rf"|(last|this|next)\s+week(?:['’]s|,?\s+on)?\s+({_ANY_WEEKDAY}))\b"  # noqa: RUF001
)
def _day_of_week(match: re.Match[str], today: date) -> Window | None:
    weekday = _WEEKDAYS.get((match[2] or match[5]).lower())
    if weekday is None:
        return None
    step = {"last": -7, "next": 7}.get((match[3] or match[4]).lower(), 0)
    day = today + timedelta(days=step + weekday - today.weekday())
    return day, day


@_rule(rf"\b(last|past|previous|next|coming)\s+{_NUMBER}(?:\s+of)?\s+(day|week|month|year)s?\b(?!\s+of\b)")
def _rolling(match: re.Match[str], today: date) -> Window:
    count, unit = _max_count(match[2]), match[3].lower()
    if match[1].lower() in {"next", "coming"}:
        return today, shift(today, count, unit)
    return span_up_to(today, count, unit)


@_rule(rf"\b(?:a\s+)?{_NUMBER}(?:\s+of)?\s+(day|week|weekend|month|year|decade)s?\s+(ago|from\s+now)\b")
def _distance(match: re.Match[str], today: date) -> Window:
    """`two weeks ago` is a week, `two months ago` a month, not a day."""
    unit = match[2].lower()
    least, most = _NUMBERS.get(match[1].lower()) or (int(match[1]), int(match[1]))
    step = -1 if match[3].lower() == "ago" else 1
    ends = [unit_of(shift(today, step * count, unit), unit) for count in (least, most)]
    return min(start for start, _ in ends), max(end for _, end in ends)


@_rule(
    r"\b(?:(after|before|on|since|till|until)\s+)?(?P<date>(?:(coming|last|next|past|previous|this)\s+)?"
    rf"({_ANY_WEEKDAY}))\b(?=(\s+[\w]+)?)"
)
def _weekday(match: re.Match[str], today: date) -> Window | None:
    """`Friday Harbor` is a place and `sun` the star: a short form needs its capital, a capital after it says name."""
    lead, word, following = (match[3] or "").lower(), match[4], (match[5] or "").strip()
    weekday = _WEEKDAYS.get(word.lower())
    if weekday is None or not (lead or match[1]) or (len(word) < len("monday") and not word[0].isupper()):
        return None
    if following[:1].isupper() and not word.isupper() and following.lower() not in _MONTHS:
        return None
    if lead in {"this", "next"}:  # `next Friday`, on a Wednesday, is not the one of this week
        day = today + timedelta(days=weekday - today.weekday() + (7 if lead == "next" else 0))
    elif lead == "coming":
        day = nearest(today + timedelta(days=1), weekday, 1)
    else:
        day = nearest(today - timedelta(days=bool(lead)), weekday, -1)
    return day, day


@_lead(
    rf"\b(?:(?:on|in|during)\s+)?(?:(?:the|last)\s+)?(?:(?:a\s+)?{_NUMBER}(?:\s+of)?\s+)?"
    rf"(day|week|weekend|month|year|{_ANY_WEEKDAY})s?\s+(before|after|of)\s+(?:the\s+)?$"
)
def _relative(match: re.Match[str], anchor: Window) -> Window | None:
    unit, side = match[2].lower(), match[3].lower()
    if unit in _WEEKDAYS and not match[1]:
        if side == "before":
            day = nearest(anchor[0] - timedelta(days=1), _WEEKDAYS[unit], -1)
        else:
            day = nearest(anchor[1] + timedelta(days=1), _WEEKDAYS[unit], 1)
        return (day, day) if side != "of" else None
    if unit in _WEEKDAYS:
        return None
    if side == "of":
        is_day = anchor[0] == anchor[1]
        return unit_of(anchor[0], unit) if is_day and unit in {"week", "weekend"} and not match[1] else None
    step = -1 if side == "before" else 1
    count = _max_count(match[1]) if match[1] else 1
    edge = anchor[0] if side == "before" else anchor[1]
    if unit == "weekend":
        return unit_of(shift(edge, step * count, unit), unit)
    if unit == "day" or match[1]:
        day = shift(edge, step * count, unit)
        return (day, day) if unit == "day" else unit_of(day, unit)
    far = shift(edge, step, unit)
    return (far, edge - timedelta(days=1)) if side == "before" else (edge + timedelta(days=1), far)


@_lead(rf"\b(before|prior\s+to|after|since|until|till|up\s+to|by|as\s+of)\s+{_WHOLE_OF}$")
def _open_ended(match: re.Match[str], anchor: Window) -> Window | None:
    word = match[1].lower().split()[0]
    if word in {"before", "prior"}:
        return date.min, anchor[0] - timedelta(days=1)
    if word == "after":
        return anchor[1] + timedelta(days=1), date.max
    if word == "since":
        return anchor[0], date.max
    return date.min, anchor[1]


def _days_of(first: str, last: str, month: int, year: str | None, today: date) -> Window:
    if year is None:
        day = date(today.year, month, int(first))
        year = str(today.year - (day > today))
    return date(int(year), month, int(first)), date(int(year), month, int(last))


def _max_count(number: str) -> int:
    return _NUMBERS[number.lower()][1] if number.lower() in _NUMBERS else int(number)


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
