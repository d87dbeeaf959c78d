"""Who finds what: words, vectors, and the entities a question names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from quaid.index import documents, fulltext, graph
from quaid.index.vectors import EmbedderRow
from quaid.recall.fusion import Ranking
from quaid.recall.query import Query

if TYPE_CHECKING:
    import apsw


class VectorSearch(Protocol):
    """Who knows the vectors of an index. `query` is a unit vector, float32 [dimension]."""

    def search(self, connection: apsw.Connection, row: EmbedderRow, query: Any, limit: int) -> Ranking:
        """(chunk_id, cosine similarity), nearest first."""

    def cosines(
        self, connection: apsw.Connection, row: EmbedderRow, query: Any, chunk_ids: Collection[int]
    ) -> dict[int, float]:
        """The cosine similarity of each of `chunk_ids` that has a vector."""


HOP_DECAY = 0.7
"""What is left of a score after one hop (the seeds' hop_decay)."""
MOST_ENTITIES = 8


@dataclass(frozen=True, slots=True)
class GraphFinds:
    """Documents an entity in the question leads to: doc_id -> score in (0, 1], and the edges walked."""

    entities: frozenset[str] = frozenset()
    scores: dict[int, float] = field(default_factory=dict)
    via: dict[int, tuple[str, ...]] = field(default_factory=dict)


def keyword(connection: apsw.Connection, query: Query, depth: int) -> Ranking:
    """bm25 over any of the question's words."""
    return fulltext.search(connection, fulltext.match_any(query.words), depth)


def entities(connection: apsw.Connection, query: Query) -> GraphFinds:
    """Documents about the entities the question names (1.0), then those one hop away (0.7).

    A document scores by the best reason to show it; an edge whose relation or other end is also named in the
    question is a better reason than the entity alone.
    """
    named = graph.find_entities(connection, query.name_keys)
    keys = frozenset(key for same in _longest_only(named).values() for key in same)
    if not keys:
        return GraphFinds()
    scores: dict[int, float] = dict.fromkeys(graph.documents_about(connection, keys), 0.5)
    via: dict[int, tuple[str, ...]] = {}
    words = set(query.words)
    steps = graph.neighbours(connection, keys)
    for step in steps:
        _raise(scores, via, step.doc_id, 0.5 + 0.5 * _overlap(step, words, keys), step)
    frontier = list(dict.fromkeys(step.to_key for step in steps if step.to_key not in keys))[:MOST_ENTITIES]
    for step in graph.neighbours(connection, frontier) if frontier else ():
        if step.doc_id not in scores:
            _raise(scores, via, step.doc_id, HOP_DECAY * (0.5 + 0.5 * _overlap(step, words, keys)), step)
    return GraphFinds(keys, scores, via)


def exact(connection: apsw.Connection, query: Query) -> set[int]:
    """Documents whose id, title or alias is the whole question."""
    if not query.name_keys:
        return set()
    return {document.doc_id for document in documents.find_called(connection, query.text.strip(" ?!."))}


def _longest_only(named: dict[str, set[str]]) -> dict[str, set[str]]:
    """`new york city` found: `york` inside it is not another entity."""
    kept: dict[str, set[str]] = {}
    for key in sorted(named, key=len, reverse=True):
        if not any(f" {key} " in f" {longer} " for longer in kept):
            kept[key] = named[key]
    return dict(list(kept.items())[:MOST_ENTITIES])


def _overlap(step: graph.Neighbour, words: Collection[str], keys: Collection[str]) -> float:
    """Share of the edge's own words (not the entity we came from) that the question says."""
    other = set(fulltext.terms(f"{step.relation.replace('_', ' ')} {step.to_key}"))
    if step.to_key in keys:
        return 1.0
    return len({word[:5] for word in other} & {word[:5] for word in words}) / max(len(other), 1)


def _raise(
    scores: dict[int, float], via: dict[int, tuple[str, ...]], doc_id: int, score: float, step: graph.Neighbour
) -> None:
    if score >= scores.get(doc_id, 0.0):
        scores[doc_id] = score
        via[doc_id] = (f"{step.subject} {step.relation} {step.object}",)
