"""Relevance -> score: what a memory's age, use, certainty and type add. And which candidates may be shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime
from math import log2

from quaid.index import documents
from quaid.index.documents import Candidate
from quaid.model import Use, name_key
from quaid.recall import beam_search
from quaid.recall.candidates import CandidateSet, hit_id, hit_kind
from quaid.recall.intent import PROFILES, Intent, asks_for_list
from quaid.recall.retrieval import Retrieved, SearchRequest
from quaid.recall.talks import ROLES
from quaid.text import endings

HALF_LIFE_DAYS = 60.0
STRETCH_PER_ACCESS = 0.15
"""Each access makes the half-life this much of itself longer."""
UNTOUCHED_DAYS = 30.0
"""A memory used or made within this many days has not begun to fade."""
RECENCY_DAYS = 90.0
"""The half-life of newness."""
ENOUGH_ACCESSES = 10
UNSURE = 0.5
"""The confidence of a note that states none."""
NEVER_USED = Use()
TECHNICAL = 0.9
"""The part of its score that a technical memory keeps where the question is not about work."""
EXACT = 1.0
"""The score of a note that is called as the question."""
OF_A_LIST = 0.8
"""The part of `cut_share` that is enough for a turn where several things are asked for: they were told on several days,
and some have fewer facts and turns around them that speak for them."""
MAX_CUT_SHOWN = 20
"""The maximum of left-out candidates that the trace names."""


RELEVANCE_SHARE, RECENCY_SHARE, FREQUENCY_SHARE, CONFIDENCE_SHARE = 0.6, 0.2, 0.15, 0.05
"""The shares of the composite score; they add up to 1."""

# -- score -----------------------------------------------------------------------------------------------------------


def adjust(
    request: SearchRequest, found: CandidateSet, retrieved: Retrieved, strengths: Mapping[str, Use]
) -> dict[int, float]:
    """Return the scores of candidates by chunk_id: relevance with the intent's types, age, use and certainty, as far as
    they are on. A note that is called as the question goes first.
    """
    stages, keyword_only, now = request.settings.stages, request.options.keyword_only, request.options.moment
    has_age = (stages.decay or stages.composite) and not keyword_only
    is_about_work = request.query.intent is Intent.PROJECT or request.options.projects
    lowers_technical = stages.technical and not (is_about_work or keyword_only)
    scores = dict(found.scores)
    for chunk_id, candidate in found.candidates.items():
        score = scores[chunk_id]
        if stages.type_boosts and not keyword_only:
            score *= type_boost(candidate, request.query.intent)
        if lowers_technical and candidate.technical:
            score *= TECHNICAL
        if has_age:
            use = strengths.get(hit_id(candidate), NEVER_USED)
            score = faded(score, candidate, use, now) if stages.decay else score
            score = composite(score, candidate, use, now) if stages.composite else score
        scores[chunk_id] = score
    lift_called(found, retrieved, scores)
    return scores


def lift_called(found: CandidateSet, retrieved: Retrieved, scores: dict[int, float]) -> None:
    """Put the opening of each note that is called as the question before all else; its others keep their places."""
    called = called_chunks(found, retrieved)
    scores |= dict.fromkeys(called, max(EXACT, *scores.values())) if called else {}


def called_chunks(found: CandidateSet, retrieved: Retrieved) -> set[int]:
    """Return the opening of each note that is called as the question, of a conversation the best turn."""

    def rank(candidate: Candidate) -> tuple[int, float, int]:
        place = candidate.ordinal if candidate.turn is None else 0
        return place, -found.scores[candidate.chunk_id], candidate.chunk_id

    best: dict[int, Candidate] = {}
    for candidate in found.candidates.values():
        if candidate.doc_id in retrieved.exact:
            best[candidate.doc_id] = min(candidate, best.get(candidate.doc_id, candidate), key=rank)
    return {candidate.chunk_id for candidate in best.values()}


def composite(relevance: float, candidate: Candidate, use: Use, now: datetime) -> float:
    """Return relevance, recency, frequency and confidence in one, in the range of the relevance."""
    age = days_since(candidate.said_at or candidate.created, now)
    recency = 0.0 if age is None else 2.0 ** (-age / RECENCY_DAYS)
    frequency = min(1.0, use.accesses / ENOUGH_ACCESSES)
    sure = confidence(candidate, use, now)
    rest = RECENCY_SHARE * recency + FREQUENCY_SHARE * frequency + CONFIDENCE_SHARE * sure
    return RELEVANCE_SHARE * relevance + rest * min(1.0, relevance)  # new and beside the point is beside the point


def confidence(candidate: Candidate, use: Use, now: datetime) -> float:
    """Return how sure a memory is by now: `confidence * 2 ** (-days / half_life)` (Ebbinghaus), days since it was used.

    The half-life is stretched by every access and by storage strength; what is pinned or verified does not fade.
    """
    sure = UNSURE if candidate.confidence is None else candidate.confidence
    if candidate.pinned or candidate.verified:
        return sure
    return retained(sure, use.last_access or candidate.created, use, now)


def retained(sure: float, last: str | None, use: Use, now: datetime) -> float:
    """Return what is left of the confidence `sure` of a memory that was used or learned `last` (ISO 8601)."""
    idle = days_since(last, now)
    if idle is None or idle <= UNTOUCHED_DAYS:
        return sure
    return float(sure * 2.0 ** (-(idle - UNTOUCHED_DAYS) / _half_life_days(use)))


def days_above(floor: float, sure: float, use: Use) -> float:
    """Return the days without use until the confidence `sure` has faded to `floor`."""
    return UNTOUCHED_DAYS + _half_life_days(use) * max(0.0, log2(sure / floor)) if sure > 0 else UNTOUCHED_DAYS


def _half_life_days(use: Use) -> float:
    return HALF_LIFE_DAYS * (1.0 + STRETCH_PER_ACCESS * use.accesses) * (1.0 + max(0.0, use.strength))


def faded(score: float, candidate: Candidate, use: Use, now: datetime) -> float:
    """Return a score after decay: it keeps half of itself, the other half goes with the confidence that has faded."""
    sure = UNSURE if candidate.confidence is None else candidate.confidence
    return score if sure <= 0 else score * (0.5 + 0.5 * confidence(candidate, use, now) / sure)


def type_boost(candidate: Candidate, intent: Intent) -> float:
    """Return the factor that a question's intent puts on this type of note."""
    return PROFILES[intent].type_boosts.get(candidate.type or "", 1.0)


