"""The features of candidates, and the relevance that they come to.

Turns, the facts that cite them and their sessions support each other: a fact lends its score to the turns that it
cites and a turn to its facts, a turn gains from the adjacent turns and from the session as a whole. A candidate without
such support, such as a separate note, counts alone. Some features count only in a talk among people. Each feature is a
number in [0, 1]; the weighted mean of those that apply is the relevance (weights: docs/explanation/recall.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quaid.index.documents import Document, TurnChunks, list_turns
from quaid.model import FIRST_PERSON, Kind, name_key
from quaid.recall.intent import Intent, asks_for_summary
from quaid.recall.options import FEATURES, Profile, Weights
from quaid.recall.query import Query
from quaid.text.language import ENGLISH, language
from quaid.text.words import count_spaced, fold

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

Ranking = Sequence[tuple[int, float]]
"""(chunk_id, score), best first."""
RRF_K = 60


def fuse(
    rankings: Mapping[str, Ranking], words: Mapping[int, float], likeness: Mapping[int, float], profile: Profile
) -> dict[int, float]:
    """Return the score in [0, 1] of every chunk that a channel found, by the fusion of `profile`.

    `rankings` are by channel; `words` and `likeness` are the normalised scores of the keyword and the vector channel.
    """
    weight = profile.vector_weight
    if profile.is_by_rank:
        weighted = [(rankings.get("vector", ()), weight), (rankings.get("keyword", ()), 1 - weight)]
        return reciprocal_rank(weighted, RRF_K)
    return convex(words, likeness, weight)


def min_max(ranking: Ranking, *, floor: float | None = None) -> dict[int, float]:
    """Return the scores moved to [0, 1]: the best is 1, `floor` (default: the lowest score) is 0."""
    if not ranking:
        return {}
    best = max(score for _, score in ranking)
    low = min(score for _, score in ranking) if floor is None else floor
    span = best - low
    if span <= 0:
        return {chunk_id: 1.0 for chunk_id, _ in ranking}
    return {chunk_id: (score - low) / span if score > low else 0.0 for chunk_id, score in ranking}


def convex(keyword: Mapping[int, float], vector: Mapping[int, float], vector_weight: float) -> dict[int, float]:
    """Return `a * vector + (1 - a) * keyword` over normalised scores; what a channel did not find counts 0 there.

    Source: Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023.
    """
    if not vector:
        return dict(keyword)
    if not keyword:
        return dict(vector)
    of_words = 1.0 - vector_weight
    fused = {chunk_id: of_words * score for chunk_id, score in keyword.items()}
    for chunk_id, score in vector.items():
        fused[chunk_id] = vector_weight * score + fused.get(chunk_id, 0.0)
    return fused


def reciprocal_rank(rankings: Sequence[tuple[Ranking, float]], k: int) -> dict[int, float]:
    """Return `sum of weight / (k + rank)`, scaled so that first place everywhere is 1.

    Source: Cormack et al., "Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009.
    """
    scores: dict[int, float] = {}
    for ranking, weight in rankings:
        for rank, (chunk_id, _) in enumerate(ranking, 1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight / (k + rank)
    top = sum(weight for ranking, weight in rankings if ranking) / (k + 1)
    return {chunk_id: score / top for chunk_id, score in scores.items()} if top else {}


ROLES = frozenset({"user", "human", "assistant", "ai", "system", "tool"})
"""What speakers are called in talks with an assistant."""
_LONG = 400
"""The bytes of a chunk, its header included, where a turn is a message as much as a remark. People who chat write some
150, to assistants 200 to 600, who write 700.
"""
_STEEP = 4


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation: its turns in their order, the place of each by its number, and in [0, 1] how much it is people
    who talk with each other in short turns.
    """

    turns: Sequence[TurnChunks]
    places: Mapping[int, int]
    among_people: float = 0.0

    @classmethod
    def of(cls, turns: Sequence[TurnChunks], size: int) -> Talk:
        """Return the talk of `turns`, `size` bytes in all."""
        speakers = {name_key(speaker) for speaker in {turn.speaker or "" for turn in turns}}
        is_among_people = len(speakers) > 1 and speakers.isdisjoint(ROLES)
        chunks = sum(len(turn.chunks) for turn in turns) or 1
        shortness = 1 / (1 + (size / chunks / _LONG) ** _STEEP)
        places = {turn.number: place for place, turn in enumerate(turns)}
        return cls(turns, places, shortness if is_among_people else 0.0)

    def adjacent_turns(self, number: int) -> tuple[TurnChunks | None, TurnChunks | None]:
        """Return the turns before and after one, None where the talk begins or ends."""
        place = self.places[number]
        before = self.turns[place - 1] if place else None
        return before, self.turns[place + 1] if place + 1 < len(self.turns) else None


