"""Which candidates are shown, in which order, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quaid.index import documents
from quaid.index.documents import Candidate
from quaid.index.scope import Scope
from quaid.model import Kind, Use, note_name
from quaid.recall import beam, diversity, scoring
from quaid.recall.asking import Found, Sources
from quaid.recall.gathering import Gathered
from quaid.recall.intent import Intent
from quaid.recall.options import RecallOptions
from quaid.recall.query import Query
from quaid.recall.trace import Trace
from quaid.settings import RecallSettings

if TYPE_CHECKING:
    import apsw

Strengths = Mapping[str, Use]
Chosen = tuple[Candidate, float, int]
"""A candidate, its score and how many it stands for."""
MOST_CUT_SHOWN = 20
EXACT = 1.0
"""What an exact name adds to a score."""

_HIT_KINDS = {Kind.EPISODE: "turn", Kind.CORE: "note"}


def hit_kind(candidate: Candidate) -> str:
    """fact, turn, entity, note, snippet, journal or doc."""
    if candidate.kind == Kind.EPISODE and candidate.turn is None:
        return "note"
    return _HIT_KINDS.get(Kind(candidate.kind), candidate.kind)


def hit_id(candidate: Candidate) -> str:
    """A turn is named as facts cite it, `20-1402-2f1c9a#t3`, a passage by its place in its doc: `docs/recall.md#p3`."""
    if candidate.passage is not None:
        return f"{candidate.id}#p{candidate.passage}"
    if candidate.turn is None:
        return candidate.id
    return f"{note_name(candidate.path)}#t{candidate.turn}"


def day_of(options: RecallOptions) -> str:
    """The day for which is asked what is true, YYYY-MM-DD."""
    return (options.at or (options.now or datetime.now(UTC)).date()).isoformat()


def adjust(
    gathered: Gathered,
    query: Query,
    found: Found,
    strengths: Strengths,
    settings: RecallSettings,
    options: RecallOptions,
) -> dict[int, float]:
    """Relevance -> score: an exact name, the intent's types, age, use and certainty, as far as they are on."""
    stages = settings.stages
    is_aged = (stages.decay or stages.composite) and not options.keyword_only
    now = options.now or datetime.now(UTC)
    scores = dict(gathered.scores)
    for chunk_id, candidate in gathered.candidates.items():
        score = scores[chunk_id]
        if candidate.doc_id in found.exact:
            score += EXACT
        if stages.type_boosts and not options.keyword_only:
            score *= scoring.type_boost(candidate, query.intent)
        if is_aged:
            use = strengths.get(hit_id(candidate), scoring.NEVER_USED)
            score = scoring.faded(score, candidate, use, now) if stages.decay else score
            score = scoring.composite(score, candidate, use, now) if stages.composite else score
        scores[chunk_id] = score
    return scores


def truth(
    connection: apsw.Connection, candidates: Collection[Candidate], options: RecallOptions, scope: Scope
) -> Callable[[Candidate], bool]:
    """What tells whether a candidate holds on the day that is asked for."""
    today = day_of(options)
    if options.at is None:
        return lambda candidate: options.superseded or not scoring.is_over(candidate, today)
    replaced = {candidate.superseded_by for candidate in candidates if candidate.superseded_by is not None}
    ended = documents.list_beginnings(connection, replaced, scope) if replaced else {}
    return lambda candidate: scoring.was_true(candidate, today, ended.get(candidate.superseded_by or ""))


def wanted(
    gathered: Gathered,
    scores: Mapping[int, float],
    is_true: Callable[[Candidate], bool],
    query: Query,
    settings: RecallSettings,
    options: RecallOptions,
    trace: Trace,
) -> list[Candidate]:
    """The candidates that may be shown, best first."""
    ranked = sorted(gathered.candidates.values(), key=lambda each: (-scores[each.chunk_id], each.chunk_id))
    kept = []
    for candidate in ranked:
        why = _why_not(candidate, is_true, query, settings, options)
        if why is None:
            kept.append(candidate)
        elif len(trace.cut) < MOST_CUT_SHOWN and why != "kind":
            trace.leave_out(hit_id(candidate), scores[candidate.chunk_id], why)
    return kept


def reason(candidate: Candidate, found: Found, matched: Collection[int]) -> str:
    """Why a candidate has to do with the question at all: exact, graph, words, session or meaning; empty for no reason.

    Scores are relative to the best there is, which may be beside the point as much as the rest. `matched` are the
    chunks that have a word of the question.
    """
    if candidate.doc_id in found.exact:
        return "exact"
    if found.graph.scores.get(candidate.doc_id, 0.0) >= beam.ABOUT:
        return "graph"
    if candidate.chunk_id in matched:
        return "words"
    if candidate.chunk_id in found.together:
        return "session"
    return "meaning" if found.cosines.get(candidate.chunk_id, -1.0) >= found.relevant_similarity else ""


def order(
    ranked: list[Candidate], scores: Mapping[int, float], sources: Sources, found: Found, settings: RecallSettings
) -> list[tuple[Candidate, float]]:
    """What is like the chosen comes later, as far as that is on."""
    if settings.stages.mmr and found.asked is not None:
        likeness = _likeness(sources, found, [candidate.chunk_id for candidate in ranked[: diversity.MOST_REORDERED]])
        return diversity.marginal_relevance(ranked, scores, likeness, settings.mmr_share)
    if settings.stages.spread:
        return diversity.spread(ranked, scores, settings.spread_strength)
    return [(candidate, scores[candidate.chunk_id]) for candidate in ranked]


def _why_not(
    candidate: Candidate,
    is_true: Callable[[Candidate], bool],
    query: Query,
    settings: RecallSettings,
    options: RecallOptions,
) -> str | None:
    """Why a candidate is not shown, None when it may be."""
    if options.kinds and hit_kind(candidate) not in options.kinds:
        return "kind"
    is_about_work = query.intent is Intent.PROJECT or options.projects
    if settings.stages.technical and candidate.technical and not is_about_work:
        return "technical"
    if is_true(candidate):
        return None
    if options.at is not None:
        return f"not true on {day_of(options)}"
    return "superseded" if candidate.superseded_by is not None else "expired"


def _likeness(sources: Sources, found: Found, chunk_ids: Collection[int]) -> dict[tuple[int, int], float]:
    """Cosines of all pairs, the lower chunk_id first."""
    if found.asked is None:
        return {}
    row, _ = found.asked
    ids, matrix = sources.vectors.vectors(sources.connection, row, chunk_ids)
    cosines: Any = matrix @ matrix.T
    return {
        (min(one, other), max(one, other)): float(cosines[i][j])
        for i, one in enumerate(ids)
        for j, other in enumerate(ids)
        if i < j
    }
