"""Relevance -> score: what a memory's age, use, certainty and type add. And which candidates may be shown."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import combinations

from quaid.claims import normal_form
from quaid.index import documents
from quaid.index.documents import Document
from quaid.model import Use, name_key, note_name
from quaid.recall import retrieval
from quaid.recall.candidates import hit_id, hit_kind
from quaid.recall.cutoff import MIN_HITS
from quaid.recall.intent import INTENTS, Intent, asks_for_list, is_statement
from quaid.recall.search import ROLES, Search
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
UNCERTAIN = 0.8
"""The part that a fact keeps which a question proposes to reject, or which is not true yet: no date is asked for."""
EXACT = 1.0
"""The score of a note that is called as the question."""
LESS = 0.8
"""The part of `cut_share` that is enough for a turn, as fewer facts and adjacent turns support some that answer. It is
enough for all where somebody tells something and asks nothing.
"""
MAX_CUT_SHOWN = 20
"""The maximum of left-out candidates that the trace names."""


RELEVANCE_SHARE, RECENCY_SHARE, FREQUENCY_SHARE, CONFIDENCE_SHARE = 0.6, 0.2, 0.15, 0.05
"""The shares of the composite score; they add up to 1."""

# -- score -----------------------------------------------------------------------------------------------------------


def adjust(search: Search) -> None:
    """Set the scores: relevance with the intent's types, age, use and certainty, as far as they are on. A note whose
    name is the question goes first.
    """
    profile, options = search.profile, search.options
    keyword_only, now, day = options.keyword_only, options.moment, options.day
    is_about_work = search.query.intent is Intent.PROJECT or search.options.projects
    lowers_technical = not (is_about_work or keyword_only)
    is_of_future = search.query.intent is Intent.WHEN or search.query.dates or keyword_only
    pending = search.sources.cache.of(search.connection, documents.list_pending)
    doubted = {doc_id for doc_id, (_, successor) in pending.items() if successor is None}
    uses: Mapping[str, Use] = {}
    if profile.is_by_use and search.sources.records is not None:
        uses = search.sources.records.strengths({hit_id(each) for each in search.candidates.values()})
    search.scores = dict(search.relevance)
    for chunk_id, candidate in search.candidates.items():
        score = search.scores[chunk_id]
        if profile.is_by_intent and not keyword_only:
            score *= INTENTS[search.query.intent].type_boosts.get(candidate.type or "", 1.0)
        if lowers_technical and candidate.technical:
            score *= TECHNICAL
        if not is_of_future and (candidate.doc_id in doubted or endings.is_coming(candidate, day)):
            score *= UNCERTAIN
        if profile.is_by_use and not keyword_only:
            use = uses.get(hit_id(candidate), NEVER_USED)
            score = composite(faded(score, candidate, use, now), candidate, use, now)
        search.scores[chunk_id] = score
    lift_called(search)


def lift_called(search: Search) -> None:
    """Rank the opening of each note whose name is the question first; the others keep their places."""
    called = search.called_chunks()
    search.scores |= dict.fromkeys(called, max(EXACT, *search.scores.values())) if called else {}


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
    return float(sure * 2.0 ** (-(idle - UNTOUCHED_DAYS) / half_life_days(use)))


def days_above(floor: float, sure: float, use: Use) -> float:
    """Return the days without use until the confidence `sure` has faded to `floor`."""
    return UNTOUCHED_DAYS + half_life_days(use) * max(0.0, math.log2(sure / floor)) if sure > 0 else UNTOUCHED_DAYS


def half_life_days(use: Use) -> float:
    return HALF_LIFE_DAYS * (1.0 + STRETCH_PER_ACCESS * use.accesses) * (1.0 + max(0.0, use.strength))


def faded(score: float, candidate: Document, use: Use, now: datetime) -> float:
    """Return a score after decay: it keeps half of itself, the other half goes with the confidence that has faded."""
    sure = UNSURE if candidate.confidence is None else candidate.confidence
    return score if sure <= 0 else score * (0.5 + 0.5 * confidence(candidate, use, now) / sure)


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


def select(search: Search) -> None:
    """Rank the candidates that may be shown, best first; the trace has the best of the others and why."""
    trace, options, scores = search.trace, search.options, search.scores
    trace.cut.clear()
    candidates = sorted(search.candidates.values(), key=lambda each: (-scores[each.chunk_id], each.chunk_id))
    wanted = [each for each in candidates if not options.kinds or hit_kind(each) in options.kinds]
    search.ranked = holding(search, wanted)
    held = {each.chunk_id for each in search.ranked}
    for candidate in [each for each in wanted if each.chunk_id not in held][:MAX_CUT_SHOWN]:
        why = "superseded" if candidate.superseded_by is not None else "expired"
        if options.at is not None:
            why = f"not true on {options.day}"
        trace.leave_out(hit_id(candidate), scores[candidate.chunk_id], why)


def cut(search: Search) -> list[Document]:
    """Return the relevant ones of the ranked: found for a reason, and not too far behind the best whose name is not the
    question. For a turn less is enough. Of a chunk without a vector it is not known how far behind it is: the first
    `MIN_HITS` hits may be such.
    """
    ranked, scores = search.ranked, search.scores
    matched = {chunk_id for chunk_id, _ in search.rankings.get("keyword", ())}
    with_reason = {candidate.chunk_id for candidate in ranked if reason(candidate, search, matched)}
    if asks_for_list(search.query.text) and search.profile.weights.get("beside"):
        # An item of a list often shares no word with the question, which is in an adjacent turn by a person. Messages
        # to an assistant name their topic.
        turns = {(each.doc_id, each.turn) for each in ranked if each.turn is not None and each.chunk_id in with_reason}
        with_reason |= {
            each.chunk_id
            for each in ranked
            if each.turn is not None
            and name_key(each.turn_speaker or "user") not in ROLES
            and not turns.isdisjoint({(each.doc_id, each.turn - 1), (each.doc_id, each.turn + 1)})
        }
    compared = with_reason - search.called_chunks()
    best = next((scores[each.chunk_id] for each in ranked if each.chunk_id in compared), 0.0)
    least = best * search.profile.cut_share * (LESS if is_statement(search.query.text) else 1)
    without_vector = search.without_vector() if search.embedded else set()  # without any, words compare all
    relevant: list[Document] = []
    places: set[tuple[int, int | None]] = set()
    for candidate in ranked:
        score = scores[candidate.chunk_id]
        has_reason = candidate.chunk_id in with_reason
        is_near = score >= least * (1 if candidate.turn is None else LESS)
        is_near |= candidate.chunk_id in without_vector and len(places) < MIN_HITS
        if has_reason and is_near:
            relevant.append(candidate)
            places.add((candidate.doc_id, candidate.turn))
        elif len(search.trace.cut) < MAX_CUT_SHOWN:
            why = "far behind the best" if has_reason else "neither a word, a name nor the meaning of the question"
            search.trace.leave_out(hit_id(candidate), score, why)
    return relevant


def reason(candidate: Document, search: Search, matched: Collection[int]) -> str:
    """Return why a candidate has to do with the question at all: exact, graph, words, session or meaning; empty for no
    reason.

    Scores are relative to the best candidate, which may be irrelevant too. `matched` are the chunks that have a word of
    the question.
    """
    if candidate.doc_id in search.exact:
        return "exact"
    if search.graph.get(candidate.doc_id, 0.0) >= retrieval.ABOUT:
        return "graph"
    if candidate.chunk_id in matched:
        return "words"
    if candidate.chunk_id in search.contiguous:
        return "session"
    return "meaning" if search.cosines.get(candidate.chunk_id, -1.0) >= search.relevant_similarity else ""


def holding(search: Search, candidates: Collection[Document]) -> list[Document]:
    """Return those of `candidates` that hold on the day of the question."""
    options, day = search.options, search.options.day
    if options.at is None:  # what is to begin is shown too, after what holds
        return [each for each in candidates if options.superseded or not endings.is_over(each, day)]
    references = documents.count_by(search.connection, "superseded_by")
    began = documents.list_beginnings(search.connection, references, search.scope)
    found = []
    for each in candidates:
        # A state that took the place of another began when that was stated; what cannot change was always so.
        since = began.get(note_name(each.path)) or began.get(each.id) or ""
        is_always = each.type in endings.HAPPENED or each.durability == "immutable"
        replaced_on = began.get(each.superseded_by or "") or each.valid_until
        if (is_always or since[:10] <= day) and endings.is_true_on(each, day, replaced_on):
            found.append(each)
    return found


MAX_REORDERED = 60
"""The number of best hits that are reordered; those behind them stay behind."""


def diversify(search: Search, ranked: Sequence[Document]) -> list[tuple[Document, float]]:
    """Return `ranked` with what is like the best later, as far as that is on, and the score of each there."""
    profile = search.profile
    if not profile.mmr_share or search.embedded is None:
        # Items of a list come from several days; other answers from one conversation more often than not.
        return reorder(ranked, search.scores, profile.spread if asks_for_list(search.query.text) else 0.0)
    best = [candidate.chunk_id for candidate in ranked[:MAX_REORDERED]]
    ids, matrix = search.sources.vectors.vectors(search.connection, search.embedded[0], best)
    cosines = (matrix @ matrix.T).tolist()
    likeness = {
        (min(one, other), max(one, other)): cosines[i][j] for (i, one), (j, other) in combinations(enumerate(ids), 2)
    }
    return reorder(ranked, search.scores, likeness=likeness, share=profile.mmr_share)


def reorder(
    ranked: Sequence[Document],
    scores: Mapping[int, float],
    strength: float = 0.0,
    *,
    likeness: Mapping[tuple[int, int], float] | None = None,
    share: float = 1.0,
) -> list[tuple[Document, float]]:
    """Return `ranked` so that the best of what is left comes next, after its loss for what came before it.

    The n-th turn taken from the same session has `strength * sqrt(n)` less, however many chunks it is: a question whose
    answer is spread over several conversations is not answered from one alone, and where one conversation is far ahead
    it stays ahead. With `likeness`, the cosines of two chunks (the lower chunk_id first), the value is `share * score -
    (1 - share) * likeness to the most alike chosen`: maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).
    """
    left = list(ranked[:MAX_REORDERED])
    if likeness is None and (not strength or all(candidate.turn is None for candidate in left)):
        return [(candidate, scores[candidate.chunk_id]) for candidate in ranked]
    taken: dict[int, set[int | None]] = {}
    nearest = dict.fromkeys(scores, 0.0)
    chosen: list[tuple[Document, float]] = []
    while left:
        values = []
        for each in left:
            score = scores[each.chunk_id]
            loss = (1 - share) * (score + nearest[each.chunk_id])
            if each.turn is not None and each.doc_id in taken:
                loss += strength * math.sqrt(len(taken[each.doc_id]))
            values.append(score - loss)
        place = max(range(len(left)), key=values.__getitem__)
        best = left.pop(place)
        chosen.append((best, values[place]))
        taken.setdefault(best.doc_id, set()).add(best.turn)
        if likeness is not None:
            for each in left:
                pair = min(each.chunk_id, best.chunk_id), max(each.chunk_id, best.chunk_id)
                nearest[each.chunk_id] = max(nearest[each.chunk_id], likeness.get(pair, 0.0))
    least = chosen[-1][1] if chosen else 0.0
    return chosen + [(each, min(least, scores[each.chunk_id])) for each in ranked[MAX_REORDERED:]]


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
