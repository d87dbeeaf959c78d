"""The candidates: the best of what the channels found, and what belongs to it."""

from collections.abc import Collection

from quaid.index import documents
from quaid.index.documents import Document
from quaid.model import Kind, note_name
from quaid.recall import retrieval
from quaid.recall.features import score_candidates, tells_of_owner
from quaid.recall.retrieval import ABOUT, find_instructions, list_best
from quaid.recall.search import Search, Talk
from quaid.text.words import find_words

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
    best, rest = list_best(search)
    with search.trace.stage("fetch") as noted:
        search.candidates = search.reader.fetch(best)
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
            adjacent = {max(turn.chunks, key=search.own) for turn in beside}
            search.reader.fetch(adjacent | list_supporting(search))  # at once, most of it is looked at below
            _fetch(search, adjacent)
        search.cites = _add_cited(search) if weights.get("cited") else {}
        missing = search.candidates.keys() - search.cosines.keys()
        if missing:
            retrieval.complete_cosines(search, missing)
            search.fuse(search.candidates)
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


def choose_instructions(search: Search) -> set[int]:
    """Return those of the instructions found that fit the question best, if any does."""
    likeness = {chunk: search.cosines.get(chunk, 0.0) for chunk in search.instructions & search.candidates.keys()}
    nearest = sorted(likeness, key=lambda chunk: (-likeness[chunk], chunk))[:MAX_INSTRUCTIONS]
    return {chunk for chunk in nearest if likeness[chunk] >= NEAR_INSTRUCTION * search.relevant_similarity}


def _fetch(search: Search, chunk_ids: Collection[int]) -> set[int]:
    """Add chunks that are no candidates yet; return which these are, whether they are in scope or not."""
    new = set(chunk_ids) - search.candidates.keys()
    if new:
        search.candidates |= search.reader.fetch(new)
    return new


def _name_properties(search: Search) -> None:
    """Let the opening of an own note show the properties that have words of the question which it has not."""
    for candidate in [each for each in search.candidates.values() if each.kind == Kind.NOTE and each.ordinal == 0]:
        _, keywords = search.reader.texts.get(candidate.chunk_id, ("", ""))
        words = set(search.query.words).difference(find_words(f"{candidate.title} {candidate.text}"))
        properties = keywords.split("\n")[1:]  # each as `key: value`
        if named := [line for line in properties if not words.isdisjoint(find_words(line))]:
            search.candidates[candidate.chunk_id] = candidate._replace(
                text=f"{candidate.text} ({'; '.join(named[:MAX_NAMED])})"
            )


def _add_talks(search: Search) -> None:
    """Add the talks of the candidates that are not there yet."""
    for doc_id in {each.doc_id for each in search.candidates.values() if each.turn is not None} - search.talks.keys():
        size, turns = search.reader.turns[doc_id]
        search.talks[doc_id] = Talk.of(turns, size)


def list_supporting(search: Search) -> set[int]:
    """Return the chunks that cite a candidate, or that a candidate or one of these cites."""
    reader, candidates = search.reader, search.candidates.values()
    citing = [each for c in candidates if c.turn is not None for each in reader.citing.get((c.doc_id, c.turn), ())]
    cited = {c.doc_id for c in candidates}.union(doc_id for doc_id, _, _ in citing)
    found = {chunk_id for _, chunk_id, _ in citing if chunk_id is not None}
    return found.union(*(reader.cited.get(doc_id, ()) for doc_id in cited))


def _add_cited(search: Search) -> dict[int, list[int]]:
    """Add the turns that the best facts cite and the facts that cite the best turns; return which cites which, by
    chunk.
    """
    reader, candidates = search.reader, search.candidates
    ranked = sorted(candidates, key=lambda chunk_id: -search.own(chunk_id))
    turns = [candidates[i] for i in ranked if candidates[i].turn is not None][:MAX_CITING]
    citing = [each for turn in turns for each in reader.citing.get((turn.doc_id, turn.turn or 0), ())]
    facts = {c.doc_id: i for i, c in candidates.items() if c.turn is None and c.ordinal == 0}
    new = _fetch(search, {chunk_id for _, chunk_id, _ in citing if chunk_id is not None})
    facts |= {candidates[i].doc_id: i for i in new if i in candidates}
    cites = {chunk_id: cited for doc_id, chunk_id in facts.items() if (cited := reader.cited.get(doc_id))}
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
    facts = search.reader.fetch(chunk_ids)
    search.candidates |= facts
    for chunk_id, fact in facts.items():
        if fact.session in best:
            score = max(search.profile.contiguity * best[fact.session], search.scores.get(chunk_id, 0.0))
            search.scores[chunk_id] = search.relevance[chunk_id] = score
            search.contiguous.add(chunk_id)
