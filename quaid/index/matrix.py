"""Vectors in memory for a process that keeps asking: one product instead of a walk through SQLite.

At 10,000 vectors vec0 needs 6 ms a question and a matrix 0.2; at 100,000 it is 70 and 4. Reading them all takes as long
as ten questions, so the first question goes to vec0 and the matrix is made for the second.

A product with many vectors is as fast as they are read from memory. So a number is kept in 16 bits, the upper eight
apart from the lower: the upper ones tell, with a bound on what they leave out, which vectors can be among the nearest,
and only of these the cosine is computed from both, to some millionths of what float32 gives.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw

from quaid.index import database, vectors
from quaid.index.vectors import EmbedderRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

GROWTH = 1.25
BLOCK = 1024
"""Rows that become float32 at a time: they stay in the processor's cache."""
_STEPS = 32_512
"""The largest number of 16 bits whose upper eight, rounded, fit into eight."""
_UPPER = 256
_RELOAD_SHARE = 0.3
"""With more than this share of rows gone or new, reading all is quicker than catching up."""


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[Any]:
    """Keep a product in this thread: a second one is no faster at reading memory, and BLAS lets it turn idly for 20 ms
    after each, in the way of whatever else runs.
    """
    limited: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return limited


def _product(matrix: npt.NDArray[np.float32], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    with _one_thread():
        product: npt.NDArray[np.float32] = matrix @ query
    return product


class VectorMatrix:
    """The vectors of one index as rows of a matrix, kept up to date with it."""

    def __init__(self) -> None:
        self._asked = 0
        self._last: Any = None
        self._identity: tuple[str, ...] = ()
        self._version = (-1, -1)
        self._ids: Any = None
        self._upper: Any = None
        self._lower: Any = None
        self._scales: Any = None
        """A row is its scale times (256 * upper + lower)."""
        self._used = 0
        self._moved = 0
        self._row_of: Any = None
        """The row of each chunk, -1 for one without: an array by chunk_id."""

    def search(
        self,
        connection: apsw.Connection,
        row: EmbedderRow,
        query: npt.NDArray[np.float32],
        limit: int,
        allowed: frozenset[int] | None = None,
    ) -> list[tuple[int, float]]:
        """Return (chunk_id, cosine similarity) of chunks, of those in `allowed` if it is given, nearest first. `query`
        is a unit vector.
        """
        if query is not self._last:  # one question may be asked in two scopes
            self._asked += 1
            self._last = query
        if self._asked == 1:
            database.enable_vectors(connection)
            return vectors.search(connection, row, query.astype("<f4").tobytes(), limit, allowed)
        self._catch_up(connection, row)
        return self._nearest(query, limit, allowed)

    def cosines(
        self, connection: apsw.Connection, row: EmbedderRow, query: npt.NDArray[np.float32], chunk_ids: Collection[int]
    ) -> dict[int, float]:
        """Return the cosine similarity of each of `chunk_ids` that has a vector. Ask after `search`."""
        found, matrix = self.vectors(connection, row, chunk_ids)
        return dict(zip(found, _product(matrix, query).tolist(), strict=True)) if found else {}

    def vectors(
        self, connection: apsw.Connection, row: EmbedderRow, chunk_ids: Collection[int]
    ) -> tuple[list[int], npt.NDArray[np.float32]]:
        """Return those of `chunk_ids` that have a vector, and their vectors, float32 [n, dimension]. Ask after
        `search`.
        """
        import numpy as np

        if self._upper is None:
            blobs = {chunk_id: vectors.get(connection, row, chunk_id) for chunk_id in chunk_ids}
            held = {chunk_id: np.frombuffer(blob, "<f4") for chunk_id, blob in blobs.items() if blob is not None}
            return list(held), np.stack([*held.values()]) if held else np.empty((0, row.dimension), np.float32)
        ids, rows = self._held(np.fromiter(chunk_ids, np.int64, len(chunk_ids)))
        return ids.tolist(), self._exactly(rows)

    def _held(self, ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return those of `ids` that have a vector, and their rows."""
        ids = ids[(ids >= 0) & (ids < len(self._row_of))]
        rows = self._row_of[ids]
        return ids[rows >= 0], rows[rows >= 0]

    def _nearest(
        self, query: npt.NDArray[np.float32], limit: int, allowed: frozenset[int] | None
    ) -> list[tuple[int, float]]:
        import numpy as np

        if allowed is None:
            rows: npt.NDArray[np.signedinteger] = np.flatnonzero(self._ids[: self._used] >= 0)
        else:
            _, rows = self._held(np.fromiter(allowed, np.int64, len(allowed)))
        if len(rows) > limit:
            rows = rows[self._may_be_nearest(query, rows, limit)]
        ids, cosines = self._ids[rows], _product(self._exactly(rows), query)
        order = np.lexsort((ids, -cosines))[:limit]
        return list(zip(ids[order].tolist(), cosines[order].tolist(), strict=True))

    def _may_be_nearest(
        self, query: npt.NDArray[np.float32], rows: npt.NDArray[np.signedinteger], limit: int
    ) -> npt.NDArray[np.bool_]:
        """Return which of `rows` can be among the `limit` nearest, by the upper halves and what the lower can add."""
        import numpy as np

        scales = self._scales[rows]
        roughly = self._products_of_upper(query)[rows] * (_UPPER * scales)
        rest = scales * (_UPPER / 2 * float(np.abs(query).sum()) * (1 + 1e-3))  # and what float32 rounds
        least = np.partition(roughly - rest, len(rows) - limit)[len(rows) - limit]
        fits: npt.NDArray[np.bool_] = roughly + rest >= least
        return fits

    def _products_of_upper(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        import numpy as np

        found = np.empty(self._used, np.float32)
        block = np.empty((min(BLOCK, self._used), len(query)), np.float32)
        with _one_thread():
            for start in range(0, self._used, BLOCK):
                end = min(start + BLOCK, self._used)
                part = block[: end - start]
                np.copyto(part, self._upper[start:end])
                np.dot(part, query, out=found[start:end])
        return found

    def _exactly(self, rows: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.float32]:
        """Return the vectors of `rows`, float32."""
        import numpy as np

        numbers: npt.NDArray[np.float32] = self._upper[rows].astype(np.float32)
        numbers *= _UPPER
        numbers += self._lower[rows]
        numbers *= self._scales[rows, None]
        return numbers

    def _catch_up(self, connection: apsw.Connection, row: EmbedderRow) -> None:
        version = database.data_version(connection)
        identity = (connection.filename, row.fingerprint, row.table, database.get_meta(connection, "generation") or "")
        if identity == self._identity and version == self._version:
            return
        database.enable_vectors(connection)
        if identity != self._identity or not self._follow(connection, row):
            self._load(connection, row)
        self._identity, self._version = identity, version

    def _load(self, connection: apsw.Connection, row: EmbedderRow) -> None:
        import numpy as np

        self._moved, _ = vectors.list_moved(connection)
        count = connection.execute(f"SELECT count(*) FROM {row.table}_rowids").get
        capacity = int(count * GROWTH) + 64
        self._upper, self._lower = (np.empty((capacity, row.dimension), np.int8) for _ in range(2))
        self._scales = np.empty(capacity, np.float32)
        self._ids = np.full(capacity, -1, np.int64)
        highest = int(connection.execute("SELECT coalesce(max(chunk_id), 0) FROM chunks").get)
        self._row_of = np.full(int(highest * GROWTH) + 64, -1, np.int32)
        self._used = 0
        for taken, chunk_ids, block in vectors.list_blocks(connection, row):
            places = np.flatnonzero(np.unpackbits(np.frombuffer(taken, np.uint8), bitorder="little"))
            floats = np.frombuffer(block, "<f4").reshape(-1, row.dimension)
            self._add(np.frombuffer(chunk_ids, "<i8")[places], floats[places])

    def _follow(self, connection: apsw.Connection, row: EmbedderRow) -> bool:
        """Drop what is gone and fetch what is new; False where that is too much, or nobody knows what it is."""
        import numpy as np

        count, last = vectors.list_moved(connection)
        changes = count - self._moved
        new = vectors.list_after(connection, row, int(self._ids[: self._used].max(initial=0)))
        if changes > len(last) or len(new) > _RELOAD_SHARE * max(self._used, 1) or self._has_no_room(changes, new):
            return False
        moved = np.array(last[len(last) - changes :], np.int64)
        gone, rows = self._held(moved)
        self._row_of[gone] = -1
        self._ids[rows] = -1
        self._moved = count
        blobs = {chunk_id: vectors.get(connection, row, chunk_id) for chunk_id in sorted({*moved.tolist(), *new})}
        held = {chunk_id: np.frombuffer(blob, "<f4") for chunk_id, blob in blobs.items() if blob is not None}
        if held:
            self._add(np.array([*held], np.int64), np.stack([*held.values()]))
        return True

    def _has_no_room(self, changes: int, new: Sequence[int]) -> bool:
        return self._used + changes + len(new) > len(self._ids) or any(each >= len(self._row_of) for each in new[-1:])

    def _add(self, chunk_ids: npt.NDArray[np.int64], floats: npt.NDArray[np.float32]) -> None:
        import numpy as np

        rows = slice(self._used, self._used + len(chunk_ids))
        scales = np.maximum(np.abs(floats).max(axis=1, initial=0.0), np.finfo(np.float32).tiny) / _STEPS
        numbers = np.rint(floats / scales[:, None]).astype(np.int16)
        upper = (numbers + _UPPER // 2) >> 8
        self._upper[rows], self._lower[rows] = upper, numbers - (upper << 8)
        self._scales[rows], self._ids[rows] = scales, chunk_ids
        self._row_of[chunk_ids] = np.arange(rows.start, rows.stop)
        self._used = rows.stop
