"""Vectors in sqlite-vec: one vec0 table per embedder, cosine by brute force."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.index.port import EmbedderRow

if TYPE_CHECKING:
    from quaid.index.sqlite.connection import SqliteIndex

_MAX_NEIGHBOURS = 4096
"""sqlite-vec refuses to look for more."""


def enable_vectors(connection: SqliteIndex) -> None:
    """Load sqlite-vec, once. Readers ask for it only when they search vectors: it costs a cold start 10 ms."""
    if connection.has_vectors:
        return
    connection.enable_load_extension(True)
    connection.load_extension(_extension_path())
    connection.enable_load_extension(False)
    connection.has_vectors = True


class Vec0:
    """The vectors of an index: `Vectors` of `quaid.index.port`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: SqliteIndex) -> None:
        self._connection = connection

    def prepare(self) -> None:
        enable_vectors(self._connection)

    def create(self, row: EmbedderRow) -> None:
        self._connection.execute(
            f"CREATE VIRTUAL TABLE {row.table} USING vec0(embedding float[{row.dimension}] distance_metric=cosine)"
        )

    def drop(self, row: EmbedderRow) -> None:
        self._connection.execute(f"DROP TABLE {row.table}")

    def held(self, row: EmbedderRow) -> str:
        """Return where sqlite-vec keeps the rows of a table."""
        return f"SELECT rowid AS chunk_id FROM {row.table}_rowids"

    def insert(self, row: EmbedderRow, items: Sequence[tuple[int, bytes]]) -> None:
        self._connection.executemany(f"INSERT INTO {row.table} (rowid, embedding) VALUES (?, ?)", items)

    def remove(self, row: EmbedderRow, chunk_ids: Sequence[int]) -> None:
        self._connection.executemany(
            f"DELETE FROM {row.table} WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids]
        )

    def search(
        self, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None
    ) -> list[tuple[int, float]]:
        within = "" if allowed is None else "AND rowid IN (SELECT value FROM json_each(:allowed))"
        rows = self._connection.execute(
            f"SELECT rowid, distance FROM {row.table} WHERE embedding MATCH :query AND k = :limit {within}",
            {"query": query, "limit": min(limit, _MAX_NEIGHBOURS), "allowed": json.dumps(list(allowed or ()))},
        )
        # The distance of a vector that is zero or not finite is null.
        return [(int(found[0]), 1.0 - float(found[1])) for found in rows if found[1] is not None]

    def get(self, row: EmbedderRow, chunk_ids: Iterable[int]) -> dict[int, bytes]:
        ask = f"SELECT embedding FROM {row.table} WHERE rowid = ?"
        found = ((chunk_id, self._connection.execute(ask, (chunk_id,)).get) for chunk_id in chunk_ids)
        return {chunk_id: bytes(vector) for chunk_id, vector in found if vector is not None}

    def list_blocks(self, row: EmbedderRow) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield the blocks in which sqlite-vec keeps them."""
        yield from self._connection.execute(
            f"SELECT validity, rowids, vectors FROM {row.table}_chunks c JOIN {row.table}_vector_chunks00 v "
            "ON v.rowid = c.chunk_id"
        )


@cache
def _extension_path() -> str:
    """Return what `sqlite_vec.loadable_path()` does, without importing it: the import brings numpy along, 50 ms."""
    from importlib.util import find_spec

    found = find_spec("sqlite_vec")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("sqlite_vec")
    return str(Path(found.origin).with_name("vec0"))
