"""Not the same thing twice: near-duplicates are folded into the best, and what is like the chosen comes later."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from quaid.claims import normal_form
from quaid.index.documents import Candidate
from quaid.recall.intent import asks_for_list
from quaid.recall.retrieval import Retrieved, SearchRequest

MAX_REORDERED = 60
"""The number of best hits that are reordered; those behind them stay behind."""
OF_A_LIST = 2
"""How many times as much a session loses where several things are asked for: they were told on several days."""


def reorder(
    request: SearchRequest, retrieved: Retrieved, ranked: Sequence[Candidate], scores: Mapping[int, float]
) -> list[tuple[Candidate, float]]:
    """Return `ranked` with what is like the best later, as far as that is on."""
    settings = request.settings
    if settings.stages.mmr and retrieved.embedded is not None:
        row, _ = retrieved.embedded
        best = [candidate.chunk_id for candidate in ranked[:MAX_REORDERED]]
        ids, matrix = request.sources.vectors.vectors(request.connection, row, best)
        cosines: Any = matrix @ matrix.T
        likeness = {
            (min(one, other), max(one, other)): float(cosines[i][j])
            for i, one in enumerate(ids)
            for j, other in enumerate(ids)
            if i < j
        }
        return marginal_relevance(ranked, scores, likeness, settings.mmr_share)
    if settings.stages.spread:
        strength = settings.spread_strength * (OF_A_LIST if asks_for_list(request.query.text) else 1)
        return spread(ranked, scores, strength)
    return [(candidate, scores[candidate.chunk_id]) for candidate in ranked]


def spread(ranked: Sequence[Candidate], scores: Mapping[int, float], strength: float) -> list[tuple[Candidate, float]]:
    """Return `ranked` with the turns of one session taken apart, and what each scored when its turn came.

    The n-th turn taken from the same session has `strength * sqrt(n)` less, however many chunks it is: a question whose
    answer is spread over several conversations is not answered from one alone, and where one conversation is far ahead
    it stays ahead.
    """
    taken: dict[int, set[int | None]] = {}
    if all(candidate.turn is None for candidate in ranked[:MAX_REORDERED]):
        return [(candidate, scores[candidate.chunk_id]) for candidate in ranked]

    def loss(candidate: Candidate) -> float:
        return strength * math.sqrt(len(taken.get(candidate.doc_id, ()))) if candidate.turn is not None else 0.0

    def take(candidate: Candidate) -> None:
        taken.setdefault(candidate.doc_id, set()).add(candidate.turn)

    return _greedily(ranked, scores, loss, take)


def marginal_relevance(
    ranked: Sequence[Candidate], scores: Mapping[int, float], likeness: Mapping[tuple[int, int], float], share: float
) -> list[tuple[Candidate, float]]:
    """Return `ranked` by maximal marginal relevance: `share * score - (1 - share) * likeness to the most alike chosen`.

    `likeness` is the cosine of two chunks, the lower chunk_id first. Source: Carbonell and Goldstein, SIGIR 1998.
    """
    nearest: dict[int, float] = {}
    left = {candidate.chunk_id for candidate in ranked[:MAX_REORDERED]}

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
    """Return always the best of what is left, after its loss for what has been taken."""
    left = list(ranked[:MAX_REORDERED])
    chosen: list[tuple[Candidate, float]] = []
    while left:
        values = [scores[candidate.chunk_id] - loss(candidate) for candidate in left]
        best = max(range(len(left)), key=values.__getitem__)
        candidate = left.pop(best)
        chosen.append((candidate, values[best]))
        take(candidate)
    least = chosen[-1][1] if chosen else 0.0
    behind = [(candidate, min(least, scores[candidate.chunk_id])) for candidate in ranked[MAX_REORDERED:]]
    return chosen + behind


def fold(ranked: Iterable[Candidate], limit: int, *, is_on: bool = True) -> list[tuple[Candidate, int]]:
    """Return the first `limit` distinct candidates in their order, each with how many it stands for."""
    distinct: dict[object, tuple[Candidate, int]] = {}
    seen: set[tuple[int, int | None, int | None]] = set()
    for candidate in ranked:
        place = (candidate.doc_id, candidate.turn, candidate.passage)
        if place in seen:  # a further chunk of the same note, turn or passage does not say it a second time
            continue
        statement = (normal_form(candidate.text) if is_on else "") or place
        first, count = distinct.get(statement, (candidate, 0))
        if not count and len(distinct) == limit:
            break
        distinct[statement] = first, count + 1
        seen.add(place)
    return list(distinct.values())
