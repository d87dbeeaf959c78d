"""query -> hits, read-only: parse, retrieve, collect candidates, score, rerank in doubt, select, render.

Each stage is a few functions in its own module; this is their order. What each found, left out and took is in the
trace.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quaid.errors import EmbeddingError, ModelError
from quaid.index import documents, fulltext, graph, listing, vectors
from quaid.index.documents import Document
from quaid.index.known import read_known
from quaid.index.reading import Reading
from quaid.index.references import has_reference
from quaid.model import Hit, Kind, Recall, Scale, name_key
from quaid.recall import candidates, contradictions, cutoff, hits, query, retrieval, scoring
from quaid.recall.candidates import hit_id
from quaid.recall.intent import INTENTS
from quaid.recall.options import PROFILES, Profile, RecallOptions, of_kinds, scope_of
from quaid.recall.rerank import MAX_JUDGED, MAX_REACHED, RERANK_BUDGET_S, blend, score_pairs
from quaid.recall.search import Chosen, Reader, Search, Sources
from quaid.recall.successors import Related
from quaid.recall.trace import RecallTrace, with_degraded
from quaid.settings import RecallSettings
from quaid.text.zones import order_key

NEWEST = 12
"""The number of newest memories, where no limit is asked for or set."""
MAX_RELATIONS = 20
"""The most relations that are shown of an entity whose name is the question."""
SPARE = 3
"""For each of the newest memories this many are looked at, as some of them are over."""


def recall(sources: Sources, text: str, settings: RecallSettings, options: RecallOptions) -> Recall:
    """Return what answers `text` in the index behind `sources`, or its newest memories where `recent` is set and there
    is no text. Never writes; asks a model only where `sources` has one and the depth allows it.
    """
    options = replace(options, limit=options.limit or settings.limit or None)
    search = _parse(sources, text, options.profile or PROFILES[settings.profile], options)
    if options.recent and not text.strip():
        return _list_newest(search)
    retrieval.retrieve(search)
    candidates.collect(search)
    rank(search)
    if _doubt(search) and not options.keyword_only:
        expand(search)
        rank(search)
    doubt = _doubt(search)
    if settings.reranker and not options.keyword_only:
        score_pairs(search, settings.reranker)
    if not options.keyword_only and (options.depth == "deep" or (doubt and options.depth != "fast")):
        rerank(search)
    chosen, related, behind = choose(search)
    # What scored best may have been left out: it had nothing of the question.
    doubt = doubt or scoring.low_confidence_reason(max((score for _, score, _ in chosen), default=None))
    packed = None
    with search.trace.stage("answer") as noted:
        shown = hits.render(
            search, [(_with_relations(search, each), score, count) for each, score, count in chosen], related
        )
        if options.budget is not None:
            from quaid.recall.blocks import pack  # not above: most questions have no budget

            question, more = search.query.text, behind > 0
            packed = pack(shown, options.budget, question=question, more=more, with_ids=options.with_ids)
            shown = packed.hits
        noted["hits"] = len(shown)
    channels = {name: len(ranking) for name, ranking in search.rankings.items()}
    search.trace.facts |= {
        "words": list(search.query.words),
        "intent": search.query.intent.value,
        "entities": sorted(search.named),
        "channels": channels | {"graph": len(search.graph)},
        "candidates": len(search.candidates),
    }
    found = Recall(
        text,
        _by_date(shown) if options.recent else shown,
        took_ms=search.trace.took_ms,
        trace=search.trace.as_shape(),
        doubt=doubt,
        more=behind > 0,
        text=packed.text if packed else None,
        scale=measure_scale(search, chosen) if options.comparable else None,
    )
    return with_degraded(found, dict.fromkeys(search.degraded))


def _parse(sources: Sources, text: str, profile: Profile, options: RecallOptions) -> Search:
    trace, connection = RecallTrace(), sources.connection
    with trace.stage("query") as noted:
        parsed = query.parse(text, options.moment, sources.owner_names)
        scope = scope_of(connection, options, sources.cache)
        reader, named = Reader(connection, scope), frozenset[str]()
        has_graph = not options.keyword_only and bool(profile.weights.get("graph"))
        _read_ahead(sources, reader, parsed, options, has_graph)
        if parsed.owner_keys:
            aliases = sources.cache.of(connection, graph.with_aliases, sources.owner_names, scope)
            parsed = replace(parsed, owner_keys=aliases)
        if has_graph:
            named = retrieval.find_named(reader, parsed)
        if named:
            # Turns have the name of their speaker; what else a speaker is called is in the turns of the others.
            speakers = {name_key(name) for name in sources.cache.of(connection, documents.list_speakers, scope)}
            reader.learn(speakers, sources.cache.of(connection, graph.find_entities, frozenset(speakers), scope))
            speaking = speakers.intersection([*named, *parsed.name_keys])
            called = frozenset[str]().union(*reader.find_entities(speaking).values()) - speaking
            # What is about the owner has links to find it by: a name that nobody typed would outweigh the words.
            others = sorted(named.difference(parsed.name_keys, parsed.owner_keys, called))
            words = [*parsed.words, *(word for key in others for word in fulltext.terms(key))]
            dropped = called if len(speaking) == 1 else ()  # of two, one's turns have the name of the other
            parsed = replace(parsed, words=tuple(dict.fromkeys(word for word in words if word not in dropped)))
        noted |= {"intent": parsed.intent.value, "words": list(parsed.words), "names": sorted(named)}
        if parsed.dates:
            noted["dates"] = [f"{date.start.isoformat()}..{date.end.isoformat()}" for date in parsed.dates]
        if parsed.phrases:
            noted["phrases"] = list(parsed.phrases)
    if profile.is_by_intent:
        profile = replace(profile, vector_weight=INTENTS[parsed.intent].vector_weight)
    return Search(sources, profile, options, trace, parsed, reader, named)


def _read_ahead(
    sources: Sources, reader: Reader, parsed: query.Query, options: RecallOptions, has_graph: bool
) -> None:  # fmt: skip
    """Read at once what the question names and what the answer needs to know of the whole index."""
    scope, owner_names = reader.scope, sources.owner_names
    known: list[tuple[Reading[..., Any], tuple[Any, ...]]] = [
        (documents.list_pending, ()),
        (graph.with_aliases, (owner_names, scope)),
    ]
    keys: list[str] = []
    if not options.keyword_only:
        known += [
            (documents.list_speakers, (scope,)), (listing.list_instructions, (scope,)), (graph.relation_words, ()),
            (graph.list_disputed, ()), (vectors.list_embedders, ()), (vectors.count_pending, ()),
        ]  # fmt: skip
        if scope.is_open and (options.comparable or not options.limit):
            known.append((documents.count_chunks, ()))
        keys = [*parsed.name_keys, *parsed.owner_keys] if has_graph else []
    names = retrieval.list_called(parsed) if parsed.name_keys and not options.keyword_only else []
    entities, reader.refers = sources.cache.read(
        sources.connection, known, graph.find_entities.steps(keys, scope), has_reference.steps(names)
    )
    reader.learn(keys, entities)


def _list_newest(search: Search) -> Recall:
    """Return the newest memories that hold, newest first: facts, where no kinds are asked for. They answer no question,
    so none has a score.
    """
    options, connection = search.options, search.connection
    limit = options.limit or NEWEST
    scope = of_kinds(search.scope, options.kinds or frozenset({Kind.FACT.value}))
    newest = listing.newest_chunks(connection, scope, SPARE * limit)
    fetched = search.reader.fetch(newest)
    holding = scoring.holding(search, [fetched[chunk_id] for chunk_id in newest if chunk_id in fetched])
    chosen, related = contradictions.show_together(search, [(each, 0.0, 1) for each in holding[:limit]])
    shown, trace = _by_date(hits.render(search, chosen, related)), search.trace
    return Recall("", shown, took_ms=trace.took_ms, trace=trace.as_shape(), more=len(holding) > limit)


def _by_date(shown: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits, the newest first."""
    return tuple(sorted(shown, key=lambda hit: order_key(hit.created), reverse=True))


