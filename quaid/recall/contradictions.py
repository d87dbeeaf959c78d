"""Facts that cannot both be true are shown together, with their dates: which one holds is not for recall to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

from quaid.index import documents, graph
from quaid.index.documents import Candidate
from quaid.model import Kind, name_key
from quaid.recall.candidates import Chosen
from quaid.recall.retrieval import SearchRequest
from quaid.recall.scoring import truth

SINGLE_VALUED = frozenset(
    """born_in born_on died_on diagnosed_on has_age has_birthday lives_in lives_at located_in married_to named
    nationality partner_of reports_to spouse_of works_at
    """.split()  # noqa: SIM905
)
"""Relations of which a subject has one object at a time."""

MAX_PAIRED = 5
"""The maximum of facts that are added to those that were found."""

Edge = tuple[str, str, str]


def show_together(request: SearchRequest, chosen: Sequence[Chosen]) -> tuple[list[Chosen], dict[int, set[int]]]:
    """Return `chosen` with each fact followed by those that contradict it, found so far or not: one alone would pass
    for the truth. And which documents contradict each other, shown or not.
    """
    with request.trace.stage("contradictions") as noted:
        connection, scope = request.connection, request.scope
        facts = {candidate.doc_id for candidate, _, _ in chosen if candidate.kind == Kind.FACT}
        said = graph.list_relations_of(connection, facts, SINGLE_VALUED) if facts else []
        opposed = find_opposed(graph.fetch_matching_edges(connection, said, scope) if said else {})
        for one, other in graph.list_disputed(connection, facts):
            opposed.setdefault(one, set()).add(other)
            opposed.setdefault(other, set()).add(one)
        noted["pairs"] = sum(map(len, opposed.values())) // 2
        if not opposed:
            return list(chosen), {}
        documents_of_chosen = {candidate.doc_id for candidate, _, _ in chosen}
        missing = documents.first_chunks(connection, set(opposed) - documents_of_chosen)
        fetched = documents.fetch_candidates(connection, missing, scope)
        holds = truth(request, fetched.values())
        rivals = {candidate.doc_id: candidate for candidate in fetched.values() if holds(candidate)}
        told = documents_of_chosen | rivals.keys()
        visible = {doc_id: others & told for doc_id, others in opposed.items() if doc_id in told}
    return _pair(chosen, rivals, opposed), visible


def _pair(chosen: Sequence[Chosen], rivals: Mapping[int, Candidate], opposed: Mapping[int, set[int]]) -> list[Chosen]:
    """Return `chosen` with each fact followed by those that contradict it; `rivals` were not chosen themselves."""
    by_document = {each[0].doc_id: each for each in reversed(chosen)}
    added = 0
    result: dict[int, Chosen] = {}
    for candidate, score, count in chosen:
        result.setdefault(candidate.chunk_id, (candidate, score, count))
        for doc_id in sorted(opposed.get(candidate.doc_id, ())):
            other = by_document.get(doc_id)
            if other is None and doc_id in rivals and added < MAX_PAIRED:
                added += 1
                other = by_document[doc_id] = (rivals[doc_id], score, 1)
            if other is not None:
                result.setdefault(other[0].chunk_id, other)
    return list(result.values())


def find_pairs(edges: Mapping[int, Sequence[Edge]]) -> set[tuple[int, int]]:
    """Return the pairs of documents, the lower doc_id first, that give one subject two objects of a single-valued
    relation. A document that gives both contradicts nothing.
    """
    said: dict[tuple[str, str], dict[str, set[int]]] = {}
    for doc_id, listed in edges.items():
        for subject, relation, target in listed:
            if relation in SINGLE_VALUED:
                said.setdefault((name_key(subject), relation), {}).setdefault(name_key(target), set()).add(doc_id)
    return {
        (min(pair), max(pair))
        for objects in said.values()
        for left, right in combinations(objects.values(), 2)
        for pair in product(left - right, right - left)
    }


def find_opposed(edges: Mapping[int, Sequence[Edge]]) -> dict[int, set[int]]:
    """Return for each document those that contradict it."""
    opposed: dict[int, set[int]] = {}
    for one, other in find_pairs(edges):
        opposed.setdefault(one, set()).add(other)
        opposed.setdefault(other, set()).add(one)
    return opposed
