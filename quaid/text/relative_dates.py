"""Dates for the times in a text that are relative to the moment of its statement: `yesterday (7 May 2023)`.

A day or a month without its year, `on Monday`, does not show whether it is behind or ahead. The words around it decide
first (`is on Monday`, `was stolen on Monday`), then the type of the fact: of an event or experience it is the latest
one. What recurs, as a birthday, or is counted from
another day, `in two weeks, on Monday`, has no date.
"""

import re
from collections.abc import Collection
from datetime import date, datetime, timedelta

from quaid.text.stop_words import read_lists

_ENDS = frozenset('.!?…:)]*"”')
_DATED = re.compile(r" \([^()]*\b\d{1,4}\)\Z")
_QUOTED = re.compile(r'"[^"\n]{1,500}"|“[^”\n]{1,500}”|«[^»\n]{1,500}»|`[^`\n]{1,500}`')
_YEAR = re.compile("[12][0-9]{3}")
_DIGIT = re.compile("[0-9]")
_NEXT_TO = re.compile(r"\W*(?:(?:the|den|dem|le|el|o) )?\W*", re.IGNORECASE)
"""What may be between a weekday and the date of the same day."""
_WORDS = {name: "|".join(words.split()).replace("·", " ") for name, words in read_lists("relative_words.txt").items()}


def _one_of(name: str, han: str) -> re.Pattern[str]:
    """Compile the words of a list, and those of scripts without spaces."""
    return re.compile(rf"\b(?:{_WORDS[name]})\b|{han}", re.IGNORECASE)


_RELATIVE = _one_of("relative", "[上下本这先来今昨明去前后後]|おととい|きのう|あした|あさって")
_AHEAD = _one_of("ahead", "[将会]|予定|つもり")
_BEHIND = _one_of("behind", r"[了たった]|(?-i:\b(?<!is )(?<!are )(?!usted\b)[a-z]{2,}ed\b)")
_RECURRING = _one_of("recurring", "[每毎生]")
_PLAN = re.compile(rf"\b(?:{_WORDS['plan']})\s*\Z", re.IGNORECASE)
_WEEK = timedelta(days=7)
_PRESENT = re.compile(
    r"\A(?!(?:The|An?|My|Our|His|Her|Its|Their|Two|Some) )(?:[A-Z][\w'-]* )+(?!was|has|does)[a-z]+s\b"
)
"""`Ana flies to Lisbon`."""
_CLOCKS = tuple(map(timedelta, (7, 335, 366)))
"""Later moments, of which the latest weekday, month or day of the year is the next one of now."""


def with_dates(
    text: str, stated_at: datetime | None, *, digits: bool = False, kind: str | None = None, days: Collection[str] = ()
) -> str:
    """Return `text` with its days, first to last, after each time that is relative to `stated_at`: in words, or in
    `digits`, and then not for the day of the statement itself.

    With the `kind` of a fact, and its known `days` (ISO 8601), those without their year have their days too. Names,
    quotations and code stay as they are: they are titles, or of another time.
    """
    if stated_at is None or not (kind or _RELATIVE.search(text)):
        return text
    from quaid.text.dates import find_dates, is_english

    dated = text
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    mentions = find_dates(text, stated_at)
    for place, mention in reversed([*enumerate(mentions)]):
        start, end = mention.span[0], mention.span[0] + len(mention.text.rstrip(".,"))
        first, last = mention[1:3]
        if not _RELATIVE.search(mention.text):
            around = [one.span for one in mentions[max(0, place - 1) : place + 2] if _DIGIT.search(one.text)]
            gaps = [text[min(end, one[1]) : max(start, one[0])] for one in around if one != mention.span]
            is_of_date = not _DIGIT.search(mention.text) and any(map(_NEXT_TO.fullmatch, gaps))
            is_dated = is_of_date or any(_YEAR.search(one.text) for one in mentions)
            window = None if kind is None or is_dated else _find_undirected(text, mention.span, stated_at, kind, days)
            if window is None:
                continue
            first, last = window
        if date.min in {first, last} or date.max in {first, last}:
            continue
        shown = in_digits(first, last) if digits or not is_english(mention.text) else in_words(first, last)
        is_today = digits and first == last == stated_at.date()
        is_stated = shown in text or first.isoformat() in text or text[end:].lstrip().startswith("(")
        is_quoted = any(begin < start and end < stop for begin, stop in quoted)
        if is_today or is_stated or is_quoted:
            continue
        if text[start].isupper() and _RELATIVE.search(mention.text):
            before = text[:start].rstrip()
            gap = text[len(before) : start]
            if last_date := _DATED.search(before):  # the date behind the time before it ends no sentence
                before = before[: last_date.start()]
            # `Tomorrow, and Tomorrow` is a novel: a capital that begins no sentence belongs to a name.
            if before and not (gap and ("\n" in gap or before[-1] in _ENDS)):
                continue
        dated = f"{dated[:end]} ({'= ' * digits}{shown}){dated[end:]}"
    return dated