def _with_relations(search: Search, candidate: Document) -> Document:
    """Return an entity whose name is the question with all its relations that are true then, others as they are."""
    if candidate.doc_id not in search.exact or candidate.kind != Kind.ENTITY:
        return candidate
    edges = read_known(search.connection, candidate.path, search.options.day, search.scope).edges[:MAX_RELATIONS]
    told = "; ".join(f"{edge.subject} {edge.relation.replace('_', ' ')} {edge.object}" for edge in edges)
    return candidate._replace(text=told or candidate.text)


def rank(search: Search) -> None:
    """Score the candidates, and bring in the facts of the best sessions."""
    with search.trace.stage("score") as noted:
        scoring.adjust(search)
        scoring.select(search)
        if search.profile.contiguity and not search.options.keyword_only:
            candidates.add_facts_of_sessions(search)
            scoring.select(search)
        noted |= {"candidates": len(search.candidates), "left": len(search.ranked)}


def _doubt(search: Search) -> str | None:
    """Return why the answer is low-confidence, None if it is not."""
    best = search.scores[search.ranked[0].chunk_id] if search.ranked else None
    return scoring.low_confidence_reason(best)


def expand(search: Search) -> None:
    """Search once more, more broadly, and add what is found (the second pass)."""
    with search.trace.stage("second_pass") as noted:
        words, named = query.expand(search.connection, search.query, search.named, search.scope, search.visible)
        noted |= {"words": list(words), "names": sorted(named)}
    if not words and not named:
        return
    before = search.candidates.keys()
    search.query = replace(search.query, words=tuple(dict.fromkeys([*search.query.words, *words])))
    search.named |= named
    retrieval.retrieve(search, search.embedded[1] if search.embedded else None)
    candidates.collect(search)
    search.second_pass = search.candidates.keys() - before


