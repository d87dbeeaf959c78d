"""Who finds what: words, whole episodes, vectors, and an exact name. The graph is in beam.py."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Protocol

from quaid.index import documents, fulltext
from quaid.index.scope import Scope
from quaid.index.vectors import EmbedderRow
from quaid.recall.fusion import Ranking
from quaid.recall.query import Query

if TYPE_CHECKING:
    import apsw

MOST_EPISODES = 50


class VectorSearch(Protocol):
    """Who knows the vectors of an index. `query` is a unit vector, float32 [dimension]."""

    def search(
        self,
        connection: apsw.Connection,
        row: EmbedderRow,
        query: Any,
        limit: int,
        allowed: frozenset[int] | None = ...,
    ) -> Ranking:
        """(chunk_id, cosine similarity), of those in `allowed` if it is given, nearest first."""

    def cosines(
        self, connection: apsw.Connection, row: EmbedderRow, query: Any, chunk_ids: Collection[int]
    ) -> dict[int, float]:
        """The cosine similarity of each of `chunk_ids` that has a vector."""

    def vectors(
        self, connection: apsw.Connection, row: EmbedderRow, chunk_ids: Collection[int]
    ) -> tuple[list[int], Any]:
        """Those of `chunk_ids` that have a vector, and their vectors, float32 [n, dimension]."""


def keyword(connection: apsw.Connection, query: Query, limit: int, allowed: Collection[int] | None) -> Ranking:
    """bm25 over any of the question's words."""
    return fulltext.search(connection, fulltext.match_any(query.words), limit, allowed)


def episodes(connection: apsw.Connection, query: Query, scope: Scope) -> Ranking:
    """(doc_id, bm25) of the conversations that, as a whole, have the question's words."""
    return fulltext.search_episodes(connection, fulltext.match_any(query.words), MOST_EPISODES, scope)


def exact(connection: apsw.Connection, query: Query, scope: Scope) -> frozenset[int]:
    """Documents whose id, title or alias is the whole question."""
    if not query.name_keys:
        return frozenset()
    return frozenset(
        document.doc_id for document in documents.find_by_reference(connection, query.text.strip(" ?!."), scope)
    )
