"""The state of one question on its way through the stages of recall, and the open index that it searches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.embed import Embedder
from quaid.index import documents, graph
from quaid.index.cache import AnswerCache
from quaid.index.documents import Document, TurnChunks
from quaid.index.fulltext import Postings
from quaid.index.graph import Citing, End
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.index.reading import read
from quaid.index.scope import Scope
from quaid.model import name_key
from quaid.recall.options import Profile, RecallOptions
from quaid.recall.query import Query
from quaid.recall.trace import RecallTrace

if TYPE_CHECKING:
    from quaid.index.vectors import VectorMatrix
    from quaid.recall.records import RecallRecords
    from quaid.recall.rerank import Judge

Ranking = Sequence[tuple[int, float]]
"""(chunk_id, score), best first."""
Features = dict[str, float]
RRF_K = 60
MAX_COMPLETED = 200
"""The number of hits of the keyword channel alone that get a cosine: the rest is too far behind for it to matter."""
LIKENESS_WITHOUT_WORDS, LIKENESS_BY_WORDS = 0.35, 0.55
"""The line along which the likeness of chunks grows with their words, fitted on LoCoMo (docs/decisions)."""


def min_max(ranking: Ranking, floor: float = 0.0) -> dict[int, float]:
    """Return the scores moved to [0, 1]: the best is 1, `floor` and less is 0."""
    span = max((score for _, score in ranking), default=floor) - floor
    if span <= 0:
        return {chunk_id: 1.0 for chunk_id, _ in ranking}
    return {chunk_id: (score - floor) / span if score > floor else 0.0 for chunk_id, score in ranking}


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


def reciprocal_rank(rankings: Sequence[tuple[Ranking, float]]) -> dict[int, float]:
    """Return `sum of weight / (60 + rank)`, scaled so that first place everywhere is 1.

    Source: Cormack et al., "Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009.
    """
    scores: dict[int, float] = {}
    for ranking, weight in rankings:
        for rank, (chunk_id, _) in enumerate(ranking, 1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight / (RRF_K + rank)
    top = sum(weight for ranking, weight in rankings if ranking) / (RRF_K + 1)
    return {chunk_id: score / top for chunk_id, score in scores.items()} if top else {}


ROLES = frozenset({"user", "human", "assistant", "ai", "system", "tool"})
"""What speakers are called in talks with an assistant."""
_LONG = 400
"""The bytes of a chunk, its header included, where a turn is a message as much as a remark. People who chat write some
150, to assistants 200 to 600, who write 700.
"""
_STEEP = 4


class Talk(NamedTuple):
    """A conversation: its turns in their order, the place of each by its number, and in [0, 1] how much it is people
    who talk with each other in short turns.
    """

    turns: Sequence[TurnChunks]
    places: Mapping[int, int]
    among_people: float

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


class Reader:
    """The chunks in `scope` that a question has read, with the edges, citations and conversations of their notes.

    `texts` are the context and the keywords of chunks that are no turns, `ends` the edges and names of a note, `cited`
    the chunks of the turns that it cites, `citing` what cites a turn, by the document and its number, `turns` the bytes
    and turns of a conversation. `refers` says whether the question is what a note is called.
    """

    def __init__(self, connection: IndexConnection, scope: Scope) -> None:
        self.connection, self.scope = connection, scope
        self.refers = False
        self.texts: dict[int, tuple[str, str]] = {}
        self.ends: dict[int, list[End]] = {}
        self.cited: dict[int, list[int]] = {}
        self.citing: dict[tuple[int, int], list[Citing]] = {}
        self.turns: dict[int, tuple[int, list[TurnChunks]]] = {}
        self._chunks: dict[int, Document | None] = {}
        self._entities: dict[str, set[str]] = {}

    def fetch(self, chunk_ids: Collection[int]) -> dict[int, Document]:
        """Return those of `chunk_ids` that are in scope."""
        if missing := set(chunk_ids) - self._chunks.keys():
            found, texts, (ends, cited, citing), turns = read(
                self.connection, documents.fetch_candidates.steps(missing, self.scope),
                documents.list_headings.steps(missing), graph.list_ties.steps(missing, self.scope),
                documents.list_turns.steps(missing),
            )  # fmt: skip
            self._chunks |= {**dict.fromkeys(missing), **found}
            self.texts |= texts
            self.ends |= ends
            self.cited |= cited
            self.citing |= citing
            self.turns |= turns
        return {each: chunk for each in sorted(chunk_ids) if (chunk := self._chunks[each]) is not None}

    def find_entities(self, keys: Collection[str]) -> dict[str, set[str]]:
        """Return what `graph.find_entities` does."""
        if missing := set(keys) - self._entities.keys():
            self.learn(missing, graph.find_entities(self.connection, missing, self.scope))
        return {key: names for key in keys if (names := self._entities[key])}

    def learn(self, keys: Collection[str], found: Mapping[str, set[str]]) -> None:
        """Remember what was found for `keys`."""
        self._entities |= {key: found.get(key, set()) for key in keys}


@dataclass(frozen=True, slots=True)
class Sources:
    """All that recall reads: the index, through two connections so that two channels can work at once, its vectors,
    words and cached answers, the embedder of a question, a model that judges, and the usage of memories.

    `owner_names` are the names that `my` refers to.
    """

    connection: IndexConnection
    second: IndexConnection
    embedder_of: Callable[[EmbedderRow], Embedder | None]
    vectors: VectorMatrix
    words: Postings = field(default_factory=Postings)
    cache: AnswerCache = field(default_factory=AnswerCache)
    judge: Judge | None = None
    records: RecallRecords | None = None
    owner_names: tuple[str, ...] = ()


@dataclass(slots=True)
class Search:
    """One question with all that its stages need and have found. Mappings are by chunk_id unless they say otherwise."""

    sources: Sources
    profile: Profile
    options: RecallOptions
    trace: RecallTrace
    query: Query
    reader: Reader
    named: frozenset[str] = frozenset()
    """The keys of the entities that the question names, aliases included."""

    # -- what the channels found -----------------------------------------------------------------------------------

    rankings: dict[str, Ranking] = field(default_factory=dict)
    """By channel."""
    cosines: dict[int, float] = field(default_factory=dict)
    """Of all chunks that any channel found."""
    unlike: float = 0.0
    """The cosine of texts that have nothing to do with each other."""
    embedded: tuple[EmbedderRow, Any] | None = None
    """The embedder whose vectors were searched, and the vector of the question."""
    relevant_similarity: float = 1.0
    """From which cosine a text answers without having a word of the question."""
    graph: dict[int, float] = field(default_factory=dict)
    """The nearness in (0, 1] of documents that the graph leads to, by doc_id."""
    via: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The edges that were walked to a document, by doc_id."""
    exact: frozenset[int] = frozenset()
    """Documents whose name is the whole question."""
    second_pass: set[int] = field(default_factory=set)
    """Chunks that only the second pass has found."""
    contiguous: set[int] = field(default_factory=set)
    """Facts from the sessions of the best candidates."""
    degraded: list[str] = field(default_factory=list)

    # -- the candidates --------------------------------------------------------------------------------------------

    candidates: dict[int, Document] = field(default_factory=dict)
    fused: dict[int, float] = field(default_factory=dict)
    """The scores of the fusion, best first, also of chunks next to a candidate; what no channel found has none."""
    cites: dict[int, list[int]] = field(default_factory=dict)
    """The chunks of the turns that the chunk of a fact cites."""
    instructions: set[int] = field(default_factory=set)
    """Chunks that say how to answer such questions."""
    talks: dict[int, Talk] = field(default_factory=dict)
    """By doc_id of the episode."""
    features: dict[int, Features] = field(default_factory=dict)
    relevance: dict[int, float] = field(default_factory=dict)
    scores: dict[int, float] = field(default_factory=dict)
    """The relevance adjusted by what the profile counts besides, or by a model."""
    ranked: list[Document] = field(default_factory=list)
    """The candidates that may be shown, best first."""

    @property
    def connection(self) -> IndexConnection:
        return self.sources.connection

    @property
    def scope(self) -> Scope:
        """What the question may see."""
        return self.reader.scope

    @property
    def visible(self) -> frozenset[int] | None:
        """The chunks in scope, None for all."""
        return self.sources.cache.chunks_in(self.connection, self.scope)

    def called(self, speakers: Collection[str]) -> dict[str, frozenset[str]]:
        """Return by the key of each speaker all names that the memory has for them, where the question names any."""
        known = self.reader.find_entities(speakers) if self.named else {}
        return {speaker: frozenset({speaker, *known.get(speaker, ())}) for speaker in speakers}

    def own(self, chunk_id: int) -> float:
        """Return the fused score of a chunk."""
        return self.fused.get(chunk_id, 0.0)

    def fuse(self, others: Collection[int] = ()) -> None:
        """Set the score in [0, 1] of every chunk that a channel found, and of `others`, by the profile's fusion, best
        first, equal ones by their numbers. A chunk without a vector, also one of `others`, is as like as chunks with as
        much of the question's words are on average.
        """
        rankings, weight = self.rankings, self.profile.vector_weight
        fused = words = min_max(rankings.get("keyword", ()))
        if self.profile.is_by_rank:
            fused = reciprocal_rank([(rankings.get("vector", ()), weight), (rankings.get("keyword", ()), 1 - weight)])
        elif self.embedded is not None:  # else no chunk has a likeness: words compare all of them
            # Not the lowest of the ranking as zero: in a large vault its first 400 are all alike, and differences that
            # mean nothing would outweigh the one note that has the very word.
            likeness = min_max([*self.cosines.items()], floor=self.unlike)
            for chunk_id in self.without_vector() | (set(others) - likeness.keys()):
                likeness[chunk_id] = LIKENESS_WITHOUT_WORDS + LIKENESS_BY_WORDS * words.get(chunk_id, 0.0)
            fused = convex(words, likeness, weight)
        self.fused = {each: fused[each] for each in sorted(sorted(fused), key=fused.__getitem__, reverse=True)}

    def without_vector(self) -> set[int]:
        """Return the best chunks of the keyword channel that have no vector: all others have been given a cosine."""
        return {chunk_id for chunk_id, _ in self.rankings.get("keyword", ())[:MAX_COMPLETED]} - self.cosines.keys()

    def called_chunks(self) -> set[int]:
        """Return the opening of each note whose name is the question, of a conversation the best turn."""
        best: dict[int, tuple[int, float, int]] = {}
        for each in self.candidates.values():
            if each.doc_id in self.exact:
                rank = each.ordinal if each.turn is None else 0, -self.relevance[each.chunk_id], each.chunk_id
                best[each.doc_id] = min(rank, best.get(each.doc_id, rank))
        return {chunk_id for _, _, chunk_id in best.values()}


Chosen = tuple[Document, float, int]
"""A candidate, its score and how many it represents."""
