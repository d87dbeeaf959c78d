"""The candidates: the best of what the channels found, and what belongs to it."""

from collections.abc import Collection

from quaid.index import documents, graph, listing
from quaid.index.documents import Document
from quaid.model import Kind, note_name
from quaid.recall import retrieval
from quaid.recall.features import score_candidates, tells_of_owner
from quaid.recall.intent import asks_of_own_past
from quaid.recall.options import of_kinds
from quaid.recall.retrieval import ABOUT
from quaid.recall.search import Search, Talk
from quaid.text.words import find_words

MAX_FUSED = 120
"""Chunks of the fused ranking that are looked at closely; on LoCoMo more find no more (docs/explanation/recall.md)."""
MAX_INSTRUCTIONS = 2
"""The standing instructions that one question gets."""
NEAR_INSTRUCTION = 0.8
"""An instruction is worded as an order and not as its subject: of the likeness from which a text answers, this part is
enough.
"""
MAX_GRAPH_DOCUMENTS = 100
MAX_STARTS = 5
"""The number of best documents from which the graph search starts."""
MAX_NEIGHBOURED = 60
"""The number of best turns whose neighbours are added: an answer often has no word of its question."""
MAX_CITING = 80
"""The number of facts that raise the turns they cite, and of turns that raise the facts that cite them."""
MAX_NAMED = 3
"""The number of properties that a hit names."""
MAX_SESSIONS = 3
"""The number of best sessions whose facts are added."""
MAX_SESSION_FACTS = 30


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


def collect(search: Search) -> None:
    """Fetch the best of what was found and what belongs to it, and score it."""
    options, weights = search.options, search.profile.weights
    search.fused = search.fuse()
    best, rest = _rank_fused(search)
    with search.trace.stage("fetch") as noted:
        search.candidates = documents.fetch_candidates(search.connection, best, search.scope)
        _name_properties(search)
        noted["found"] = len(search.candidates)
    if options.keyword_only:
        _fetch(search, rest)
        search.relevance = {chunk_id: search.own(chunk_id) for chunk_id in search.candidates}
        return
    if weights.get("graph"):
        starts = dict.fromkeys(search.candidates[each].doc_id for each in best[:20] if each in search.candidates)
        retrieval.search_graph(search, [*starts][:MAX_STARTS])
    with search.trace.stage("evidence") as noted:
        near = sorted(search.graph, key=lambda doc_id: (-search.graph[doc_id], doc_id))[:MAX_GRAPH_DOCUMENTS]
        _fetch(search, documents.first_chunks(search.connection, {*near, *search.exact}))
        search.talks = {}
        search.instructions = find_instructions(search)
        _fetch(search, search.instructions)
        _add_talks(search)
        if weights.get("beside"):
            # A chunk of each turn next to the best ones: of a long turn the best that was found, else its first.
            found = [search.candidates[chunk_id] for chunk_id in best if chunk_id in search.candidates]
            neighboured = [each for each in found if each.turn is not None][:MAX_NEIGHBOURED]
            talked = [(talk, each) for each in neighboured if (talk := search.talks.get(each.doc_id))]
            beside = [turn for talk, each in talked for turn in talk.adjacent_turns(each.turn or 0) if turn]
            _fetch(search, {max(turn.chunks, key=search.own) for turn in beside})
        search.cites = _add_cited(search) if weights.get("cited") else {}
        missing = search.candidates.keys() - search.cosines.keys()
        if missing:
            retrieval.complete_cosines(search, missing)
            search.fused = search.fuse(search.candidates)
        search.instructions = choose_instructions(search)
        _add_talks(search)
        if weights.get("graph") and search.query.owner_keys:
            about = {each.doc_id for each in search.candidates.values() if tells_of_owner(each, search.query)}
            search.graph |= {doc_id: max(ABOUT, search.graph.get(doc_id, 0.0)) for doc_id in about}
        score_candidates(search)
        least = min(search.relevance.values(), default=0.0)
        for chunk_id in _fetch(search, rest) & search.candidates.keys():
            search.features[chunk_id] = {"own": search.own(chunk_id)}
            search.relevance[chunk_id] = min(least, search.own(chunk_id))
        noted["candidates"] = len(search.candidates)


def find_instructions(search: Search) -> set[int]:
    """Return the standing instructions in scope, none where the question is about what was, and not what to do."""
    if not search.profile.weights.get("instruction") or asks_of_own_past(search.query.text):
        return set()
    return {*search.sources.cache.of(search.connection, listing.list_instructions, search.scope)}


def choose_instructions(search: Search) -> set[int]:
    """Return those of the instructions found that fit the question best, if any does."""
    likeness = {chunk: search.cosines.get(chunk, 0.0) for chunk in search.instructions & search.candidates.keys()}
    nearest = sorted(likeness, key=lambda chunk: (-likeness[chunk], chunk))[:MAX_INSTRUCTIONS]
    return {chunk for chunk in nearest if likeness[chunk] >= NEAR_INSTRUCTION * search.relevant_similarity}


