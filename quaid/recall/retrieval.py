"""A query -> what the channels find: keyword, episodes, vector and exact name side by side, then the graph."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quaid.embed import Embedder
from quaid.errors import EmbeddingError
from quaid.index import documents, fulltext, graph, vectors
from quaid.index.cache import AnswerCache
from quaid.index.documents import list_speakers
from quaid.index.fulltext import Postings
from quaid.index.graph import Neighbour
from quaid.index.port import EmbedderRow
from quaid.index.references import has_reference, target_of
from quaid.index.scope import Scope
from quaid.model import name_key
from quaid.recall import features
from quaid.recall.features import ROLES, Ranking
from quaid.recall.options import Profile, RecallOptions, of_kinds
from quaid.recall.query import Query, list_shared_words
from quaid.recall.trace import RecallTrace
from quaid.text.language import ENGLISH, language
from quaid.text.words import find_words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.index.port import IndexConnection
    from quaid.index.vectors import VectorMatrix

WIDTH = 5
DEPTH = 2
HOP_DECAY = 0.7
"""The part of a score that is left after one hop."""
ABOUT = 0.5
"""Score of a document that is merely about a named entity."""
START = 0.5
"""Score of an entity that the question does not name, but its best finds are about."""
MAX_ENTITIES = 8
MAX_WIDTH = 64
"""The width of the search when the beam has found nothing."""

_ENDINGS = ("ing", "ed", "es", "s", "e")
_MIN_STEM = 3

_TRIGGERS: Mapping[str, str] = {
    "allergic_to": "allergy allergies eat food",
    "attends": "school university college class study studies church",
    "born_in": "birthplace hometown native",
    "born_on": "birthday birth age old",
    "caused_by": "why because reason cause caused lead result",
    "colleague_of": "coworker colleague work team",
    "created": "make made build built write wrote author",
    "diagnosed_with": "illness disease condition sick health diagnosis",
    "friend_of": "friend buddy pal",
    "has_pet": "pet dog cat animal puppy kitten",
    "interested_in": "hobby interest like enjoy passion",
    "knows": "know met friend",
    "lives_in": "live lives home house city town address reside stay moved",
    "lives_at": "live lives home house city town address reside stay moved",
    "located_in": "where place city country",
    "manages": "boss manager lead team",
    "member_of": "member group club team band",
    "moved_from": "from before came origin hometown",
    "neighbor_of": "neighbor neighbour next door",
    "owns": "own have possess belong",
    "parent_of": "mother father mom mum dad parent child children son daughter kid family",
    "partner_of": "partner girlfriend boyfriend dating wife husband",
    "plays": "play game instrument sport",
    "prefers": "like likes favorite favourite prefer preference enjoy love",
    "dislikes": "dislike hate avoid",
    "related_to": "related family relative",
    "sibling_of": "brother sister sibling family",
    "spouse_of": "wife husband spouse married marry partner family",
    "studied_at": "study studied school university college degree",
    "traveled_to": "travel trip visit visited vacation holiday",
    "uses": "use tool software",
    "visited": "travel trip visit visited vacation holiday",
    "works_at": "work works job employer company office employed",
    "works_on": "work working project",
}
"""The words in a question that refer to a relation. A relation that is not listed has only its own words."""


@dataclass(frozen=True, slots=True)
class GraphFinds:
    """Documents the graph leads to, doc_id -> score in (0, 1], and for each the edges that were walked.

    `entities` are the keys of what the question names, aliases included.
    """

    entities: frozenset[str] = frozenset()
    scores: dict[int, float] = field(default_factory=dict)
    via: dict[int, tuple[str, ...]] = field(default_factory=dict)


def stem(word: str) -> str:
    """Return what is compared of a word in lower case: without its ending, so that `worked` is `work`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word.removesuffix(ending)
    return word


