"""The candidates that the channels found, with their features and relevance.

Turns, the facts that cite them and the sessions they were said in support each other: a fact lends its score to the
turns it rests on and a turn to its facts, a turn gains from what was said beside it and from the session as a whole.
A candidate without such support, as a note of its own, counts alone. Each feature is a number in [0, 1]; their weighted
mean is the relevance. How the weights were found is in docs/recall.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from quaid.index import documents, graph
from quaid.index.documents import Candidate
from quaid.model import Kind, name_key, note_name
from quaid.recall import fusion, retrieval
from quaid.recall.beam_search import ABOUT
from quaid.recall.intent import Intent
from quaid.recall.options import FEATURES, Weights, of_kinds
from quaid.recall.query import Query
from quaid.recall.retrieval import Retrieved, SearchRequest
from quaid.settings import RecallSettings
from quaid.text.words import count_spaced

MAX_FUSED = 120
"""Chunks of the fused ranking that are looked at closely; on LoCoMo more find no more (docs/recall.md)."""
MAX_GRAPH_DOCUMENTS = 100
MAX_NEIGHBOURED = 60
"""The number of best turns whose neighbours are added: an answer often has no word of its question."""
MAX_CITING = 80
"""The number of facts that raise the turns they cite, and of turns that raise the facts that cite them."""
MAX_SESSIONS = 3
"""The number of best sessions whose facts are added."""
MAX_SESSION_FACTS = 30
OF_OWNER, OF_OWNERS_OWN = 1.5, 1.15
"""The gain of a fact about the owner, where the question says `I` and where it says no more than `my`."""
BARE_NAME = 0.3
"""The part of its score that a note keeps which says nothing but its name, as that does not answer."""

_FEATURES_OF = {
    "company": {"words_before", "beside", "session_best", "session_words", "session_fact", "answers"},
    "provenance": {"cited", "is_cited", "session_fact"},
    "speaker": {"speaker"},
    "form": {"length", "asks", "tells_when"},
    "dates": {"dated"},
    "phrases": {"phrase"},
    "graph": {"graph"},
}
"""The features that each stage brings."""
_RARE = frozenset({"graph", "dated", "phrase", "tells_when"})
"""Features that most questions give no occasion for: they come on top of the mean."""
_FULL_LENGTH = math.log(60)
"""A turn of sixty words or more says as much as one can."""
_TOKEN = re.compile(r"[^\W_]+", re.UNICODE)
_TELLS_WHEN = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|recently|since|just|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i['\u2019](?:m|ve|d|ll)|my|mine|me|myself|we|our|us)\b", re.IGNORECASE)
_ASSISTANT = frozenset({"you", "your", "yours"})

Features = dict[str, float]
Chosen = tuple[Candidate, float, int]
"""A candidate, its score and how many it stands for."""


@dataclass(slots=True)
class Pool:
    """The candidates and all that the channels know of them. Mappings are by chunk_id unless they say otherwise.

    `words` and `likeness` are normalised scores, also of chunks that are not candidates but stand beside one. `fused`
    are scores by the fusion that chose the candidates; chunks that no channel found have none. `session_words` is by
    doc_id of the episode, `graph` by doc_id. `cites` are the turns' chunks that a fact's chunk rests on. `last_chunks`
    are the last chunk of each episode, by doc_id: what comes after it is another note's.
    """

    candidates: Mapping[int, Candidate]
    words: Mapping[int, float]
    likeness: Mapping[int, float]
    fused: Mapping[int, float]
    session_words: Mapping[int, float] = field(default_factory=dict)
    graph: Mapping[int, float] = field(default_factory=dict)
    cites: Mapping[int, Collection[int]] = field(default_factory=dict)
    last_chunks: Mapping[int, int] = field(default_factory=dict)

    def own(self, chunk_id: int) -> float:
        """Return what a chunk says for itself: its fused score."""
        return self.fused.get(chunk_id, 0.0)

    def beside(self, turn: Candidate) -> tuple[int, int]:
        """Return the chunks before and after a turn's, -1 where the session begins or ends: an episode's chunks are
        numbered in their order, one after the other.
        """
        chunk_id = turn.chunk_id
        before = chunk_id - 1 if turn.ordinal > 0 else -1
        after = chunk_id + 1 if chunk_id < self.last_chunks.get(turn.doc_id, chunk_id) else -1
        return before, after

    def words_before(self, turn: Candidate) -> float:
        """Return bm25 of a turn's words and half those of the turn before it."""
        before, _ = self.beside(turn)
        return self.words.get(turn.chunk_id, 0.0) + self.words.get(before, 0.0) / 2


