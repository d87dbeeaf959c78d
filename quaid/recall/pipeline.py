"""query -> hits, read-only: parse, ask the channels, fuse, add priors, leave out what is over, fold, explain."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import apsw

from quaid.config import RecallSettings
from quaid.embed import Embedder
from quaid.errors import EmbeddingError
from quaid.index import database, documents, vectors
from quaid.index.documents import Candidate
from quaid.index.vectors import EmbedderRow
from quaid.model import ChannelRank, Edge, Hit, Kind, Recall
from quaid.recall import channels, diversity, fusion, priors
from quaid.recall.channels import GraphFinds
from quaid.recall.fusion import Ranking
from quaid.recall.query import Query, parse

EmbedderOf = Callable[[EmbedderRow], Embedder | None]
MOST_GRAPH_DOCUMENTS = 100

_HIT_KINDS = {Kind.EPISODE: "turn", Kind.CORE: "note", Kind.REVIEW: "note"}


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What one question may see. `kinds` are hit kinds (fact, turn, entity, note, snippet, journal, doc)."""

    limit: int = 10
    kinds: frozenset[str] = frozenset()
    superseded: bool = False
    keyword_only: bool = False
    weights: priors.PriorWeights = field(default_factory=priors.PriorWeights)
    channels: frozenset[str] = frozenset({"keyword", "vector", "graph"})
    now: datetime | None = None


@dataclass(slots=True)
class _Found:
    """What the channels brought, before anything is decided."""

    rankings: dict[str, Ranking] = field(default_factory=dict)
    graph: GraphFinds = field(default_factory=GraphFinds)
    exact: set[int] = field(default_factory=set)
    degraded: list[str] = field(default_factory=list)
    took_ms: dict[str, float] = field(default_factory=dict)


def recall(
    connection: apsw.Connection,
    embedder_of: EmbedderOf,
    text: str,
    settings: RecallSettings,
    options: RecallOptions | None = None,
) -> Recall:
    """Answer `text` from the index behind `connection`. Never writes, never asks the network of its own accord."""
    options = options or RecallOptions(limit=settings.limit)
    started = time.perf_counter()
    query = parse(text)
    found = _ask(connection, embedder_of, query, settings, options)
    candidates = _candidates(connection, found)
    scores = _score(found, candidates, settings, options)
    ranked = [
        candidates[chunk_id]
        for chunk_id, _ in sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        if chunk_id in candidates and _is_wanted(candidates[chunk_id], options)
    ]
    folded = diversity.fold(ranked, settings.collapse_similarity, options.limit)
    hits = _hits(connection, folded, scores, found)
    took_ms = (time.perf_counter() - started) * 1000
    return Recall(text, hits, tuple(found.degraded), took_ms, _trace(query, found, candidates, len(ranked)))


def _ask(
    connection: apsw.Connection, embedder_of: EmbedderOf, query: Query, settings: RecallSettings, options: RecallOptions
) -> _Found:
    found = _Found()
    if not query.words:
        return found
    clock = time.perf_counter()
    if options.keyword_only or "keyword" in options.channels:
        found.rankings["keyword"] = channels.keyword(connection, query, settings.depth)
        clock = _lap(found, "keyword", clock)
    if options.keyword_only:
        return found
    if "vector" in options.channels:
        found.rankings["vector"] = _vector(connection, embedder_of, query, settings.depth, found)
        clock = _lap(found, "vector", clock)
    if "graph" in options.channels:
        found.graph = channels.entities(connection, query)
        found.exact = channels.exact(connection, query)
        _lap(found, "graph", clock)
    return found


def _vector(connection: apsw.Connection, embedder_of: EmbedderOf, query: Query, depth: int, found: _Found) -> Ranking:
    row = vectors.active_embedder(connection)
    embedder = embedder_of(row) if row is not None else None
    if row is None or embedder is None:
        found.degraded.append("vectors")
        return []
    database.enable_vectors(connection)
    try:
        return channels.vector(connection, row, embedder, query, depth)
    except EmbeddingError:
        found.degraded.append("vectors")
        return []


def _lap(found: _Found, name: str, since: float) -> float:
    now = time.perf_counter()
    found.took_ms[name] = round((now - since) * 1000, 2)
    return now


def _candidates(connection: apsw.Connection, found: _Found) -> dict[int, Candidate]:
    chunk_ids = {chunk_id for ranking in found.rankings.values() for chunk_id, _ in ranking}
    best = sorted(found.graph.scores, key=lambda doc_id: -found.graph.scores[doc_id])[:MOST_GRAPH_DOCUMENTS]
    chunk_ids |= documents.first_chunks(connection, {*best, *found.exact})
    return documents.fetch_candidates(connection, chunk_ids)


