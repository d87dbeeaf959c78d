"""Relevance -> score: what a memory's age, use, certainty and type add. And which candidates may be shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from math import log2
from typing import Any

from quaid.claims import normal_form
from quaid.index import documents
from quaid.index.documents import Document
from quaid.model import Use, name_key
from quaid.recall import retrieval
from quaid.recall.candidates import CandidateSet, hit_id, hit_kind
from quaid.recall.cutoff import MIN_HITS
from quaid.recall.features import ROLES
from quaid.recall.intent import INTENTS, Intent, asks_for_list
from quaid.recall.retrieval import Retrieved, SearchRequest
from quaid.text import endings

THRESHOLD = 0.5
"""A best score under this means low confidence."""
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
"""The part of `cut_share` that is enough for a turn if the question asks for a list: its items come from several days,
and some have fewer facts and adjacent turns that support them."""
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
    profile, keyword_only, now = request.profile, request.options.keyword_only, request.options.moment
    is_about_work = request.query.intent is Intent.PROJECT or request.options.projects
    lowers_technical = not (is_about_work or keyword_only)
    scores = dict(found.scores)
    for chunk_id, candidate in found.candidates.items():
        score = scores[chunk_id]
        if profile.is_by_intent and not keyword_only:
            score *= type_boost(candidate, request.query.intent)
        if lowers_technical and candidate.technical:
            score *= TECHNICAL
        if profile.is_by_use and not keyword_only:
            use = strengths.get(hit_id(candidate), NEVER_USED)
            score = composite(faded(score, candidate, use, now), candidate, use, now)
        scores[chunk_id] = score
    lift_called(found, retrieved, scores)
    return scores


def lift_called(found: CandidateSet, retrieved: Retrieved, scores: dict[int, float]) -> None:
    """Put the opening of each note that is called as the question before all else; its others keep their places."""
    called = called_chunks(found, retrieved)
    scores |= dict.fromkeys(called, max(EXACT, *scores.values())) if called else {}


def called_chunks(found: CandidateSet, retrieved: Retrieved) -> set[int]:
    """Return the opening of each note that is called as the question, of a conversation the best turn."""

    def rank(candidate: Document) -> tuple[int, float, int]:
        place = candidate.ordinal if candidate.turn is None else 0
        return place, -found.scores[candidate.chunk_id], candidate.chunk_id

    best: dict[int, Document] = {}
    for candidate in found.candidates.values():
        if candidate.doc_id in retrieved.exact:
            best[candidate.doc_id] = min(candidate, best.get(candidate.doc_id, candidate), key=rank)
    return {candidate.chunk_id for candidate in best.values()}


def composite(relevance: float, candidate: Document, use: Use, now: datetime) -> float:
    """Return relevance, recency, frequency and confidence in one, in the range of the relevance."""
    age = days_since(candidate.said_at or candidate.created, now)
    recency = 0.0 if age is None else 2.0 ** (-age / RECENCY_DAYS)
    frequency = min(1.0, use.accesses / ENOUGH_ACCESSES)
    sure = confidence(candidate, use, now)
    rest = RECENCY_SHARE * recency + FREQUENCY_SHARE * frequency + CONFIDENCE_SHARE * sure
    return RELEVANCE_SHARE * relevance + rest * min(1.0, relevance)  # a new memory may still be irrelevant


def confidence(candidate: Document, use: Use, now: datetime) -> float:
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


def faded(score: float, candidate: Document, use: Use, now: datetime) -> float:
    """Return a score after decay: it keeps half of itself, the other half goes with the confidence that has faded."""
    sure = UNSURE if candidate.confidence is None else candidate.confidence
    return score if sure <= 0 else score * (0.5 + 0.5 * confidence(candidate, use, now) / sure)


def type_boost(candidate: Document, intent: Intent) -> float:
    """Return the factor that a question's intent puts on this type of note."""
    return INTENTS[intent].type_boosts.get(candidate.type or "", 1.0)


def low_confidence_reason(best: float | None) -> str | None:
    """Return why an answer whose best score is `best` (None without a hit) is low-confidence, None if it is not."""
    if best is None:
        return "nothing was found"
    return f"the best score is {best:.3f}, under {THRESHOLD:g}" if best < THRESHOLD else None


def days_since(moment: str | None, now: datetime) -> float | None:
    """Return the days from an ISO date or time to `now`, never below 0; None for what is not a date."""
    try:
        day = date.fromisoformat((moment or "")[:10])
    except ValueError:
        return None
    return float(max(0, (now.date() - day).days))


