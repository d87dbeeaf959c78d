"""Facts that cannot both be true are shown together, with their dates: which one holds is not for recall to say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quaid.index import graph
from quaid.index.documents import Candidate
from quaid.index.scope import Scope
from quaid.model import name_key

if TYPE_CHECKING:
    import apsw

SINGLE_VALUED = frozenset(
    """born_in born_on died_on diagnosed_on has_age has_birthday lives_in lives_at located_in married_to named
    nationality partner_of reports_to spouse_of works_at
    """.split()  # noqa: SIM905
)
"""Relations of which a subject has one object at a time."""

MOST_PAIRED = 5
"""So many facts are brought in beside those that were found."""

Edge = tuple[str, str, str]
Chosen = tuple[Candidate, float, int]


def fetch_rivals(connection: apsw.Connection, doc_ids: Collection[int], scope: Scope) -> dict[int, list[Edge]]:
    """The single-valued edges of facts, and of all other facts in `scope` that say the same of the same subject."""
    said = graph.list_relations_of(connection, doc_ids, SINGLE_VALUED)
    return graph.fetch_matching_edges(connection, said, scope) if said else {}


def paired(chosen: Sequence[Chosen], rivals: Mapping[int, Candidate], opposed: Mapping[int, set[int]]) -> list[Chosen]:
    """`chosen` with each fact followed by those that contradict it; `rivals` were not chosen themselves."""
    by_document = {candidate.doc_id: (candidate, score, count) for candidate, score, count in reversed(chosen)}
    brought = 0
    result: dict[int, Chosen] = {}
    for candidate, score, count in chosen:
        result.setdefault(candidate.chunk_id, (candidate, score, count))
        for doc_id in sorted(opposed.get(candidate.doc_id, ())):
            other = by_document.get(doc_id)
            if other is None and doc_id in rivals and brought < MOST_PAIRED:
                brought += 1
                other = by_document[doc_id] = (rivals[doc_id], score, 1)
            if other is not None:
                result.setdefault(other[0].chunk_id, other)
    return list(result.values())


def find_pairs(edges: Mapping[int, Sequence[Edge]]) -> set[tuple[int, int]]:
    """Pairs of documents, the lower doc_id first, that give one subject two objects of a single-valued relation."""
    said: dict[tuple[str, str], dict[str, set[int]]] = {}
    for doc_id, listed in edges.items():
        for subject, relation, target in listed:
            if relation in SINGLE_VALUED:
                said.setdefault((name_key(subject), relation), {}).setdefault(name_key(target), set()).add(doc_id)
    return {pair for objects in said.values() for pair in _across(objects)}


def _across(objects: Mapping[str, set[int]]) -> Iterable[tuple[int, int]]:
    """One document from each of two groups, unless it is in both."""
    groups = list(objects.values())
    for place, left in enumerate(groups):
        for right in groups[place + 1 :]:
            for one in left - right:
                for other in right - left:
                    yield min(one, other), max(one, other)


def find_opposed(edges: Mapping[int, Sequence[Edge]]) -> dict[int, set[int]]:
    """Of each document those that contradict it."""
    opposed: dict[int, set[int]] = {}
    for one, other in find_pairs(edges):
        opposed.setdefault(one, set()).add(other)
        opposed.setdefault(other, set()).add(one)
    return opposed
