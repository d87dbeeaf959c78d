"""The channels, asked side by side: what they found, before anything is decided."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quaid.embed import Embedder
from quaid.errors import EmbeddingError
from quaid.index import vectors
from quaid.index.scope import Scope, ScopedChunks
from quaid.index.vectors import EmbedderRow
from quaid.recall import beam, channels, fusion
from quaid.recall.beam import GraphFinds
from quaid.recall.fusion import Ranking
from quaid.recall.options import RecallOptions, of_kinds
from quaid.recall.query import Query
from quaid.recall.trace import Trace
from quaid.settings import RecallSettings

if TYPE_CHECKING:
    import apsw

EmbedderOf = Callable[[EmbedderRow], Embedder | None]
MOST_COMPLETED = 200
"""Of what only the keyword channel has found, so many get a cosine: the rest is too far behind for it to matter."""
SAMPLE = 128
"""Chunks that stand for all others when the least cosine of a vault is wanted."""
MOST_STARTS = 5
"""So many of the best documents the graph is entered by."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked: the index, through two connections so that two channels can work at once, who embeds a question
    for it, and who knows the vectors and what is in a scope.
    """

    connection: apsw.Connection
    beside: apsw.Connection
    embedder_of: EmbedderOf
    vectors: channels.VectorSearch
    scoped: ScopedChunks = field(default_factory=ScopedChunks)


@dataclass(slots=True)
class Found:
    """Rankings by channel; `cosines` of all that any channel found; `unlike` is the cosine of what is not alike."""

    rankings: dict[str, Ranking] = field(default_factory=dict)
    cosines: dict[int, float] = field(default_factory=dict)
    unlike: float = 0.0
    episodes: Ranking = ()
    graph: GraphFinds = field(default_factory=GraphFinds)
    exact: frozenset[int] = frozenset()
    degraded: list[str] = field(default_factory=list)
    asked: tuple[EmbedderRow, Any] | None = None
    """Whose vectors were asked, and the question's own."""
    relevant_similarity: float = 1.0
    """From which cosine a text answers without having a word of the question."""
    broadened: set[int] = field(default_factory=set)
    """Chunks that only the second pass has found."""
    together: set[int] = field(default_factory=set)
    """Facts from the sessions of the best hits."""

    def words(self) -> dict[int, float]:
        """bm25 of the keyword channel in [0, 1]."""
        return fusion.min_max(self.rankings.get("keyword", ()), floor=0.0)

    def likeness(self) -> dict[int, float]:
        """Cosines in [0, 1]."""
        # Not the lowest of the ranking as zero: in a large vault its first 400 are all alike, and differences that mean
        # nothing would outweigh the one note that has the very word.
        return fusion.min_max(list(self.cosines.items()), floor=self.unlike)


def ask(
    sources: Sources,
    query: Query,
    settings: RecallSettings,
    options: RecallOptions,
    scope: Scope,
    trace: Trace,
    *,
    embedded: Any = None,
) -> Found:
    """Words and vectors side by side. `embedded` is the question's vector, where it is known from before."""
    found = Found()
    if not query.words:
        return found
    stages = settings.stages
    only = options.keyword_only
    views = Views.of(sources, options, scope)
    words = _beside(lambda: _keyword(sources, query, settings, views, found, trace, only=only))
    with words if stages.keyword or only else nullcontext():
        if stages.vector and not only:
            with trace.stage("vector") as noted:
                _vector(sources, query.text, embedded, settings.candidates, views, found)
                noted["found"] = len(found.rankings.get("vector", ()))
    if found.asked is not None:
        with trace.stage("cosines"):
            complete_cosines(sources, found)
    if stages.exact and not only:
        with trace.stage("exact") as noted:
            found.exact = channels.exact(sources.connection, query, scope)
            noted["found"] = len(found.exact)
    return found


def ask_graph(
    sources: Sources,
    query: Query,
    named: frozenset[str],
    starts: Collection[int],
    scope: Scope,
    found: Found,
    trace: Trace,
) -> None:
    """From what the question names and from what the best documents are about."""
    with trace.stage("graph") as noted:
        found.graph = beam.search(sources.connection, query, named, list(starts)[:MOST_STARTS], scope)
        noted |= {"found": len(found.graph.scores), "named": sorted(named)}