# -- selection -------------------------------------------------------------------------------------------------------


def select(request: SearchRequest, found: CandidateSet, scores: Mapping[int, float]) -> list[Document]:
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
    ranked: Collection[Document],
    scores: Mapping[int, float],
    called: Collection[int] = (),
) -> list[Document]:
    """Return the relevant ones of `ranked`: found for a reason, and not too far behind the best that is not `called` as
    the question. Where several things are asked for, less is enough for a turn. Of a chunk without a vector it is not
    known how far behind it is: the first `MIN_HITS` hits may be such.
    """
    matched = {chunk_id for chunk_id, _ in retrieved.rankings.get("keyword", ())}
    with_reason = {candidate.chunk_id for candidate in ranked if reason(candidate, retrieved, matched)}
    is_for_list = asks_for_list(request.query.text)
    if is_for_list and request.profile.weights.beside:
        with_reason |= _list_adjacent(ranked, with_reason)
    best = next((scores[each.chunk_id] for each in ranked if each.chunk_id in with_reason.difference(called)), 0.0)
    least = best * request.profile.cut_share
    least_of_turns = least * (OF_A_LIST if is_for_list else 1)
    without_vector = retrieved.without_vector() if retrieved.embedded else set()  # without any, words compare all
    relevant: list[Document] = []
    places: set[tuple[int, int | None]] = set()
    for candidate in ranked:
        score = scores[candidate.chunk_id]
        has_reason = candidate.chunk_id in with_reason
        is_near = score >= (least if candidate.turn is None else least_of_turns)
        is_near |= candidate.chunk_id in without_vector and len(places) < MIN_HITS
        if has_reason and is_near:
            relevant.append(candidate)
            places.add((candidate.doc_id, candidate.turn))
        elif len(request.trace.cut) < MAX_CUT_SHOWN:
            why = "far behind the best" if has_reason else "neither a word, a name nor the meaning of the question"
            request.trace.leave_out(hit_id(candidate), score, why)
    return relevant


def _list_adjacent(ranked: Collection[Document], chunk_ids: Collection[int]) -> set[int]:
    """Return the chunks of the turns by people before and after the turns of `chunk_ids`. An item of a list often
    shares no word with the question, which is in an adjacent turn. Messages to an assistant name their topic.
    """
    turns = {(each.doc_id, each.turn) for each in ranked if each.turn is not None and each.chunk_id in chunk_ids}
    return {
        each.chunk_id
        for each in ranked
        if each.turn is not None
        and name_key(each.turn_speaker or "user") not in ROLES
        and not turns.isdisjoint({(each.doc_id, each.turn - 1), (each.doc_id, each.turn + 1)})
    }


def reason(candidate: Document, retrieved: Retrieved, matched: Collection[int]) -> str:
    """Return why a candidate has to do with the question at all: exact, graph, words, session or meaning; empty for no
    reason.

    Scores are relative to the best candidate, which may be irrelevant too. `matched` are the chunks that have a word of
    the question.
    """
    if candidate.doc_id in retrieved.exact:
        return "exact"
    if retrieved.graph.scores.get(candidate.doc_id, 0.0) >= retrieval.ABOUT:
        return "graph"
    if candidate.chunk_id in matched:
        return "words"
    if candidate.chunk_id in retrieved.contiguous:
        return "session"
    return "meaning" if retrieved.cosines.get(candidate.chunk_id, -1.0) >= retrieved.relevant_similarity else ""


def truth(request: SearchRequest, candidates: Collection[Document]) -> Callable[[Document], bool]:
    """Return what tells whether one of `candidates` holds on the day that is asked for."""
    options, day = request.options, request.options.day
    if options.at is None:
        return lambda candidate: options.superseded or not is_over(candidate, day)
    replaced = {candidate.superseded_by for candidate in candidates if candidate.superseded_by is not None}
    ended = documents.list_beginnings(request.connection, replaced, request.scope) if replaced else {}
    return lambda candidate: was_true(candidate, day, ended.get(candidate.superseded_by or ""))


def is_over(candidate: Document, today: str) -> bool:
    """Return whether a fact has been replaced, or was true only until a day before `today` (YYYY-MM-DD)."""
    return candidate.superseded_by is not None or endings.is_over(candidate, today)


def was_true(candidate: Document, day: str, ended: str | None) -> bool:
    """Return whether a fact held on `day` (YYYY-MM-DD). `ended` is when what replaced it began, where it has no end."""
    began = candidate.valid_from
    if began is not None and began[:10] > day:
        return False
    if own_end := endings.find_last_day(candidate):
        return day <= own_end
    if ended is not None:
        return day < ended[:10]
    return candidate.superseded_by is None


