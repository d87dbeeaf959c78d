"""Vectors in memory for a process that keeps asking: one product instead of a walk through SQLite.

At 10,000 vectors vec0 needs 6 ms a question and a matrix 0.2; at 100,000 it is 70 and 4. Reading them all takes as long
as ten questions, so the first question goes to vec0 and the matrix is made for the second.

A product with many vectors is as fast as they are read from memory. So a number is kept in 16 bits, the upper eight
apart from the lower: the upper ones and a question of seven bits tell, with a bound on what they leave out, which
vectors can be among the nearest, and only of these the cosine is computed from all, to some millionths of what float32
gives. Whole numbers of eight bits are multiplied by onnxruntime, where it is loaded, five times as fast as numpy does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from quaid.index import contents, vectors
from quaid.index.port import EmbedderRow, IndexConnection

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

GROWTH = 1.25
BLOCK = 512
"""Vectors that become float32 at a time: they stay in the processor's cache."""
_STEPS = 32_512
"""The largest number of 16 bits whose upper eight, rounded, fit into eight."""
_UPPER = 256
_ASKED = 63
"""The largest number of a question in seven bits. With eight, two products would not fit into the sixteen bits in which
processors without VNNI add them."""
ROWS_OF = 50_000
"""So many vectors have their upper halves as rows too, at a third more memory: to pick a vector out of columns takes a
line of memory for each of its numbers.
"""
_ROUNDING = 1e-5
"""More than float32 loses in a cosine."""
_RELOAD_SHARE = 0.3
"""With more than this share of rows gone or new, reading all is quicker than catching up."""


Multiply = Callable[[Any, Any], Any]
"""Returns the products of a row of uint8 with the columns of a matrix of int8, exactly."""


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


