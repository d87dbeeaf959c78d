"""One hit for each thing said: near-duplicates and further chunks of the same note are folded into the best."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from quaid.index.documents import Candidate

_TOKEN = re.compile(r"[^\W_]+", re.UNICODE)
_NEGATIONS = frozenset({"not", "no", "never", "none", "nobody", "nothing", "nor", "cannot", "without", "t"})
"""The `t` is that of `don't`."""


def fold(ranked: Iterable[Candidate], similarity: float, limit: int) -> list[tuple[Candidate, int]]:
    """The first `limit` distinct candidates in their order, each with how many it stands for."""
    kept: list[_Voice] = []
    places: dict[tuple[int, int | None], int] = {}
    for candidate in ranked:
        place = (candidate.doc_id, candidate.turn)
        if place in places:  # a further chunk of the same note is not a second voice for it
            continue
        voice = _Voice(candidate)
        index = next((i for i, seen in enumerate(kept) if is_same(voice.words, seen.words, similarity)), -1)
        if index >= 0:
            kept[index].count += 1
        elif len(kept) == limit:
            break
        else:
            index = len(kept)
            kept.append(voice)
        places[place] = index
    return [(voice.candidate, voice.count) for voice in kept]


def is_same(one: Words, other: Words, similarity: float) -> bool:
    """Whether two texts say the same: their words overlap (Jaccard) by `similarity`, what differs is neither a number
    nor a name nor a negation, for those are what tells look-alikes apart, and they stand in the same order.
    """
    left, right = one.all, other.all
    if not left or not right:
        return False
    smaller, larger = sorted((len(left), len(right)))
    if smaller < similarity * larger or len(left & right) < similarity * len(left | right):
        return False
    if (left ^ right) & (one.telling.keys() | other.telling.keys()):
        return False
    both = one.telling.keys() & other.telling.keys()
    return [word for word in one.telling if word in both] == [word for word in other.telling if word in both]


@dataclass(frozen=True, slots=True)
class Words:
    """A text's words in lower case; `telling` are its numbers, capitalised words and negations, in their order."""

    all: frozenset[str]
    telling: dict[str, None]


def words_of(text: str) -> Words:
    tokens = _TOKEN.findall(text)
    telling = (
        token.lower() for token in tokens if token[0].isupper() or token[0].isdigit() or token.lower() in _NEGATIONS
    )
    return Words(frozenset(token.lower() for token in tokens), dict.fromkeys(telling))


class _Voice:
    """A kept candidate and how many say what it says."""

    __slots__ = ("candidate", "count", "words")

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.words = words_of(candidate.text)
        self.count = 1
