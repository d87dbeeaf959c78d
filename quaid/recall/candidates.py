"""The candidates: the best of what the channels found, and what belongs to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.model import Kind, note_name
from quaid.recall import retrieval
from quaid.recall.features import Features, Pool, Talk, fuse, min_max, normalise, read_talks, score_pool, tells_of_owner
from quaid.recall.options import of_kinds
from quaid.recall.retrieval import ABOUT, Retrieved, SearchRequest
from quaid.text.words import find_words

MAX_FUSED = 120
"""Chunks of the fused ranking that are looked at closely; on LoCoMo more find no more (docs/explanation/recall.md)."""
MAX_GRAPH_DOCUMENTS = 100
MAX_NEIGHBOURED = 60
"""The number of best turns whose neighbours are added: an answer often has no word of its question."""
MAX_CITING = 80
"""The number of facts that raise the turns they cite, and of turns that raise the facts that cite them."""
MAX_NAMED = 3
"""The number of properties that a hit names."""
MAX_SESSIONS = 3
"""The number of best sessions whose facts are added."""
MAX_SESSION_FACTS = 30
BARE_NAME = 0.3
"""The part of its score that a note keeps which says nothing but its name, as that does not answer."""

Chosen = tuple[Document, float, int]
"""A candidate, its score and how many it represents."""


@dataclass(slots=True)
class CandidateSet:
    """Candidates with their relevance and features, by chunk_id; `shares` is what each feature adds."""

    candidates: dict[int, Document] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    features: Mapping[int, Features] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)


def hit_kind(candidate: Document) -> str:
    """Return fact, turn, entity, note, snippet, journal or doc."""
    if candidate.kind == Kind.EPISODE:
        return "note" if candidate.turn is None else "turn"
    return "note" if candidate.kind == Kind.CORE else candidate.kind


def hit_id(candidate: Document) -> str:
    """Return the id of a hit: a turn is named as facts cite it, `20-1402-2f1c9a#t3`, a passage by its place in its doc:
    `docs/recall.md#p3`.
    """
    if candidate.passage is not None:
        return f"{candidate.id}#p{candidate.passage}"
    if candidate.turn is None:
        return candidate.id
    return f"{note_name(candidate.path)}#t{candidate.turn}"


# -- collecting ------------------------------------------------------------------------------------------------------


def collect(request: SearchRequest, retrieved: Retrieved) -> CandidateSet:
    """Fetch the best of what was found and what belongs to it, and score it."""
    profile = request.profile
    words, likeness = retrieved.words(), retrieved.likeness()
    fused = fuse(retrieved.rankings, words, likeness, profile)
    best = _best(fused, request)
    with request.trace.stage("fetch") as noted:
        candidates = documents.fetch_candidates(request.connection, best, request.scope)
        _name_properties(request, candidates)
        noted["found"] = len(candidates)
    if request.options.keyword_only:
        return CandidateSet(candidates, {i: fused.get(i, 0.0) for i in candidates})
    if profile.weights.graph:
        starts = dict.fromkeys(candidates[chunk_id].doc_id for chunk_id in best[:20] if chunk_id in candidates)
        retrieval.search_graph(request, starts, retrieved)
    with request.trace.stage("evidence") as noted:
        _add_documents(request, retrieved, candidates)
        talks: dict[int, Talk] = {}
        _add_talks(request, candidates, talks)
        if profile.weights.beside:
            _add_neighbours(request, best, fused, candidates, talks)
        cites = _add_cited(request, fused, candidates) if profile.weights.cited else {}
        missing = [chunk_id for chunk_id in candidates if chunk_id not in retrieved.cosines]
        if missing:
            retrieval.complete_cosines(request.sources, retrieved, missing)
            likeness = retrieved.likeness(candidates)
            fused = fuse(retrieved.rankings, words, likeness, profile)
        _add_talks(request, candidates, talks)
        if profile.weights.graph and request.query.owner_keys:
            about = {c.doc_id for c in candidates.values() if tells_of_owner(c, request.query)}
            retrieved.graph.scores.update({i: max(ABOUT, retrieved.graph.scores.get(i, 0.0)) for i in about})
        session_words = min_max(retrieved.episodes, floor=0.0)
        pool = Pool(candidates, fused, session_words, retrieved.graph.scores, cites, talks)
        shares = normalise(profile.weights)
        scores, features = score_pool(pool, request.query, shares)
        for chunk_id, candidate in candidates.items():
            if candidate.text.casefold() == candidate.title.casefold():
                scores[chunk_id] *= BARE_NAME
        noted["candidates"] = len(candidates)
    return CandidateSet(candidates, scores, features, shares)


def _name_properties(request: SearchRequest, candidates: dict[int, Document]) -> None:
    """Let the opening of an own note show the properties that have words of the question which it has not."""
    openings = [each.chunk_id for each in candidates.values() if each.kind == Kind.NOTE and each.ordinal == 0]
    keywords = documents.list_texts(request.connection, openings, "keywords") if openings else {}
    for chunk_id, of_note in keywords.items():
        candidate = candidates[chunk_id]
        words = set(request.query.words).difference(find_words(f"{candidate.title} {candidate.text}"))
        properties = of_note.split("\n")[1:]  # each as `key: value`
        if named := [line for line in properties if not words.isdisjoint(find_words(line))]:
            candidates[chunk_id] = candidate._replace(text=f"{candidate.text} ({'; '.join(named[:MAX_NAMED])})")


def _best(fused: Mapping[int, float], request: SearchRequest) -> list[int]:
    """Return the chunks to look at closely, best first: the best of all, and the best of the kinds asked for."""
    kinds = request.options.kinds
    limit = max(MAX_FUSED, 4 * (request.options.limit or 0))
    if not kinds and len(fused) > limit:
        least = sorted(fused.values(), reverse=True)[limit - 1]
        fused = {chunk_id: score for chunk_id, score in fused.items() if score >= least}
    ranked = sorted(fused, key=lambda chunk_id: (-fused[chunk_id], chunk_id))
    if not kinds:
        return ranked[:limit]
    narrow = request.sources.cache.chunks_in(request.connection, of_kinds(request.scope, kinds)) or frozenset()
    of_kind = [chunk_id for chunk_id in ranked if chunk_id in narrow][:limit]
    return [*dict.fromkeys([*ranked[:limit], *of_kind])]


def _add_documents(request: SearchRequest, retrieved: Retrieved, candidates: dict[int, Document]) -> None:
    """Add what the graph and an exact name lead to."""
    scores = retrieved.graph.scores
    best = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))[:MAX_GRAPH_DOCUMENTS]
    wanted = documents.first_chunks(request.connection, {*best, *retrieved.exact}) - candidates.keys()
    if wanted:
        candidates |= documents.fetch_candidates(request.connection, wanted, request.scope)


def _add_talks(request: SearchRequest, candidates: Mapping[int, Document], talks: dict[int, Talk]) -> None:
    """Add the talks of candidates that are not among `talks` yet."""
    missing = {each.doc_id for each in candidates.values() if each.turn is not None} - talks.keys()
    if missing:
        talks |= read_talks(request.connection, missing)


def _add_neighbours(
    request: SearchRequest, best: Sequence[int], fused: Mapping[int, float], candidates: dict[int, Document],
    talks: Mapping[int, Talk],
) -> None:  # fmt: skip
    """Add the turns next to the best ones: of a long turn the best chunk that was found, else its first."""
    turns = [candidates[i] for i in best if i in candidates and candidates[i].turn is not None][:MAX_NEIGHBOURED]
    wanted = {
        max(neighbour.chunks, key=lambda chunk_id: fused.get(chunk_id, 0.0))
        for turn in turns
        if (talk := talks.get(turn.doc_id))
        for neighbour in talk.adjacent_turns(turn.turn or 0)
        if neighbour
    } - candidates.keys()
    if wanted:
        candidates |= documents.fetch_candidates(request.connection, wanted, request.scope)


def _add_cited(
    request: SearchRequest, fused: Mapping[int, float], candidates: dict[int, Document]
) -> dict[int, list[int]]:
    """Add the turns that the best facts cite and the facts that cite the best turns; return which cites which, by
    chunk.
    """
    connection, scope = request.connection, request.scope
    ranked = sorted(candidates, key=lambda chunk_id: -fused.get(chunk_id, 0.0))
    turns = [candidates[i] for i in ranked if candidates[i].turn is not None][:MAX_CITING]
    citing = graph.citing_chunks(connection, [(note_name(turn.path), turn.turn or 0) for turn in turns], scope)
    facts = {c.doc_id: i for i, c in candidates.items() if c.turn is None and c.ordinal == 0}
    new = {chunk_id for _, _, chunk_id in citing} - candidates.keys()
    if new:
        candidates |= documents.fetch_candidates(connection, new, scope)
        facts |= {candidates[i].doc_id: i for i in new if i in candidates}
    cites: dict[int, list[int]] = {}
    for doc_id, turn in graph.cited_turns(connection, facts) if facts else ():
        cites.setdefault(facts[doc_id], []).append(turn)
    best = sorted(cites, key=lambda chunk_id: -fused.get(chunk_id, 0.0))[:MAX_CITING]
    missing = {turn for chunk_id in best for turn in cites[chunk_id]} - candidates.keys()
    if missing:
        candidates |= documents.fetch_candidates(connection, missing, scope)
    return cites


def facts_of_sessions(
    request: SearchRequest, ranked: Sequence[Document], scores: Mapping[int, float]
) -> tuple[dict[int, Document], dict[int, float]]:
    """Return the facts from the sessions of the best candidates, and for each a share of the score of the one it came
    with: what was learned together is remembered together (temporal contiguity).
    """
    best: dict[str, float] = {}
    for candidate in ranked:
        if candidate.session is not None and len(best) < MAX_SESSIONS:
            best.setdefault(candidate.session, scores[candidate.chunk_id])
    if not best:
        return {}, {}
    chunk_ids = documents.facts_of_sessions(request.connection, best, request.scope, MAX_SESSION_FACTS)
    facts = documents.fetch_candidates(request.connection, chunk_ids, request.scope)
    share = request.profile.contiguity
    return facts, {i: share * best[c.session] for i, c in facts.items() if c.session in best}