MAX_REORDERED = 60
"""The number of best hits that are reordered; those behind them stay behind."""
LIST_SPREAD_FACTOR = 2
"""A session loses this many times as much if the question asks for a list: its items come from several days."""


def reorder(
    request: SearchRequest, retrieved: Retrieved, ranked: Sequence[Document], scores: Mapping[int, float]
) -> list[tuple[Document, float]]:
    """Return `ranked` with what is like the best later, as far as that is on."""
    profile = request.profile
    if profile.mmr_share and retrieved.embedded is not None:
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
        return marginal_relevance(ranked, scores, likeness, profile.mmr_share)
    if profile.spread:
        strength = profile.spread * (LIST_SPREAD_FACTOR if asks_for_list(request.query.text) else 1)
        return spread(ranked, scores, strength)
    return [(candidate, scores[candidate.chunk_id]) for candidate in ranked]


def spread(ranked: Sequence[Document], scores: Mapping[int, float], strength: float) -> list[tuple[Document, float]]:
    """Return `ranked` with the turns of one session taken apart, and what each scored when its turn came.

    The n-th turn taken from the same session has `strength * sqrt(n)` less, however many chunks it is: a question whose
    answer is spread over several conversations is not answered from one alone, and where one conversation is far ahead
    it stays ahead.
    """
    taken: dict[int, set[int | None]] = {}
    if all(candidate.turn is None for candidate in ranked[:MAX_REORDERED]):
        return [(candidate, scores[candidate.chunk_id]) for candidate in ranked]

    def loss(candidate: Document) -> float:
        return strength * math.sqrt(len(taken.get(candidate.doc_id, ()))) if candidate.turn is not None else 0.0

    def take(candidate: Document) -> None:
        taken.setdefault(candidate.doc_id, set()).add(candidate.turn)

    return _greedily(ranked, scores, loss, take)


def marginal_relevance(
    ranked: Sequence[Document], scores: Mapping[int, float], likeness: Mapping[tuple[int, int], float], share: float
) -> list[tuple[Document, float]]:
    """Return `ranked` by maximal marginal relevance: `share * score - (1 - share) * likeness to the most alike chosen`.

    `likeness` is the cosine of two chunks, the lower chunk_id first. Source: Carbonell and Goldstein, SIGIR 1998.
    """
    nearest: dict[int, float] = {}
    left = {candidate.chunk_id for candidate in ranked[:MAX_REORDERED]}

    def loss(candidate: Document) -> float:
        return (1 - share) * (scores[candidate.chunk_id] + nearest.get(candidate.chunk_id, 0.0))

    def take(candidate: Document) -> None:
        left.discard(candidate.chunk_id)
        for other in left:
            pair = (min(other, candidate.chunk_id), max(other, candidate.chunk_id))
            nearest[other] = max(nearest.get(other, 0.0), likeness.get(pair, 0.0))

    return _greedily(ranked, scores, loss, take)


def _greedily(
    ranked: Sequence[Document],
    scores: Mapping[int, float],
    loss: Callable[[Document], float],
    take: Callable[[Document], None],
) -> list[tuple[Document, float]]:
    """Return always the best of what is left, after its loss for what has been taken."""
    left = list(ranked[:MAX_REORDERED])
    chosen: list[tuple[Document, float]] = []
    while left:
        values = [scores[candidate.chunk_id] - loss(candidate) for candidate in left]
        best = max(range(len(left)), key=values.__getitem__)
        candidate = left.pop(best)
        chosen.append((candidate, values[best]))
        take(candidate)
    least = chosen[-1][1] if chosen else 0.0
    behind = [(candidate, min(least, scores[candidate.chunk_id])) for candidate in ranked[MAX_REORDERED:]]
    return chosen + behind


def fold(ranked: Iterable[Document], limit: int) -> list[tuple[Document, int]]:
    """Return the first `limit` distinct candidates in their order, each with how many of `ranked` it represents."""
    distinct: dict[object, tuple[Document, int]] = {}
    seen: set[tuple[int, int | None, int | None]] = set()
    for candidate in ranked:
        place = (candidate.doc_id, candidate.turn, candidate.passage)
        if place in seen:  # a further chunk of the same note, turn or passage does not say it a second time
            continue
        statement = normal_form(candidate.text) or place
        first, count = distinct.get(statement, (candidate, 0))
        if not count and len(distinct) == limit:
            break
        distinct[statement] = first, count + 1
        seen.add(place)
    return list(distinct.values())
