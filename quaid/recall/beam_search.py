"""The graph channel: a beam search from the entities a question names, and those its best finds are about, along edges.

Of the entities reached in one hop only the most promising are walked on from. An edge is promising when its relation or
its other end is in the question, and when its entity has few others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quaid.index import fulltext, graph
from quaid.index.graph import Neighbour
from quaid.index.scope import Scope
from quaid.recall.query import Query

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

WIDTH = 5
DEPTH = 2
HOP_DECAY = 0.7
"""The part of a score that is left after one hop."""
ABOUT = 0.5
"""Score of a document that is merely about a named entity."""
START = 0.5
"""Score of an entity that the question does not name, but its best finds are about."""
MAX_ENTITIES = 8
MAX_WIDTH = 64
"""The width of the search when the beam has found nothing."""

_ENDINGS = ("ing", "ed", "es", "s", "e")
_MIN_STEM = 3

_TRIGGERS: Mapping[str, str] = {
    "allergic_to": "allergy allergies eat food",
    "attends": "school university college class study studies church",
    "born_in": "birthplace hometown native",
    "born_on": "birthday birth age old",
    "caused_by": "why because reason cause caused lead result",
    "colleague_of": "coworker colleague work team",
    "created": "make made build built write wrote author",
    "diagnosed_with": "illness disease condition sick health diagnosis",
    "friend_of": "friend buddy pal",
    "has_pet": "pet dog cat animal puppy kitten",
    "interested_in": "hobby interest like enjoy passion",
    "knows": "know met friend",
    "lives_in": "live lives home house city town address reside stay moved",
    "lives_at": "live lives home house city town address reside stay moved",
    "located_in": "where place city country",
    "manages": "boss manager lead team",
    "member_of": "member group club team band",
    "moved_from": "from before came origin hometown",
    "neighbor_of": "neighbor neighbour next door",
    "owns": "own have possess belong",
    "parent_of": "mother father mom mum dad parent child children son daughter kid family",
    "partner_of": "partner girlfriend boyfriend dating wife husband",
    "plays": "play game instrument sport",
    "prefers": "like likes favorite favourite prefer preference enjoy love",
    "dislikes": "dislike hate avoid",
    "related_to": "related family relative",
    "sibling_of": "brother sister sibling family",
    "spouse_of": "wife husband spouse married marry partner family",
    "studied_at": "study studied school university college degree",
    "traveled_to": "travel trip visit visited vacation holiday",
    "uses": "use tool software",
    "visited": "travel trip visit visited vacation holiday",
    "works_at": "work works job employer company office employed",
    "works_on": "work working project",
}
"""Words by which a question means a relation; one that is not here is meant by its own words."""


@dataclass(frozen=True, slots=True)
class GraphFinds:
    """Documents the graph leads to, doc_id -> score in (0, 1], and for each the edges that were walked.

    `entities` are the keys of what the question names, aliases included.
    """

    entities: frozenset[str] = frozenset()
    scores: dict[int, float] = field(default_factory=dict)
    via: dict[int, tuple[str, ...]] = field(default_factory=dict)


def stem(word: str) -> str:
    """Return what is compared of a word in lower case: without its ending, so that `worked` is `work`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word.removesuffix(ending)
    return word


def stems(words: Collection[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


_STEMS = {relation: stems(words.split()) for relation, words in _TRIGGERS.items()}


def means(relation: str, asked: Collection[str]) -> bool:
    """Return whether one of the stems `asked` triggers `relation`."""
    known = _STEMS.get(relation, frozenset())
    return not known.isdisjoint(asked) or any(
        stem(part) in asked for part in relation.split("_") if len(part) >= _MIN_STEM
    )


def find_named(connection: IndexConnection, query: Query, scope: Scope) -> frozenset[str]:
    """Return the keys of the entities a question names, with all their aliases; the owner where it says `my`."""
    named = graph.find_entities(connection, [*query.name_keys, *query.owner_keys], scope)
    kept: list[str] = []
    for key in sorted(named.keys() - {*query.owner_keys}, key=lambda key: (-len(key), key)):
        # Where `new york city` is found, the `york` inside it is not another entity.
        if not any(f" {key} " in f" {longer} " for longer in kept):
            kept.append(key)
    owner = named.keys() & {*query.owner_keys}
    return frozenset(alias for key in (*kept[:MAX_ENTITIES], *owner) for alias in named[key])


def search(
    connection: IndexConnection,
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
        start.setdefault(key, START)
    if not start:
        return finds
    walk = _Walk(finds, stems(query.words), set(start))
    found = walk.run(connection, start, scope, width, depth)
    if not found and width < MAX_WIDTH:
        walk.run(connection, start, scope, MAX_WIDTH, depth)
    return finds


@dataclass(slots=True)
class _Walk:
    """One search on its way: what it has found, the stems of the question, and by entity the edges that led there."""

    finds: GraphFinds
    asked: frozenset[str]
    seen: set[str]
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(
        self, connection: IndexConnection, start: Mapping[str, float], scope: Scope, width: int, depth: int
    ) -> bool:
        """Walk `depth` hops; return whether any edge led anywhere."""
        frontier = dict(sorted(start.items(), key=lambda item: (-item[1], item[0]))[: max(width, MAX_ENTITIES)])
        is_found = False
        for _ in range(depth):
            steps = graph.neighbours(connection, frontier, scope)
            if not steps:
                break
            is_found = True
            reached = self.score(steps, frontier)
            best = sorted(reached.items(), key=lambda item: (-item[1], item[0]))[:width]
            self.seen.update(reached)
            frontier = {key: score * HOP_DECAY for key, score in best}
            if not frontier:
                break
        return is_found

    def score(self, steps: Sequence[Neighbour], frontier: Mapping[str, float]) -> dict[str, float]:
        """Raise the documents that say the steps; return the new entities with the score of the best way to them."""
        fan = Counter(step.from_key for step in steps)
        reached: dict[str, float] = {}
        paths: dict[str, tuple[str, ...]] = {}
        finds = self.finds
        for step in steps:
            score = frontier[step.from_key] * self.promise(step, fan[step.from_key])
            path = (*self.paths.get(step.from_key, ()), f"{step.subject} {step.relation} {step.object}")
            if step.doc_id not in finds.via or score > finds.scores[step.doc_id]:
                finds.via[step.doc_id] = path
            finds.scores[step.doc_id] = max(score, finds.scores.get(step.doc_id, 0.0))
            if step.to_key not in self.seen and score > reached.get(step.to_key, 0.0):
                reached[step.to_key] = score
                paths[step.to_key] = path
        self.paths.update(paths)
        return reached

    def promise(self, step: Neighbour, fan: int) -> float:
        """Return how much a step promises, in (0, 1]: half for being an edge, the rest where the question means it.

        Both ends named is certain; a trigger word of the relation counts more than a word of the other end; an entity
        with many edges says less by each (selectivity).
        """
        if step.to_key in self.finds.entities:
            return 1.0
        other = stems(fulltext.terms(step.to_key))
        named = len(other & self.asked) / max(len(other), 1)
        triggered = 1.0 if means(step.relation, self.asked) else 0.0
        selective = 1.0 / (1.0 + math.log2(fan) / 4) if fan > 1 else 1.0
        return 0.5 * selective + 0.3 * triggered + 0.2 * named