def tell_doubt(best: float | None, gate: float) -> str | None:
    """Return why an answer whose best score is `best`, None without any, is in doubt; None when it is not."""
    if best is None:
        return "nothing was found"
    return f"the best score is {best:.3f}, under {gate:g}" if best < gate else None


def days_since(moment: str | None, now: datetime) -> float | None:
    """Return the days from an ISO date or time to `now`, never below 0; None for what is not a date."""
    try:
        day = date.fromisoformat((moment or "")[:10])
    except ValueError:
        return None
    return float(max(0, (now.date() - day).days))


# -- selection -------------------------------------------------------------------------------------------------------


def select(request: SearchRequest, found: CandidateSet, scores: Mapping[int, float]) -> list[Candidate]:
    """Return the candidates that may be shown, best first; the trace has the best of the others and why."""
    trace, options = request.trace, request.options
    trace.cut.clear()
    holds = truth(request, found.candidates.values())
    selected = []
    for candidate in sorted(found.candidates.values(), key=lambda each: (-scores[each.chunk_id], each.chunk_id)):
        if options.kinds and hit_kind(candidate) not in options.kinds:
            continue
        if holds(candidate):
            selected.append(candidate)
            continue
        if options.at is not None:
            why = f"not true on {options.day}"
        else:
            why = "superseded" if candidate.superseded_by is not None else "expired"
        if len(trace.cut) < MAX_CUT_SHOWN:
            trace.leave_out(hit_id(candidate), scores[candidate.chunk_id], why)
    return selected


