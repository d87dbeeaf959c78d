"""The graph channel: from the entities a question names, and those its best finds are about, along edges.

A beam: of the entities reached in one hop only the most promising are walked on from. An edge is promising when its
relation or its other end is in the question, and when its entity has few others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quaid.index import fulltext, graph
from quaid.index.graph import Neighbour
from quaid.index.scope import Scope
from quaid.recall.edge_words import means, stems
from quaid.recall.query import Query

if TYPE_CHECKING:
    import apsw

WIDTH = 5
DEPTH = 2
HOP_DECAY = 0.7
"""What is left of a score after one hop (the seeds' hop_decay)."""
ABOUT = 0.5
"""Score of a document that is merely about a named entity."""
SEED = 0.5
"""Score of an entity that the question does not name, but its best finds are about."""
MOST_ENTITIES = 8
_MOST_FANNED = 64


@dataclass(frozen=True, slots=True)
class GraphFinds:
    """Documents the graph leads to, doc_id -> score in (0, 1], and for each the edges that were walked.

    `entities` are the keys of what the question names, aliases included.
    """

    entities: frozenset[str] = frozenset()
    scores: dict[int, float] = field(default_factory=dict)
    via: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Walk:
    """Where the beam is, and what it has found."""

    finds: GraphFinds
    asked: frozenset[str]
    seen: set[str]
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)


def find_named(connection: apsw.Connection, query: Query, scope: Scope) -> frozenset[str]:
    """Keys of the entities a question names, with all their aliases; the owner where it says `my`."""
    named = graph.find_entities(connection, [*query.name_keys, *query.owner_keys], scope)
    return frozenset(key for same in _longest_only(named, query.owner_keys).values() for key in same)


def search(
    connection: apsw.Connection,
    query: Query,
    named: frozenset[str],
    best: Sequence[int],
    scope: Scope,
    *,
    width: int = WIDTH,
    depth: int = DEPTH,
) -> GraphFinds:
    """Walk from `named` and from what the documents `best` are about. Breadth first when the beam finds nothing."""
    finds = GraphFinds(named, dict.fromkeys(graph.documents_about(connection, named, scope), ABOUT) if named else {})
    start = dict.fromkeys(named, 1.0)
    for _, key in graph.list_ends(connection, best) if best else ():
        start.setdefault(key, SEED)
    if not start:
        return finds
    walk = _Walk(finds, stems(query.words), set(start))
    found = _walk(connection, walk, start, scope, width, depth)
    if not found and width < _MOST_FANNED:
        _walk(connection, walk, start, scope, _MOST_FANNED, depth)
    return finds


def _walk(
    connection: apsw.Connection, walk: _Walk, start: Mapping[str, float], scope: Scope, width: int, depth: int
) -> bool:
    """Whether any edge led anywhere."""
    frontier = dict(sorted(start.items(), key=lambda item: (-item[1], item[0]))[: max(width, MOST_ENTITIES)])
    is_found = False
    for _ in range(depth):
        steps = graph.neighbours(connection, frontier, scope)
        if not steps:
            break
        is_found = True
        reached = _score_steps(walk, frontier, steps)
        best = sorted(reached.items(), key=lambda item: (-item[1], item[0]))[:width]
        walk.seen.update(reached)
        frontier = {key: score * HOP_DECAY for key, score in best}
        if not frontier:
            break
    return is_found


def _score_steps(walk: _Walk, frontier: Mapping[str, float], steps: Sequence[Neighbour]) -> dict[str, float]:
    """Raise the documents that say the steps; the entities that are new, with the score of the best way to them."""
    fan: dict[str, int] = {}
    for step in steps:
        fan[step.from_key] = fan.get(step.from_key, 0) + 1
    reached: dict[str, float] = {}
    paths: dict[str, tuple[str, ...]] = {}
    for step in steps:
        promise = _promise(step, walk, fan[step.from_key])
        score = frontier[step.from_key] * promise
        path = (*walk.paths.get(step.from_key, ()), f"{step.subject} {step.relation} {step.object}")
        if step.doc_id not in walk.finds.via or score > walk.finds.scores[step.doc_id]:
            walk.finds.via[step.doc_id] = path
        walk.finds.scores[step.doc_id] = max(score, walk.finds.scores.get(step.doc_id, 0.0))
        if step.to_key not in walk.seen and score > reached.get(step.to_key, 0.0):
            reached[step.to_key] = score
            paths[step.to_key] = path
    walk.paths.update(paths)
    return reached


def _promise(step: Neighbour, walk: _Walk, fan: int) -> float:
    """How much a step promises, in (0, 1]: half for being an edge, the rest where the question means it.

    Both ends named is certain; a trigger word of the relation counts more than a word of the other end; an entity with
    many edges says less by each (selectivity).
    """
    if step.to_key in walk.finds.entities:
        return 1.0
    other = stems(fulltext.terms(step.to_key))
    named = len(other & walk.asked) / max(len(other), 1)
    triggered = 1.0 if means(step.relation, walk.asked) else 0.0
    selective = 1.0 / (1.0 + math.log2(fan) / 4) if fan > 1 else 1.0
    return 0.5 * selective + 0.3 * triggered + 0.2 * named


def _longest_only(named: dict[str, set[str]], owner_keys: Collection[str]) -> dict[str, set[str]]:
    """`new york city` found: `york` inside it is not another entity."""
    kept: dict[str, set[str]] = {}
    for key in sorted(named, key=lambda key: (-len(key), key)):
        if key in owner_keys or not any(f" {key} " in f" {longer} " for longer in kept):
            kept[key] = named[key]
    return dict(list(kept.items())[:MOST_ENTITIES])
