"""query -> hits, read-only: understand, ask the channels, weigh the evidence, doubt, choose, explain.

Each stage is a small function in a module of its own; this is their order. Which are on is `recall.stages`, what each
found, left out and took is in the trace.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from quaid.errors import EmbeddingError, ModelError
from quaid.index import documents, fulltext
from quaid.index.documents import Candidate
from quaid.index.scope import Scope
from quaid.model import Hit, Kind, Recall, Use
from quaid.recall import (
    answering,
    asking,
    beam,
    contradictions,
    cutoff,
    diversity,
    doubt,
    expansion,
    query,
    selecting,
)
from quaid.recall.asking import Found, Sources
from quaid.recall.gathering import Gathered, gather
from quaid.recall.intent import PROFILES
from quaid.recall.options import RecallOptions, scope_of
from quaid.recall.query import Query
from quaid.recall.rerank import MOST_JUDGED, Judge, blend, losers
from quaid.recall.selecting import Chosen, hit_id
from quaid.recall.trace import Trace
from quaid.settings import RecallSettings

ATTEMPTS = 3
"""A sync may replace a note between its being found and fetched: then the question is asked again."""
StrengthsOf = Callable[[Collection[str]], Mapping[str, Use]]


@dataclass(frozen=True, slots=True)
class Helpers:
    """What recall may ask beside the index: `judge` a language model, None without one; `strengths_of` how memories
    have been used; `owner_names` who `my` means.
    """

    judge: Callable[[], Judge | None] = lambda: None
    strengths_of: StrengthsOf = lambda _: {}
    owner_names: Sequence[str] = ()


@dataclass(slots=True)
class _Asked:
    """One question on its way."""

    sources: Sources
    settings: RecallSettings
    options: RecallOptions
    helpers: Helpers
    trace: Trace
    query: Query
    scope: Scope
    named: frozenset[str] = frozenset()
    opposed: Mapping[int, set[int]] = field(default_factory=dict)
    """Documents that contradict each other, shown or not."""


def recall(
    sources: Sources,
    text: str,
    settings: RecallSettings,
    options: RecallOptions | None = None,
    helpers: Helpers | None = None,
) -> Recall:
    """Answer `text` from the index behind `sources`. Never writes; asks a model only where `helpers` has one and the
    depth allows it.
    """
    asked = _understand(sources, text, settings, options or RecallOptions(), helpers or Helpers())
    for _ in range(ATTEMPTS):
        found = _ask(asked)
        gathered = _gather(asked, found)
        if gathered.is_whole:
            break
    ranked, scores = _rank(asked, found, gathered)
    why = _doubt(ranked, scores, settings)
    if why and settings.stages.second_pass and not asked.options.keyword_only:
        gathered = _ask_again(asked, found, gathered)
        ranked, scores = _rank(asked, found, gathered)
        why = _doubt(ranked, scores, settings)
    if _wants_judge(asked, why):
        ranked, scores, gathered = _judge(asked, found, gathered, ranked, scores)
    chosen = _choose(asked, found, ranked, scores)
    with asked.trace.stage("answer") as noted:
        hits = answering.render_hits(
            sources.connection, chosen, gathered, found, asked.opposed, settings, asked.options
        )
        if asked.options.budget is not None:
            hits = _fit(asked, hits)
        noted["hits"] = len(hits)
    asked.trace.facts |= _facts(asked, found, gathered)
    return Recall(text, hits, tuple(dict.fromkeys(found.degraded)), asked.trace.took_ms, asked.trace.as_shape(), why)


# -- understanding ---------------------------------------------------------------------------------------------------


def _understand(
    sources: Sources, text: str, settings: RecallSettings, options: RecallOptions, helpers: Helpers
) -> _Asked:
    trace = Trace()
    stages = settings.stages
    with trace.stage("query") as noted:
        on = {name for name in query.ALL_STAGES if getattr(stages, name)}
        parsed = query.parse(text, options.now or datetime.now(UTC), helpers.owner_names, on)
        scope = scope_of(sources.connection, options)
        named: frozenset[str] = frozenset()
        if not options.keyword_only and stages.graph:
            named = beam.find_named(sources.connection, parsed, scope)
        if named and stages.aliases:
            parsed = replace(parsed, words=_with_aliases(parsed, named))
        noted |= {"intent": parsed.intent.value, "words": list(parsed.words), "names": sorted(named)}
        if parsed.dates:
            noted["dates"] = [f"{date.start.isoformat()}..{date.end.isoformat()}" for date in parsed.dates]
        if parsed.phrases:
            noted["phrases"] = list(parsed.phrases)
    if stages.intent_weights:
        settings = replace(settings, vector_weight=PROFILES[parsed.intent].vector_weight)
    return _Asked(sources, settings, options, helpers, trace, parsed, scope, named)


def _with_aliases(parsed: Query, named: Collection[str]) -> tuple[str, ...]:
    """The question's words, and those of the other names of what it names."""
    said = set(parsed.name_keys)
    other = (word for key in sorted(named) if key not in said for word in fulltext.terms(key))
    return tuple(dict.fromkeys([*parsed.words, *other]))


