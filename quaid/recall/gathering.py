"""What the channels found -> candidates, with all that speaks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quaid.index import documents, graph
from quaid.index.documents import Candidate
from quaid.index.scope import Scope
from quaid.model import note_name
from quaid.recall import asking, evidence, fusion
from quaid.recall.asking import Found, Sources
from quaid.recall.evidence import Pool, Row
from quaid.recall.options import RecallOptions, of_kinds
from quaid.recall.query import Query
from quaid.recall.trace import Trace
from quaid.settings import RecallSettings

if TYPE_CHECKING:
    import apsw

MOST_FUSED = 120
"""Chunks of the fused ranking that are looked at closely; on LoCoMo more find no more (docs/recall.md)."""
MOST_GRAPH_DOCUMENTS = 100
MOST_NEIGHBOURED = 60
"""So many of the best turns bring those beside them: an answer often has no word of its question."""
MOST_CITING = 80
"""So many facts lend to the turns they cite, and so many turns to the facts that cite them."""
BARE_NAME = 0.3
"""What is left of the score of a note that says nothing but its name: that is no answer."""

_OFF = {
    "company": {"words_before", "beside", "session_best", "session_words", "session_fact", "answers"},
    "provenance": {"cited", "is_cited", "session_fact"},
    "speaker": {"speaker"},
    "form": {"length", "asks", "tells_when"},
    "dates": {"dated"},
    "phrases": {"phrase"},
    "graph": {"graph"},
}
"""The evidence that each stage brings."""


@dataclass(slots=True)
class Gathered:
    """Candidates with their relevance and the evidence for it, by chunk_id; `shares` is what each kind of it adds.
    `is_whole` is False when some that were found are gone by now: the index was changed in between.
    """

    candidates: dict[int, Candidate] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    rows: Mapping[int, Row] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    is_whole: bool = True


def evidence_off(settings: RecallSettings) -> frozenset[str]:
    """The kinds of evidence that the settings switch off."""
    stages = settings.stages
    return frozenset(kind for stage, kinds in _OFF.items() if not getattr(stages, stage) for kind in kinds)


def gather(
    sources: Sources,
    query: Query,
    named: frozenset[str],
    found: Found,
    settings: RecallSettings,
    options: RecallOptions,
    scope: Scope,
    trace: Trace,
) -> Gathered:
    """Fetch the best of what was found and what belongs to it, and weigh the evidence."""
    stages = settings.stages
    words, likeness = found.words(), found.likeness()
    fused = fusion.fuse(found.rankings, words, likeness, settings)
    best = _best(fused, sources, options, scope)
    with trace.stage("fetch") as noted:
        candidates = documents.fetch_candidates(sources.connection, best, scope)
        noted["found"] = len(candidates)
    is_whole = len(candidates) == len(best)
    if options.keyword_only:
        scores = {chunk_id: fused.get(chunk_id, 0.0) for chunk_id in candidates}
        return Gathered(candidates, scores, is_whole=is_whole)
    if stages.graph:
        starts = dict.fromkeys(candidates[chunk_id].doc_id for chunk_id in best[:20] if chunk_id in candidates)
        asking.ask_graph(sources, query, named, starts, scope, found, trace)
    with trace.stage("evidence") as noted:
        is_whole &= _add_documents(sources.connection, found, candidates, scope)
        if stages.company:
            _add_neighbours(sources.connection, best, candidates, scope)
        cites = _add_cited(sources.connection, fused, candidates, scope) if stages.provenance else {}
        missing = [chunk_id for chunk_id in candidates if chunk_id not in found.cosines]
        if missing:
            asking.complete_cosines(sources, found, missing)
            likeness = found.likeness()
            fused = fusion.fuse(found.rankings, words, likeness, settings)
        pool = _pool(sources.connection, found, words, likeness, fused, candidates, cites)
        shares = evidence.shares(options.weights, evidence_off(settings))
        scores, rows = evidence.weigh(pool, query, shares)
        for chunk_id, candidate in candidates.items():
            if is_bare_name(candidate):
                scores[chunk_id] *= BARE_NAME
        noted["candidates"] = len(candidates)
    return Gathered(candidates, scores, rows, shares, is_whole)


def _best(fused: Mapping[int, float], sources: Sources, options: RecallOptions, scope: Scope) -> list[int]:
    """The chunks to look at closely, best first: the best of all, and the best of the kinds that are asked for."""
    most = max(MOST_FUSED, 4 * (options.limit or 0))
    ranked = sorted(fused, key=lambda chunk_id: (-fused[chunk_id], chunk_id))
    if not options.kinds:
        return ranked[:most]
    narrow = sources.scoped.of(sources.connection, of_kinds(scope, options.kinds)) or frozenset()
    kept = [chunk_id for chunk_id in ranked if chunk_id in narrow][:most]
    return [*dict.fromkeys([*ranked[:most], *kept])]


def is_bare_name(candidate: Candidate) -> bool:
    return candidate.text.casefold() == candidate.title.casefold()


def _add_documents(connection: apsw.Connection, found: Found, candidates: dict[int, Candidate], scope: Scope) -> bool:
    """What the graph and an exact name lead to; whether all of it is still there."""
    scores = found.graph.scores
    best = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))[:MOST_GRAPH_DOCUMENTS]
    wanted = documents.first_chunks(connection, {*best, *found.exact}) - candidates.keys()
    added = documents.fetch_candidates(connection, wanted, scope) if wanted else {}
    candidates |= added
    return bool(scope.chunks) or len(added) == len(wanted)


def _add_neighbours(
    connection: apsw.Connection, best: Sequence[int], candidates: dict[int, Candidate], scope: Scope
) -> None:
    """The turns beside the best: the chunks of an episode are numbered one after the other."""
    turns = [i for i in best if i in candidates and candidates[i].turn is not None][:MOST_NEIGHBOURED]
    wanted = {chunk_id + step for chunk_id in turns for step in (-1, 1)} - candidates.keys()
    if wanted:
        found = documents.fetch_candidates(connection, wanted, scope)
        episodes = {candidates[chunk_id].doc_id for chunk_id in turns}
        candidates |= {chunk_id: each for chunk_id, each in found.items() if each.doc_id in episodes}


def _add_cited(
    connection: apsw.Connection, fused: Mapping[int, float], candidates: dict[int, Candidate], scope: Scope
) -> dict[int, list[int]]:
    """The turns that the best facts cite and the facts that cite the best turns; which cites which, by chunk."""
    ranked = sorted(candidates, key=lambda chunk_id: -fused.get(chunk_id, 0.0))
    turns = [candidates[i] for i in ranked if candidates[i].turn is not None][:MOST_CITING]
    citing = graph.citing_chunks(connection, [(note_name(turn.path), turn.turn or 0) for turn in turns], scope)
    facts = {c.doc_id: i for i, c in candidates.items() if c.turn is None and c.ordinal == 0}
    new = {chunk_id for _, _, chunk_id in citing} - candidates.keys()
    if new:
        candidates |= documents.fetch_candidates(connection, new, scope)
        facts |= {candidates[i].doc_id: i for i in new if i in candidates}
    cites: dict[int, list[int]] = {}
    for doc_id, turn in graph.cited_turns(connection, facts) if facts else ():
        cites.setdefault(facts[doc_id], []).append(turn)
    best = sorted(cites, key=lambda chunk_id: -fused.get(chunk_id, 0.0))[:MOST_CITING]
    missing = {turn for chunk_id in best for turn in cites[chunk_id]} - candidates.keys()
    if missing:
        candidates |= documents.fetch_candidates(connection, missing, scope)
    return cites


def _pool(
    connection: apsw.Connection,
    found: Found,
    words: Mapping[int, float],
    likeness: Mapping[int, float],
    fused: Mapping[int, float],
    candidates: Mapping[int, Candidate],
    cites: Mapping[int, list[int]],
) -> Pool:
    return Pool(
        candidates,
        words,
        likeness,
        fused,
        session_words=fusion.min_max(found.episodes, floor=0.0),
        graph=found.graph.scores,
        cites=cites,
        last_chunks=documents.last_chunks(connection, {c.doc_id for c in candidates.values() if c.turn is not None}),
    )