def read_talks(connection: IndexConnection, doc_ids: Collection[int]) -> dict[int, Talk]:
    """Return the talks of episodes, by doc_id."""
    return {doc_id: Talk.of(turns, size) for doc_id, (size, turns) in list_turns(connection, doc_ids).items()}


OF_OWNER, OF_OWNERS_OWN = 1.5, 1.15
"""The gain of a fact about the owner, where the question says `I` and where it says no more than `my`."""

_RARE = frozenset({"graph", "dated", "phrase", "tells_when"})
"""Features that most questions give no occasion for: they come on top of the mean."""
AMONG_PEOPLE = frozenset({"session_words", "length", "asks", "answers"})
"""Features that tell something in a talk among people, and count as far as it is one."""
_OF_SUPPORT = ("beside", "session_best", "cited", "session_fact")
"""Features that are what a note says for itself where it cites nothing."""
_FULL_LENGTH = math.log(60)
"""A turn of sixty words or more says as much as one can."""
_MANY_PIECES = math.log(30)
_ASKS_BOTH = 0.5
"""What `speaker` is for the owner's turns where the question says `you` too: the assistant may have answered."""
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


@dataclass(slots=True)
class Pool:
    """The candidates and all that the channels know of them. Mappings are by chunk_id unless they say otherwise.

    `fused` are the scores of the fusion that selected the candidates, also for chunks next to a candidate; chunks that
    no channel found have none. `session_words` and `talks` are by doc_id of the episode, `graph` by doc_id. `cites` are
    the chunks of the turns that the chunk of a fact cites.
    """

    candidates: Mapping[int, Document]
    fused: Mapping[int, float]
    session_words: Mapping[int, float] = field(default_factory=dict)
    graph: Mapping[int, float] = field(default_factory=dict)
    cites: Mapping[int, Collection[int]] = field(default_factory=dict)
    talks: Mapping[int, Talk] = field(default_factory=dict)

    def own(self, chunk_id: int) -> float:
        """Return what a chunk says for itself: its fused score."""
        return self.fused.get(chunk_id, 0.0)


def normalise(weights: Weights) -> dict[str, float]:
    """Return what each feature adds to the relevance where it is 1 and nothing tells of people."""
    used = {name: float(getattr(weights, name)) for name in FEATURES}
    always = (weight for name, weight in used.items() if name not in _RARE | AMONG_PEOPLE)
    total = sum(weight for weight in always if weight > 0) or 1.0
    return {name: weight / total for name, weight in used.items() if weight}


