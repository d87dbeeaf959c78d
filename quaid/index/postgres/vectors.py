"""Vectors in pgvector: an exact scan of a vault's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from quaid.index.fulltext import list_best
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.index.vectors import VectorMatrix

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.index.postgres.connection import PostgresIndex

BLOCK = 1024
"""Vectors that are inserted at a time."""
_ALL = 1 << 31
_HEAD_BYTES = 4
"""A vector is sent as its dimension and two empty bytes, then its numbers, the most significant byte first."""


class PgVectors:
    """The vectors of an index: `Vectors` of `quaid.index.port`."""

    def __init__(self, index: PostgresIndex) -> None:
        self._index = index

    def prepare(self) -> None:
        """Nothing is to be loaded."""

    def create(self, row: EmbedderRow) -> None:
        """The sets of all embedders are in one table."""

    def drop(self, row: EmbedderRow) -> None:
        self._index.execute("DELETE FROM vectors WHERE embedder_id = ?", (row.embedder_id,))

    def held(self, row: EmbedderRow) -> str:
        return f"SELECT chunk_id FROM vectors WHERE embedder_id = {row.embedder_id:d}"

    def insert(self, row: EmbedderRow, items: Sequence[tuple[int, bytes]]) -> None:
        for start in range(0, len(items), BLOCK):
            chunk_ids, made = zip(*items[start : start + BLOCK], strict=True)
            self._index.execute(
                "INSERT INTO vectors (embedder_id, chunk_id, embedding, vault, private_to) "
                "SELECT ?, chunk_id, given.embedding, vault, private_to FROM unnest(CAST(? AS int[]), "
                "CAST(? AS vector[])) AS given (chunk_id, embedding) JOIN chunks USING (chunk_id)",
                (row.embedder_id, list(chunk_ids), [*map(_as_text, made)]),
            )

    def remove(self, row: EmbedderRow, chunk_ids: Sequence[int]) -> None:
        self._index.execute(
            "DELETE FROM vectors WHERE embedder_id = ? AND chunk_id = ANY (CAST(? AS int[]))",
            (row.embedder_id, list(chunk_ids)),
        )

    def search(
        self, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        return list_best(*self.compare(row, query), limit, allowed)

    def compare(self, row: EmbedderRow, query: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return all chunks that have a vector, ascending, and the cosine similarity of each."""
        import numpy as np

        sent = self._index.execute(
            "SELECT string_agg(int4send(chunk_id) || float8send(1 - (embedding <=> CAST(? AS vector))), '' "
            "ORDER BY chunk_id) FROM vectors WHERE embedder_id = ?",
            (_as_text(query), row.embedder_id),
        ).get
        found = np.frombuffer(sent or b"", [("chunk_id", ">i4"), ("cosine", ">f8")])
        found = found[np.isfinite(found["cosine"])]  # that of a vector which is zero is no number
        return found["chunk_id"].astype(np.int64), found["cosine"].astype(np.float64)

    def get(self, row: EmbedderRow, chunk_ids: Iterable[int]) -> dict[int, bytes]:
        import numpy as np

        wanted = list(chunk_ids)
        rows = self._index.execute(
            "SELECT chunk_id, vector_send(embedding) FROM vectors "
            "WHERE embedder_id = ? AND chunk_id = ANY (CAST(? AS int[]))",
            (row.embedder_id, wanted),
        )
        found = {each: np.frombuffer(sent, ">f4", row.dimension, _HEAD_BYTES).astype("<f4") for each, sent in rows}
        return {chunk_id: found[chunk_id].tobytes() for chunk_id in wanted if chunk_id in found}

    def list_blocks(self, _row: EmbedderRow) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Raise: no server reads a whole set."""
        raise NotImplementedError


class QuestionVectors(VectorMatrix):
    """The cosines of one question, which a server forgets afterwards."""

    _ranked: Sequence[tuple[int, float]] = ()

    def search(
        self, connection: IndexConnection, row: EmbedderRow, query: Any, limit: int, allowed: Any = None
    ) -> list[tuple[int, float]]:
        if query is not self._last:  # one question may be asked in two scopes
            self._last, self._ranked = query, connection.vectors.search(row, query.astype("<f4").tobytes(), _ALL)
        return [each for each in self._ranked if allowed is None or each[0] in allowed][:limit]

    def cosines(
        self, connection: IndexConnection, row: EmbedderRow, query: Any, chunk_ids: Collection[int]
    ) -> dict[int, float]:
        compared = dict(self.search(connection, row, query, _ALL))
        return {each: compared[each] for each in chunk_ids if each in compared}


def _as_text(vector: bytes) -> str:
    """Return a float32 vector as pgvector reads it."""
    import numpy as np

    return f"[{','.join(map(repr, np.frombuffer(vector, '<f4').tolist()))}]"
