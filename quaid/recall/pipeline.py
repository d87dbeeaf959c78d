"""query -> hits, read-only: parse, retrieve, collect candidates, score, rerank in doubt, select, render.

Each stage is a few functions in a module of its own; this is their order. What each found, left
out and took is in the trace.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quaid.errors import EmbeddingError, ModelError
from quaid.index import documents, fulltext, graph, listing
from quaid.index.documents import Document
from quaid.model import Hit, Kind, Recall, Scale, Use
from quaid.recall import candidates, contradictions, cutoff, hits, query, retrieval, scoring
from quaid.recall.candidates import CandidateSet, Chosen, hit_id
from quaid.recall.intent import INTENTS
from quaid.recall.options import PROFILES, RecallOptions, of_kinds, scope_of
from quaid.recall.rerank import MAX_JUDGED, RERANK_BUDGET_S, Judge, Judged, blend
from quaid.recall.retrieval import Retrieved, SearchRequest, Sources
from quaid.recall.trace import RecallTrace, with_degraded
from quaid.settings import RecallSettings

if TYPE_CHECKING:
    from quaid.recall.blocks import Excerpt

NEWEST = 12
"""The number of newest memories, where no limit is asked for or set."""
SPARE = 3
"""For each of the newest memories this many are looked at, as some of them are over."""
StrengthsOf = Callable[[Collection[str]], Mapping[str, Use]]


@dataclass(frozen=True, slots=True)
class Helpers:
    """What recall uses besides the index: `judge` is a language model, or None; `strengths_of` returns the usage of
    memories; `owner_names` are the names that `my` refers to.
    """

    judge: Callable[[], Judge | None] = lambda: None
    strengths_of: StrengthsOf = lambda _: {}
    owner_names: Sequence[str] = ()


def answer(
    sources: Sources, text: str, settings: RecallSettings, options: RecallOptions, helpers: Helpers | None = None
) -> Recall:
    """Return what answers `text`, or the newest memories where these are asked for and nothing else is."""
    if options.recent and not text.strip():
        return list_newest(sources, settings, options, helpers)
    return recall(sources, text, settings, options, helpers)


def recall(
    sources: Sources,
    text: str,
    settings: RecallSettings,
    options: RecallOptions | None = None,
    helpers: Helpers | None = None,
) -> Recall:
    """Answer `text` from the index behind `sources`, which shows one moment of it meanwhile. Never writes; asks a model
    only where `helpers` has one and the depth allows it.
    """
    helpers = helpers or Helpers()
    request = _parse(sources, text, settings, options or RecallOptions(), helpers.owner_names)
    return _Pipeline(request, helpers).run(text)


def _parse(
    sources: Sources, text: str, settings: RecallSettings, options: RecallOptions, owner_names: Sequence[str]
) -> SearchRequest:
    trace, profile = RecallTrace(), options.profile or PROFILES[settings.profile]
    options = replace(options, limit=options.limit or settings.limit or None)
    with trace.stage("query") as noted:
        parsed = query.parse(text, options.moment, owner_names)
        scope = scope_of(sources.connection, options)
        named: frozenset[str] = frozenset()
        if parsed.owner_keys:
            parsed = replace(parsed, owner_keys=graph.with_aliases(sources.connection, parsed.owner_keys, scope))
        if not options.keyword_only and profile.weights.graph:
            named = retrieval.find_named(sources.connection, parsed, scope)
        if named:
            # What is about the owner has links to find it by: a name that nobody typed would outweigh the words.
            aliases = sorted(named.difference(parsed.name_keys, parsed.owner_keys))
            words = (word for key in aliases for word in fulltext.terms(key))
            parsed = replace(parsed, words=tuple(dict.fromkeys([*parsed.words, *words])))
        noted |= {"intent": parsed.intent.value, "words": list(parsed.words), "names": sorted(named)}
        if parsed.dates:
            noted["dates"] = [f"{date.start.isoformat()}..{date.end.isoformat()}" for date in parsed.dates]
        if parsed.phrases:
            noted["phrases"] = list(parsed.phrases)
    if profile.is_by_intent:
        profile = replace(profile, vector_weight=INTENTS[parsed.intent].vector_weight)
    return SearchRequest(sources, profile, options, trace, parsed, scope, named, tuple(owner_names))


def list_newest(
    sources: Sources, settings: RecallSettings, options: RecallOptions, helpers: Helpers | None = None
) -> Recall:
    """Return the newest memories that hold, newest first: facts, where no kinds are asked for. They answer no question,
    so none has a score.
    """
    request = _parse(sources, "", settings, options, (helpers or Helpers()).owner_names)
    limit = request.options.limit or NEWEST
    scope = of_kinds(request.scope, options.kinds or frozenset({Kind.FACT.value}))
    newest = listing.newest_chunks(request.connection, scope, SPARE * limit)
    fetched = documents.fetch_candidates(request.connection, newest, scope)
    holds = scoring.truth(request, fetched.values())
    listed = [fetched[chunk_id] for chunk_id in newest if chunk_id in fetched]
    holding = [(each, 0.0, 1) for each in listed if holds(each)]
    chosen, opposed = contradictions.show_together(request, holding[:limit])
    shown = hits.render(request, chosen, CandidateSet(), Retrieved(), opposed)
    return Recall("", shown, (), request.trace.took_ms, request.trace.as_shape(), more=len(holding) > limit)


class _Pipeline:
    """One question on its way through the stages: what was retrieved, the candidates, their scores, and those that may
    be shown, best first.
    """

    def __init__(self, request: SearchRequest, helpers: Helpers) -> None:
        self.request = request
        self.helpers = helpers
        self.retrieved = Retrieved()
        self.found = CandidateSet()
        self.scores: dict[int, float] = {}
        self.ranked: list[Document] = []
        self.behind = 0
        """How many matched beyond the limit."""

    def run(self, text: str) -> Recall:
        request = self.request
        self.retrieved = retrieval.retrieve(request)
        self.found = candidates.collect(request, self.retrieved)
        self.rank()
        if self.doubt() and not request.options.keyword_only:
            self.expand()
            self.rank()
        doubt, depth = self.doubt(), request.options.depth
        if not request.options.keyword_only and (depth == "deep" or (doubt and depth != "fast")):
            self.rerank()
        chosen, opposed = self.choose()
        with request.trace.stage("answer") as noted:
            shown = hits.render(request, chosen, self.found, self.retrieved, opposed)
            excerpt = self.pack(shown)
            shown = excerpt.hits if excerpt else shown
            noted["hits"] = len(shown)
        request.trace.facts |= self.facts()
        packed = excerpt.text if excerpt else None
        trace, more = request.trace, self.behind > 0
        scale = self.scale(chosen) if request.options.comparable else None
        found = Recall(text, shown, (), trace.took_ms, trace.as_shape(), doubt, more=more, text=packed, scale=scale)
        return with_degraded(found, dict.fromkeys(self.retrieved.degraded))

    def pack(self, shown: Sequence[Hit]) -> Excerpt | None:
        """Return what of the hits a reader is shown in the budget; None without a budget."""
        options = self.request.options
        if options.budget is None:
            return None
        from quaid.recall.blocks import pack  # not above: most questions have no budget

        question = self.request.query.text
        return pack(shown, options.budget, question=question, more=self.behind > 0, with_ids=options.with_ids)

    def rank(self) -> None:
        """Score the candidates, and bring in the facts of the best sessions."""
        request, found, profile = self.request, self.found, self.request.profile
        with request.trace.stage("score") as noted:
            strengths: Mapping[str, Use] = {}
            if profile.is_by_use:
                strengths = self.helpers.strengths_of({hit_id(each) for each in found.candidates.values()})
            self.scores = scores = scoring.adjust(request, found, self.retrieved, strengths)
            self.ranked = scoring.select(request, found, scores)
            if profile.contiguity and not request.options.keyword_only:
                facts, worth = candidates.facts_of_sessions(request, self.ranked, scores)
                found.candidates |= facts
                scores |= {chunk_id: max(score, scores.get(chunk_id, 0.0)) for chunk_id, score in worth.items()}
                found.scores |= {chunk_id: scores[chunk_id] for chunk_id in worth}
                self.retrieved.contiguous |= worth.keys()
                self.ranked = scoring.select(request, found, scores)
            noted |= {"candidates": len(found.candidates), "left": len(self.ranked)}

    def doubt(self) -> str | None:
        """Return why the answer is in doubt, None when it is not."""
        best = self.scores[self.ranked[0].chunk_id] if self.ranked else None
        return scoring.low_confidence_reason(best)

    def expand(self) -> None:
        """Search once more, more broadly, and add what is found (the second pass)."""
        request = self.request
        with request.trace.stage("second_pass") as noted:
            more = query.expand(request.connection, request.query, request.named, request.scope, request.visible)
            noted |= {"words": list(more.words), "names": sorted(more.named)}
        if not more:
            return
        before, retrieved = self.found.candidates.keys(), self.retrieved
        request.query = replace(request.query, words=tuple(dict.fromkeys([*request.query.words, *more.words])))
        request.named |= more.named
        again = retrieval.retrieve(request, retrieved.embedded[1] if retrieved.embedded else None)
        retrieved.rankings |= again.rankings
        retrieved.cosines |= again.cosines
        retrieved.episodes = again.episodes
        self.found = candidates.collect(request, retrieved)
        retrieved.expanded = set(self.found.candidates.keys() - before)

    def rerank(self) -> None:
        """Let a model grade the best and imagine an answer (HyDE) in one call, within the time budget. Without a result
        the order does not change, and the answer says so.
        """
        request = self.request
        judge = self.helpers.judge()
        if judge is None:
            return
        with request.trace.stage("rerank") as noted:
            started = time.perf_counter()
            judged = self.ranked[:MAX_JUDGED]
            try:
                memories = [Judged.of(each) for each in judged]
                judgement = judge.judge(request.query.text, memories, RERANK_BUDGET_S)
            except ModelError as error:
                self.retrieved.degraded.append("model")
                noted["problem"] = str(error)
                return
            noted |= {"statement": judgement.statement, "grades": len(judgement.grades)}
            if time.perf_counter() - started < RERANK_BUDGET_S:
                try:
                    retrieval.search_statement(request, judgement.statement, self.retrieved)
                except EmbeddingError as error:
                    self.retrieved.degraded.append(f"vectors: an imagined answer was not searched for. {error}")
        self.found = candidates.collect(request, self.retrieved)
        self.rank()
        self.grade({judged[index].chunk_id: grade for index, grade in judgement.grades.items()})

    def grade(self, grades: Mapping[int, int]) -> None:
        """Blend the grades, by chunk_id, into the scores, and order by them."""
        scores = self.scores
        for chunk_id in grades.keys() & scores.keys():
            score = min(1.0, scores[chunk_id])
            scores[chunk_id] = blend(score, grades[chunk_id])
        # What was not graded is no better than the least that was: nobody has looked at it.
        least = min((scores[chunk_id] for chunk_id in grades.keys() & scores.keys()), default=math.inf)
        new = {chunk_id for chunk_id, _ in self.retrieved.rankings.get("hyde", ())[:MAX_JUDGED]}
        for chunk_id in scores.keys() - grades.keys() - new:
            scores[chunk_id] = min(scores[chunk_id], least)
        scoring.lift_called(self.found, self.retrieved, scores)
        self.ranked.sort(key=lambda each: (-scores[each.chunk_id], each.chunk_id))

    def choose(self) -> tuple[list[Chosen], dict[int, set[int]]]:
        """Cut, reorder, fold and count; return what is shown, and which documents contradict each other."""
        request, ranked, scores = self.request, self.ranked, self.scores
        keyword_only = request.options.keyword_only
        opposed: dict[int, set[int]] = {}
        with request.trace.stage("choose") as noted:
            if request.profile.cut_share and not keyword_only:
                called = scoring.called_chunks(self.found, self.retrieved)
                ranked = scoring.cut(request, self.retrieved, ranked, scores, called)
            ordered = [(each, scores[each.chunk_id]) for each in ranked]
            if not keyword_only:
                ordered = scoring.reorder(request, self.retrieved, ranked, scores)
            limit = request.options.limit or self.find_limit()
            folded = scoring.fold((each for each, _ in ordered), limit)
            value = {each.chunk_id: score for each, score in ordered}
            chosen = [(each, value[each.chunk_id], count) for each, count in folded]
            self.behind = max(0, len(ordered) - sum(count for _, count in folded)) if len(folded) == limit else 0
            noted |= {"limit": limit, "shown": len(chosen), "behind": max(0, len(ordered) - len(chosen))}
        if not keyword_only:
            chosen, opposed = contradictions.show_together(request, chosen)
        return chosen[:limit], opposed

    def find_limit(self) -> int:
        """Return how many hits are shown where no limit is set: by the budget, else by the size of the memory."""
        return cutoff.MAX_IN_BUDGET if self.request.options.budget is not None else cutoff.dynamic_k(self.count_seen())

    def count_seen(self) -> int:
        """Return the number of chunks that the caller may see."""
        seen, connection, cache = self.request.visible, self.request.connection, self.request.sources.cache
        if seen is not None:
            return len(seen)
        return int(cache.of(connection, "chunks", lambda: documents.count_chunks(connection)))

    def scale(self, chosen: Sequence[Chosen]) -> Scale:
        """Return what compares the scores with those of another vault."""
        request, retrieved = self.request, self.retrieved
        called = scoring.called_chunks(self.found, retrieved)
        return Scale(
            unlike=retrieved.unlike,
            like=max(retrieved.cosines.values(), default=0.0),
            embedder=retrieved.embedded[0].fingerprint if retrieved.embedded else "",
            chunks=self.count_seen(),
            matches=fulltext.count_matches(request.connection, request.query.words, request.visible),
            called=frozenset(hit_id(each) for each, _, _ in chosen if each.chunk_id in called),
        )

    def facts(self) -> dict[str, object]:
        """Return what the trace says of the question as a whole."""
        parsed, graph = self.request.query, self.retrieved.graph
        channels = {name: len(ranking) for name, ranking in self.retrieved.rankings.items()}
        return {
            "words": list(parsed.words),
            "intent": parsed.intent.value,
            "entities": sorted(graph.entities),
            "channels": channels | {"graph": len(graph.scores)},
            "candidates": len(self.found.candidates),
        }
