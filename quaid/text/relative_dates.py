"""Dates for the times in a text that are relative to the moment of its statement: `yesterday (7 May 2023)`."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

_RELATIVE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|from now|last|next|this|past|previous|coming)\b", re.IGNORECASE
)
_ENDS = frozenset('.!?…:)]*"”')
_DATED = re.compile(r" \([^()]*\b\d{1,4}\)\Z")
_QUOTED = re.compile(r'"[^"\n]{1,500}"|“[^”\n]{1,500}”|«[^»\n]{1,500}»|`[^`\n]{1,500}`')


def with_dates(text: str, stated_at: datetime | None, *, digits: bool = False) -> str:
    """Return `text` with its days, first to last, after each time that is relative to `stated_at`: in words, or in
    `digits`, and then not for the day of the statement itself.

    Names, quotations and code stay as they are: they are titles, or of another time.
    """
    if stated_at is None or not _RELATIVE.search(text):
        return text
    from quaid.text.dates import find_dates

    dated = text
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    for mention in reversed(find_dates(text, stated_at)):
        start, end = mention.span
        if not _RELATIVE.search(mention.text) or date.min in mention[1:3] or date.max in mention[1:3]:
            continue
        days = f"= {in_digits(mention.start, mention.end)}" if digits else in_words(mention.start, mention.end)
        is_today = digits and mention.start == mention.end == stated_at.date()
        is_stated = days in text or mention.start.isoformat() in text or text[end:].lstrip().startswith("(")
        is_quoted = any(first < start and end < last for first, last in quoted)
        if is_today or is_stated or is_quoted:
            continue
        if text[start].isupper():
            before = text[:start].rstrip()
            gap = text[len(before) : start]
            if last_date := _DATED.search(before):  # the date behind the time before it ends no sentence
                before = before[: last_date.start()]
            # `Tomorrow, and Tomorrow` is a novel: a capital that begins no sentence belongs to a name.
            if before and not (gap and ("\n" in gap or before[-1] in _ENDS)):
                continue
        dated = f"{dated[:end]} ({days}){dated[end:]}"
    return dated


def relative_words(text: str) -> set[str]:
    """Return the times in `text` that are relative to its statement, in its words."""
    if not _RELATIVE.search(text):
        return set()
    from quaid.text.dates import find_dates

    mentions = (mention.text.lower() for mention in find_dates(text, datetime(2000, 1, 1)))  # noqa: DTZ001
    return {words for words in mentions if _RELATIVE.search(words)}


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
