"""Vectors in pgvector: an exact scan of a vault's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from quaid.index.port import EmbedderRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.index.postgres.connection import PostgresIndex

BLOCK = 1024
"""Vectors that are fetched or inserted at a time."""
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
            part = [(row.embedder_id, chunk_id, as_text(vector)) for chunk_id, vector in items[start : start + BLOCK]]
            self._index.executemany("INSERT INTO vectors (embedder_id, chunk_id, embedding) VALUES (?,?,?)", part)

    def remove(self, row: EmbedderRow, chunk_ids: Sequence[int]) -> None:
        self._index.execute(
            "DELETE FROM vectors WHERE embedder_id = ? AND chunk_id = ANY (CAST(? AS int[]))",
            (row.embedder_id, list(chunk_ids)),
        )

    def search(
        self, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        which = f"WHERE embedder_id = {row.embedder_id:d}"
        if allowed is not None:
            which += " AND chunk_id = ANY (CAST(:allowed AS int[]))"
        rows = self._index.execute(
            f"SELECT chunk_id, embedding <=> :query AS distance FROM vectors {which} ORDER BY distance LIMIT :limit",
            {"query": as_text(query), "limit": limit, "allowed": list(allowed or ())},
        )
        # The distance of a vector that is zero is NaN.
        found = [(int(chunk_id), 1.0 - float(distance)) for chunk_id, distance in rows if not isnan(distance)]
        return sorted(found, key=lambda one: (-one[1], one[0]))

    def get(self, row: EmbedderRow, chunk_ids: Iterable[int]) -> dict[int, bytes]:
        wanted = list(chunk_ids)
        rows = self._index.execute(
            "SELECT chunk_id, vector_send(embedding) FROM vectors "
            "WHERE embedder_id = ? AND chunk_id = ANY (CAST(? AS int[]))",
            (row.embedder_id, wanted),
        )
        found = {int(chunk_id): _as_floats(sent, row).astype("<f4").tobytes() for chunk_id, sent in rows}
        return {chunk_id: found[chunk_id] for chunk_id in wanted if chunk_id in found}

    def list_blocks(self, row: EmbedderRow) -> Iterator[tuple[bytes, bytes, bytes]]:
        import numpy as np

        last = -1
        while True:
            rows = self._index.execute(
                "SELECT chunk_id, vector_send(embedding) FROM vectors WHERE embedder_id = ? AND chunk_id > ? "
                "ORDER BY chunk_id LIMIT ?",
                (row.embedder_id, last, BLOCK),
            ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            taken = np.packbits(np.ones(len(rows), np.uint8), bitorder="little").tobytes()
            chunk_ids = np.array([chunk_id for chunk_id, _ in rows], "<i8").tobytes()
            yield taken, chunk_ids, b"".join(_as_floats(sent, row).astype("<f4").tobytes() for _, sent in rows)


def as_text(vector: bytes) -> str:
    """Return a float32 vector as pgvector reads it."""
    import numpy as np

    return f"[{','.join(map(repr, np.frombuffer(vector, '<f4').tolist()))}]"


def _as_floats(sent: bytes, row: EmbedderRow) -> npt.NDArray[np.float32]:
    import numpy as np

    floats: npt.NDArray[Any] = np.frombuffer(sent, ">f4", row.dimension, _HEAD_BYTES)
    return floats