def _find_undirected(
    text: str, span: tuple[int, int], stated_at: datetime, kind: str, days: Collection[str]
) -> tuple[date, date] | None:
    """Return the days of a time without its year, None where they do not follow from the text."""
    from quaid.text.dates import find_dates, is_english

    clocks = [stated_at - timedelta(days=1), *(stated_at + step for step in _CLOCKS)]
    behind, *later = (
        next((each[1:3] for each in find_dates(text, clock) if each.span == span), (date.min, date.min))
        for clock in clocks
    )
    today = stated_at.date()
    ahead = min((each for each in later if each[1] > today), default=None)
    if ahead is None or behind == later[-1] or _RECURRING.search(text):  # it has its year, or none
        return None
    known = [each for each in (behind, ahead) if not {day.isoformat() for day in each}.isdisjoint(days)]
    if known:
        return known[0]
    is_plan = _PLAN.search(text[: span[0]]) or ((_AHEAD.search(text) or _PRESENT.search(text)) and kind != "experience")
    if is_plan:
        return ahead
    # A model may have made `on Thursday` of the `today` of a Thursday.
    is_today = behind[0] == behind[1] and behind[0].weekday() == today.weekday() and ahead[0] - today == _WEEK
    is_past = kind == "experience" or _BEHIND.search(text) is not None
    if kind == "event" and not is_past and not is_english(text[slice(*span)]):
        return ahead  # the languages of `other_dates` mark the past
    return behind if (is_past or kind == "event") and not is_today else None


def relative_words(text: str) -> set[str]:
    """Return the times in `text` that are relative to its statement, in its words."""
    from quaid.text.dates import find_dates

    mentions = (mention.text.lower() for mention in find_dates(text, datetime(2000, 1, 1)))  # noqa: DTZ001
    return {words for words in mentions if _RELATIVE.search(words) or not _YEAR.search(words)}


def in_words(start: date, end: date) -> str:
    """Return `7 May 2023`, `May 2023`, `2023`, else the first and the last day."""
    if start == end:
        return f"{start.day} {start:%B %Y}"
    if (start.month, start.day, end.month, end.day) == (1, 1, 12, 31) and start.year == end.year:
        return f"{start.year}"
    if start.day == 1 and (end.month, end.year) == (start.month, start.year) and end.day >= 28:
        return f"{start:%B %Y}"
    return f"{start.day} {start:%B %Y} to {end.day} {end:%B %Y}"


def in_digits(start: date, end: date) -> str:
    """Return `2023-05-07`, `2023-05`, `2023`, else the first and the last of them."""
    if start == end:
        return start.isoformat()
    length = 10
    if start.day == 1 and (end + timedelta(days=1)).day == 1:
        length = 4 if (start.month, end.month) == (1, 12) else 7
    first, last = start.isoformat()[:length], end.isoformat()[:length]
    return first if first == last else f"{first} to {last}"
