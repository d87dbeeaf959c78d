"""Dates in a text, as windows of whole days: `last March` is all of it, `before June 2023` is open to the past.

No date library reports how wide a date is, or leaves `may` the verb and `Friday Harbor` alone, so dates are found here
and `dateutil` does the arithmetic of months and weekdays. It and the patterns are loaded only when a word looks like a
date.

A missed date costs a little rank, an imagined one hides the answer: ambiguous words are no dates. A date without a year
is the latest one that has begun, as memory looks back. Weeks begin on Monday; a season has three whole months of the
northern year, and winter has the year that it begins in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from quaid.errors import UsageError
from quaid.text.language import language

if TYPE_CHECKING:
    from quaid.text.date_patterns import Window
    from quaid.text.other_dates import Leads

T = TypeVar("T")


class DateMention(NamedTuple):
    """`text` is `question[i:j]` for `span` (i, j). An open end is `date.min` or `date.max`.

    A named tuple, as a dataclass takes half a millisecond of every start to make.
    """

    text: str
    start: date
    end: date
    span: tuple[int, int]


_UNITS = frozenset("day days week weeks weekend weekends month months quarter year years decade decades".split())  # noqa: SIM905
_SIGNS = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed weds thu thur thurs
    fri sat sun yesterday today tonight tomorrow ago now night morning afternoon evening q1 q2 q3 q4""".split()  # noqa: SIM905
)
_DIRECTIONS = frozenset({"last", "next", "this", "past", "previous", "current", "coming"})
_DIRECTED = _UNITS | {"spring", "summer", "autumn", "fall", "winter"}
_SIGN = re.compile(r"[^\W\d_]\w*|(?:19|20)[0-9]{2}|[0-9]0s")
_OTHER_SIGNS = {
    "de": frozenset(
        """januar februar märz april mai juni juli august september oktober november dezember vorgestern gestern heute
        morgen übermorgen woche wochen wochenende monat monate monaten jahr jahre jahren tag tagen""".split()  # noqa: SIM905
    ),
    "fr": frozenset(
        """janvier février mars avril mai juin juillet août septembre octobre novembre décembre hier demain aujourd jour
        jours semaine semaines mois an ans année années week""".split()  # noqa: SIM905
    ),
    "es": frozenset(
        """enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre anteayer ayer hoy
        mañana semana semanas mes meses día días año años""".split()  # noqa: SIM905
    ),
    "pt": frozenset(
        """janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro anteontem ontem hoje
        amanhã semana semanas dia dias mês meses ano anos""".split()  # noqa: SIM905
    ),
}
_HAN_SIGN = "[年月日号天晚周週星礼前昨今明后後先来あき]"
"""Letters of which every date in Chinese or Japanese has one."""
_MAX_LEAD = 60
_MAX_TYPED = 80
_IN_NAME = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})([-_.]?)([0-9]{2})\2([0-9]{2})(?:T?[0-9]{4}|T?[0-9]{6})?(?![0-9])")
_IN_HAN = re.compile("((?:19|20)[0-9]{2})(年|년) ?([0-9]{1,2})[月월] ?([0-9]{1,2})[日일]")
_MOMENT = re.compile(
    r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:(?:T|\s+)([01]?[0-9]|2[0-3])(:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?)\s*(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_EPOCH = re.compile(r"[12][0-9]{9}(?:[0-9]{3})?")
_WEEKDAY = re.compile(r"(?:[^\W\d_]+[.,]?\s+)?")
_TIME_OF_DAY = re.compile(
    r"(?:[\s,]*(?:(?:T|at|um)\s*)?(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?:\s*(?:[ap]\.?m\.?|Uhr))?"
    r"(?:\s*(?=[A-Z+-])[A-Z]{0,4}(?:[+-][0-9]{2}:?[0-9]{2})?)?(?:\s*\([\w ]+\))?)?",
    re.IGNORECASE,
)
_ANY_MOMENT = datetime(2000, 1, 1)  # noqa: DTZ001
_LEADS_TYPED = frozenset({"", "in", "on", "the", "in the"})
_UP_TO = frozenset({"to", "until", "till", "through", "-", "–"})  # noqa: RUF001


def find_dates(text: str, now: datetime) -> tuple[DateMention, ...]:
    """Return the dates that any `text` mentions, in its order, without overlaps. `now` is its reader's clock."""
    signs = set(_SIGN.findall(text.lower()))
    other = _find_other_language(text, signs)
    has_direction = not signs.isdisjoint(_DIRECTIONS) and not signs.isdisjoint(_DIRECTED)
    has_date = not signs.isdisjoint(_SIGNS) or any(sign[0].isdigit() for sign in signs)
    if other is None and not has_date and not has_direction:
        return ()
    from quaid.text.date_patterns import LEADS, RULES
    from quaid.text.other_dates import leads_of, rules_of

    today = now.date()
    found = []
    leads = [*LEADS, *leads_of(other)]
    for pattern, resolve in [*RULES, *rules_of(other)]:
        for match in pattern.finditer(text):
            if window := _resolved(resolve, match, today):
                span = match.span("date" if "date" in pattern.groupindex else 0)
                found.append(DateMention(text[slice(*span)], *window, span))
    found = _without_overlaps(found)
    found = _without_overlaps([*found, *(wider for mention in found if (wider := _with_lead(text, mention, leads)))])
    return tuple(_with_ranges(text, found))


def parse_day(text: str, now: datetime, *, end: bool) -> date:
    """Return the first, or with `end` the last, day of a typed date: `2026`, `2026-03`, `last March`, `yesterday`.

    Raises:
        UsageError: `text` is not a date, or that end of it is open.
    """
    wanted = text.strip()
    if len(wanted) <= _MAX_TYPED:
        for lead in ("", "in ", "on "):
            asked = lead + wanted
            for mention in find_dates(asked, now):
                day = mention.end if end else mention.start
                is_whole = mention.span[1] == len(asked) and asked[: mention.span[0]].strip().lower() in _LEADS_TYPED
                if is_whole and date.min < day < date.max:
                    return day
    problem = f"{wanted[:_MAX_TYPED]!r} is not a date Quaid can read."
    raise UsageError(f"{problem} Write it as 2026-03-01, 2026-03 or 2026, or as last March.")


def find_day_in_name(name: str) -> str | None:
    """Return the one day that the name of a file gives with its year (`2026-03-14 Standup`, `2026_03_14`,
    `202603141200`, `14 Mar 2026`) as `2026-03-14`; None where there is none, or several.
    """
    days = set()
    for year, _, month, day in [*_IN_NAME.findall(name), *_IN_HAN.findall(name)]:
        with suppress(ValueError):
            days.add(date(int(year), int(month), int(day)))
    if not days:
        mentions = find_dates(name.replace("_", " "), _ANY_MOMENT)
        days = {each.start for each in mentions if each.start == each.end and str(each.start.year) in each.text}
    return days.pop().isoformat() if len(days) == 1 else None


def read_date(written: str) -> str | None:
    """Return a date as people and programs write it into a property, as ISO 8601 (`2026-03-14`, or with its time and
    zone); None where it does not state one day beyond doubt, as `03/04/2026`, `2026` and `24:00` do not.
    """
    text = written.strip()
    if text.startswith("["):  # a daily note, as Obsidian and Logseq link it
        text = text.strip("[]").partition("|")[0].rpartition("/")[2].strip()
    try:
        if found := _MOMENT.fullmatch(text):
            year, _, month, day, hour, rest, zone = found.groups("")
            moment = f"{year}-{month:0>2}-{day:0>2}" + (f"T{hour:0>2}{rest}{zone}" if hour else "")
            return moment if datetime.fromisoformat(moment) else None
        if _EPOCH.fullmatch(text):
            return datetime.fromtimestamp(int(text[:10]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None
    if text.isdigit():
        return find_day_in_name(text)
    mentions = find_dates(text, _ANY_MOMENT) if len(text) <= _MAX_TYPED else ()
    if (
        len(mentions) != 1
        or mentions[0].start != mentions[0].end
        or str(mentions[0].start.year) not in mentions[0].text
    ):
        return None
    before, after = text[: mentions[0].span[0]], text[mentions[0].span[1] :]
    return mentions[0].start.isoformat() if _WEEKDAY.fullmatch(before) and _TIME_OF_DAY.fullmatch(after) else None


def _find_other_language(text: str, signs: AbstractSet[str]) -> str | None:
    """Return the language other than English in which a text may name a date, where that is clear."""
    likely = {code for code, own in _OTHER_SIGNS.items() if not own.isdisjoint(signs)}
    if not text.isascii() and re.search(_HAN_SIGN, text):
        likely |= {"zh", "ja"}
    spoken_in = language(text) if likely else None
    if spoken_in is None and len(likely) == 1:
        return likely.pop()
    return spoken_in if spoken_in in likely else None


def _resolved(resolve: Callable[[re.Match[str], T], Window | None], match: re.Match[str], given: T) -> Window | None:
    try:
        window = resolve(match, given)
    except (ValueError, OverflowError):  # the calendar has no such day
        return None
    return window if window is None or window[0] <= window[1] else None


def _without_overlaps(mentions: list[DateMention]) -> list[DateMention]:
    """Return of two that overlap the longer, in the order of the text."""
    found: list[DateMention] = []
    taken: set[int] = set()
    for mention in sorted(mentions, key=lambda mention: (mention.span[0] - mention.span[1], mention.span[0])):
        place = range(*mention.span)
        if taken.isdisjoint(place):
            taken.update(place)
            found.append(mention)
    return sorted(found, key=lambda mention: mention.span)


def _with_lead(text: str, mention: DateMention, leads: Leads) -> DateMention | None:
    """Return the window of `the Monday before July 24`, `two weeks after …`, `since …`, `before the end of …`."""
    first, last = mention.span
    for pattern, resolve in leads:
        match = pattern.search(text[max(0, first - _MAX_LEAD) : first])
        window = _resolved(resolve, match, (mention.start, mention.end)) if match is not None else None
        if match is not None and window is not None:
            begin = first - len(match[0])
            return DateMention(text[begin:last], *window, (begin, last))
    return None


def _with_ranges(text: str, mentions: list[DateMention]) -> Iterator[DateMention]:
    """Join the two dates of `between … and …` and `from … to …` to one window."""
    left: DateMention | None = None
    for right in mentions:
        joined = _join(text, left, right) if left is not None else None
        if left is not None and joined is None:
            yield left
        left = joined or right
    if left is not None:
        yield left


def _join(text: str, left: DateMention, right: DateMention) -> DateMention | None:
    gap = text[left.span[1] : right.span[0]].strip().lower()
    begin, end = left.span[0], right.span[1]
    lead = text[max(0, begin - _MAX_LEAD) : begin]
    opener = next((word for word in ("between", "from") if lead.rstrip().lower().endswith(word)), "")
    if gap not in ({"and"} if opener == "between" else _UP_TO) or left.start > right.end:
        return None
    if opener:
        begin -= len(lead) - len(lead.rstrip()) + len(opener)
    return DateMention(text[begin:end], left.start, right.end, (begin, end))
