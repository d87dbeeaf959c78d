"""The vector channel: a set of vectors per embedder, filled while an older one answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from quaid.index import contents, fulltext
from quaid.index.cache import AnswerCache
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.index.reading import Reading, Steps, query
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


@Reading
def list_embedders() -> Steps[list[EmbedderRow]]:
    """Return them oldest first: the last one is being filled or already active."""
    columns = "embedder_id, fingerprint, dimension, settings, active"
    rows = yield query(f"SELECT {columns} FROM (SELECT {columns} FROM embedders ORDER BY embedder_id) asked")
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


def count_missing(connection: IndexConnection, cache: AnswerCache | None = None) -> int:
    """Return the number of chunks that no question can find by meaning now."""
    cache = cache or AnswerCache()
    known = cache.of(connection, list_embedders)
    serving = next((row for row in known if row.active), None)
    if serving is None or serving is known[-1]:
        return cache.of(connection, count_pending)
    # A chunk that goes takes its vectors along.
    held = f"SELECT count(*) FROM ({connection.vectors.held(serving)}) held"
    return int(connection.execute(f"SELECT (SELECT count(*) FROM chunks) - ({held})").get)


@Reading
def count_pending() -> Steps[int]:
    ((count,),) = yield query("SELECT number FROM (SELECT count(*) AS number FROM chunks WHERE embedded <> 'ready') n")
    return int(count)


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
SAMPLE = 128
"""The number of chunks sampled to estimate the least cosine of a vault."""
MIN_EXACT, EXACT_SHARE = 2_048, 1 / 128
"""At least so many vectors, or this share, that most often have the signs of a question get an exact cosine."""
_SIGNS, _FLOATS = 1 << 15, 512
"""So many vectors at a time are compared by their signs, and become float32: they stay in the processor's cache."""
_RELOAD_SHARE = 0.3
"""With more than this share of rows gone or new, reading all is quicker than catching up."""


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _signs(floats: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Return whether each number of vectors is above 0, a bit each: [n, dimension] -> [ceil(dimension / 64), n]."""
    import numpy as np

    bits = np.packbits(floats > 0, axis=1)
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    return np.ascontiguousarray(padded.view(np.uint64).T)


class VectorMatrix:
    """The vectors of one index, in memory from the second question on, and updated with the index."""

    def __init__(self) -> None:
        self._asked = 0
        self._last: Any = None
        self._identity: tuple[str, ...] = ()
        self._version = (-1, -1)
        self._ids: Any = None
        self._numbers: Any = None
        """A vector is its scale times a row of 16 bits."""
        self._scales: Any = None
        self._signs: Any = None
        """Whether each number is above 0, a bit each: 64 of a vector in a row."""
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
            return connection.vectors.search(row, query.astype("<f4").tobytes(), limit, allowed)
        version = connection.version()
        generation = contents.get_meta(connection, contents.GENERATION) or ""
        identity = (connection.name, row.fingerprint, row.table, generation)
        if identity != self._identity or version != self._version:
            if identity != self._identity or not self._follow(connection, row):
                self._load(connection, row)
            self._identity, self._version = identity, version
        rows = np.flatnonzero(self._ids[: self._used] >= 0) if allowed is None else self._held(allowed)[1]
        count = max(limit, MIN_EXACT, int(self._used * EXACT_SHARE))
        if len(rows) > count:  # only of those whose numbers most often have the signs of the question's
            asked, unlike = _signs(query[None]), np.empty(self._used, np.uint16)
            for start in range(0, self._used, _SIGNS):
                part = slice(start, min(start + _SIGNS, self._used))
                np.bitwise_count(self._signs[:, part] ^ asked).sum(axis=0, dtype=np.uint16, out=unlike[part])
            unlike = unlike[rows]
            rows = rows[unlike <= np.searchsorted(np.cumsum(np.bincount(unlike)), count)]
        cosines = self._products(rows, query)
        return fulltext.list_best(self._ids[rows], cosines, limit)

    def cosines(
        self, connection: IndexConnection, row: EmbedderRow, query: npt.NDArray[np.float32], chunk_ids: Collection[int]
    ) -> dict[int, float]:
        """Return the cosine similarity of each of `chunk_ids` that has a vector. Ask after `search`."""
        found, matrix = self.vectors(connection, row, chunk_ids)
        with _blas().limit(limits=1, user_api="blas"):
            return dict(zip(found, (matrix @ query).tolist(), strict=True))

    def vectors(
        self, connection: IndexConnection, row: EmbedderRow, chunk_ids: Collection[int]
    ) -> tuple[list[int], npt.NDArray[np.float32]]:
        """Return those of `chunk_ids` that have a vector, and their vectors, float32 [n, dimension]. Ask after
        `search`.
        """
        import numpy as np

        if self._numbers is None:
            blobs = connection.vectors.get(row, chunk_ids)
            held = {chunk_id: np.frombuffer(blob, "<f4") for chunk_id, blob in blobs.items()}
            return list(held), np.stack([*held.values()]) if held else np.empty((0, row.dimension), np.float32)
        ids, rows = self._held(chunk_ids)
        return ids.tolist(), np.multiply(self._numbers[rows], self._scales[rows, None], dtype=np.float32)

    def compare_newest(self, connection: IndexConnection, row: EmbedderRow, query: Any) -> list[float]:
        """Return the cosine similarity of the newest chunks that have a vector, a sample of all. Ask after `search`."""
        state = connection.name, connection.version(), row.table, self._numbers is None
        if self._sampled[0] != state:
            held = f"SELECT chunk_id FROM ({connection.vectors.held(row)}) held ORDER BY chunk_id DESC LIMIT ?"
            newest = [chunk_id for (chunk_id,) in connection.execute(held, (SAMPLE,))]
            self._sampled = state, self.vectors(connection, row, newest)[1]
        cosines: list[float] = (self._sampled[1] @ query).tolist()
        return cosines

    def _held(self, chunk_ids: Collection[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return those of `chunk_ids` that have a vector, and their rows."""
        import numpy as np

        ids = np.fromiter(chunk_ids, np.int64, len(chunk_ids))
        ids = ids[(ids >= 0) & (ids < len(self._row_of))]
        rows = self._row_of[ids]
        return ids[rows >= 0], rows[rows >= 0]

    def _products(self, rows: npt.NDArray[np.signedinteger], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the product of each of `rows` with the question."""
        import numpy as np

        products = np.empty(len(rows), np.float32)
        # In this thread: BLAS lets a second one turn idly for 20 ms after each, in the way of whatever else runs.
        with _blas().limit(limits=1, user_api="blas"):
            for start in range(0, len(rows), _FLOATS):
                part = slice(start, start + _FLOATS)
                np.dot(self._numbers[rows[part]].astype(np.float32), query, out=products[part])
        products *= self._scales[rows]
        return products

    def _load(self, connection: IndexConnection, row: EmbedderRow) -> None:
        import numpy as np

        self._moved, _ = list_moved(connection)
        count = connection.execute(f"SELECT count(*) FROM ({connection.vectors.held(row)}) held").get
        capacity = int(count * GROWTH) + 64
        self._numbers = np.empty((capacity, row.dimension), np.int16)
        self._signs = np.empty((-(-row.dimension // 64), capacity), np.uint64)
        self._scales = np.empty(capacity, np.float32)
        self._ids = np.full(capacity, -1, np.int64)
        highest = int(connection.execute("SELECT coalesce(max(chunk_id), 0) FROM chunks").get)
        self._row_of = np.full(int(highest * GROWTH) + 64, -1, np.int32)
        self._used = 0
        for chunk_ids, floats in connection.vectors.list_blocks(row):
            self._add(chunk_ids, floats)

    def _follow(self, connection: IndexConnection, row: EmbedderRow) -> bool:
        """Drop what is gone and fetch what is new; False where that is too much, or nobody knows what it is."""
        import numpy as np

        count, last = list_moved(connection)
        changes = count - self._moved
        new = list_after(connection, row, int(self._ids[: self._used].max(initial=0)))
        has_room = self._used + changes + len(new) <= len(self._ids) and (not new or new[-1] < len(self._row_of))
        if changes > len(last) or len(new) > _RELOAD_SHARE * max(self._used, 1) or not has_room:
            return False
        moved = last[len(last) - changes :]
        gone, rows = self._held(moved)
        self._row_of[gone] = -1
        self._ids[rows] = -1
        self._moved = count
        blobs = connection.vectors.get(row, sorted({*moved, *new}))
        held = {chunk_id: np.frombuffer(blob, "<f4") for chunk_id, blob in blobs.items()}
        if held:
            self._add(np.array([*held], np.int64), np.stack([*held.values()]))
        return True

    def _add(self, chunk_ids: npt.NDArray[np.int64], floats: npt.NDArray[np.float32]) -> None:
        import numpy as np

        rows = slice(self._used, self._used + len(chunk_ids))
        scales = np.maximum(np.abs(floats).max(axis=1, initial=0.0), np.finfo(np.float32).tiny) / np.iinfo(np.int16).max
        self._numbers[rows] = np.rint(floats / scales[:, None])
        self._signs[:, rows] = _signs(floats)
        self._scales[rows], self._ids[rows] = scales, chunk_ids
        self._row_of[chunk_ids] = np.arange(rows.start, rows.stop)
        self._used = rows.stop
