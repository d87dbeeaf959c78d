"""Vectors in pgvector: an exact scan of a vault's own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from quaid.index.documents import IDS
from quaid.index.fulltext import match_any
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.index.postgres.words import MATCH, QuestionWords, describe
from quaid.index.vectors import MIN_EXACT, SAMPLE, VectorMatrix

if TYPE_CHECKING:
    from quaid.index.postgres.connection import PostgresIndex

_BEST = (
    # The distance of a vector that is zero is no number, which comes last.
    "SELECT string_agg(int4send(chunk_id) || float8send(1 - distance), '' ORDER BY distance, chunk_id) FROM "
    "(SELECT chunk_id, embedding <=> CAST(? AS vector) AS distance FROM vectors WHERE embedder_id = ? {within} "
    "ORDER BY {order} LIMIT ?) found WHERE distance <> 'NaN'"
)
_HEAD_BYTES = 4
"""A vector is sent as its dimension and two empty bytes, then its numbers, the most significant byte first."""


class PgVectors:
    """The vectors of an index: `Vectors` of `quaid.index.port`."""

    def __init__(self, index: PostgresIndex) -> None:
        self._index = index

    def create(self, row: EmbedderRow) -> None:
        """The sets of all embedders are in one table."""

    def drop(self, row: EmbedderRow) -> None:
        self._index.execute("DELETE FROM vectors WHERE embedder_id = ?", (row.embedder_id,))

    def held(self, row: EmbedderRow) -> str:
        return f"SELECT chunk_id FROM vectors WHERE embedder_id = {row.embedder_id:d}"

    def insert(self, row: EmbedderRow, items: Sequence[tuple[int, bytes]]) -> None:
        self._index.execute(
            "INSERT INTO vectors (embedder_id, chunk_id, embedding, vault, private_to) "
            "SELECT ?, chunk_id, given.embedding, vault, private_to FROM unnest(CAST(? AS int[]), "
            "CAST(? AS vector[])) AS given (chunk_id, embedding) JOIN chunks USING (chunk_id)",
            (row.embedder_id, [chunk_id for chunk_id, _ in items], [_as_text(vector) for _, vector in items]),
        )

    def remove(self, row: EmbedderRow, chunk_ids: Sequence[int]) -> None:
        self._index.execute(
            "DELETE FROM vectors WHERE embedder_id = ? AND chunk_id = ANY (CAST(? AS int[]))",
            (row.embedder_id, list(chunk_ids)),
        )

    def search(
        self, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        within = "" if allowed is None else f"AND chunk_id IN {IDS}"
        values = [_as_text(query), row.embedder_id, limit]
        if allowed is not None:
            values.insert(2, json.dumps(list(allowed)))
        return _read_best(self._index.execute(_BEST.format(within=within, order="2, 1"), values).get)

    def find(
        self, row: EmbedderRow, query: bytes, limits: tuple[int, int], match: str
    ) -> tuple[list[tuple[int, float]], list[tuple[int, float]], list[Any]]:
        """Return in one statement the nearest chunks, the newest ones with their cosines, `limits` of them, and what
        `PgWords.rank` asks for `match`.
        """
        asked: list[tuple[str, Sequence[Any]]] = []
        for order, limit in zip(("2, 1", "1 DESC"), limits, strict=True):
            best = _BEST.format(within="", order=order)
            asked.append((f"SELECT NULL, NULL, NULL, NULL, ({best})", (_as_text(query), row.embedder_id, limit)))
        if words := describe(match, self._index.place.vault):
            asked.insert(0, (MATCH, words))
        statement = " UNION ALL ".join(part for part, _ in asked)
        *rows, nearest, newest = self._index.execute(statement, [one for _, values in asked for one in values])
        return _read_best(nearest[4]), _read_best(newest[4]), rows

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

    def list_blocks(self, _row: EmbedderRow) -> Iterator[tuple[Any, Any]]:
        """Raise: no server reads a whole set."""
        raise NotImplementedError


class QuestionVectors(VectorMatrix):
    """The nearest of one question, which a server forgets afterwards."""

    _nearest: Mapping[int, float] = {}
    """At least `MIN_EXACT` chunks and the cosine of each; of fewer, all that have one."""
    _newest: Sequence[tuple[int, float]] = ()

    def __init__(self, words: QuestionWords) -> None:
        super().__init__()
        self._words = words

    def search(
        self, connection: IndexConnection, row: EmbedderRow, query: Any, limit: int, allowed: Any = None
    ) -> list[tuple[int, float]]:
        if query is not self._last:  # one question may be asked in two scopes
            limits, find = (max(limit, MIN_EXACT), SAMPLE), cast("PgVectors", connection.vectors).find
            nearest, self._newest, rows = find(
                row, query.astype("<f4").tobytes(), limits, match_any(self._words.awaited)
            )
            self._words.learn(connection, rows)
            self._last, self._nearest = query, dict(nearest)
        found = (each for each in self._nearest.items() if allowed is None or each[0] in allowed)
        best = list(islice(found, limit))
        if len(best) < limit and len(self._nearest) >= MIN_EXACT:
            best = connection.vectors.search(row, query.astype("<f4").tobytes(), limit, allowed)
        return best

    def cosines(
        self, connection: IndexConnection, row: EmbedderRow, query: Any, chunk_ids: Collection[int]
    ) -> dict[int, float]:
        self.search(connection, row, query, 0)
        compared = self._nearest
        others = [each for each in chunk_ids if each not in compared] if len(compared) >= MIN_EXACT else ()
        if others:
            found = connection.vectors.search(row, query.astype("<f4").tobytes(), len(others), others)
            compared = {**compared, **dict(found)}
        return {each: compared[each] for each in chunk_ids if each in compared}

    def compare_newest(
        self, _connection: IndexConnection, _row: EmbedderRow, _query: Any
    ) -> list[float]:  # fmt: skip
        return [cosine for _, cosine in self._newest]


def _read_best(sent: bytes | None) -> list[tuple[int, float]]:
    import numpy as np

    found = np.frombuffer(sent or b"", [("chunk_id", ">i4"), ("cosine", ">f8")])
    return list(zip(found["chunk_id"].tolist(), found["cosine"].tolist(), strict=True))


def _as_text(vector: bytes) -> str:
    """Return a float32 vector as pgvector reads it."""
    import numpy as np

    return f"[{','.join(map(repr, np.frombuffer(vector, '<f4').tolist()))}]"