def complete_cosines(sources: Sources, found: Found, more: Collection[int] = ()) -> None:
    """The best of what only another channel found have a cosine too, and what "unlike" means is seen on a sample."""
    if found.asked is None:
        return
    row, embedded = found.asked
    found.cosines |= dict(found.rankings.get("vector", ()))
    best = found.rankings.get("keyword", ())[:MOST_COMPLETED]
    others = {chunk_id for chunk_id, _ in best}.union(more) - found.cosines.keys()
    sample = () if more else vectors.list_sample(sources.connection, SAMPLE)
    asked = sources.vectors.cosines(sources.connection, row, embedded, {*others, *sample})
    found.cosines |= {chunk_id: asked[chunk_id] for chunk_id in others if chunk_id in asked}
    if sample:
        known = {**asked, **found.cosines}
        found.unlike = min((known[chunk_id] for chunk_id in sample if chunk_id in known), default=0.0)


def like_statement(sources: Sources, statement: str, limit: int, scope: Scope, found: Found) -> None:
    """Raise the cosines of what is like `statement`, the answer a model imagined (HyDE), and find what is."""
    if found.asked is None:
        return
    row, _ = found.asked
    embedder = sources.embedder_of(row)
    if embedder is None:
        return
    embedded = embedder.embed_query(statement)
    allowed = sources.scoped.of(sources.connection, scope)
    ranking = sources.vectors.search(sources.connection, row, embedded, limit, allowed)
    asked = sources.vectors.cosines(sources.connection, row, embedded, found.cosines.keys())
    for chunk_id, cosine in [*ranking, *asked.items()]:
        found.cosines[chunk_id] = max(cosine, found.cosines.get(chunk_id, -1.0))
    found.rankings["hyde"] = ranking


@dataclass(frozen=True, slots=True)
class Views:
    """The chunks that may be found, all that are in `scope`; and of those the ones of the kinds that are asked for,
    which are also searched on their own, as the others might fill the ranking. None stands for all.
    """

    scope: Scope
    whole: frozenset[int] | None
    narrow: frozenset[int] | None = None

    @classmethod
    def of(cls, sources: Sources, options: RecallOptions, scope: Scope) -> Views:
        whole = sources.scoped.of(sources.connection, scope)
        if not options.kinds:
            return cls(scope, whole)
        return cls(scope, whole, sources.scoped.of(sources.connection, of_kinds(scope, options.kinds)))

    def ranked(self, search: Callable[[frozenset[int] | None], Ranking]) -> Ranking:
        """What `search` finds in both."""
        ranking = search(self.whole)
        if self.narrow is None:
            return ranking
        both = dict(ranking) | dict(search(self.narrow))
        return sorted(both.items(), key=lambda item: (-item[1], item[0]))


def _keyword(
    sources: Sources, query: Query, settings: RecallSettings, views: Views, found: Found, trace: Trace, *, only: bool
) -> None:
    with trace.stage("keyword") as noted:
        ranking = views.ranked(lambda view: channels.keyword(sources.beside, query, settings.candidates, view))
        found.rankings["keyword"] = ranking
        noted |= {"found": len(ranking), "words": list(query.words)}
    if settings.stages.episodes and settings.stages.company and not only:
        with trace.stage("episodes") as noted:
            found.episodes = channels.episodes(sources.beside, query, views.scope)
            noted["found"] = len(found.episodes)


def _vector(sources: Sources, text: str, embedded: Any, limit: int, views: Views, found: Found) -> None:
    row = vectors.active_embedder(sources.connection)
    embedder = sources.embedder_of(row) if row is not None else None
    if row is None or embedder is None:
        found.degraded.append("vectors")
        return
    if embedded is None:
        try:
            embedded = embedder.embed_query(text)
        except EmbeddingError:
            found.degraded.append("vectors")
            return
    found.rankings["vector"] = views.ranked(
        lambda view: sources.vectors.search(sources.connection, row, embedded, limit, view)
    )
    found.asked = row, embedded
    found.relevant_similarity = embedder.relevant_similarity


@contextmanager
def _beside(call: Callable[[], None]) -> Iterator[None]:
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