@dataclass(slots=True)
class CandidateSet:
    """Candidates with their relevance and features, by chunk_id; `shares` is what each feature adds. `is_whole` is
    False when some that were found are gone by now: the index was changed in between.
    """

    candidates: dict[int, Candidate] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    features: Mapping[int, Features] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    is_whole: bool = True


def hit_kind(candidate: Candidate) -> str:
    """Return fact, turn, entity, note, snippet, journal or doc."""
    if candidate.kind == Kind.EPISODE:
        return "note" if candidate.turn is None else "turn"
    return "note" if candidate.kind == Kind.CORE else candidate.kind


def hit_id(candidate: Candidate) -> str:
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
    settings, stages = request.settings, request.settings.stages
    words, likeness = retrieved.words(), retrieved.likeness()
    fused = fusion.fuse(retrieved.rankings, words, likeness, settings)
    best = _best(fused, request)
    with request.trace.stage("fetch") as noted:
        candidates = documents.fetch_candidates(request.connection, best, request.scope)
        noted["found"] = len(candidates)
    is_whole = len(candidates) == len(best)
    if request.options.keyword_only:
        return CandidateSet(candidates, {i: fused.get(i, 0.0) for i in candidates}, is_whole=is_whole)
    if stages.graph:
        starts = dict.fromkeys(candidates[chunk_id].doc_id for chunk_id in best[:20] if chunk_id in candidates)
        retrieval.search_graph(request, starts, retrieved)
    with request.trace.stage("evidence") as noted:
        is_whole &= _add_documents(request, retrieved, candidates)
        if stages.company:
            _add_neighbours(request, best, candidates)
        cites = _add_cited(request, fused, candidates) if stages.provenance else {}
        missing = [chunk_id for chunk_id in candidates if chunk_id not in retrieved.cosines]
        if missing:
            retrieval.complete_cosines(request.sources, retrieved, missing)
            likeness = retrieved.likeness()
            fused = fusion.fuse(retrieved.rankings, words, likeness, settings)
        episodes = {c.doc_id for c in candidates.values() if c.turn is not None}
        if stages.graph and request.query.owner_keys:
            about = {c.doc_id for c in candidates.values() if tells_of_owner(c, request.query)}
            retrieved.graph.scores.update({i: max(ABOUT, retrieved.graph.scores.get(i, 0.0)) for i in about})
        pool = Pool(
            candidates, words, likeness, fused, fusion.min_max(retrieved.episodes, floor=0.0), retrieved.graph.scores,
            cites, documents.last_chunks(request.connection, episodes),
        )  # fmt: skip
        shares = normalise(request.options.weights, features_off(settings))
        scores, features = score_pool(pool, request.query, shares)
        for chunk_id, candidate in candidates.items():
            if candidate.text.casefold() == candidate.title.casefold():
                scores[chunk_id] *= BARE_NAME
        noted["candidates"] = len(candidates)
    return CandidateSet(candidates, scores, features, shares, is_whole)


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
    narrow = request.sources.scoped.of(request.connection, of_kinds(request.scope, kinds)) or frozenset()
    kept = [chunk_id for chunk_id in ranked if chunk_id in narrow][:limit]
    return [*dict.fromkeys([*ranked[:limit], *kept])]


def _add_documents(request: SearchRequest, retrieved: Retrieved, candidates: dict[int, Candidate]) -> bool:
    """Add what the graph and an exact name lead to; return whether all of it is still there."""
    scores = retrieved.graph.scores
    best = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))[:MAX_GRAPH_DOCUMENTS]
    wanted = documents.first_chunks(request.connection, {*best, *retrieved.exact}) - candidates.keys()
    added = documents.fetch_candidates(request.connection, wanted, request.scope) if wanted else {}
    candidates |= added
    return bool(request.scope.chunks) or len(added) == len(wanted)


def _add_neighbours(request: SearchRequest, best: Sequence[int], candidates: dict[int, Candidate]) -> None:
    """Add the turns beside the best: the chunks of an episode are numbered one after the other."""
    turns = [i for i in best if i in candidates and candidates[i].turn is not None][:MAX_NEIGHBOURED]
    wanted = {chunk_id + step for chunk_id in turns for step in (-1, 1)} - candidates.keys()
    if wanted:
        found = documents.fetch_candidates(request.connection, wanted, request.scope)
        episodes = {candidates[chunk_id].doc_id for chunk_id in turns}
        candidates |= {chunk_id: each for chunk_id, each in found.items() if each.doc_id in episodes}


