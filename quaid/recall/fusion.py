"""Several rankings -> one score per chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quaid.settings import RecallSettings

Ranking = Sequence[tuple[int, float]]
"""(chunk_id, score), best first."""


def fuse(
    rankings: Mapping[str, Ranking], words: Mapping[int, float], likeness: Mapping[int, float], settings: RecallSettings
) -> dict[int, float]:
    """Return the score in [0, 1] of every chunk that a channel found, by the fusion that is configured.

    `rankings` are by channel; `words` and `likeness` are the normalised scores of the keyword and the vector channel.
    """
    weight = settings.vector_weight
    if settings.fusion == "rrf":
        weighted = [(rankings.get("vector", ()), weight), (rankings.get("keyword", ()), 1 - weight)]
        return reciprocal_rank(weighted, settings.rrf_k)
    return convex(words, likeness, weight)


def min_max(ranking: Ranking, *, floor: float | None = None) -> dict[int, float]:
    """Return the scores moved to [0, 1]: the best is 1, `floor` (default: the lowest score) is 0."""
    if not ranking:
        return {}
    best = max(score for _, score in ranking)
    low = min(score for _, score in ranking) if floor is None else floor
    span = best - low
    if span <= 0:
        return {chunk_id: 1.0 for chunk_id, _ in ranking}
    return {chunk_id: (score - low) / span if score > low else 0.0 for chunk_id, score in ranking}


def convex(keyword: Mapping[int, float], vector: Mapping[int, float], vector_weight: float) -> dict[int, float]:
    """Return `a * vector + (1 - a) * keyword` over normalised scores; what a channel did not find counts 0 there.

    Source: Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023.
    """
    if not vector:
        return dict(keyword)
    if not keyword:
        return dict(vector)
    of_words = 1.0 - vector_weight
    fused = {chunk_id: of_words * score for chunk_id, score in keyword.items()}
    for chunk_id, score in vector.items():
        fused[chunk_id] = vector_weight * score + fused.get(chunk_id, 0.0)
    return fused


def reciprocal_rank(rankings: Sequence[tuple[Ranking, float]], k: int) -> dict[int, float]:
    """Return `sum of weight / (k + rank)`, scaled so that first place everywhere is 1.

    Source: Cormack et al., "Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009.
    """
    scores: dict[int, float] = {}
    for ranking, weight in rankings:
        for rank, (chunk_id, _) in enumerate(ranking, 1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight / (k + rank)
    top = sum(weight for ranking, weight in rankings if ranking) / (k + 1)
    return {chunk_id: score / top for chunk_id, score in scores.items()} if top else {}
