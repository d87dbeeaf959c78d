"""What speaks for a candidate: its own words and meaning, and the company it keeps.

Turns, the facts that cite them and the sessions they were said in are one graph of evidence: a fact lends its score to
the turns it rests on and a turn to its facts, a turn gains from what was said beside it and from the session as a
whole. What has no company, such as a note of its own, stands for itself. Each kind of evidence is a number in [0, 1];
their weighted mean is the relevance. How the weights were found is in docs/recall.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields

from quaid.index.documents import Candidate
from quaid.model import Kind, name_key
from quaid.recall.intent import Intent
from quaid.recall.query import Query

_LONG = math.log(60)
"""A turn of sixty words or more says as much as one can."""
_TOKEN = re.compile(r"[^\W_]+", re.UNICODE)
_TELLS_WHEN = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|recently|since|just|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each kind of evidence counts, likeness being 1. A negative one speaks against a candidate."""

    likeness: float = 1.0
    """Cosine to the question, 0 being that of unlike texts and 1 the best there is."""
    words: float = 0.5
    """bm25 of its own words, 1 being the best there is."""
    words_before: float = 0.65
    """bm25 of its words and half those of the turn before, which often names what is spoken of."""
    beside: float = 0.85
    """The better of the two turns beside it; of a fact, the best turn it cites."""
    session_best: float = 1.35
    """The best turn of its session."""
    session_words: float = 0.65
    """bm25 of its session as a whole."""
    cited: float = 0.9
    """The best fact that cites it; a fact is its own."""
    is_cited: float = -0.25
    """Some fact cites it: then it is better known what it says, and `cited` tells whether that is asked for."""
    session_fact: float = 0.7
    """The best fact from its session."""
    speaker: float = 1.0
    """It was said by, or is about, the one person whom the question names."""
    length: float = 1.5
    """Logarithm of its length: `Yes, exactly!` answers little."""
    asks: float = -0.3
    """It ends with a question."""
    answers: float = 0.3
    """The turn before it asks."""
    tells_when: float = 1.1
    """The question is WHEN, and it speaks of a time."""
    graph: float = 0.5
    """How near the graph brings it to what the question names."""
    dated: float = 0.6
    """It is from the time that the question names."""
    phrase: float = 0.3
    """It has the question's quoted phrase."""


EVIDENCE = tuple(item.name for item in fields(Weights))
_SELDOM = frozenset({"graph", "dated", "phrase", "tells_when"})
"""Evidence that most questions give no occasion for: it comes on top of the mean."""


@dataclass(slots=True)
class Pool:
    """The candidates and all that the channels know of them. Mappings are by chunk_id unless they say otherwise.

    `words` and `likeness` are normalised scores, also of chunks that are no candidates but stand beside one.
    `session_words` is by doc_id of the episode. `cites` are the turns' chunks that a fact's chunk rests on.
    """

    candidates: Mapping[int, Candidate]
    words: Mapping[int, float]
    likeness: Mapping[int, float]
    fused: Mapping[int, float]
    """Scores by the fusion that chose the candidates; chunks that no channel found have none."""
    session_words: Mapping[int, float] = field(default_factory=dict)
    graph: Mapping[int, float] = field(default_factory=dict)
    """By doc_id."""
    cites: Mapping[int, Collection[int]] = field(default_factory=dict)
    last_chunks: Mapping[int, int] = field(default_factory=dict)
    """The last chunk of each episode, by doc_id: what comes after it is another note's."""

    def own(self, chunk_id: int) -> float:
        """Return what a chunk says for itself: its fused score."""
        return self.fused.get(chunk_id, 0.0)


Row = dict[str, float]


def shares(weights: Weights, off: Collection[str] = ()) -> dict[str, float]:
    """What a whole of each kind of evidence adds to the relevance; kinds in `off` add nothing."""
    used = {name: float(getattr(weights, name)) for name in EVIDENCE if name not in off}
    total = sum(weight for name, weight in used.items() if weight > 0 and name not in _SELDOM) or 1.0
    return {name: weight / total for name, weight in used.items() if weight}


