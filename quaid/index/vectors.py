"""The vector channel: a set of vectors per embedder, filled while an older one answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from quaid.index import contents
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.model import name_key

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MOVED = "moved_vectors"
_MAX_MOVED = 256
NEWEST = 8
"""One in so many of the chunks embedded next is among the newest: people ask about what they just wrote."""
_GIVEN = "(SELECT CAST(value AS INTEGER) FROM json_each(?))"


def text_key(text: str) -> str:
    """Return SHA-256 of a text that is embedded."""
    import hashlib  # not above: a recall hashes nothing, and OpenSSL takes 5 ms to load

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def list_text_keys(connection: IndexConnection) -> set[str]:
    """Return the keys of all texts that are embedded."""
    return {key for (key,) in connection.execute("SELECT DISTINCT text_key FROM chunks")}


def list_embedders(connection: IndexConnection) -> list[EmbedderRow]:
    """Return them oldest first: the last one is being filled or already active."""
    rows = connection.execute(
        "SELECT embedder_id, fingerprint, dimension, settings, active FROM embedders ORDER BY embedder_id"
    )
    return [EmbedderRow(row[0], row[1], row[2], json.loads(row[3]), bool(row[4])) for row in rows]


def active_embedder(connection: IndexConnection) -> EmbedderRow | None:
    """Return the embedder recall asks: its vectors are the complete set."""
    return next((row for row in list_embedders(connection) if row.active), None)


def use_embedder(
    connection: IndexConnection, fingerprint: str, dimension: int, settings: Mapping[str, object]
) -> EmbedderRow:
    """Return the row to fill with vectors of this embedder. A new one makes every chunk pending; the old set stays in
    use until `activate_newest`.
    """
    known = list_embedders(connection)
    if known and known[-1].fingerprint == fingerprint:
        return known[-1]
    for row in known:
        if not row.active:
            _drop(connection, row)  # half filled
    serving = active_embedder(connection)
    if serving is not None and serving.fingerprint == fingerprint:  # the change of model was taken back
        held = connection.vectors.held(serving)
        has_vector = f"CASE WHEN chunk_id IN ({held}) THEN 'ready' ELSE 'pending' END"
        connection.execute(f"UPDATE chunks SET embedded = {has_vector}")
        return serving
    is_first = not any(row.active for row in list_embedders(connection))
    columns, values = "fingerprint, dimension, settings, active", (fingerprint, dimension, json.dumps(dict(settings)))
    connection.insert("embedders", columns, (*values, is_first))
    newest = list_embedders(connection)[-1]
    connection.vectors.create(newest)
    connection.execute("UPDATE chunks SET embedded = 'pending'")
    return newest


def activate_newest(connection: IndexConnection) -> None:
    """Let the newest set take over, and older ones go, once none of its vectors is missing but those that the service
    failed to give.
    """
    rows = list_embedders(connection)
    if not rows or (len(rows) == 1 and rows[0].active):
        return
    with connection.transaction():
        if list_pending(connection, 1):
            return
        *old, newest = list_embedders(connection)
        for row in old:
            _drop(connection, row)
        if not newest.active:
            connection.execute("UPDATE embedders SET active = 1 WHERE embedder_id = ?", (newest.embedder_id,))


def list_pending(connection: IndexConnection, limit: int, asked: Collection[str] = ()) -> list[tuple[int, str, str]]:
    """Return (chunk_id, text_key, embedded text) of chunks without a vector: those of the notes `asked` (ids of hits)
    first, then the newest, then the others by the hash of their text, so that any part of them is a fair sample.
    """
    pending = "embedded = 'pending' AND embedded <> 'ready'"  # the second condition is that of the partial index
    names = [name.partition("#")[0] for name in asked]
    called = (json.dumps(names), json.dumps([name_key(name) for name in names]))
    is_of_asked_note = (
        "doc_id IN (SELECT doc_id FROM documents WHERE id IN (SELECT value FROM json_each(?)) UNION "
        "SELECT doc_id FROM names WHERE position = 0 AND name_key IN (SELECT value FROM json_each(?)))"
    )
    found = _with_text(connection, f"WHERE {pending} AND {is_of_asked_note} LIMIT ?", *called, limit) if asked else []
    found += _with_text(connection, f"WHERE {pending} ORDER BY chunk_id DESC LIMIT ?", limit // NEWEST)
    found += _with_text(connection, f"WHERE {pending} ORDER BY text_key, chunk_id LIMIT ?", limit)
    return [*dict.fromkeys(found)][:limit]


def list_pending_keys(connection: IndexConnection) -> list[str]:
    """Return the text keys of all chunks without a vector."""
    return [key for (key,) in connection.execute("SELECT text_key FROM chunks WHERE embedded <> 'ready'")]


def _with_text(connection: IndexConnection, where: str, *values: object) -> list[tuple[int, str, str]]:
    text = "CASE context WHEN '' THEN text ELSE context || ': ' || text END"
    return connection.execute(f"SELECT chunk_id, text_key, {text} FROM chunks {where}", values).fetchall()


def list_missing(connection: IndexConnection, row: EmbedderRow, limit: int) -> list[tuple[int, str, str]]:
    """Return the same of chunks without a vector in the set of `row`, which need not be the newest."""
    return _with_text(connection, f"WHERE {_is_missing(connection, row)} ORDER BY chunk_id DESC LIMIT ?", limit)


def count_missing(connection: IndexConnection) -> int:
    """Return the number of chunks that no question can find by meaning now."""
    known = list_embedders(connection)
    serving = next((row for row in known if row.active), None)
    if serving is None or serving is known[-1]:
        return count_pending(connection)
    # A chunk that goes takes its vectors along.
    held = f"SELECT count(*) FROM ({connection.vectors.held(serving)}) held"
    return int(connection.execute(f"SELECT (SELECT count(*) FROM chunks) - ({held})").get)


def count_pending(connection: IndexConnection) -> int:
    return int(connection.execute("SELECT count(*) FROM chunks WHERE embedded <> 'ready'").get)


def insert(connection: IndexConnection, row: EmbedderRow, items: Iterable[tuple[int, str, bytes]]) -> None:
    """Add (chunk_id, text_key, float32 vector) to the set of `row`. A chunk that changed, went or was embedded by
    another process meanwhile is passed over.
    """
    is_newest = list_embedders(connection)[-1].embedder_id == row.embedder_id
    given = {(chunk_id, key): vector for chunk_id, key, vector in items}
    waits = "embedded <> 'ready'" if is_newest else _is_missing(connection, row)
    waiting = connection.execute(
        f"SELECT chunk_id, text_key FROM chunks WHERE chunk_id IN {_GIVEN} AND {waits}",
        (json.dumps([chunk_id for chunk_id, _ in given]),),
    )
    wanted = [(int(found[0]), given[found[0], found[1]]) for found in waiting if (found[0], found[1]) in given]
    held = f"SELECT chunk_id FROM ({connection.vectors.held(row)}) held ORDER BY chunk_id DESC LIMIT 1"
    highest = int(connection.execute(held).get or 0)
    if is_newest:
        numbers = (json.dumps([chunk_id for chunk_id, _ in wanted]),)
        connection.execute(f"UPDATE chunks SET embedded = 'ready' WHERE chunk_id IN {_GIVEN}", numbers)
    connection.vectors.insert(row, wanted)
    _note_moved(connection, [chunk_id for chunk_id, _ in wanted if row.active and chunk_id < highest])


def mark_failed(connection: IndexConnection, chunk_ids: Iterable[int]) -> None:
    connection.executemany("UPDATE chunks SET embedded = 'failed' WHERE chunk_id = ?", [(i,) for i in chunk_ids])


def retry_failed(connection: IndexConnection) -> None:
    connection.execute("UPDATE chunks SET embedded = 'pending' WHERE embedded = 'failed'")


def remove(connection: IndexConnection, chunk_ids: Sequence[int]) -> None:
    if not chunk_ids:
        return
    for row in list_embedders(connection):
        connection.vectors.remove(row, chunk_ids)
    _note_moved(connection, chunk_ids)


def list_moved(connection: IndexConnection) -> tuple[int, list[int]]:
    """Return how many vectors went, or came in between others, since the index was begun, and the chunks of the last of
    them, newest last.
    """
    count, *last = json.loads(contents.get_meta(connection, _MOVED) or "[0]")
    return count, last


def _note_moved(connection: IndexConnection, chunk_ids: Sequence[int]) -> None:
    if chunk_ids:
        count, last = list_moved(connection)
        last = [*last, *chunk_ids][-_MAX_MOVED:]
        contents.set_meta(connection, _MOVED, json.dumps([count + len(chunk_ids), *last]))


def list_after(connection: IndexConnection, row: EmbedderRow, chunk_id: int) -> list[int]:
    """Return the chunks behind `chunk_id` that have a vector."""
    held = f"SELECT chunk_id FROM ({connection.vectors.held(row)}) held WHERE chunk_id > ? ORDER BY chunk_id"
    return [found for (found,) in connection.execute(held, (chunk_id,))]


def _is_missing(connection: IndexConnection, row: EmbedderRow) -> str:
    return f"chunk_id NOT IN ({connection.vectors.held(row)})"


def _drop(connection: IndexConnection, row: EmbedderRow) -> None:
    connection.vectors.drop(row)
    connection.execute("DELETE FROM embedders WHERE embedder_id = ?", (row.embedder_id,))


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


# MatMulInteger of opset 13, `row` [1, D] uint8 and `matrix` [D, N] int8 -> `products` [1, N] int32, as the package onnx
# writes it; a test does so again.
PRODUCT_GRAPH = bytes.fromhex(
    "08083a82010a260a03726f770a066d6174726978120870726f6475637473220d4d61744d756c496e7465676572120770726f"
    "647563745a160a03726f77120f0a0d080212090a0208010a031201445a1a0a066d617472697812100a0e0803120a0a031201"
    "440a0312014e621b0a0870726f6475637473120f0a0d080612090a0208010a0312014e42040a00100d"
)


def open_product() -> Any:
    """Return a session of onnxruntime that multiplies in this thread; None where no model has loaded the library: to
    load it takes as long as many questions.
    """
    onnxruntime: Any = sys.modules.get("onnxruntime")
    if onnxruntime is None:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(PRODUCT_GRAPH, options, providers=["CPUExecutionProvider"])


def multiply(session: Any, numbers: npt.NDArray[np.uint8], matrix: npt.NDArray[np.int8]) -> npt.NDArray[Any]:
    """Return the products of a row of whole numbers with the columns of a matrix of them, exactly; without a session by
    numpy, which takes longer.
    """
    import numpy as np

    if session is not None:
        products: npt.NDArray[Any] = session.run(None, {"row": numbers, "matrix": matrix})[0]
        return products
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
    """The vectors of one index, in memory from the second question on, and updated with the index."""

    def __init__(self) -> None:
        self._session: Any = None
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
        self._sampled: tuple[Any, Any] = None, None
        """The latest sample, and the state of the index that it is of."""

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
        import numpy as np

        if query is not self._last:  # one question may be asked in two scopes
            self._asked += 1
            self._last = query
        if self._asked == 1:
            connection.vectors.prepare()
            return connection.vectors.search(row, query.astype("<f4").tobytes(), limit, allowed)
        version = connection.version()
        generation = contents.get_meta(connection, contents.GENERATION) or ""
        identity = (connection.name, row.fingerprint, row.table, generation)
        if identity != self._identity or version != self._version:
            connection.vectors.prepare()
            self._session = self._session or open_product()
            if identity != self._identity or not self._follow(connection, row):
                self._load(connection, row)
            self._identity, self._version = identity, version
        rows: npt.NDArray[np.signedinteger]
        if allowed is None:
            rows = np.flatnonzero(self._ids[: self._used] >= 0)
        else:
            rows = self._held(np.fromiter(allowed, np.int64, len(allowed)))[1]
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

    def sample(self, connection: IndexConnection, row: EmbedderRow, count: int) -> npt.NDArray[np.float32]:
        """Return the vectors of the `count` newest chunks that have one. Call it after `search`."""
        state = connection.name, connection.version(), row.table, count, self._upper is None
        if self._sampled[0] != state:
            held = f"SELECT chunk_id FROM ({connection.vectors.held(row)}) held ORDER BY chunk_id DESC LIMIT ?"
            newest = [chunk_id for (chunk_id,) in connection.execute(held, (count,))]
            self._sampled = state, self.vectors(connection, row, newest)[1]
        sample: npt.NDArray[np.float32] = self._sampled[1]
        return sample

    def _held(self, ids: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return those of `ids` that have a vector, and their rows."""
        ids = ids[(ids >= 0) & (ids < len(self._row_of))]
        rows = self._row_of[ids]
        return ids[rows >= 0], rows[rows >= 0]

    def _estimate(self, query: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return about what the cosine of each row is, by the upper halves, and what it is at most.

        What the roundings of the question and of a vector add to their product is at most the product of the lengths
        (Cauchy-Schwarz).
        """
        import numpy as np

        step = max(float(np.abs(query).max()), float(np.finfo(np.float32).tiny)) / _ASKED
        asked = np.rint(query / step)
        products = multiply(self._session, (asked + (_ASKED + 1)).astype(np.uint8)[None], self._upper)[0, : self._used]
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

    def _load(self, connection: IndexConnection, row: EmbedderRow) -> None:
        import numpy as np

        self._moved, _ = list_moved(connection)
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

        count, last = list_moved(connection)
        changes = count - self._moved
        new = list_after(connection, row, int(self._ids[: self._used].max(initial=0)))
        has_room = self._used + changes + len(new) <= len(self._ids) and (not new or new[-1] < len(self._row_of))
        if changes > len(last) or len(new) > _RELOAD_SHARE * max(self._used, 1) or not has_room:
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
