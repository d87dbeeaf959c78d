"""What tells two look-alikes apart whatever a model says, and what a new wording of both must hold.

That one side says more is no difference; that each says what the other does not is one, where it is a number, a date or
a name. In doubt they differ: a fact kept twice is better than a fact lost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from quaid.text.dates import DateMention, find_dates
from quaid.text.stop_words import STOP_WORDS
from quaid.text.windows import Window

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*", re.UNICODE)  # noqa: RUF001
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_VAGUE = re.compile(r"(?i)\b(?:few|several|some|shortly|soon|around|about|roughly|circa|early|late|mid)\b")
_VAGUE_LEAD = re.compile(r"(?i)\b(?:around|about|roughly|circa|early|late|mid)[\s-]*$")
_SIDE = re.compile(r"(?i)\b(?:before|after)\b")
_WEEKDAY = re.compile(r"(?i)(?:on )?(?:mon|tues|wednes|thurs|fri|satur|sun)day")
_OPENS = re.compile(r"[\s,]*\($")
_SLACK = timedelta(days=7)
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty""".split()  # noqa: SIM905
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
     "hundred": "100", "thousand": "1000", "dozen": "12", "once": "1", "twice": "2"}  # fmt: skip
_NEGATIONS = frozenset(
    """not no never none nobody nothing neither nor without cannot can't won't don't doesn't didn't isn't aren't wasn't
    weren't hasn't haven't hadn't wouldn't shouldn't couldn't stopped quit former formerly
    dislike dislikes disliked hate hates hated
    """.split()  # noqa: SIM905
)
_TELLING = frozenset(
    """first second third fourth fifth last half double am pm before after more less always sometimes rarely often left
    right north south east west morning evening mother father sister brother son daughter wife husband
    """.split()  # noqa: SIM905
)
"""Small words that models find alike and people do not."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What of a text must not get mixed up: `numbers` are (number, what is counted), no dates; `names` in order."""

    windows: tuple[Window, ...]
    numbers: frozenset[tuple[str, str]]
    names: tuple[str, ...]
    words: frozenset[str]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class _Alone:
    """What can be told of a text without the other; `capitalised` are (stem, word, whether it begins a sentence)."""

    windows: tuple[Window, ...]
    numbers: frozenset[tuple[str, str]]
    words: frozenset[str]
    small: frozenset[str]
    capitalised: tuple[tuple[str, str, bool], ...]
    is_negated: bool


def difference(one: str, other: str) -> str | None:
    """What tells two statements apart for certain: `dates`, `numbers`, `names`, `words` or `negation`. None if nothing
    does.
    """
    left, right = _read(one, other), _read(other, one)
    if left.is_negated != right.is_negated:
        return "negation"
    if _differ_in_dates(left.windows, right.windows):
        return "dates"
    if _differ_in_numbers(left.numbers, right.numbers):
        return "numbers"
    if _each_has_more(left.words & _TELLING, right.words & _TELLING):
        return "words"
    if _differ_in_names(left, right):
        return "names"
    return None


def is_about_others(one: str, other: str) -> bool:
    """Whether both name somebody or something, and nothing that both name."""
    left, right = _read(one, other), _read(other, one)
    return bool(left.names and right.names) and not (set(left.names) & right.words or set(right.names) & left.words)


def lacks(kept: str, dropped: str) -> str | None:
    """A number (not of a date) or a name that `dropped` has and `kept` has not."""
    have, had = _read(kept, dropped), _read(dropped, kept)
    counted = {number for number, _ in have.numbers}
    lost = [number for number, _ in sorted(had.numbers) if number not in counted and number != "1"]
    lost += [name for name in had.names if name not in have.words]
    return lost[0] if lost else None


def problem_of(statement: str, sources: Sequence[str]) -> str | None:
    """Why `statement` is no wording of all that `sources` say: it loses or adds a number, a date or a name."""
    together = " ".join(sources)
    said = _read(statement, together)
    each = [_read(source, together) for source in sources]
    lost = [word for source in sources if (word := lacks(statement, source)) is not None]
    if lost:
        return f"{lost[0]!r} is lost"
    windows = [window for part in each for window in part.windows]
    if any(not _meets(window, said.windows) for window in windows):
        return "a date is lost"
    if any(not _meets(window, windows) for window in said.windows):
        return "a date is added"
    words = frozenset().union(*(part.words for part in each))
    numbers = {number for part in each for number, _ in part.numbers}
    added = sorted(_all_numbers(statement) - _all_numbers(together))
    added += [number for number, _ in sorted(said.numbers) if number not in numbers]
    added += [name for name in said.names if name not in words]
    if added:
        return f"{added[0]!r} is added"
    if said.is_negated != any(part.is_negated for part in each):
        return "a negation is lost or added"
    return None


@lru_cache(maxsize=8192)  # three tasks look at the same pairs
def _read(text: str, other: str) -> _Said:
    year = _latest_year(text) or _latest_year(other) or 2000
    read = _read_alone(text, year)
    small = read.small | _read_alone(other, _latest_year(other) or year).small
    names = (name for name, word, begins in read.capitalised if not (begins and word in small))
    return _Said(read.windows, read.numbers, tuple(dict.fromkeys(names)), read.words, read.is_negated)