# -- asking ----------------------------------------------------------------------------------------------------------


def _ask(asked: _Asked, before: Found | None = None) -> Found:
    embedded = before.asked[1] if before is not None and before.asked is not None else None
    return asking.ask(
        asked.sources, asked.query, asked.settings, asked.options, asked.scope, asked.trace, embedded=embedded
    )


def _gather(asked: _Asked, found: Found) -> Gathered:
    return gather(
        asked.sources, asked.query, asked.named, found, asked.settings, asked.options, asked.scope, asked.trace
    )


def _rank(asked: _Asked, found: Found, gathered: Gathered) -> tuple[list[Candidate], dict[int, float]]:
    with asked.trace.stage("score") as noted:
        strengths: Mapping[str, Use] = {}
        if asked.settings.stages.composite or asked.settings.stages.decay:
            strengths = asked.helpers.strengths_of({hit_id(c) for c in gathered.candidates.values()})
        scores = selecting.adjust(gathered, asked.query, found, strengths, asked.settings, asked.options)
        ranked = _wanted(asked, gathered, scores)
        if asked.settings.stages.contiguity and not asked.options.keyword_only:
            decay = asked.settings.contiguity_decay
            facts, worth = expansion.from_same_sessions(asked.sources.connection, ranked, scores, decay, asked.scope)
            gathered.candidates |= facts
            scores |= {chunk_id: max(score, scores.get(chunk_id, 0.0)) for chunk_id, score in worth.items()}
            gathered.scores |= {chunk_id: scores[chunk_id] for chunk_id in worth}
            found.together |= worth.keys()
            ranked = _wanted(asked, gathered, scores)
        noted |= {"candidates": len(gathered.candidates), "left": len(ranked)}
    return ranked, scores


def _wanted(asked: _Asked, gathered: Gathered, scores: Mapping[int, float]) -> list[Candidate]:
    asked.trace.cut.clear()
    is_true = selecting.truth(asked.sources.connection, gathered.candidates.values(), asked.options, asked.scope)
    return selecting.wanted(gathered, scores, is_true, asked.query, asked.settings, asked.options, asked.trace)


# -- doubt -----------------------------------------------------------------------------------------------------------


def _doubt(ranked: Sequence[Candidate], scores: Mapping[int, float], settings: RecallSettings) -> str | None:
    """Why the answer is in doubt, None when it is not."""
    if not ranked:
        return "nothing was found"
    best = scores[ranked[0].chunk_id]
    return f"the best score is {best:.3f}, under {settings.gate:g}" if best < settings.gate else None