def _add_cited(
    request: SearchRequest, fused: Mapping[int, float], candidates: dict[int, Candidate]
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
    request: SearchRequest, ranked: Sequence[Candidate], scores: Mapping[int, float]
) -> tuple[dict[int, Candidate], dict[int, float]]:
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
    decay = request.settings.contiguity_decay
    return facts, {i: decay * best[c.session] for i, c in facts.items() if c.session in best}


# -- features --------------------------------------------------------------------------------------------------------


def features_off(settings: RecallSettings) -> frozenset[str]:
    """Return the features that the settings switch off."""
    return frozenset().union(*(names for stage, names in _FEATURES_OF.items() if not getattr(settings.stages, stage)))


def normalise(weights: Weights, off: Collection[str] = ()) -> dict[str, float]:
    """Return what each feature adds to the relevance where it is 1; features in `off` add nothing."""
    used = {name: float(getattr(weights, name)) for name in FEATURES if name not in off}
    total = sum(weight for name, weight in used.items() if weight > 0 and name not in _RARE) or 1.0
    return {name: weight / total for name, weight in used.items() if weight}


def score_pool(pool: Pool, query: Query, shares: Mapping[str, float]) -> tuple[dict[int, float], dict[int, Features]]:
    """Return the relevance in [0, 1] (a little more where a rare feature comes on top), and the features, by
    chunk_id.
    """
    scorer = _Scorer(pool, query)
    scores, features = {}, {}
    for chunk_id, candidate in pool.candidates.items():
        row = features[chunk_id] = scorer.features_of(candidate)
        score = max(0.0, sum([shares.get(name, 0.0) * value for name, value in row.items()]))
        if tells_of_owner(candidate, query):
            score = max(score, min(1.0, score * (OF_OWNER if query.is_about_owner else OF_OWNERS_OWN)))
        scores[chunk_id] = score
    return scores, features


def contributions(features: Features, shares: Mapping[str, float]) -> dict[str, float]:
    """Return what each feature adds to the relevance."""
    return {name: round(shares[name] * value, 4) for name, value in features.items() if value and name in shares}