def rerank(search: Search) -> None:
    """Let a model grade the best and imagine an answer (HyDE) in one call, within the time budget. Without a result
    the order does not change, and the answer says so.
    """
    judge = search.sources.judge
    if judge is None or not judge.is_ready():
        return
    with search.trace.stage("rerank") as noted:
        started = time.perf_counter()
        judged, others = search.ranked[:MAX_JUDGED], search.ranked[MAX_JUDGED:]
        if search.options.depth == "deep":
            # Also what the graph led to, by its nearness times the confidence of its fact: a beam guesses what a step
            # promises, and a model reads it.
            reached = [each for each in others if each.doc_id in search.graph]
            reached.sort(key=lambda each: -search.graph[each.doc_id] * (each.confidence or scoring.UNSURE))
            judged += reached[:MAX_REACHED]
        try:
            judgement = judge.judge(search.query.text, judged, RERANK_BUDGET_S)
        except ModelError as error:
            search.degraded.append("model")
            noted["problem"] = str(error)
            return
        noted |= {"statement": judgement.statement, "grades": len(judgement.grades)}
        if time.perf_counter() - started < RERANK_BUDGET_S:
            try:
                retrieval.search_statement(search, judgement.statement)
            except EmbeddingError as error:
                search.degraded.append(f"vectors: an imagined answer was not searched for. {error}")
    search.fuse()
    candidates.collect(search)
    rank(search)
    grade(search, {judged[index].chunk_id: grade for index, grade in judgement.grades.items()})


def grade(search: Search, grades: Mapping[int, int]) -> None:
    """Blend the grades, by chunk_id, into the scores, and order by them."""
    scores = search.scores
    graded = grades.keys() & scores.keys()
    for chunk_id in graded:
        scores[chunk_id] = blend(min(1.0, scores[chunk_id]), grades[chunk_id])
    # What was not graded is no better than the least that was: nobody has looked at it.
    least = min((scores[chunk_id] for chunk_id in graded), default=math.inf)
    new = {chunk_id for chunk_id, _ in search.rankings.get("hyde", ())[:MAX_JUDGED]}
    for chunk_id in scores.keys() - graded - new:
        scores[chunk_id] = min(scores[chunk_id], least)
    scoring.lift_called(search)
    search.ranked.sort(key=lambda each: -scores[each.chunk_id])  # equal ones keep their order


def choose(search: Search) -> tuple[list[Chosen], Related, int]:
    """Cut, reorder, fold and count. Return what is shown, how it is related, and how many matched beyond the limit."""
    ranked, options, scores = search.ranked, search.options, search.scores
    with search.trace.stage("choose") as noted:
        if search.profile.cut_share and not options.keyword_only:
            ranked = scoring.cut(search)
        ordered = [(each, scores[each.chunk_id]) for each in ranked]
        if not options.keyword_only:
            ordered = scoring.diversify(search, ranked)
        if not (limit := options.limit):  # by the budget, else by the size of the memory
            limit = cutoff.MAX_IN_BUDGET if options.budget is not None else cutoff.dynamic_k(_count_visible(search))
        folded = scoring.fold((each for each, _ in ordered), max(limit, cutoff.MIN_HITS))
        value = {each.chunk_id: score for each, score in ordered}
        chosen: list[Chosen] = [(each, value[each.chunk_id], count) for each, count in folded]
        behind = len(ordered) - sum(count for _, count in folded[:limit]) if len(folded) >= limit else 0
        noted |= {"limit": limit, "shown": len(chosen[:limit]), "behind": max(0, len(ordered) - limit)}
    related: Related = {}
    if not options.keyword_only:
        # The first ten first: whatever the limit, they are the same.
        first, related = contradictions.show_together(search, chosen[: cutoff.MIN_HITS])
        if len(chosen) > cutoff.MIN_HITS:
            together, related = contradictions.show_together(search, chosen)
            first = [*{each[0].chunk_id: each for each in [*first[: cutoff.MIN_HITS], *together]}.values()]
        chosen = first
    return chosen[:limit], related, behind


def _count_visible(search: Search) -> int:
    """Return the number of chunks that the caller may see."""
    seen = search.visible
    return search.sources.cache.of(search.connection, documents.count_chunks) if seen is None else len(seen)


def measure_scale(search: Search, chosen: Sequence[Chosen]) -> Scale:
    """Return what compares the scores with those of another vault."""
    called = search.called_chunks()
    return Scale(
        unlike=search.unlike,
        like=max(search.cosines.values(), default=0.0),
        embedder=search.embedded[0].fingerprint if search.embedded else "",
        chunks=_count_visible(search),
        matches=search.sources.words.count_matches(search.connection, search.query.words, search.visible),
        called=frozenset(hit_id(each) for each, _, _ in chosen if each.chunk_id in called),
    )
