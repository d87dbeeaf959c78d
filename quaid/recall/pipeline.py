"""query -> hits, read-only: parse, ask the channels, fuse, add priors, leave out what is over, fold, explain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quaid.config import RecallSettings
from quaid.embed import Embedder
from quaid.errors import EmbeddingError
from quaid.index import documents, vectors
from quaid.index.documents import Candidate
from quaid.index.vectors import EmbedderRow
from quaid.model import ChannelRank, Edge, Hit, Kind, Recall
from quaid.recall import channels, diversity, fusion, priors
from quaid.recall.channels import GraphFinds
from quaid.recall.fusion import Ranking
from quaid.recall.query import Query, parse

if TYPE_CHECKING:
    import apsw

EmbedderOf = Callable[[EmbedderRow], Embedder | None]
ATTEMPTS = 3
"""A sync may replace a note between its being found and fetched: then the question is asked again."""
SAMPLE = 256
"""Chunks that stand for all others when the least cosine of a vault is wanted."""
MOST_FUSED = 200
"""Chunks of the fused ranking that are looked at closely; on LoCoMo more find no more (docs/recall.md)."""
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
    cosines: dict[int, float] = field(default_factory=dict)
    unlike: float = 0.0
    graph: GraphFinds = field(default_factory=GraphFinds)
    exact: set[int] = field(default_factory=set)
    degraded: list[str] = field(default_factory=list)
    took_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked: the index, through two connections so that two channels can work at once, who embeds a question
    for it, and who knows the vectors.
    """

    connection: apsw.Connection
    beside: apsw.Connection
    embedder_of: EmbedderOf
    vectors: channels.VectorSearch


def recall(
    sources: Sources,
    text: str,
    settings: RecallSettings,
    options: RecallOptions | None = None,
) -> Recall:
    """Answer `text` from the index behind `connection`. Never writes, never asks the network of its own accord."""
    options = options or RecallOptions(limit=settings.limit)
    started = time.perf_counter()
    query = parse(text)
    for _ in range(ATTEMPTS):
        found = _ask(sources, query, settings, options)
        fused = _fuse(found, settings)
        candidates, is_whole = _candidates(sources.connection, found, fused, options)
        if is_whole:
            break
    scores = _score(fused, found, candidates, options)
    today = (options.now or datetime.now(UTC)).date().isoformat()
    wanted = [candidate for candidate in candidates.values() if _is_wanted(candidate, options, today)]
    wanted.sort(key=lambda candidate: (-scores.get(candidate.chunk_id, 0.0), candidate.chunk_id))
    folded = diversity.fold(wanted, settings.collapse_similarity, options.limit)
    hits = _hits(sources.connection, folded, scores, found, today)
    took_ms = (time.perf_counter() - started) * 1000
    return Recall(text, hits, tuple(found.degraded), took_ms, _trace(query, found, candidates, len(wanted)))


def _ask(sources: Sources, query: Query, settings: RecallSettings, options: RecallOptions) -> _Found:
    found = _Found()
    if not query.words:
        return found
    wanted = {"keyword"} if options.keyword_only else options.channels
    with _beside(lambda: _keyword(sources, query, settings.depth, found)) if "keyword" in wanted else nullcontext():
        embedded = _vector(sources, query, settings.depth, found) if "vector" in wanted else None
    if embedded is not None:
        _complete_cosines(sources, *embedded, found)
    if "graph" in wanted:
        clock = time.perf_counter()
        found.graph = channels.entities(sources.connection, query)
        found.exact = channels.exact(sources.connection, query)
        _lap(found, "graph", clock)
    return found


def _keyword(sources: Sources, query: Query, depth: int, found: _Found) -> None:
    clock = time.perf_counter()
    found.rankings["keyword"] = channels.keyword(sources.beside, query, depth)
    _lap(found, "keyword", clock)


@contextmanager
def _beside(call: Callable[[], None]) -> Iterator[None]:
    """Run `call` while the body runs: SQLite and the model both work outside of Python's lock."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=run, name="quaid-words")
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]


def _vector(sources: Sources, query: Query, depth: int, found: _Found) -> tuple[EmbedderRow, Any] | None:
    """Rank by cosine; whose vectors were asked and the question's own."""
    clock = time.perf_counter()
    row = vectors.active_embedder(sources.connection)
    embedder = sources.embedder_of(row) if row is not None else None
    if row is None or embedder is None:
        found.degraded.append("vectors")
        return None
    try:
        embedded = embedder.embed_query(query.text)
    except EmbeddingError:
        found.degraded.append("vectors")
        return None
    found.rankings["vector"] = sources.vectors.search(sources.connection, row, embedded, depth)
    _lap(found, "vector", clock)
    return row, embedded


def _complete_cosines(sources: Sources, row: EmbedderRow, embedded: Any, found: _Found) -> None:
    """What only the keyword channel found has a cosine too, and what "unlike" means is seen on a sample of all."""
    clock = time.perf_counter()
    found.cosines = dict(found.rankings["vector"])
    others = {chunk_id for chunk_id, _ in found.rankings.get("keyword", [])} - found.cosines.keys()
    sample = vectors.list_sample(sources.connection, SAMPLE)
    asked = sources.vectors.cosines(sources.connection, row, embedded, {*others, *sample})
    found.cosines |= {chunk_id: asked[chunk_id] for chunk_id in others if chunk_id in asked}
    known = {**asked, **found.cosines}
    found.unlike = min((known[chunk_id] for chunk_id in sample if chunk_id in known), default=0.0)
    _lap(found, "cosines", clock)