def cut(
    request: SearchRequest,
    retrieved: Retrieved,
    ranked: Collection[Candidate],
    scores: Mapping[int, float],
    called: Collection[int] = (),
) -> list[Candidate]:
    """Return the relevant ones of `ranked`: found for a reason, and not too far behind the best that is not `called` as
    the question. Where several things are asked for, less is enough for a turn. Of a chunk without a vector it is not
    known how far behind it is: the first `k_least` hits may be such.
    """
    matched = {chunk_id for chunk_id, _ in retrieved.rankings.get("keyword", ())}
    with_reason = {candidate.chunk_id for candidate in ranked if reason(candidate, retrieved, matched)}
    is_for_list = asks_for_list(request.query.text)
    if is_for_list and request.settings.stages.company:
        with_reason |= _beside(ranked, with_reason)
    best = next((scores[each.chunk_id] for each in ranked if each.chunk_id in with_reason.difference(called)), 0.0)
    least = best * request.settings.cut_share
    least_of_turns = least * (OF_A_LIST if is_for_list else 1)
    without_vector = retrieved.without_vector() if retrieved.embedded else set()  # without any, words compare all
    kept: list[Candidate] = []
    places: set[tuple[int, int | None]] = set()
    for candidate in ranked:
        score = scores[candidate.chunk_id]
        has_reason = candidate.chunk_id in with_reason
        is_near = score >= (least if candidate.turn is None else least_of_turns)
        is_near |= candidate.chunk_id in without_vector and len(places) < request.settings.k_least
        if has_reason and is_near:
            kept.append(candidate)
            places.add((candidate.doc_id, candidate.turn))
        elif len(request.trace.cut) < MAX_CUT_SHOWN:
            why = "far behind the best" if has_reason else "neither a word, a name nor the meaning of the question"
            request.trace.leave_out(hit_id(candidate), score, why)
    return kept


def _beside(ranked: Collection[Candidate], chunk_ids: Collection[int]) -> set[int]:
    """Return the chunks of what people said before and after the turns of `chunk_ids`: one of several answers often
    shares nothing with the question, which stands beside it. A message to an assistant says what it is about.
    """
    turns = {(each.doc_id, each.turn) for each in ranked if each.turn is not None and each.chunk_id in chunk_ids}
    return {
        each.chunk_id
        for each in ranked
        if each.turn is not None
        and name_key(each.speaker or "user") not in ROLES
        and not turns.isdisjoint({(each.doc_id, each.turn - 1), (each.doc_id, each.turn + 1)})
    }


def reason(candidate: Candidate, retrieved: Retrieved, matched: Collection[int]) -> str:
    """Return why a candidate has to do with the question at all: exact, graph, words, session or meaning; empty for no
    reason.

    Scores are relative to the best there is, which may be beside the point as much as the rest. `matched` are the
    chunks that have a word of the question.
    """
    if candidate.doc_id in retrieved.exact:
        return "exact"
    if retrieved.graph.scores.get(candidate.doc_id, 0.0) >= beam_search.ABOUT:
        return "graph"
    if candidate.chunk_id in matched:
        return "words"
    if candidate.chunk_id in retrieved.contiguous:
        return "session"
    return "meaning" if retrieved.cosines.get(candidate.chunk_id, -1.0) >= retrieved.relevant_similarity else ""


def truth(request: SearchRequest, candidates: Collection[Candidate]) -> Callable[[Candidate], bool]:
    """Return what tells whether one of `candidates` holds on the day that is asked for."""
    options, day = request.options, request.options.day
    if options.at is None:
        return lambda candidate: options.superseded or not is_over(candidate, day)
    replaced = {candidate.superseded_by for candidate in candidates if candidate.superseded_by is not None}
    ended = documents.list_beginnings(request.connection, replaced, request.scope) if replaced else {}
    return lambda candidate: was_true(candidate, day, ended.get(candidate.superseded_by or ""))


def is_over(candidate: Candidate, today: str) -> bool:
    """Return whether a fact has been replaced, or was true only until a day before `today` (YYYY-MM-DD)."""
    return candidate.superseded_by is not None or endings.is_over(candidate, today)


def was_true(candidate: Candidate, day: str, ended: str | None) -> bool:
    """Return whether a fact held on `day` (YYYY-MM-DD). `ended` is when what replaced it began, where it has no end."""
    began = candidate.valid_from
    if began is not None and began[:10] > day:
        return False
    if own_end := endings.find_last_day(candidate):
        return day <= own_end
    if ended is not None:
        return day < ended[:10]
    return candidate.superseded_by is None
