"""Dates in a text, as windows of whole days: `last March` is all of it, `before June 2023` is open to the past.

No date library reports how wide a date is, or leaves `may` the verb and `Friday Harbor` alone, so dates are found here
and `dateutil` does the arithmetic of months and weekdays. It and the patterns are loaded only when a word looks like a
date.

A missed date costs a little rank, an imagined one hides the answer: ambiguous words are no dates. A date without a year
is the latest one that has begun, as memory looks back. Weeks begin on Monday; a season has three whole months of the
northern year, and winter has the year that it begins in.
"""

import calendar
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from quaid.errors import UsageError
from quaid.text.language import language
from quaid.text.stop_words import read_lists

if TYPE_CHECKING:
    from quaid.text.date_patterns import Window

T = TypeVar("T")
Rules = Sequence[tuple[re.Pattern[str], Callable[[re.Match[str], T], "Window | None"]]]


class DateMention(NamedTuple):
    """`text` is `question[i:j]` for `span` (i, j). An open end is `date.min` or `date.max`.

    A named tuple, as a dataclass takes half a millisecond of every start to make.
    """

    text: str
    start: date
    end: date
    span: tuple[int, int]


_UNITS = frozenset("day days week weeks weekend weekends month months quarter year years decade decades".split())  # noqa: SIM905
_SIGNS = {code: frozenset(words.split()) for code, words in read_lists("date_signs.txt").items()}
"""Words, by language, of which a text with a date has one."""
_DIRECTIONS = frozenset({"last", "next", "this", "past", "previous", "current", "coming"})
_DIRECTED = _UNITS | {"spring", "summer", "autumn", "fall", "winter"}
_SIGN = re.compile(r"[^\W\d_]\w*|(?:19|20)[0-9]{2}|[0-9]0s")
_HAN_SIGN = "[年月日号天晚曜周週星礼前昨今明后後先来あき]"
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
_PERIOD = re.compile(r"[0-9]{4}(?:-[0-9]{2})?")
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
    likely = {code for code, own in _SIGNS.items() if code != "en" and not own.isdisjoint(signs)}
    if not text.isascii() and re.search(_HAN_SIGN, text):
        likely |= {"zh", "ja"}
    other = language(text) if likely else None
    if other not in likely:
        other = likely.pop() if other is None and len(likely) == 1 else None
    has_direction = not signs.isdisjoint(_DIRECTIONS) and not signs.isdisjoint(_DIRECTED)
    has_date = not signs.isdisjoint(_SIGNS["en"]) or any(sign[0].isdigit() for sign in signs)
    if other is None and not has_date and not has_direction:
        return ()
    from quaid.text.date_patterns import LEADS, RULES
    from quaid.text.other_dates import leads_of, rules_of

    found = []
    for match, window in _find_windows([*RULES, *rules_of(other)], text, now.date()):
        span = match.span("date" if "date" in match.re.groupindex else 0)
        found.append(DateMention(text[slice(*span)], *window, span))
    found = _without_overlaps(found)
    leads = [*LEADS, *leads_of(other)]
    for mention in tuple(found):  # `the Monday before July 24`, `two weeks after …`, `since …`, `before the end of …`
        first, last = mention.span
        for match, window in _find_windows(leads, text[max(0, first - _MAX_LEAD) : first], mention[1:3]):
            begin = first - len(match[0])
            found.append(DateMention(text[begin:last], *window, (begin, last)))
            break
    return tuple(_join_ranges(text, _without_overlaps(found)))


def is_english(text: str) -> bool:
    """Return True when a text with a date has a word of English dates."""
    return not (_SIGNS["en"] | _DIRECTIONS).isdisjoint(_SIGN.findall(text.lower()))


def parse_bound(text: str, now: datetime, *, end: bool) -> date:
    """Return a typed moment (`2026-03-01T14:30Z`, by default in the zone of `now`, or `now`) as a datetime; else the
    first, or with `end` the last, day of a typed date: `2026`, `2026-03`, `last March`, `yesterday`.

    Raises:
        UsageError: `text` is neither, or that end of it is open.
    """
    wanted = text.strip()
    if wanted.lower() == "now":
        return now
    if ":" in wanted and (written := read_date(wanted)) and ":" in written:
        moment = datetime.fromisoformat(written)
        return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
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


def parse_day(text: str, now: datetime, *, end: bool) -> date:
    """Return the day of `parse_bound`, in the zone of `now`.

    Raises:
        UsageError: as there.
    """
    return _day(parse_bound(text, now, end=end), now)


def parse_period(
    names: tuple[str, str], first: str | None, last: str | None, now: datetime
) -> tuple[date | None, date | None]:
    """Return the two bounds, each a day or a moment, between which something is. `names` are those of the options.

    Raises:
        UsageError: one cannot be read, or the period ends before it begins.
    """
    bounds: list[date | None] = []
    for name, text, end in ((names[0], first, False), (names[1], last, True)):
        try:
            bounds.append(parse_bound(text, now, end=end) if text else None)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from error
    begun, ended = bounds
    if begun is not None and ended is not None:
        are_moments = isinstance(begun, datetime) and isinstance(ended, datetime)
        if begun > ended if are_moments else _day(begun, now) > _day(ended, now):
            what = f"{names[0]} {str(begun)[:16]} is after {names[1]} {str(ended)[:16]}, so nothing is between them."
            raise UsageError(f"{what} Swap the two.")
    return begun, ended


def _day(bound: date, now: datetime) -> date:
    return bound.astimezone(now.tzinfo).date() if isinstance(bound, datetime) else bound


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


def read_period(written: str, *, end: bool = False) -> str | None:
    """Return a year (`1993`), a month (`1993-05`) or else a date as ISO 8601; with `end`, the last day of the first
    two. None where it is none of them.
    """
    text = written.strip()
    if not _PERIOD.fullmatch(text):
        return read_date(text)
    with suppress(ValueError):
        month = date.fromisoformat(f"{text}-12"[:7] + "-01")
        last = calendar.monthrange(month.year, month.month)[1]
        return f"{month.isoformat()[:8]}{last}" if end else text
    return None


def _find_windows(rules: Rules[T], text: str, given: T) -> Iterator[tuple[re.Match[str], "Window"]]:
    for pattern, resolve in rules:
        for match in pattern.finditer(text):
            try:
                window = resolve(match, given)
            except (ValueError, OverflowError):  # the calendar has no such day
                continue
            if window is not None and window[0] <= window[1]:
                yield match, window


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


def _join_ranges(text: str, mentions: list[DateMention]) -> Iterator[DateMention]:
    """Join the two dates of `between … and …` and `from … to …` to one window."""
    left: DateMention | None = None
    for right in mentions:
        if left is None:
            left = right
            continue
        gap = text[left.span[1] : right.span[0]].strip().lower()
        begin, end = left.span[0], right.span[1]
        lead = text[max(0, begin - _MAX_LEAD) : begin]
        opener = next((word for word in ("between", "from") if lead.rstrip().lower().endswith(word)), "")
        if gap not in ({"and"} if opener == "between" else _UP_TO) or left.start > right.end:
            yield left
            left = right
            continue
        if opener:
            begin -= len(lead) - len(lead.rstrip()) + len(opener)
        left = DateMention(text[begin:end], left.start, right.end, (begin, end))
    if left is not None:
        yield left