def score_pool(pool: Pool, query: Query, shares: Mapping[str, float]) -> tuple[dict[int, float], dict[int, Features]]:
    """Return the relevance in [0, 1] (a little more where a rare feature comes on top), and the features, by
    chunk_id.
    """
    scorer = _Scorer(pool, query)
    more = sum(share for name in AMONG_PEOPLE if (share := shares.get(name, 0.0)) > 0)
    scores, features = {}, {}
    for chunk_id, candidate in pool.candidates.items():
        row = features[chunk_id] = scorer.features_of(candidate)
        if talk := pool.talks.get(candidate.doc_id):
            # They count as far as the talk is one among people, and their mean is one of all that apply.
            applying = 1.0 + talk.among_people * more
            for name, value in row.items():
                row[name] = value * (talk.among_people if name in AMONG_PEOPLE else 1.0) / applying
        score = max(0.0, sum([shares.get(name, 0.0) * value for name, value in row.items()]))
        if query.owner_keys and tells_of_owner(candidate, query):
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
        self._is_for_summary = asks_for_summary(query.text)
        self._speaker_weight = 1.0
        if not self._named.isdisjoint(query.owner_keys):  # a summary draws on both speakers
            # The assistant's turns may answer as well if the question says `you`.
            says_you = not _ASSISTANT.isdisjoint(map(str.casefold, _TOKEN.findall(query.text)))
            self._speaker_weight = 0.0 if self._is_for_summary else _ASKS_BOTH if says_you else 1.0
        self._best_turn: dict[int | None, float] = {}
        """The best turn of each episode, by its doc_id; a long turn is several chunks and counts as its best."""
        self._best_fact: dict[int | None, float] = {}
        """The best fact that cites a turn of an episode, by its doc_id."""
        for chunk_id, candidate in pool.candidates.items():
            own = pool.own(chunk_id)
            if candidate.turn is not None:
                self._best_turn[candidate.doc_id] = max(self._best_turn.get(candidate.doc_id, 0.0), own)
            for cited in pool.cites.get(chunk_id, ()):
                turn = pool.candidates.get(cited)
                if turn is not None:
                    self._best_fact[turn.doc_id] = max(self._best_fact.get(turn.doc_id, 0.0), own)
        self._own_of_turn: dict[int, float] = {}
        """By the first chunk of a turn."""
        self._lent: dict[int, tuple[float, float]] = {}
        """By turn: the best of the facts that cite it, and how near the graph brings them."""
        for chunk_id, cited_turns in pool.cites.items():
            own, near = pool.own(chunk_id), pool.graph.get(pool.candidates[chunk_id].doc_id, 0.0)
            for cited in cited_turns:
                score, nearness = self._lent.get(cited, (0.0, 0.0))
                self._lent[cited] = max(score, own), max(nearness, near)

    def features_of(self, candidate: Document) -> Features:
        """Return all features of a candidate that are not 0."""
        features = self._score_text(candidate)
        if candidate.turn is None:
            self._score_note(features, candidate)
        else:
            self._score_turn(features, candidate)
        if self._speaker_weight and self._is_by_or_about(candidate):
            features["speaker"] = self._speaker_weight
        return features

    def _is_by_or_about(self, candidate: Document) -> bool:
        """Return whether a candidate is by or about the person whom the question names, the owner where it says
        `my`.
        """
        if not self._named and not self._query.owner_keys:
            return False
        if tells_of_owner(candidate, self._query):
            return True
        if speaker := candidate.turn_speaker or candidate.speaker:
            return name_key(speaker) in self._named
        about = candidate.text.casefold() if candidate.kind == Kind.FACT else ""
        return any(name.split()[0] in about for name in self._named)

    def _score_text(self, candidate: Document) -> Features:
        """Return what a candidate says for itself."""
        pool, query, text = self._pool, self._query, candidate.text
        features = {"own": pool.own(candidate.chunk_id)}
        if query.intent is Intent.WHEN and (candidate.valid_from or _TELLS_WHEN.search(text)):
            features["tells_when"] = 1.0
        if graph_score := pool.graph.get(candidate.doc_id):
            features["graph"] = graph_score
        if query.dates and _is_from(candidate, query):
            features["dated"] = 1.0
        folded = fold(text).casefold() if query.phrases else ""
        if any(fold(phrase).casefold() in folded for phrase in query.phrases):
            features["phrase"] = 1.0
        return features

    def _score_note(self, features: Features, candidate: Document) -> None:
        """Score a note, or a fact, by itself, and by the turns it cites where those say more."""
        pool, own = self._pool, features["own"]
        cited = [chunk_id for chunk_id in pool.cites.get(candidate.chunk_id, ()) if chunk_id in pool.candidates]
        if not cited:
            features.update(dict.fromkeys(_OF_SUPPORT, own))
            return
        episode = pool.candidates[cited[0]].doc_id
        features["beside"] = max(map(pool.own, cited))
        features["session_best"] = self._best_turn.get(episode, own)
        features["cited"] = own
        features["session_fact"] = self._best_fact.get(episode, own)

    def _score_turn(self, features: Features, candidate: Document) -> None:
        """Score a turn by the adjacent turns, its session and the facts that cite it."""
        pool, text = self._pool, candidate.text
        features["length"] = min(1.0, math.log1p(count_spaced(text)) / _FULL_LENGTH)
        features["session_best"] = self._best_turn[candidate.doc_id]
        features["session_words"] = pool.session_words.get(candidate.doc_id, 0.0)
        features["session_fact"] = self._best_fact.get(candidate.doc_id, 0.0)
        if text.rstrip().endswith("?"):
            features["asks"] = 1.0
        if candidate.chunk_id in self._lent:
            features["cited"], near = self._lent[candidate.chunk_id]
            if near:
                features["graph"] = max(near, features.get("graph", 0.0))
        talk, number = pool.talks.get(candidate.doc_id), candidate.turn or 0
        if talk is not None and number in talk.places:
            self._score_place(features, candidate, talk, number)

    def _score_place(self, features: Features, candidate: Document, talk: Talk, number: int) -> None:
        """Score a turn by its place in its talk. An adjacent turn of the same speaker does not count."""
        before, after = talk.adjacent_turns(number)
        others = [turn for turn in (before, after) if turn and turn.speaker != candidate.turn_speaker]
        nearest = max(map(self._own_of, others), default=0.0)
        features["beside"] = nearest * (1 + talk.among_people) / 2
        pieces = len(talk.turns[talk.places[number]].chunks)
        if pieces > 1 and not self._is_for_summary:  # long messages are what a summary is made of
            features["pieces"] = min(1.0, math.log(pieces) / _MANY_PIECES)
        asker = self._pool.candidates.get(before.last) if before else None
        if asker is not None and "?" in asker.text:
            features["answers"] = 1.0

    def _own_of(self, turn: TurnChunks) -> float:
        """Return what a turn says for itself: the score of the best of its chunks."""
        if turn.first not in self._own_of_turn:
            self._own_of_turn[turn.first] = max(map(self._pool.own, turn.chunks))
        return self._own_of_turn[turn.first]