def _ask_again(asked: _Asked, found: Found, gathered: Gathered) -> Gathered:
    """The second pass: what it finds is added to what is known."""
    with asked.trace.stage("second_pass") as noted:
        connection = asked.sources.connection
        allowed = asked.sources.scoped.of(connection, asked.scope)
        broader = doubt.broaden(connection, asked.query, asked.named, asked.scope, allowed)
        noted |= {"words": list(broader.words), "names": sorted(broader.named)}
    if not broader:
        return gathered
    before = gathered.candidates.keys()
    asked.query = replace(asked.query, words=tuple(dict.fromkeys([*asked.query.words, *broader.words])))
    asked.named |= broader.named
    again = _ask(asked, found)
    found.rankings |= again.rankings
    found.cosines |= again.cosines
    found.episodes = again.episodes
    wider = _gather(asked, found)
    found.broadened = set(wider.candidates.keys() - before)
    return wider


def _wants_judge(asked: _Asked, why: str | None) -> bool:
    if not asked.settings.stages.rerank or asked.options.keyword_only or asked.options.depth == "fast":
        return False
    return why is not None or asked.options.depth == "deep"


def _judge(
    asked: _Asked, found: Found, gathered: Gathered, ranked: list[Candidate], scores: dict[int, float]
) -> tuple[list[Candidate], dict[int, float], Gathered]:
    """HyDE and the graded reranker in one call, within the time budget; else the order stands and says so."""
    judge = asked.helpers.judge()
    if judge is None:
        return ranked, scores, gathered
    with asked.trace.stage("rerank") as noted:
        started = time.perf_counter()
        judged = ranked[:MOST_JUDGED]
        budget_s = asked.settings.rerank_budget_s
        try:
            judgement = judge.judge(asked.query.text, [candidate.text for candidate in judged], budget_s)
        except ModelError as error:
            found.degraded.append("model")
            noted["problem"] = str(error)
            return ranked, scores, gathered
        noted |= {"statement": judgement.statement, "grades": len(judgement.grades)}
        graded = {judged[index].chunk_id: grade for index, grade in judgement.grades.items()}
        if asked.settings.stages.inhibition:
            wrong = losers(judgement.grades, [scores[candidate.chunk_id] for candidate in judged])
            asked.trace.facts["inhibited"] = [hit_id(judged[index]) for index in wrong]
        if time.perf_counter() - started < budget_s:
            try:
                asking.like_statement(asked.sources, judgement.statement, asked.settings.candidates, asked.scope, found)
            except EmbeddingError:
                found.degraded.append("vectors")
    gathered = _gather(asked, found)
    ranked, scores = _rank(asked, found, gathered)
    share = asked.settings.rerank_share
    for chunk_id, grade in graded.items():
        if chunk_id in scores:
            scores[chunk_id] = blend(min(1.0, scores[chunk_id]), grade, share)
    # What was not graded is no better than the least that was: nobody has looked at it.
    least = min((scores[chunk_id] for chunk_id in graded if chunk_id in scores), default=math.inf)
    new = {chunk_id for chunk_id, _ in found.rankings.get("hyde", ())[:MOST_JUDGED]}
    for chunk_id in scores.keys() - graded.keys() - new:
        scores[chunk_id] = min(scores[chunk_id], least)
    return sorted(ranked, key=lambda c: (-scores[c.chunk_id], c.chunk_id)), scores, gathered


# -- choosing --------------------------------------------------------------------------------------------------------


def _choose(asked: _Asked, found: Found, ranked: list[Candidate], scores: Mapping[int, float]) -> list[Chosen]:
    """Order, cut, fold and count."""
    settings, options, trace = asked.settings, asked.options, asked.trace
    with trace.stage("choose") as noted:
        if settings.stages.cut and not options.keyword_only:
            ranked = _cut(asked, found, ranked, scores)
        ordered = [(c, scores[c.chunk_id]) for c in ranked]
        if not options.keyword_only:
            ordered = selecting.order(ranked, scores, asked.sources, found, settings)
        limit = _limit(asked)
        similarity = settings.collapse_similarity if settings.stages.fold else 2.0
        folded = diversity.fold((candidate for candidate, _ in ordered), similarity, limit)
        value = {candidate.chunk_id: score for candidate, score in ordered}
        chosen = [(candidate, value[candidate.chunk_id], count) for candidate, count in folded]
        noted |= {"limit": limit, "shown": len(chosen), "behind": max(0, len(ordered) - len(chosen))}
    if settings.stages.contradictions and not options.keyword_only:
        chosen = _with_opposed(asked, chosen)
    return chosen[:limit]