def _lap(found: _Found, name: str, since: float) -> None:
    found.took_ms[name] = round((time.perf_counter() - since) * 1000, 2)


def _fuse(found: _Found, settings: RecallSettings) -> dict[int, float]:
    keyword, vector = found.rankings.get("keyword", []), found.rankings.get("vector", [])
    if settings.fusion == "rrf":
        weight = settings.vector_weight
        return fusion.reciprocal_rank([(vector, weight), (keyword, 1 - weight)], settings.rrf_k)
    # Not the lowest of the ranking as zero: in a large vault its first 400 are all alike, and differences that mean
    # nothing would outweigh the one note that has the very word.
    likeness = fusion.min_max(list(found.cosines.items()), floor=found.unlike)
    return fusion.convex(fusion.min_max(keyword, floor=0.0), likeness, settings.vector_weight)


def _candidates(
    connection: apsw.Connection, found: _Found, fused: Mapping[int, float], options: RecallOptions
) -> tuple[dict[int, Candidate], bool]:
    """The best of the fused ranking, and what the graph and an exact name lead to; whether all of it is still there."""
    most = max(MOST_FUSED, 4 * options.limit)
    chunk_ids = set(sorted(fused, key=lambda chunk_id: (-fused[chunk_id], chunk_id))[:most])
    best = sorted(found.graph.scores, key=lambda doc_id: -found.graph.scores[doc_id])[:MOST_GRAPH_DOCUMENTS]
    chunk_ids |= documents.first_chunks(connection, {*best, *found.exact})
    candidates = documents.fetch_candidates(connection, chunk_ids)
    return candidates, len(candidates) == len(chunk_ids)


def _score(
    fused: Mapping[int, float], found: _Found, candidates: Mapping[int, Candidate], options: RecallOptions
) -> dict[int, float]:
    kept = {chunk_id: fused.get(chunk_id, 0.0) for chunk_id in candidates}
    if options.keyword_only or options.channels <= {"keyword", "vector"}:
        return kept
    scores = priors.apply(kept, candidates, found.graph.scores, found.graph.entities, options.weights)
    for chunk_id, candidate in candidates.items():
        if candidate.doc_id in found.exact:
            scores[chunk_id] += 1.0
    return scores


def _is_wanted(candidate: Candidate, options: RecallOptions, today: str) -> bool:
    if options.kinds and hit_kind(candidate) not in options.kinds:
        return False
    return options.superseded or not is_over(candidate, today)


def is_over(candidate: Candidate, today: str) -> bool:
    """Whether a fact has been replaced, or was true only until a day before `today` (YYYY-MM-DD)."""
    if candidate.superseded_by is not None:
        return True
    return candidate.valid_until is not None and candidate.valid_until[:10] < today


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
    connection: apsw.Connection,
    folded: list[tuple[Candidate, int]],
    scores: Mapping[int, float],
    found: _Found,
    today: str,
) -> tuple[Hit, ...]:
    edges = documents.fetch_edges(connection, {candidate.doc_id for candidate, _ in folded})
    ranks = _channel_ranks({candidate.chunk_id for candidate, _ in folded}, found)
    return tuple(
        Hit(
            id=hit_id(candidate),
            kind=hit_kind(candidate),
            text=candidate.text,
            score=round(scores.get(candidate.chunk_id, 0.0), 4),
            path=candidate.path,
            session=candidate.session,
            turn=candidate.turn,
            speaker=candidate.speaker or candidate.doc_speaker,
            created=candidate.said_at or candidate.created,
            valid_from=candidate.valid_from,
            valid_until=candidate.valid_until,
            status=candidate.status,
            superseded=is_over(candidate, today),
            edges=tuple(Edge(*edge) for edge in edges.get(candidate.doc_id, ())),
            channels=ranks.get(candidate.chunk_id, {}) | _graph_rank(candidate, found),
            stands_for=stands_for,
            via=found.graph.via.get(candidate.doc_id, ()),
        )
        for candidate, stands_for in folded
    )


def _channel_ranks(chunk_ids: set[int], found: _Found) -> dict[int, dict[str, ChannelRank]]:
    ranks: dict[int, dict[str, ChannelRank]] = {}
    for name, ranking in found.rankings.items():
        for rank, (chunk_id, score) in enumerate(ranking, 1):
            if chunk_id in chunk_ids:
                ranks.setdefault(chunk_id, {})[name] = ChannelRank(rank, round(score, 4))
    return ranks


def _graph_rank(candidate: Candidate, found: _Found) -> dict[str, ChannelRank]:
    score = found.graph.scores.get(candidate.doc_id)
    if score is None:
        return {}
    rank = 1 + sum(other > score for other in found.graph.scores.values())
    return {"graph": ChannelRank(rank, round(score, 4))}


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
