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
    """.split()  # noqa: SIM905 - a list would be a screen long
)


def find_same(statement: str, similar: Iterable[tuple[Fact, str, float]], threshold: float) -> Fact | None:
    """The most similar of (fact, what it says, cosine) that is at least `threshold` alike and makes the same claim."""
    for fact, text, similarity in sorted(similar, key=lambda item: -item[2]):
        if similarity >= threshold and is_same_claim(statement, text):
            return fact
    return None


def is_same_claim(one: str, other: str) -> bool:
    """Whether what tells look-alikes apart is equal: their numbers and dates, their names, their negations."""
    return _numbers(one) == _numbers(other) and _negations(one) == _negations(other) and _names_agree(one, other)


def _numbers(text: str) -> list[str]:
    return sorted(re.findall(r"\d+(?:[.,:]\d+)*", text))


def _negations(text: str) -> int:
    return sum(word.lower().replace("’", "'") in _NEGATIONS for word in _WORD.findall(text))  # noqa: RUF001


def _names_agree(one: str, other: str) -> bool:
    """Every capitalised word of either occurs in the other, in whatever case: sentences begin in capitals."""
    return _lacks_no_name(one, other) and _lacks_no_name(other, one)


def _lacks_no_name(text: str, other: str) -> bool:
    there = {_stem(word) for word in _WORD.findall(other)}
    words = _WORD.findall(text)
    names = [word for index, word in enumerate(words) if word[0].isupper() and (index > 0 or len(word) > 1)]
    return all(
        _stem(name) in there for name in names if name.lower() not in {"i", "a", "the", "my", "our", "she", "he"}
    )


def _stem(word: str) -> str:
    return re.sub(r"['’]s?$", "", word).lower()  # noqa: RUF001
