"""Does a fact say what another one says already? Similarity proposes, wording decides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

Fact = TypeVar("Fact")

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*", re.UNICODE)  # noqa: RUF001
_NEGATIONS = frozenset(
    """not no never none nobody nothing neither nor without cannot can't won't don't doesn't didn't isn't aren't wasn't
    weren't hasn't haven't hadn't wouldn't shouldn't couldn't stopped quit former formerly
    dislike dislikes disliked hate hates hated
    """.split()  # noqa: SIM905 - a list would be a screen long
)

_NO_NAMES = frozenset({"i", "a", "the", "my", "our", "she", "he"})
_TELLING = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half double first
    second third fourth fifth last once twice am pm before after more less always sometimes rarely often only left right
    monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday january february march april may
    june july august september october november december
    """.split()  # noqa: SIM905 - a list would be a screen long
)
"""Small words that models find alike and people do not."""


def find_same(statement: str, similar: Iterable[tuple[Fact, str, float]], threshold: float) -> Fact | None:
    """The most similar of (fact, what it says, cosine) that is at least `threshold` alike and makes the same claim."""
    for fact, text, similarity in sorted(similar, key=lambda item: -item[2]):
        if similarity >= threshold and is_same_claim(statement, text):
            return fact
    return None


def is_same_claim(one: str, other: str) -> bool:
    """Whether what tells look-alikes apart is equal: their numbers, dates and names in their order (`Maya manages
    Tom`), their negations. In doubt they differ: a fact kept twice is better than a fact lost.
    """
    return (
        _numbers(one) == _numbers(other)
        and _negations(one) == _negations(other)
        and _telling(one) == _telling(other)
        and _names_agree(one, other)
        and _names_in_order(one, other)
    )


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:[.,:]\d+)*", text)


def _negations(text: str) -> int:
    return sum(word.lower().replace("’", "'") in _NEGATIONS for word in _WORD.findall(text))  # noqa: RUF001


def _telling(text: str) -> list[str]:
    return sorted(word for word in map(str.lower, _WORD.findall(text)) if word in _TELLING)


def _names_in_order(one: str, other: str) -> bool:
    names = _inner_names(one) | _inner_names(other)
    first, second = ([stem for stem in map(_stem, _WORD.findall(text)) if stem in names] for text in (one, other))
    return list(dict.fromkeys(first)) == list(dict.fromkeys(second))


def _inner_names(text: str) -> set[str]:
    """Names for certain: capitals that do not only begin the sentence."""
    return {_stem(word) for word in _WORD.findall(text)[1:] if word[0].isupper() and word.lower() not in _NO_NAMES}


def _names_agree(one: str, other: str) -> bool:
    """Every capitalised word of either occurs in the other, in whatever case: sentences begin in capitals."""
    return _lacks_no_name(one, other) and _lacks_no_name(other, one)


def _lacks_no_name(text: str, other: str) -> bool:
    there = {_stem(word) for word in _WORD.findall(other)}
    words = _WORD.findall(text)
    names = [word for index, word in enumerate(words) if word[0].isupper() and (index > 0 or len(word) > 1)]
    return all(_stem(name) in there for name in names if name.lower() not in _NO_NAMES)


def _stem(word: str) -> str:
    return re.sub(r"['’]s?$", "", word).lower()  # noqa: RUF001