def _score(
    found: _Found, candidates: Mapping[int, Candidate], settings: RecallSettings, options: RecallOptions
) -> dict[int, float]:
    keyword, vector = found.rankings.get("keyword", []), found.rankings.get("vector", [])
    if settings.fusion == "rrf":
        weight = settings.vector_weight
        fused = fusion.reciprocal_rank([(vector, weight), (keyword, 1 - weight)], settings.rrf_k)
    else:
        fused = fusion.convex(fusion.min_max(keyword, floor=0.0), fusion.min_max(vector), settings.vector_weight)
    if options.keyword_only or options.channels <= {"keyword", "vector"}:
        return fused
    scores = priors.apply(fused, candidates, found.graph.scores, found.graph.entities, options.weights)
    for chunk_id, candidate in candidates.items():
        if candidate.doc_id in found.exact:
            scores[chunk_id] += 1.0
    return scores


def _is_wanted(candidate: Candidate, options: RecallOptions) -> bool:
    if options.kinds and hit_kind(candidate) not in options.kinds:
        return False
    return options.superseded or not is_over(candidate.superseded_by, candidate.valid_until, options.now)


def is_over(superseded_by: str | None, valid_until: str | None, now: datetime | None = None) -> bool:
    """Whether a fact has been replaced, or was true only until a day before `now`."""
    today = (now or datetime.now(UTC)).date().isoformat()
    return superseded_by is not None or (valid_until is not None and valid_until[:10] < today)


def hit_kind(candidate: Candidate) -> str:
    """fact, turn, entity, note, snippet, journal or doc."""
    if candidate.kind == Kind.EPISODE and candidate.turn is None:
        return "note"
    return _HIT_KINDS.get(Kind(candidate.kind), candidate.kind)


def hit_id(candidate: Candidate) -> str:
    """A turn is named as facts cite it: `20-1402-2f1c9a#t3`."""
    if candidate.turn is None:
        return candidate.id
    return f"{candidate.path.rsplit('/', 1)[-1].removesuffix('.md')}#t{candidate.turn}"


def _hits(
    connection: apsw.Connection, folded: list[tuple[Candidate, int]], scores: Mapping[int, float], found: _Found
) -> tuple[Hit, ...]:
    edges = documents.fetch_edges(connection, {candidate.doc_id for candidate, _ in folded})
    ranks = {
        name: {chunk_id: ChannelRank(rank, round(score, 4)) for rank, (chunk_id, score) in enumerate(ranking, 1)}
        for name, ranking in found.rankings.items()
    }
    return tuple(_hit(candidate, count, scores[candidate.chunk_id], edges, ranks, found) for candidate, count in folded)


def _hit(
    candidate: Candidate,
    stands_for: int,
    score: float,
    edges: Mapping[int, list[tuple[str, str, str]]],
    ranks: Mapping[str, Mapping[int, ChannelRank]],
    found: _Found,
) -> Hit:
    by_channel = {name: ranking[candidate.chunk_id] for name, ranking in ranks.items() if candidate.chunk_id in ranking}
    if candidate.doc_id in found.graph.scores:
        by_channel["graph"] = ChannelRank(1, round(found.graph.scores[candidate.doc_id], 4))
    return Hit(
        id=hit_id(candidate),
        kind=hit_kind(candidate),
        text=candidate.text,
        score=round(score, 4),
        path=candidate.path,
        session=candidate.session,
        turn=candidate.turn,
        speaker=candidate.speaker or candidate.doc_speaker,
        created=candidate.said_at or candidate.created,
        valid_from=candidate.valid_from,
        valid_until=candidate.valid_until,
        status=candidate.status,
        superseded=is_over(candidate.superseded_by, candidate.valid_until),
        edges=tuple(Edge(*edge) for edge in edges.get(candidate.doc_id, ())),
        channels=by_channel,
        stands_for=stands_for,
        via=found.graph.via.get(candidate.doc_id, ()),
    )


def _trace(query: Query, found: _Found, candidates: Mapping[int, Candidate], wanted: int) -> dict[str, Any]:
    return {
        "words": list(query.words),
        "entities": sorted(found.graph.entities),
        "channels": {name: len(ranking) for name, ranking in found.rankings.items()}
        | {"graph": len(found.graph.scores)},
        "candidates": len(candidates),
        "left_after_filters": wanted,
        "took_ms": found.took_ms,
    }