def _fetch(search: Search, chunk_ids: Collection[int]) -> set[int]:
    """Add chunks that are no candidates yet; return which these are, whether they are in scope or not."""
    new = set(chunk_ids) - search.candidates.keys()
    if new:
        search.candidates |= documents.fetch_candidates(search.connection, new, search.scope)
    return new


def _name_properties(search: Search) -> None:
    """Let the opening of an own note show the properties that have words of the question which it has not."""
    openings = [each.chunk_id for each in search.candidates.values() if each.kind == Kind.NOTE and each.ordinal == 0]
    keywords = documents.list_texts(search.connection, openings, "keywords") if openings else {}
    for chunk_id, of_note in keywords.items():
        candidate = search.candidates[chunk_id]
        words = set(search.query.words).difference(find_words(f"{candidate.title} {candidate.text}"))
        properties = of_note.split("\n")[1:]  # each as `key: value`
        if named := [line for line in properties if not words.isdisjoint(find_words(line))]:
            search.candidates[chunk_id] = candidate._replace(text=f"{candidate.text} ({'; '.join(named[:MAX_NAMED])})")


def _rank_fused(search: Search) -> tuple[list[int], list[int]]:
    """Return the chunks to look at closely, best first, and those behind them that so large a limit shows too: of all,
    and of the kinds asked for.
    """
    fused, kinds = search.fused, search.options.kinds
    limit = max(MAX_FUSED, 4 * (search.options.limit or 0))
    ranked = sorted(sorted(fused), key=fused.__getitem__, reverse=True)  # equal ones by their numbers
    best, rest = ranked[:MAX_FUSED], ranked[MAX_FUSED:limit]
    if kinds:
        narrow = search.sources.cache.chunks_in(search.connection, of_kinds(search.scope, kinds)) or frozenset()
        of_kind = [chunk_id for chunk_id in ranked if chunk_id in narrow]
        best, rest = [*dict.fromkeys([*best, *of_kind[:MAX_FUSED]])], [*rest, *of_kind[MAX_FUSED:limit]]
    return best, rest


def _add_talks(search: Search) -> None:
    """Add the talks of the candidates that are not there yet."""
    missing = {each.doc_id for each in search.candidates.values() if each.turn is not None} - search.talks.keys()
    if missing:
        found = documents.list_turns(search.connection, missing)
        search.talks |= {doc_id: Talk.of(turns, size) for doc_id, (size, turns) in found.items()}


def _add_cited(search: Search) -> dict[int, list[int]]:
    """Add the turns that the best facts cite and the facts that cite the best turns; return which cites which, by
    chunk.
    """
    connection, candidates = search.connection, search.candidates
    ranked = sorted(candidates, key=lambda chunk_id: -search.own(chunk_id))
    turns = [candidates[i] for i in ranked if candidates[i].turn is not None][:MAX_CITING]
    citing = graph.citing_chunks(connection, [(note_name(turn.path), turn.turn or 0) for turn in turns], search.scope)
    facts = {c.doc_id: i for i, c in candidates.items() if c.turn is None and c.ordinal == 0}
    new = _fetch(search, {chunk_id for _, _, chunk_id in citing})
    facts |= {candidates[i].doc_id: i for i in new if i in candidates}
    cites: dict[int, list[int]] = {}
    for doc_id, turn in graph.cited_turns(connection, facts) if facts else ():
        cites.setdefault(facts[doc_id], []).append(turn)
    best = sorted(cites, key=lambda chunk_id: -search.own(chunk_id))[:MAX_CITING]
    _fetch(search, {turn for chunk_id in best for turn in cites[chunk_id]})
    return cites


def add_facts_of_sessions(search: Search) -> None:
    """Add the facts from the sessions of the best candidates, each with a share of the score of the one it came with:
    what was learned together is remembered together (temporal contiguity).
    """
    best: dict[str, float] = {}
    for candidate in search.ranked:
        if candidate.session is not None and len(best) < MAX_SESSIONS:
            best.setdefault(candidate.session, search.scores[candidate.chunk_id])
    if not best:
        return
    chunk_ids = documents.facts_of_sessions(search.connection, best, search.scope, MAX_SESSION_FACTS)
    facts = documents.fetch_candidates(search.connection, chunk_ids, search.scope)
    search.candidates |= facts
    for chunk_id, fact in facts.items():
        if fact.session in best:
            score = max(search.profile.contiguity * best[fact.session], search.scores.get(chunk_id, 0.0))
            search.scores[chunk_id] = search.relevance[chunk_id] = score
            search.contiguous.add(chunk_id)