def multiply_with_numpy(numbers: npt.NDArray[np.uint8], matrix: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Return the products of a row of whole numbers with the columns of a matrix of them."""
    import numpy as np

    row, count = numbers.astype(np.float32), matrix.shape[1]
    found = np.empty((1, count), np.float32)
    block = np.empty((len(matrix), min(BLOCK, count)), np.float32)
    with _one_thread():
        for start in range(0, count, BLOCK):
            part = block[:, : min(BLOCK, count - start)]
            np.copyto(part, matrix[:, start : start + BLOCK])
            np.dot(row, part, out=found[:, start : start + BLOCK])
    return found


class VectorMatrix:
    """The vectors of one index, kept up to date with it. `open_multiply` is called with the second question; it may
    know a quicker way than numpy's.
    """

    def __init__(self, open_multiply: Callable[[], Multiply | None] = lambda: None) -> None:
        self._open_multiply = open_multiply
        self._multiply: Any = None
        self._asked = 0
        self._last: Any = None
        self._identity: tuple[str, ...] = ()
        self._version = (-1, -1)
        self._ids: Any = None
        self._upper: Any = None
        self._lower: Any = None
        self._scales: Any = None
        """A vector is its scale times (256 * upper + lower): a column of the upper halves, a row of the lower."""
        self._rows: Any = None
        """The upper halves as rows, where they are few."""
        self._sums: Any = None
        """What the numbers of each upper half add up to."""
        self._lengths: Any = None
        """The lengths of each upper and each lower half, scaled: [2, n]."""
        self._used = 0
        self._moved = 0
        self._row_of: Any = None
        """The row of each chunk, -1 for one without: an array by chunk_id."""

    @property
    def is_loaded(self) -> bool:
        """Whether the vectors are in memory, each number in 16 bits."""
        return self._upper is not None

    def search(
        self,
        connection: IndexConnection,
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
            connection.vectors.prepare()
            return vectors.search(connection, row, query.astype("<f4").tobytes(), limit, allowed)
        self._catch_up(connection, row)
        return self._nearest(query, limit, allowed)

    def cosines(
        self, connection: IndexConnection, row: EmbedderRow, query: npt.NDArray[np.float32], chunk_ids: Collection[int]
    ) -> dict[int, float]:
        """Return the cosine similarity of each of `chunk_ids` that has a vector. Ask after `search`."""
        found, matrix = self.vectors(connection, row, chunk_ids)
        return dict(zip(found, _product(matrix, query).tolist(), strict=True)) if found else {}

    def vectors(
        self, connection: IndexConnection, row: EmbedderRow, chunk_ids: Collection[int]
    ) -> tuple[list[int], npt.NDArray[np.float32]]:
        """Return those of `chunk_ids` that have a vector, and their vectors, float32 [n, dimension]. Ask after
        `search`.
        """
        import numpy as np

        if self._upper is None:
            blobs = connection.vectors.get(row, chunk_ids)
            held = {chunk_id: np.frombuffer(blob, "<f4") for chunk_id, blob in blobs.items()}
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

        rows = self._list_rows(allowed)
        if len(rows) <= limit:
            cosines = _product(self._exactly(rows), query)
        else:
            roughly, most = self._estimate(query)
            if len(rows) < self._used:
                roughly, most = roughly[rows], most[rows]
            order = np.argpartition(-roughly, limit)
            likely, others = rows[order[:limit]], order[limit:]
            cosines = _product(self._exactly(likely), query)
            possible = rows[others[most[others] >= cosines.min()]]
            rows = np.concatenate([likely, possible])
            cosines = np.concatenate([cosines, _product(self._exactly(possible), query)])
        ids = self._ids[rows]
        order = np.lexsort((ids, -cosines))[:limit]
        return list(zip(ids[order].tolist(), cosines[order].tolist(), strict=True))

    def _list_rows(self, allowed: frozenset[int] | None) -> npt.NDArray[np.signedinteger]:
        """Return the rows of the chunks in `allowed`, of all that are not gone if it is None."""
        import numpy as np

        if allowed is None:
            return np.flatnonzero(self._ids[: self._used] >= 0)
        return self._held(np.fromiter(allowed, np.int64, len(allowed)))[1]

    def _estimate(self, query: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return about what the cosine of each row is, by the upper halves, and what it is at most.

        What the roundings of the question and of a vector add to their product is at most the product of the lengths
        (Cauchy-Schwarz).
        """
        import numpy as np

        step = max(float(np.abs(query).max()), float(np.finfo(np.float32).tiny)) / _ASKED
        asked = np.rint(query / step)
        products = self._multiply((asked + (_ASKED + 1)).astype(np.uint8)[None], self._upper)[0, : self._used]
        scales = np.float32(_UPPER * step) * self._scales[: self._used]
        roughly: npt.NDArray[np.float32] = scales * (products - (_ASKED + 1) * self._sums[: self._used])
        of_upper, of_lower = self._lengths[:, : self._used]
        missed, length = np.linalg.norm(query - step * asked), np.linalg.norm(query)
        return roughly, roughly + (of_upper * missed + of_lower * length + _ROUNDING)

    def _exactly(self, rows: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.float32]:
        """Return the vectors of `rows`, float32."""
        import numpy as np

        is_large = self._rows is None
        upper = np.ascontiguousarray(self._upper.take(rows, axis=1).T) if is_large else self._rows[rows]
        numbers: npt.NDArray[np.float32] = np.multiply(upper, _UPPER, dtype=np.float32)
        numbers += self._lower[rows]
        numbers *= self._scales[rows, None]
        return numbers

    def _catch_up(self, connection: IndexConnection, row: EmbedderRow) -> None:
        version = connection.version()
        generation = contents.get_meta(connection, contents.GENERATION) or ""
        identity = (connection.name, row.fingerprint, row.table, generation)
        if identity == self._identity and version == self._version:
            return
        connection.vectors.prepare()
        self._multiply = self._multiply or self._open_multiply() or multiply_with_numpy
        if identity != self._identity or not self._follow(connection, row):
            self._load(connection, row)
        self._identity, self._version = identity, version

    def _load(self, connection: IndexConnection, row: EmbedderRow) -> None:
        import numpy as np

        self._moved, _ = vectors.list_moved(connection)
        count = connection.execute(f"SELECT count(*) FROM ({connection.vectors.held(row)}) held").get
        capacity = int(count * GROWTH) + 64
        self._upper = np.empty((row.dimension, capacity), np.int8)
        self._lower = np.empty((capacity, row.dimension), np.int8)
        self._rows = np.empty_like(self._lower) if capacity <= ROWS_OF else None
        self._scales, self._lengths = np.empty(capacity, np.float32), np.empty((2, capacity), np.float32)
        self._sums = np.empty(capacity, np.float32)
        self._ids = np.full(capacity, -1, np.int64)
        highest = int(connection.execute("SELECT coalesce(max(chunk_id), 0) FROM chunks").get)
        self._row_of = np.full(int(highest * GROWTH) + 64, -1, np.int32)
        self._used = 0
        for taken, chunk_ids, block in connection.vectors.list_blocks(row):
            places = np.flatnonzero(np.unpackbits(np.frombuffer(taken, np.uint8), bitorder="little"))
            floats = np.frombuffer(block, "<f4").reshape(-1, row.dimension)
            self._add(np.frombuffer(chunk_ids, "<i8")[places], floats[places])

    def _follow(self, connection: IndexConnection, row: EmbedderRow) -> bool:
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
        blobs = connection.vectors.get(row, sorted({*moved.tolist(), *new}))
        held = {chunk_id: np.frombuffer(blob, "<f4") for chunk_id, blob in blobs.items()}
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
        lower = numbers - (upper << 8)
        self._upper[:, rows], self._lower[rows] = upper.T, lower
        if self._rows is not None:
            self._rows[rows] = upper
        self._scales[rows], self._ids[rows] = scales, chunk_ids
        self._sums[rows] = upper.sum(axis=1)
        halves = (upper.astype(np.float32) * _UPPER, lower.astype(np.float32))
        self._lengths[:, rows] = [np.linalg.norm(half, axis=1) * scales for half in halves]
        self._row_of[chunk_ids] = np.arange(rows.start, rows.stop)
        self._used = rows.stop