class _Scorer:
    """The features of the candidates in a pool, and the best of each episode."""

    def __init__(self, pool: Pool, query: Query) -> None:
        self._pool = pool
        self._query = query
        self._named = _named_speakers(pool, query)
        self._best_turn: dict[int | None, float] = {}
        """The best turn of each episode, by its doc_id; a long turn is several chunks and counts as its best."""
        self._best_fact: dict[int | None, float] = {}
        """The best fact that cites a turn of an episode, by its doc_id."""
        self._most_words = 1e-9
        for chunk_id, candidate in pool.candidates.items():
            own = pool.own(chunk_id)
            if candidate.turn is not None:
                self._best_turn[candidate.doc_id] = max(self._best_turn.get(candidate.doc_id, 0.0), own)
                self._most_words = max(self._most_words, pool.words_before(candidate))
            for cited in pool.cites.get(chunk_id, ()):
                turn = pool.candidates.get(cited)
                if turn is not None:
                    self._best_fact[turn.doc_id] = max(self._best_fact.get(turn.doc_id, 0.0), own)
        self._lent: dict[int, tuple[float, float]] = {}
        """By turn: the best of the facts that cite it, and how near the graph brings them."""
        for chunk_id, cited_turns in pool.cites.items():
            own, near = pool.own(chunk_id), pool.graph.get(pool.candidates[chunk_id].doc_id, 0.0)
            for cited in cited_turns:
                score, nearness = self._lent.get(cited, (0.0, 0.0))
                self._lent[cited] = max(score, own), max(nearness, near)

    def features_of(self, candidate: Candidate) -> Features:
        """Return all features of a candidate that are not 0."""
        features = self._score_text(candidate)
        if candidate.turn is None:
            self._score_note(features, candidate)
        else:
            self._score_turn(features, candidate)
        if self._is_by_or_about(candidate):
            features["speaker"] = 1.0
        return features

    def _is_by_or_about(self, candidate: Candidate) -> bool:
        """Return whether a candidate is by or about the person whom the question names, the owner where it says
        `my`.
        """
        if tells_of_owner(candidate, self._query):
            return True
        if speaker := candidate.speaker or candidate.doc_speaker:
            return name_key(speaker) in self._named
        about = candidate.text.casefold() if candidate.kind == Kind.FACT else ""
        return any(name.split()[0] in about for name in self._named)

    def _score_text(self, candidate: Candidate) -> Features:
        """Return what a candidate says for itself."""
        pool, query, text = self._pool, self._query, candidate.text
        features = {
            "likeness": pool.likeness.get(candidate.chunk_id, 0.0),
            "words": pool.words.get(candidate.chunk_id, 0.0),
            "length": min(1.0, math.log1p(count_spaced(text)) / _FULL_LENGTH),
        }
        if text.rstrip().endswith("?"):
            features["asks"] = 1.0
        if query.intent is Intent.WHEN and (candidate.valid_from or _TELLS_WHEN.search(text)):
            features["tells_when"] = 1.0
        if graph_score := pool.graph.get(candidate.doc_id):
            features["graph"] = graph_score
        if query.dates and _is_from(candidate, query):
            features["dated"] = 1.0
        if query.phrases and any(phrase.casefold() in text.casefold() for phrase in query.phrases):
            features["phrase"] = 1.0
        return features

    def _score_note(self, features: Features, candidate: Candidate) -> None:
        """Score a note, or a fact, by itself, and by the turns it cites where those say more."""
        pool = self._pool
        own = pool.own(candidate.chunk_id)
        cited = [chunk_id for chunk_id in pool.cites.get(candidate.chunk_id, ()) if chunk_id in pool.candidates]
        episode = pool.candidates[cited[0]].doc_id if cited else None
        features["words_before"] = features["words"]
        features["beside"] = max((pool.own(chunk_id) for chunk_id in cited), default=own)
        features["session_best"] = self._best_turn.get(episode, own)
        features["session_words"] = features["words"] if episode is None else pool.session_words.get(episode, 0.0)
        features["cited"] = own
        features["is_cited"] = 1.0
        features["session_fact"] = self._best_fact.get(episode, own)

    def _score_turn(self, features: Features, candidate: Candidate) -> None:
        """Score a turn by those beside it, its session and the facts that rest on it."""
        pool = self._pool
        before, after = pool.beside(candidate)
        features["words_before"] = min(1.0, pool.words_before(candidate) / self._most_words)
        features["beside"] = max(pool.own(before), pool.own(after))
        features["session_best"] = self._best_turn[candidate.doc_id]
        features["session_words"] = pool.session_words.get(candidate.doc_id, 0.0)
        if candidate.chunk_id in self._lent:
            features["cited"], near = self._lent[candidate.chunk_id]
            features["is_cited"] = 1.0
            if near:
                features["graph"] = max(near, features.get("graph", 0.0))
        features["session_fact"] = self._best_fact.get(candidate.doc_id, 0.0)
        asker = pool.candidates.get(before)
        if asker is not None and "?" in asker.text:
            features["answers"] = 1.0


def _named_speakers(pool: Pool, query: Query) -> frozenset[str]:
    """Return the one speaker whom the question names, by each part of the name; nobody when it names several. Where it
    names none and says `my`, the owner, who may go by several names.
    """
    asked = {name_key(token) for token in _TOKEN.findall(query.text)}
    speakers = {name_key(s) for c in pool.candidates.values() if (s := c.speaker or c.doc_speaker)}
    named = {speaker for speaker in speakers if speaker in query.name_keys or not asked.isdisjoint(speaker.split())}
    if named or asked & _ASSISTANT:  # the latter asks for what the assistant said as well
        return frozenset(named) if len(named) == 1 else frozenset()
    return frozenset(speaker for speaker in speakers if speaker in query.owner_keys)


def tells_of_owner(candidate: Candidate, query: Query) -> bool:
    """Return whether the question says `my` and a fact is about the owner: `User works at …`, or the owner's own `I
    work at …`.
    """
    if not query.owner_keys or candidate.kind != Kind.FACT:
        return False
    text = f"{name_key(candidate.text)} "
    names = (key for key in query.owner_keys if not _FIRST_PERSON.fullmatch(key))  # anybody says `I`
    if any(text.startswith((f"{key} ", f"{key}'s ", f"{key}\u2019s ")) for key in names):
        return True
    is_own = candidate.source in {None, "user"}
    is_own &= not candidate.doc_speaker or name_key(candidate.doc_speaker) in query.owner_keys
    return is_own and _FIRST_PERSON.search(text) is not None


def _is_from(candidate: Candidate, query: Query) -> bool:
    """Return whether a candidate is from one of the times that the question names: said then, or true then."""
    first = (candidate.valid_from or candidate.said_at or candidate.created or "")[:10]
    if not first:
        return False
    last = (candidate.valid_until or first)[:10]
    return any(first <= mention.end.isoformat() and last >= mention.start.isoformat() for mention in query.dates)
