"""What a chunk's company says about it: who spoke, what stands next to it, which session it is from.

Weights and their effect on LoCoMo (turn level, no model) are in docs/recall.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quaid.index.documents import Candidate
from quaid.model import Kind, name_key


@dataclass(frozen=True, slots=True)
class PriorWeights:
    """How much each prior adds to a fused score in [0, 1]."""

    graph: float = 0.15
    speaker: float = 0.1
    neighbour: float = 0.3
    session: float = 0.4
    bare_name: float = 0.3
    """What is left of an entity's score when its note says nothing but its name: that is no answer."""


def apply(
    scores: Mapping[int, float],
    candidates: Mapping[int, Candidate],
    graph_scores: Mapping[int, float],
    entity_keys: frozenset[str],
    weights: PriorWeights,
) -> dict[int, float]:
    """Fused scores with the priors added, chunk_id -> score."""
    speakers = {name_key(c.speaker) for c in candidates.values() if c.speaker}
    named = {speaker for speaker in speakers if _is_named(speaker, entity_keys)}
    result = dict(scores)
    for chunk_id, candidate in candidates.items():
        bonus = weights.graph * graph_scores.get(candidate.doc_id, 0.0)
        speaker = candidate.speaker or candidate.doc_speaker
        if len(named) == 1 and speaker and name_key(speaker) in named:
            bonus += weights.speaker
        own = scores.get(chunk_id, 0.0)
        result[chunk_id] = own * weights.bare_name if is_bare_name(candidate) else own + bonus
    return _with_company(result, candidates, weights)


def is_bare_name(candidate: Candidate) -> bool:
    return candidate.kind == Kind.ENTITY and candidate.text == candidate.title


def _is_named(speaker: str, keys: frozenset[str]) -> bool:
    return speaker in keys or any(part in keys for part in speaker.split())


def _with_company(
    scores: Mapping[int, float], candidates: Mapping[int, Candidate], weights: PriorWeights
) -> dict[int, float]:
    """Turns gain from the better adjacent turn and from the best turn of their session."""
    turns: dict[tuple[int, int], float] = {}
    for chunk_id, candidate in candidates.items():
        if candidate.turn is not None:  # a long turn is several chunks and counts as its best
            place = (candidate.doc_id, candidate.turn)
            turns[place] = max(turns.get(place, 0.0), scores[chunk_id])
    best: dict[int, float] = {}
    for (doc_id, _), score in turns.items():
        best[doc_id] = max(best.get(doc_id, 0.0), score)
    result = dict(scores)
    for chunk_id, candidate in candidates.items():
        if candidate.turn is None:
            continue
        beside = max(turns.get((candidate.doc_id, candidate.turn + step), 0.0) for step in (-1, 1))
        result[chunk_id] += weights.neighbour * beside + weights.session * best[candidate.doc_id]
    return result