def _named_speakers(pool: Pool, query: Query) -> frozenset[str]:
    """Return the one speaker whom the question names, by each part of the name; nobody when it names several. Where it
    names none and says `my`, the owner, who may go by several names.
    """
    asked = {name_key(token) for token in _TOKEN.findall(query.text)}
    speakers = {name_key(s) for c in pool.candidates.values() if (s := c.turn_speaker or c.speaker)}
    named = {speaker for speaker in speakers if speaker in query.name_keys or not asked.isdisjoint(speaker.split())}
    if named:
        return frozenset(named) if len(named) == 1 else frozenset()
    return frozenset(speaker for speaker in speakers if speaker in query.owner_keys)


def tells_of_owner(candidate: Document, query: Query) -> bool:
    """Return whether the question says `my` and a fact is about the owner: `User works at …`, or the owner's own `I
    work at …`.
    """
    if not query.owner_keys or candidate.kind != Kind.FACT:
        return False
    text = f"{name_key(candidate.text)} "
    names = (key for key in query.owner_keys if key not in FIRST_PERSON)  # anybody says `I`
    if any(text.startswith((f"{key} ", f"{key}'s ", f"{key}\u2019s ")) for key in names):
        return True
    is_own = candidate.source in {None, "user"}
    is_own &= not candidate.speaker or name_key(candidate.speaker) in query.owner_keys
    return is_own and _FIRST_PERSON.search(text) is not None and language(candidate.text) in ENGLISH


def _is_from(candidate: Document, query: Query) -> bool:
    """Return whether a candidate was stated, or true, at one of the times that the question names."""
    first = (candidate.valid_from or candidate.said_at or candidate.created or "")[:10]
    if not first:
        return False
    last = (candidate.valid_until or first)[:10]
    return any(first <= mention.end.isoformat() and last >= mention.start.isoformat() for mention in query.dates)