def weigh(pool: Pool, query: Query, shared: Mapping[str, float]) -> tuple[dict[int, float], dict[int, Row]]:
    """Relevance in [0, 1] (a little more where a rare kind of evidence comes on top), and the evidence for it, by
    chunk_id.
    """
    rows = _gather(pool, query)
    scores = {
        chunk_id: max(0.0, sum([shared.get(name, 0.0) * value for name, value in row.items()]))
        for chunk_id, row in rows.items()
    }
    return scores, rows


def _gather(pool: Pool, query: Query) -> dict[int, Row]:
    sessions = _Sessions(pool)
    lent = _lend(pool)
    named = _named_speakers(pool, query)
    rows = {}
    for chunk_id, candidate in pool.candidates.items():
        row = _own_row(pool, candidate, query)
        if candidate.turn is None:
            _score_note(row, pool, candidate, sessions)
        else:
            _score_turn(row, pool, candidate, sessions, lent)
        if named and _is_by_or_about(candidate, named):
            row["speaker"] = 1.0
        rows[chunk_id] = row
    return rows


def _own_row(pool: Pool, candidate: Candidate, query: Query) -> Row:
    text = candidate.text
    count = text.count(" ") + 1
    row = {
        "likeness": pool.likeness.get(candidate.chunk_id, 0.0),
        "words": pool.words.get(candidate.chunk_id, 0.0),
        "length": min(1.0, math.log1p(count) / _LONG),
    }
    if text.rstrip().endswith("?"):
        row["asks"] = 1.0
    if query.intent is Intent.WHEN and (candidate.valid_from or _TELLS_WHEN.search(text)):
        row["tells_when"] = 1.0
    if graph := pool.graph.get(candidate.doc_id):
        row["graph"] = graph
    if query.dates and is_from(candidate, query):
        row["dated"] = 1.0
    if query.phrases and any(phrase.casefold() in text.casefold() for phrase in query.phrases):
        row["phrase"] = 1.0
    return row


def _score_note(row: Row, pool: Pool, candidate: Candidate, sessions: _Sessions) -> None:
    """A note, or a fact: it is its own company, and that of the turns it cites where those say more."""
    own = pool.own(candidate.chunk_id)
    cited = [chunk_id for chunk_id in pool.cites.get(candidate.chunk_id, ()) if chunk_id in pool.candidates]
    episode = pool.candidates[cited[0]].doc_id if cited else None
    row["words_before"] = row["words"]
    row["beside"] = max((pool.own(chunk_id) for chunk_id in cited), default=own)
    row["session_best"] = sessions.best.get(episode, own)
    row["session_words"] = pool.session_words.get(episode, 0.0) if episode is not None else row["words"]
    row["cited"] = own
    row["is_cited"] = 1.0
    row["session_fact"] = sessions.fact.get(episode, own)


def _score_turn(
    row: Row, pool: Pool, candidate: Candidate, sessions: _Sessions, lent: Mapping[int, tuple[float, float]]
) -> None:
    """A turn: those beside it, its session, the facts that rest on it."""
    before, after = _beside(pool, candidate)
    row["words_before"] = min(1.0, _words_before(pool, candidate) / sessions.most_words)
    row["beside"] = max(pool.own(before), pool.own(after))
    row["session_best"] = sessions.best[candidate.doc_id]
    row["session_words"] = pool.session_words.get(candidate.doc_id, 0.0)
    if candidate.chunk_id in lent:
        row["cited"], near = lent[candidate.chunk_id]
        row["is_cited"] = 1.0
        if near:
            row["graph"] = max(near, row.get("graph", 0.0))
    row["session_fact"] = sessions.fact.get(candidate.doc_id, 0.0)
    asker = pool.candidates.get(before)
    if asker is not None and "?" in asker.text:
        row["answers"] = 1.0


