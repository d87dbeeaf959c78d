"""Vectors in memory for a process that keeps asking: one product instead of a walk through SQLite.

At 10,000 vectors vec0 needs 6 ms a question and a matrix 0.2; at 100,000 it is 70 and 4. Reading them all takes as long
as ten questions, so the first question goes to vec0 and the matrix is made for the second. Both are exact.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw

from quaid.index import database, vectors
from quaid.index.vectors import EmbedderRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

GROWTH = 1.25
_RELOAD_SHARE = 0.3
"""With more than this share of rows gone or new, reading all is quicker than catching up."""


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class VectorMatrix:
    """The vectors of one index as rows of a matrix, kept up to date with it."""

    def __init__(self) -> None:
        self._asked = 0
        self._last: Any = None
        self._identity: tuple[str, ...] = ()
        self._version = (-1, -1)
        self._ids: Any = None
        self._matrix: Any = None
        self._used = 0
        self._moved = 0
        self._row_of: Any = None
        """The row of each chunk, -1 for one without: an array by chunk_id."""
        self._cosines: Any = None
        """Of the last question, by row."""

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
        import numpy as np

        if self._matrix is None or query is not self._last:
            found, matrix = self.vectors(connection, row, chunk_ids)
            return dict(zip(found, (matrix @ query).tolist(), strict=True)) if found else {}
        ids, rows = self._held(np.fromiter(chunk_ids, np.int64, len(chunk_ids)))
        return dict(zip(ids.tolist(), self._cosines[rows].tolist(), strict=True))

    def vectors(
        self, connection: apsw.Connection, row: EmbedderRow, chunk_ids: Collection[int]
    ) -> tuple[list[int], npt.NDArray[np.float32]]:
        """Return those of `chunk_ids` that have a vector, and their vectors, float32 [n, dimension]. Ask after
        `search`.
        """
        import numpy as np

        if self._matrix is None:
            blobs = {chunk_id: vectors.get(connection, row, chunk_id) for chunk_id in chunk_ids}
            held = {chunk_id: np.frombuffer(blob, "<f4") for chunk_id, blob in blobs.items() if blob is not None}
            return list(held), np.stack([*held.values()]) if held else np.empty((0, row.dimension), np.float32)
        ids, rows = self._held(np.fromiter(chunk_ids, np.int64, len(chunk_ids)))
        return ids.tolist(), self._matrix[rows]

    def _held(self, ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return those of `ids` that have a vector, and their rows."""
        ids = ids[(ids >= 0) & (ids < len(self._row_of))]
        rows = self._row_of[ids]
        return ids[rows >= 0], rows[rows >= 0]

    def _nearest(
        self, query: npt.NDArray[np.float32], limit: int, allowed: frozenset[int] | None
    ) -> list[tuple[int, float]]:
        import numpy as np

        # All the work is reading memory: more threads are not faster at it and slow down whatever else runs.
        with _blas().limit(limits=1, user_api="blas"):
            self._cosines = self._matrix[: self._used] @ query
        ids = self._ids[: self._used]
        if allowed is None:
            rows: npt.NDArray[np.signedinteger] = np.flatnonzero(ids >= 0)
        else:
            _, rows = self._held(np.fromiter(allowed, np.int64, len(allowed)))
        cosines = self._cosines[rows]
        if len(rows) > limit:
            nearest = np.argpartition(cosines, len(rows) - limit)[len(rows) - limit :]
            rows, cosines = rows[nearest], cosines[nearest]
        order = np.lexsort((ids[rows], -cosines))
        return list(zip(ids[rows[order]].tolist(), cosines[order].tolist(), strict=True))

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
        rows = connection.execute(f"SELECT rowid, embedding FROM {row.table}").fetchall()
        capacity = int(len(rows) * GROWTH) + 64
        self._matrix = np.empty((capacity, row.dimension), np.float32)
        self._ids = np.full(capacity, -1, np.int64)
        highest = int(connection.execute("SELECT coalesce(max(chunk_id), 0) FROM chunks").get)
        self._row_of = np.full(int(highest * GROWTH) + 64, -1, np.int32)
        self._used = 0
        for chunk_id, blob in rows:
            self._add(int(chunk_id), blob)  # type: ignore[arg-type]

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
        for chunk_id in sorted({*moved.tolist(), *new}):
            blob = vectors.get(connection, row, chunk_id)
            if blob is not None:
                self._add(chunk_id, blob)
        return True

    def _has_no_room(self, changes: int, new: Sequence[int]) -> bool:
        return self._used + changes + len(new) > len(self._ids) or any(each >= len(self._row_of) for each in new[-1:])

    def _add(self, chunk_id: int, blob: bytes) -> None:
        import numpy as np

        self._row_of[chunk_id] = self._used
        self._ids[self._used] = chunk_id
        self._matrix[self._used] = np.frombuffer(blob, "<f4")
        self._used += 1