def _latest_year(text: str) -> int | None:
    return max(map(int, _YEAR.findall(text)), default=None)


@lru_cache(maxsize=32768)  # a text is in many pairs
def _read_alone(text: str, year: int) -> _Alone:
    """`year` is that of dates without one."""
    mentions = find_dates(text, datetime(year, 12, 31, tzinfo=UTC))
    undated = text
    for mention in reversed(mentions):
        first, last = mention.span
        undated = f"{undated[:first]} . {undated[last:]}"
    words = _WORD.findall(text)
    return _Alone(
        windows=tuple(_windows(text, mentions)),
        numbers=frozenset(_numbers(undated)),
        words=frozenset(map(_stem, words)),
        small=frozenset(word for word in words if word.islower()),
        capitalised=tuple(_capitalised(undated)),
        is_negated=not _NEGATIONS.isdisjoint(word.lower().replace("’", "'") for word in words),  # noqa: RUF001
    )


def _windows(text: str, mentions: Sequence[DateMention]) -> Iterator[Window]:
    """Vague times are as wide as they may be meant; `(8-9 July)` behind a date says what that date is."""
    for place, mention in enumerate(mentions):
        following = mentions[place + 1] if place + 1 < len(mentions) else None
        if following is not None and _OPENS.fullmatch(text[mention.span[1] : following.span[0]]):
            continue
        if len(mentions) > 1 and _WEEKDAY.fullmatch(mention.text):
            continue
        yield _widened(text, mention)


def _widened(text: str, mention: DateMention) -> Window:
    lead = text[max(0, mention.span[0] - 12) : mention.span[0]]
    if not _VAGUE.search(mention.text) and not _VAGUE_LEAD.search(lead):
        return mention.start, mention.end
    start, end = mention.start, mention.end
    side = _SIDE.search(mention.text)
    if side is not None:  # `a few weeks before 15 July`: any day until then
        anchors = find_dates(mention.text[side.end() :], datetime(end.year, 12, 31, tzinfo=UTC))
        for anchor in anchors:
            start, end = min(start, anchor.start), max(end, anchor.end)
    return max(start, date.min + _SLACK) - _SLACK, min(end, date.max - _SLACK) + _SLACK


def _differ_in_dates(left: Sequence[Window], right: Sequence[Window]) -> bool:
    return any(not _meets(window, right) for window in left) and any(not _meets(window, left) for window in right)


def _meets(window: Window, others: Sequence[Window]) -> bool:
    return any(window[0] <= other[1] and other[0] <= window[1] for other in others)


def _numbers(text: str) -> Iterator[tuple[str, str]]:
    """Each number with the word behind it, which mostly is what is counted."""
    tokens = re.findall(r"\d+(?:[.,:]\d+)*|[^\W\d_]+", _THOUSANDS.sub("", text))
    for place, token in enumerate(tokens):
        number = _NUMBER_WORDS.get(token.lower(), token if _NUMBER.fullmatch(token) else None)
        if number is not None:
            yield number, tokens[place + 1].lower().rstrip("s") if place + 1 < len(tokens) else ""


def _all_numbers(text: str) -> set[str]:
    return {number for number, _ in _numbers(text)}


def _differ_in_numbers(left: Collection[tuple[str, str]], right: Collection[tuple[str, str]]) -> bool:
    if _each_has_more({number for number, _ in left}, {number for number, _ in right}):
        return True
    for unit in {unit for _, unit in left} & {unit for _, unit in right}:  # 2 cats and 3 dogs, 3 cats and 2 dogs
        if _each_has_more({n for n, of in left if of == unit}, {n for n, of in right if of == unit}):
            return True
    return False


def _each_has_more(left: Collection[str], right: Collection[str]) -> bool:
    return bool(set(left) - set(right) and set(right) - set(left))


def _differ_in_names(left: _Said, right: _Said) -> bool:
    if any(name not in right.words for name in left.names) and any(name not in left.words for name in right.names):
        return True
    shared = [name for name in left.names if name in right.names]  # `Maya manages Tom`, `Tom manages Maya`
    return shared != [name for name in right.names if name in left.names]


def _capitalised(text: str) -> Iterator[tuple[str, str, bool]]:
    """Names: in the midst of a sentence for certain, at its beginning if they are no common word."""
    begins = True
    end = 0
    for found in _WORD.finditer(text):
        begins = begins or any(mark in text[end : found.start()] for mark in ".!?:")
        word, end = found[0], found.end()
        if word[0].isupper() and not _is_common(word):
            yield _stem(word), word.lower(), begins
        begins = False


def _is_common(word: str) -> bool:
    low = word.lower()
    return len(word) == 1 or low in STOP_WORDS or low in _NUMBER_WORDS or low.endswith("ing")


def _stem(word: str) -> str:
    return re.sub(r"['’]s?$", "", word).lower()  # noqa: RUF001
