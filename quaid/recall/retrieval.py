"""A query -> what the channels find: keyword, episodes, vector and exact name side by side, then the graph."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quaid.embed import Embedder
from quaid.errors import EmbeddingError
from quaid.index import documents, fulltext, vectors
from quaid.index.kept import KeptAnswers
from quaid.index.port import EmbedderRow
from quaid.index.postings import Postings
from quaid.index.references import has_reference, target_of
from quaid.index.scope import Scope
from quaid.index.turns import list_speakers
from quaid.model import name_key
from quaid.recall import beam_search, fusion
from quaid.recall.beam_search import GraphFinds
from quaid.recall.fusion import Ranking
from quaid.recall.options import RecallOptions, of_kinds
from quaid.recall.query import Query, list_shared_words
from quaid.recall.talks import ROLES
from quaid.recall.trace import RecallTrace
from quaid.settings import RecallSettings
from quaid.text.language import ENGLISH, language
from quaid.text.words import find_words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.index.matrix import VectorMatrix
    from quaid.index.port import IndexConnection

EmbedderOf = Callable[[EmbedderRow], Embedder | None]
Views = Sequence[frozenset[int] | None]
"""Chunks that are searched one set after the other; None stands for all."""
MAX_EPISODES = 50
MAX_COMPLETED = 200
"""The number of hits of the keyword channel alone that get a cosine: the rest is too far behind for it to matter."""
LIKENESS_WITHOUT_WORDS, LIKENESS_BY_WORDS = 0.35, 0.55
"""The line along which the likeness of chunks grows with their words, fitted on LoCoMo (docs/decisions)."""
SAMPLE = 128
"""Chunks that stand for all others when the least cosine of a vault is wanted."""
ANYONE = "someone"
"""What stands for a speaker in the question that is embedded."""
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
    kept: KeptAnswers = field(default_factory=KeptAnswers)

    def sample(self, row: EmbedderRow) -> npt.NDArray[np.float32]:
        """Return the vectors of some chunks, which stand for all. Ask after `vectors.search`."""
        connection = self.connection

        def read() -> npt.NDArray[np.float32]:
            return self.vectors.vectors(connection, row, vectors.list_sample(connection, row, SAMPLE))[1]

        return self.kept.of(connection, ("sample", row.table, self.vectors.is_loaded), read)


@dataclass(slots=True)
class SearchRequest:
    """One question with all that its stages need. `named` are the keys of the entities that it names, `owner_names`
    what the one who asks is called, without the aliases of their note.
    """

    sources: Sources
    settings: RecallSettings
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
        return self.sources.kept.chunks_in(self.connection, self.scope)


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
        return fusion.min_max(self.rankings.get("keyword", ()), floor=0.0)

    def likeness(self, others: Collection[int] = ()) -> dict[int, float]:
        """Return the cosines in [0, 1]. A chunk without a vector, also one of `others`, is as like as chunks with as
        much of the question's words are on average.
        """
        # Not the lowest of the ranking as zero: in a large vault its first 400 are all alike, and differences that mean
        # nothing would outweigh the one note that has the very word.
        likeness = fusion.min_max(list(self.cosines.items()), floor=self.unlike)
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
    query, stages, keyword_only = request.query, request.settings.stages, request.options.keyword_only
    if not query.words:
        return retrieved
    views = [request.visible]
    if request.options.kinds:  # searched on their own too, as the others might fill the ranking
        kinds = of_kinds(request.scope, request.options.kinds)
        views.append(request.sources.kept.chunks_in(request.connection, kinds))
    beside: AbstractContextManager[None] = nullcontext()
    if stages.keyword or keyword_only:
        sources = request.sources
        if keyword_only or sources.words.is_quick(sources.second, query.words):
            _search_words(request, views, retrieved)  # a thread would take longer
        else:
            beside = _thread(lambda: _search_words(request, views, retrieved))
    with beside:
        if stages.vector and not keyword_only:
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
    if stages.exact and not keyword_only:
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
        retrieved.graph = beam_search.search(request.connection, request.query, request.named, starts, request.scope)
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
    ranking = sources.vectors.search(sources.connection, row, embedded, request.settings.candidates, request.visible)
    computed = sources.vectors.cosines(sources.connection, row, embedded, retrieved.cosines.keys())
    for chunk_id, cosine in [*ranking, *computed.items()]:
        retrieved.cosines[chunk_id] = max(cosine, retrieved.cosines.get(chunk_id, -1.0))
    retrieved.rankings["hyde"] = ranking


def _is_in_another_language(request: SearchRequest, retrieved: Retrieved) -> bool:
    """Return whether all that has most of the question's words is in another language, and has no two of them: then it
    has a word that is spelled alike, while the answer, which has none, is told by its meaning.
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
    connection, stages = request.sources.second, request.settings.stages
    words, limit = request.query.words if words is None else words, request.settings.candidates
    search = request.sources.words.search
    with request.trace.stage("keyword") as noted:
        ranking = _ranked(views, lambda allowed: search(connection, words, limit, allowed))
        retrieved.rankings["keyword"] = ranking
        noted |= {"found": len(ranking), "words": list(words)}
    if stages.episodes and stages.company and not request.options.keyword_only:
        with request.trace.stage("episodes") as noted:
            match = fulltext.match_any(words)
            retrieved.episodes = fulltext.search_episodes(connection, match, MAX_EPISODES, request.scope)
            noted["found"] = len(retrieved.episodes)


def _search_vectors(request: SearchRequest, views: Views, embedded: Any, retrieved: Retrieved) -> None:
    connection, limit = request.connection, request.settings.candidates
    row = request.sources.kept.of(connection, "embedder", lambda: vectors.active_embedder(connection))
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
    retrieved.rankings["vector"] = _ranked(views, lambda allowed: search(connection, row, embedded, limit, allowed))
    retrieved.embedded = row, embedded
    retrieved.relevant_similarity = embedder.relevant_similarity


def _unnamed(request: SearchRequest) -> str:
    """Return the question, in English with `someone` for each speaker whom it names: by a name the model finds what is
    said to its bearer before what its bearer says, and `speaker` tells that better.
    """
    text = request.query.text
    if not request.settings.stages.speaker:
        return text
    connection, scope = request.connection, request.scope
    names = request.sources.kept.of(connection, ("speakers", scope.key), lambda: _list_names(connection, scope))
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