def _beside(pool: Pool, candidate: Candidate) -> tuple[int, int]:
    """The chunks before and after a turn's, -1 where the session begins or ends: an episode's chunks are numbered in
    their order, one after the other.
    """
    chunk_id = candidate.chunk_id
    before = chunk_id - 1 if candidate.ordinal > 0 else -1
    after = chunk_id + 1 if chunk_id < pool.last_chunks.get(candidate.doc_id, chunk_id) else -1
    return before, after


def _words_before(pool: Pool, candidate: Candidate) -> float:
    """bm25 of a turn's words and half those of the turn before it."""
    before, _ = _beside(pool, candidate)
    return pool.words.get(candidate.chunk_id, 0.0) + pool.words.get(before, 0.0) / 2


class _Sessions:
    """What the candidates of each episode come to, by its doc_id."""

    def __init__(self, pool: Pool) -> None:
        turns: dict[int, dict[int, float]] = {}
        self.fact: dict[int | None, float] = {}
        self.most_words = 1e-9
        for chunk_id, candidate in pool.candidates.items():
            own = pool.own(chunk_id)
            if candidate.turn is not None:  # a long turn is several chunks and counts as its best
                said = turns.setdefault(candidate.doc_id, {})
                said[candidate.turn] = max(said.get(candidate.turn, 0.0), own)
                self.most_words = max(self.most_words, _words_before(pool, candidate))
            for cited in pool.cites.get(chunk_id, ()):
                turn = pool.candidates.get(cited)
                if turn is not None:
                    self.fact[turn.doc_id] = max(self.fact.get(turn.doc_id, 0.0), own)
        self.best: dict[int | None, float] = {doc_id: max(said.values()) for doc_id, said in turns.items()}


def _lend(pool: Pool) -> dict[int, tuple[float, float]]:
    """What each turn has from the facts that cite it: the best of their own scores, and how near the graph brings
    them.
    """
    lent: dict[int, tuple[float, float]] = {}
    for chunk_id, cited in pool.cites.items():
        own, near = pool.own(chunk_id), pool.graph.get(pool.candidates[chunk_id].doc_id, 0.0)
        for turn in cited:
            score, nearness = lent.get(turn, (0.0, 0.0))
            lent[turn] = max(score, own), max(nearness, near)
    return lent


def _named_speakers(pool: Pool, query: Query) -> frozenset[str]:
    """The one speaker whom the question names, by each part of the name; nobody when it names several."""
    asked = {name_key(token) for token in _TOKEN.findall(query.text)}
    speakers = {name_key(s) for c in pool.candidates.values() for s in (c.speaker or c.doc_speaker,) if s}
    named = {speaker for speaker in speakers if speaker in query.name_keys or not asked.isdisjoint(speaker.split())}
    named = named or {speaker for speaker in speakers if speaker in query.owner_keys}
    return frozenset(named) if len(named) == 1 else frozenset()


def _is_by_or_about(candidate: Candidate, named: frozenset[str]) -> bool:
    speaker = candidate.speaker or candidate.doc_speaker
    if speaker:
        return name_key(speaker) in named
    if candidate.kind != Kind.FACT:
        return False
    text = candidate.text.casefold()
    return any(name.split()[0] in text for name in named)


def is_from(candidate: Candidate, query: Query) -> bool:
    """Whether a candidate is from one of the times that the question names: said then, or true then."""
    first = (candidate.valid_from or candidate.said_at or candidate.created or "")[:10]
    if not first:
        return False
    last = (candidate.valid_until or first)[:10]
    return any(first <= mention.end.isoformat() and last >= mention.start.isoformat() for mention in query.dates)


def contributions(row: Row, shared: Mapping[str, float]) -> dict[str, float]:
    """What each kind of evidence adds to the relevance."""
    return {name: round(shared[name] * value, 4) for name, value in row.items() if value and name in shared}
