"""Not the same thing twice: near-duplicates are folded into the best, and what is like the chosen comes later."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from quaid.claims import Reading, is_near_copy
from quaid.index.documents import Candidate

MOST_REORDERED = 60
"""So many of the best are put into another order; what comes behind them stays behind."""


def spread(ranked: Sequence[Candidate], scores: Mapping[int, float], strength: float) -> list[tuple[Candidate, float]]:
    """`ranked` with the turns of one session taken apart, and what each scored when its turn came.

    The n-th turn taken from the same session has `strength * sqrt(n)` less: a question whose answer is spread over
    several conversations is not answered from one alone, and where one conversation is far ahead it stays ahead.
    """
    taken: dict[int, int] = {}
    if all(candidate.turn is None for candidate in ranked[:MOST_REORDERED]):
        return [(candidate, scores[candidate.chunk_id]) for candidate in ranked]

    def loss(candidate: Candidate) -> float:
        return strength * math.sqrt(taken.get(candidate.doc_id, 0)) if candidate.turn is not None else 0.0

    def take(candidate: Candidate) -> None:
        taken[candidate.doc_id] = taken.get(candidate.doc_id, 0) + 1

    return _greedily(ranked, scores, loss, take)


def marginal_relevance(
    ranked: Sequence[Candidate], scores: Mapping[int, float], likeness: Mapping[tuple[int, int], float], share: float
) -> list[tuple[Candidate, float]]:
    """`ranked` by maximal marginal relevance: `share * score - (1 - share) * likeness to the most alike chosen`.

    `likeness` is the cosine of two chunks, the lower chunk_id first. Source: Carbonell and Goldstein, SIGIR 1998.
    """
    nearest: dict[int, float] = {}
    left = {candidate.chunk_id for candidate in ranked[:MOST_REORDERED]}

    def loss(candidate: Candidate) -> float:
        return (1 - share) * (scores[candidate.chunk_id] + nearest.get(candidate.chunk_id, 0.0))

    def take(candidate: Candidate) -> None:
        left.discard(candidate.chunk_id)
        for other in left:
            pair = (min(other, candidate.chunk_id), max(other, candidate.chunk_id))
            nearest[other] = max(nearest.get(other, 0.0), likeness.get(pair, 0.0))

    return _greedily(ranked, scores, loss, take)


def _greedily(
    ranked: Sequence[Candidate],
    scores: Mapping[int, float],
    loss: Callable[[Candidate], float],
    take: Callable[[Candidate], None],
) -> list[tuple[Candidate, float]]:
    """Always the best of what is left, after its loss for what has been taken."""
    left = list(ranked[:MOST_REORDERED])
    chosen: list[tuple[Candidate, float]] = []
    while left:
        values = [scores[candidate.chunk_id] - loss(candidate) for candidate in left]
        best = max(range(len(left)), key=values.__getitem__)
        candidate = left.pop(best)
        chosen.append((candidate, values[best]))
        take(candidate)
    least = chosen[-1][1] if chosen else 0.0
    behind = [(candidate, min(least, scores[candidate.chunk_id])) for candidate in ranked[MOST_REORDERED:]]
    return chosen + behind


def fold(ranked: Iterable[Candidate], similarity: float, limit: int) -> list[tuple[Candidate, int]]:
    """The first `limit` distinct candidates in their order, each with how many it stands for."""
    kept: list[_Voice] = []
    places: dict[tuple[int, int | None, int | None], int] = {}
    for candidate in ranked:
        place = (candidate.doc_id, candidate.turn, candidate.passage)
        if place in places:  # a further chunk of the same note, turn or passage is not a second voice for it
            continue
        voice = _Voice(candidate)
        index = _find_same(voice, kept, similarity)
        if index >= 0:
            kept[index].count += 1
        elif len(kept) == limit:
            break
        else:
            index = len(kept)
            kept.append(voice)
        places[place] = index
    return [(voice.candidate, voice.count) for voice in kept]


def _find_same(voice: _Voice, kept: Sequence[_Voice], similarity: float) -> int:
    """Which of `kept` says what `voice` says, -1 for none."""
    size = len(voice.reading.words)
    for index, seen in enumerate(kept):
        other = len(seen.reading.words)
        # Most differ in length alone; that is told without counting words.
        is_as_long = size >= similarity * other and other >= similarity * size
        if is_as_long and is_near_copy(voice.reading, seen.reading, similarity):
            return index
    return -1


class _Voice:
    """A kept candidate and how many say what it says."""

    __slots__ = ("candidate", "count", "reading")

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.reading = Reading(candidate.text)
        self.count = 1