def _limit(asked: _Asked) -> int:
    """How many hits at most: as asked, as set, else by the size of the memory that is seen."""
    settings = asked.settings
    if asked.options.limit or settings.limit:
        return asked.options.limit or settings.limit
    seen = asked.sources.scoped.of(asked.sources.connection, asked.scope)
    count = documents.count_chunks(asked.sources.connection) if seen is None else len(seen)
    return cutoff.dynamic_k(count, settings.k_least, settings.k_most)


def _cut(asked: _Asked, found: Found, ranked: list[Candidate], scores: Mapping[int, float]) -> list[Candidate]:
    """The relevant ones: found for a reason, and not too far behind the best."""
    matched = {chunk_id for chunk_id, _ in found.rankings.get("keyword", ())}
    reasons = [bool(selecting.reason(candidate, found, matched)) for candidate in ranked]
    kept = [candidate for candidate, has_reason in zip(ranked, reasons, strict=True) if has_reason]
    least = asked.settings.cut_share * scores[kept[0].chunk_id] if kept else 0.0
    kept = [candidate for candidate in kept if scores[candidate.chunk_id] >= least]
    shown = {candidate.chunk_id for candidate in kept}
    for candidate, has_reason in zip(ranked, reasons, strict=True):
        if candidate.chunk_id not in shown and len(asked.trace.cut) < selecting.MOST_CUT_SHOWN:
            why = "far behind the best" if has_reason else "neither a word, a name nor the meaning of the question"
            asked.trace.leave_out(hit_id(candidate), scores[candidate.chunk_id], why)
    return kept


def _with_opposed(asked: _Asked, chosen: list[Chosen]) -> list[Chosen]:
    """After each fact those that contradict it, found so far or not: one alone would pass for the truth."""
    with asked.trace.stage("contradictions") as noted:
        connection = asked.sources.connection
        facts = {candidate.doc_id for candidate, _, _ in chosen if candidate.kind == Kind.FACT}
        edges = contradictions.fetch_rivals(connection, facts, asked.scope) if facts else {}
        opposed = contradictions.find_opposed(edges)
        noted["pairs"] = sum(map(len, opposed.values())) // 2
        if not opposed:
            return chosen
        missing = documents.first_chunks(connection, set(opposed) - {candidate.doc_id for candidate, _, _ in chosen})
        fetched = documents.fetch_candidates(connection, missing, asked.scope)
        is_true = selecting.truth(connection, fetched.values(), asked.options, asked.scope)
        rivals = {candidate.doc_id: candidate for candidate in fetched.values() if is_true(candidate)}
        told = {candidate.doc_id for candidate, _, _ in chosen} | rivals.keys()
        asked.opposed = {doc_id: others & told for doc_id, others in opposed.items() if doc_id in told}
    return contradictions.paired(chosen, rivals, opposed)


def _fit(asked: _Asked, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """As much of the hits as the budget has room for; where there is room left, a turn with those beside it and a
    section with the rest of its note.
    """

    def longer(index: int) -> str:
        return answering.surroundings(asked.sources.connection, hits[index], asked.scope, asked.settings)

    texts = cutoff.fit([hit.text for hit in hits], asked.options.budget or 0, longer)
    return tuple(replace(hit, text=text) for hit, text in zip(hits, texts, strict=False))


def _facts(asked: _Asked, found: Found, gathered: Gathered) -> dict[str, object]:
    return {
        "words": list(asked.query.words),
        "intent": asked.query.intent.value,
        "entities": sorted(found.graph.entities),
        "channels": {name: len(ranking) for name, ranking in found.rankings.items()}
        | {"graph": len(found.graph.scores)},
        "candidates": len(gathered.candidates),
    }