def stems(words: Collection[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


_STEMS = {relation: stems(words.split()) for relation, words in _TRIGGERS.items()}


def means(relation: str, asked: Collection[str]) -> bool:
    """Return whether one of the stems `asked` triggers `relation`."""
    known = _STEMS.get(relation, frozenset())
    return not known.isdisjoint(asked) or any(
        stem(part) in asked for part in relation.split("_") if len(part) >= _MIN_STEM
    )


def find_named(connection: IndexConnection, query: Query, scope: Scope) -> frozenset[str]:
    """Return the keys of the entities a question names, with all their aliases; the owner where it says `my`."""
    named = graph.find_entities(connection, [*query.name_keys, *query.owner_keys], scope)
    longest: list[str] = []
    for key in sorted(named.keys() - {*query.owner_keys}, key=lambda key: (-len(key), key)):
        # Where `new york city` is found, the `york` inside it is not another entity.
        if not any(f" {key} " in f" {longer} " for longer in longest):
            longest.append(key)
    owner = named.keys() & {*query.owner_keys}
    return frozenset(alias for key in (*longest[:MAX_ENTITIES], *owner) for alias in named[key])


def search(
    connection: IndexConnection,
    query: Query,
    named: frozenset[str],
    best: Sequence[int],
    scope: Scope,
    *,
    width: int = WIDTH,
    depth: int = DEPTH,
) -> GraphFinds:
    """Walk from `named` and from what the documents `best` are about. Breadth first when the beam finds nothing."""
    finds = GraphFinds(named, dict.fromkeys(graph.documents_about(connection, named, scope), ABOUT) if named else {})
    start = dict.fromkeys(named, 1.0)
    for _, key in graph.list_ends(connection, best) if best else ():
        start.setdefault(key, START)
    if not start:
        return finds
    walk = _Walk(finds, stems(query.words), set(start))
    found = walk.run(connection, start, scope, width, depth)
    if not found and width < MAX_WIDTH:
        walk.run(connection, start, scope, MAX_WIDTH, depth)
    return finds


@dataclass(slots=True)
class _Walk:
    """One search on its way: what it has found, the stems of the question, and by entity the edges that led there."""

    finds: GraphFinds
    asked: frozenset[str]
    seen: set[str]
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(
        self, connection: IndexConnection, start: Mapping[str, float], scope: Scope, width: int, depth: int
    ) -> bool:
        """Walk `depth` hops; return whether any edge led anywhere."""
        frontier = dict(sorted(start.items(), key=lambda item: (-item[1], item[0]))[: max(width, MAX_ENTITIES)])
        is_found = False
        for _ in range(depth):
            steps = graph.neighbours(connection, frontier, scope)
            if not steps:
                break
            is_found = True
            reached = self.score(steps, frontier)
            best = sorted(reached.items(), key=lambda item: (-item[1], item[0]))[:width]
            self.seen.update(reached)
            frontier = {key: score * HOP_DECAY for key, score in best}
            if not frontier:
                break
        return is_found

    def score(self, steps: Sequence[Neighbour], frontier: Mapping[str, float]) -> dict[str, float]:
        """Raise the documents that say the steps; return the new entities with the score of the best way to them."""
        fan = Counter(step.from_key for step in steps)
        reached: dict[str, float] = {}
        paths: dict[str, tuple[str, ...]] = {}
        finds = self.finds
        for step in steps:
            score = frontier[step.from_key] * self.promise(step, fan[step.from_key])
            path = (*self.paths.get(step.from_key, ()), f"{step.subject} {step.relation} {step.object}")
            if step.doc_id not in finds.via or score > finds.scores[step.doc_id]:
                finds.via[step.doc_id] = path
            finds.scores[step.doc_id] = max(score, finds.scores.get(step.doc_id, 0.0))
            if step.to_key not in self.seen and score > reached.get(step.to_key, 0.0):
                reached[step.to_key] = score
                paths[step.to_key] = path
        self.paths.update(paths)
        return reached

    def promise(self, step: Neighbour, fan: int) -> float:
        """Return how much a step promises, in (0, 1]: half for being an edge, the rest where the question means it.

        Both ends named is certain; a trigger word of the relation counts more than a word of the other end; an entity
        with many edges says less by each (selectivity).
        """
        if step.to_key in self.finds.entities:
            return 1.0
        other = stems(fulltext.terms(step.to_key))
        named = len(other & self.asked) / max(len(other), 1)
        triggered = 1.0 if means(step.relation, self.asked) else 0.0
        selective = 1.0 / (1.0 + math.log2(fan) / 4) if fan > 1 else 1.0
        return 0.5 * selective + 0.3 * triggered + 0.2 * named


EmbedderOf = Callable[[EmbedderRow], Embedder | None]
Views = Sequence[frozenset[int] | None]
"""Sets of chunks to search, one after the other; None is all chunks."""
MAX_RANKED = 400
"""The number of candidates from each channel."""
MAX_EPISODES = 50
MAX_COMPLETED = 200
"""The number of hits of the keyword channel alone that get a cosine: the rest is too far behind for it to matter."""
LIKENESS_WITHOUT_WORDS, LIKENESS_BY_WORDS = 0.35, 0.55
"""The line along which the likeness of chunks grows with their words, fitted on LoCoMo (docs/decisions)."""
SAMPLE = 128
"""The number of chunks sampled to estimate the least cosine of a vault."""
ANYONE = "someone"
"""Replaces a speaker in the question that is embedded."""
_MANY_TEXTS = 10
"""Texts whose language is that of all: of more than the first it is asked only where that is not the question's."""
MAX_STARTS = 5
"""The number of best documents from which the graph search starts."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The index, through two connections so that two channels can work at once, the embedder of a question for it, its
    vectors and words, what is in a scope, and what else is the same for all questions.
    """

    connection: IndexConnection
    second: IndexConnection
    embedder_of: EmbedderOf
    vectors: VectorMatrix
    words: Postings = field(default_factory=Postings)
    cache: AnswerCache = field(default_factory=AnswerCache)

    def sample(self, row: EmbedderRow) -> npt.NDArray[np.float32]:
        """Return the vectors of a sample of chunks. Call it after `vectors.search`."""
        connection = self.connection

        def read() -> npt.NDArray[np.float32]:
            return self.vectors.vectors(connection, row, vectors.list_sample(connection, row, SAMPLE))[1]

        return self.cache.of(connection, ("sample", row.table, self.vectors.is_loaded), read)


@dataclass(slots=True)
class SearchRequest:
    """One question with all that its stages need. `named` are the keys of the entities that it names, `owner_names`
    the names of the caller, without the aliases of their note.
    """

    sources: Sources
    profile: Profile
    options: RecallOptions
    trace: RecallTrace
    query: Query
    scope: Scope
    named: frozenset[str] = frozenset()
    owner_names: tuple[str, ...] = ()

    @property
    def connection(self) -> IndexConnection:
        return self.sources.connection

    @property
    def visible(self) -> frozenset[int] | None:
        """The chunks in scope, None for all."""
        return self.sources.cache.chunks_in(self.connection, self.scope)


@dataclass(slots=True)
class Retrieved:
    """Rankings by channel, and `cosines` of all that any channel found."""

    rankings: dict[str, Ranking] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    unlike: float = 0.0
    """The cosine of texts that have nothing to do with each other."""
    episodes: Ranking = ()
    graph: GraphFinds = field(default_factory=GraphFinds)
    exact: frozenset[int] = frozenset()
    degraded: list[str] = field(default_factory=list)
    embedded: tuple[EmbedderRow, Any] | None = None
    """Whose vectors were searched, and the question's own."""
    relevant_similarity: float = 1.0
    """From which cosine a text answers without having a word of the question."""
    expanded: set[int] = field(default_factory=set)
    """Chunks that only the second pass has found."""
    contiguous: set[int] = field(default_factory=set)
    """Facts from the sessions of the best hits."""

    def words(self) -> dict[int, float]:
        """Return bm25 of the keyword channel in [0, 1]."""
        return features.min_max(self.rankings.get("keyword", ()), floor=0.0)

    def likeness(self, others: Collection[int] = ()) -> dict[int, float]:
        """Return the cosines in [0, 1]. A chunk without a vector, also one of `others`, is as like as chunks with as
        much of the question's words are on average.
        """
        # Not the lowest of the ranking as zero: in a large vault its first 400 are all alike, and differences that mean
        # nothing would outweigh the one note that has the very word.
        likeness = features.min_max(list(self.cosines.items()), floor=self.unlike)
        if self.embedded is None:  # no chunk has a likeness: words compare all of them
            return likeness
        words = self.words()
        for chunk_id in self.without_vector() | (set(others) - likeness.keys()):
            likeness[chunk_id] = LIKENESS_WITHOUT_WORDS + LIKENESS_BY_WORDS * words.get(chunk_id, 0.0)
        return likeness

    def without_vector(self) -> set[int]:
        """Return the best chunks of the keyword channel that have no vector: all others have been given a cosine."""
        return {chunk_id for chunk_id, _ in self.rankings.get("keyword", ())[:MAX_COMPLETED]} - self.cosines.keys()


def retrieve(request: SearchRequest, embedded: Any = None) -> Retrieved:
    """Search words and vectors side by side. `embedded` is the question's vector, where it is known from before."""
    retrieved = Retrieved()
    query, keyword_only = request.query, request.options.keyword_only
    if not query.words:
        return retrieved
    views = [request.visible]
    if request.options.kinds:  # searched on their own too, as the others might fill the ranking
        kinds = of_kinds(request.scope, request.options.kinds)
        views.append(request.sources.cache.chunks_in(request.connection, kinds))
    running: AbstractContextManager[None] = nullcontext()
    sources = request.sources
    if keyword_only or sources.words.is_quick(sources.second, query.words):
        _search_words(request, views, retrieved)  # a thread would take longer
    else:
        running = _thread(lambda: _search_words(request, views, retrieved))
    with running:
        if not keyword_only:
            with request.trace.stage("vector") as noted:
                _search_vectors(request, views, embedded, retrieved)
                noted["found"] = len(retrieved.rankings.get("vector", ()))
    # In one order, whichever channel was done first.
    retrieved.rankings = dict(sorted(retrieved.rankings.items()))
    if retrieved.embedded is not None:
        # Is anything found by its meaning? An English model finds nothing so in Russian.
        best = max((cosine for _, cosine in retrieved.rankings.get("vector", ())), default=-1.0)
        if best >= retrieved.relevant_similarity and _is_in_another_language(request, retrieved):
            _search_words(request, views, retrieved, list_shared_words(query))
        with request.trace.stage("cosines"):
            complete_cosines(request.sources, retrieved)
    if not keyword_only:
        with request.trace.stage("exact") as noted:
            if query.name_keys:
                retrieved.exact = _find_called(request)
            noted["found"] = len(retrieved.exact)
    return retrieved


def _find_called(request: SearchRequest) -> frozenset[int]:
    """Return the documents whose id, path, name, title or alias is the whole question, as a link or not."""
    text = target_of(request.query.text)
    names = [*dict.fromkeys((text, text.strip(" ?!.\"'“”")))]
    if not has_reference(request.connection, names):
        return frozenset()
    for name in names:
        if called := documents.find_by_reference(request.connection, name, request.scope):
            return frozenset(document.doc_id for document in called)
    return frozenset()


def search_graph(request: SearchRequest, best: Collection[int], retrieved: Retrieved) -> None:
    """Search the graph from what the question names and from what the documents `best` are about."""
    with request.trace.stage("graph") as noted:
        starts = list(best)[:MAX_STARTS]
        retrieved.graph = search(request.connection, request.query, request.named, starts, request.scope)
        noted |= {"found": len(retrieved.graph.scores), "named": sorted(request.named)}


def complete_cosines(sources: Sources, retrieved: Retrieved, more: Collection[int] = ()) -> None:
    """Give the best of what only another channel found a cosine too, and estimate that of unlike texts on a sample;
    with `more` give these chunks one.
    """
    if retrieved.embedded is None:
        return
    row, embedded = retrieved.embedded
    cosines = retrieved.cosines
    cosines |= dict(retrieved.rankings.get("vector", ()))
    best = retrieved.rankings.get("keyword", ())[:MAX_COMPLETED]
    others = {chunk_id for chunk_id, _ in best}.union(more) - cosines.keys()
    cosines |= sources.vectors.cosines(sources.connection, row, embedded, others)
    if not more:
        sample = (sources.sample(row) @ embedded).tolist()
        is_small = len(sample) < SAMPLE and retrieved.without_vector()  # the first few vectors may all be like it
        retrieved.unlike = min(sample + [0.0] * bool(is_small), default=0.0)


def search_statement(request: SearchRequest, statement: str, retrieved: Retrieved) -> None:
    """Find what is like `statement`, the answer a model imagined (HyDE), and raise the cosines of what is.

    Raises:
        EmbeddingError
    """
    if retrieved.embedded is None:
        return
    sources, (row, _) = request.sources, retrieved.embedded
    embedder = sources.embedder_of(row)
    if embedder is None:
        return
    embedded = embedder.embed_query(statement)
    ranking = sources.vectors.search(sources.connection, row, embedded, MAX_RANKED, request.visible)
    computed = sources.vectors.cosines(sources.connection, row, embedded, retrieved.cosines.keys())
    for chunk_id, cosine in [*ranking, *computed.items()]:
        retrieved.cosines[chunk_id] = max(cosine, retrieved.cosines.get(chunk_id, -1.0))
    retrieved.rankings["hyde"] = ranking


def _is_in_another_language(request: SearchRequest, retrieved: Retrieved) -> bool:
    """Return whether the best keyword matches are all in another language and share at most one word with the question.
    Such a word is only spelled alike, and the answer has none of the words: only its meaning finds it.
    """
    query, best = request.query, retrieved.rankings.get("keyword", ())[:_MANY_TEXTS]
    return bool(query.language and best) and all(
        language(text) not in {None, query.language} and len(set(query.words).intersection(find_words(text))) < 2
        for text in documents.list_texts(request.connection, [chunk_id for chunk_id, _ in best]).values()
    )


def _search_words(
    request: SearchRequest, views: Views, retrieved: Retrieved, words: Sequence[str] | None = None
) -> None:
    """Search `words`, by default all of the question."""
    connection = request.sources.second
    words = request.query.words if words is None else words
    search = request.sources.words.search
    with request.trace.stage("keyword") as noted:
        ranking = _ranked(views, lambda allowed: search(connection, words, MAX_RANKED, allowed))
        retrieved.rankings["keyword"] = ranking
        noted |= {"found": len(ranking), "words": list(words)}
    if request.profile.weights.session_words and not request.options.keyword_only:
        with request.trace.stage("episodes") as noted:
            match = fulltext.match_any(words)
            retrieved.episodes = fulltext.search_episodes(connection, match, MAX_EPISODES, request.scope)
            noted["found"] = len(retrieved.episodes)


def _search_vectors(request: SearchRequest, views: Views, embedded: Any, retrieved: Retrieved) -> None:
    connection = request.connection
    row = request.sources.cache.of(connection, "embedder", lambda: vectors.active_embedder(connection))
    embedder = request.sources.embedder_of(row) if row is not None else None
    if row is None or embedder is None:
        retrieved.degraded.append("vectors")
        return
    if embedded is None:
        try:
            embedded = embedder.embed_query(_unnamed(request))
        except EmbeddingError as error:
            retrieved.degraded.append(f"vectors: searched by words and graph only. {error}")
            return
    search = request.sources.vectors.search
    retrieved.rankings["vector"] = _ranked(
        views, lambda allowed: search(connection, row, embedded, MAX_RANKED, allowed)
    )
    retrieved.embedded = row, embedded
    retrieved.relevant_similarity = embedder.relevant_similarity


def _unnamed(request: SearchRequest) -> str:
    """Return the question, in English with `someone` for each speaker that it names. With a name, the model prefers the
    turns addressed to that speaker to the turns by that speaker; the `speaker` feature distinguishes them better.
    """
    text = request.query.text
    if not request.profile.weights.speaker:
        return text
    connection, scope = request.connection, request.scope
    names = request.sources.cache.of(connection, ("speakers", scope.key), lambda: _list_names(connection, scope))
    named = names.intersection(request.query.words)
    if not named or request.query.language not in ENGLISH:
        return text
    unnamed = re.sub(r"[^\W_]+", lambda word: ANYONE if name_key(word[0]) in named else word[0], text)
    return unnamed.replace(f"{ANYONE} {ANYONE}", ANYONE)


def _list_names(connection: IndexConnection, scope: Scope) -> frozenset[str]:
    """Return all parts of the names of those who speak in `scope`."""
    return frozenset(part for name in list_speakers(connection, scope) for part in name_key(name).split()) - ROLES


def _ranked(views: Views, search: Callable[[frozenset[int] | None], Ranking]) -> Ranking:
    """Return what `search` finds in any of `views`, best first."""
    rankings = [search(allowed) for allowed in views]
    if len(rankings) == 1:
        return rankings[0]
    scores = {chunk_id: score for ranking in rankings for chunk_id, score in ranking}
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


@contextmanager
def _thread(call: Callable[[], None]) -> Iterator[None]:
    """Run `call` while the body runs: SQLite and the model both work outside of Python's lock."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=run, name="quaid-words")
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]
