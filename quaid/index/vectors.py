"""The vector channel: one vec0 table per embedder, cosine by brute force."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import apsw

from quaid.index import database

_MAX_NEIGHBOURS = 4096
"""sqlite-vec refuses to look for more."""
_MOVED = "moved_vectors"
_MAX_MOVED = 256


@dataclass(frozen=True, slots=True)
class EmbedderRow:
    """An embedder whose vectors the index holds. `settings` opens it again."""

    embedder_id: int
    fingerprint: str
    dimension: int
    settings: Mapping[str, object]
    active: bool

    @property
    def table(self) -> str:
        return f"vectors_{self.embedder_id}"


def list_embedders(connection: apsw.Connection) -> list[EmbedderRow]:
    """Return them oldest first: the last one is being filled or already active."""
    rows = connection.execute(
        "SELECT embedder_id, fingerprint, dimension, settings, active FROM embedders ORDER BY embedder_id"
    )
    return [EmbedderRow(row[0], row[1], row[2], json.loads(row[3]), bool(row[4])) for row in rows]


def active_embedder(connection: apsw.Connection) -> EmbedderRow | None:
    """Return the embedder recall asks: its vectors are the complete set."""
    return next((row for row in list_embedders(connection) if row.active), None)


def use_embedder(
    connection: apsw.Connection, fingerprint: str, dimension: int, settings: Mapping[str, object]
) -> EmbedderRow:
    """Return the row to fill with vectors of this embedder. A new one makes every chunk pending; the old set stays in
    use until `activate_newest`.
    """
    known = list_embedders(connection)
    if known and known[-1].fingerprint == fingerprint:
        return known[-1]
    for row in known:
        if not row.active or row.fingerprint == fingerprint:
            _drop(connection, row)  # half filled, or superseded twice over
    connection.execute(
        "INSERT INTO embedders (fingerprint, dimension, settings, active) VALUES (?,?,?,?)",
        (fingerprint, dimension, json.dumps(dict(settings)), not any(row.active for row in list_embedders(connection))),
    )
    newest = list_embedders(connection)[-1]
    connection.execute(
        f"CREATE VIRTUAL TABLE {newest.table} USING vec0(embedding float[{dimension}] distance_metric=cosine)"
    )
    connection.execute("UPDATE chunks SET embedded = 'pending'")
    return newest


def activate_newest(connection: apsw.Connection) -> None:
    """Once nothing is pending: the newest set takes over, older ones go."""
    *old, newest = list_embedders(connection)
    for row in old:
        _drop(connection, row)
    if not newest.active:
        connection.execute("UPDATE embedders SET active = 1 WHERE embedder_id = ?", (newest.embedder_id,))


def list_pending(connection: apsw.Connection, limit: int) -> list[tuple[int, str, str]]:
    """Return (chunk_id, text_key, embedded text) of chunks without a vector, newest first: what was said just now
    is asked for before what waits since a large import.
    """
    rows = connection.execute(
        "SELECT chunk_id, text_key, CASE context WHEN '' THEN text ELSE context || ': ' || text END "
        "FROM chunks WHERE embedded = 'pending' AND embedded <> 'ready' ORDER BY chunk_id DESC LIMIT ?",
        (limit,),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def count_pending(connection: apsw.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM chunks WHERE embedded <> 'ready'").fetchone()
    return int(row[0]) if row else 0


def insert(connection: apsw.Connection, row: EmbedderRow, items: Iterable[tuple[int, str, bytes]]) -> None:
    """Add (chunk_id, text_key, float32 vector). A chunk that changed, went or was embedded by another process
    meanwhile is passed over.
    """
    highest = int(connection.execute(f"SELECT coalesce(max(rowid), 0) FROM {row.table}_rowids").get)
    late = []
    for chunk_id, key, vector in items:
        connection.execute(
            "UPDATE chunks SET embedded = 'ready' WHERE chunk_id = ? AND text_key = ? AND embedded <> 'ready'",
            (chunk_id, key),
        )
        if connection.changes():
            connection.execute(f"INSERT INTO {row.table} (rowid, embedding) VALUES (?, ?)", (chunk_id, vector))
            if chunk_id < highest:
                late.append(chunk_id)
    _note_moved(connection, late)


def mark_failed(connection: apsw.Connection, chunk_ids: Iterable[int]) -> None:
    connection.executemany("UPDATE chunks SET embedded = 'failed' WHERE chunk_id = ?", [(i,) for i in chunk_ids])


def retry_failed(connection: apsw.Connection) -> None:
    connection.execute("UPDATE chunks SET embedded = 'pending' WHERE embedded = 'failed'")


def remove(connection: apsw.Connection, chunk_ids: Sequence[int]) -> None:
    if not chunk_ids:
        return
    for row in list_embedders(connection):
        connection.executemany(f"DELETE FROM {row.table} WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])
    _note_moved(connection, chunk_ids)


def list_moved(connection: apsw.Connection) -> tuple[int, list[int]]:
    """Return how many vectors went, or came in between others, since the index was begun, and the chunks of the last of
    them, newest last.
    """
    count, *last = json.loads(database.get_meta(connection, _MOVED) or "[0]")
    return count, last


def _note_moved(connection: apsw.Connection, chunk_ids: Sequence[int]) -> None:
    if chunk_ids:
        count, last = list_moved(connection)
        last = [*last, *chunk_ids][-_MAX_MOVED:]
        database.set_meta(connection, _MOVED, json.dumps([count + len(chunk_ids), *last]))


def search(
    connection: apsw.Connection, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """Return (chunk_id, cosine similarity) of chunks, of those in `allowed` if it is given, nearest first. `query` is a
    float32 vector.
    """
    within = "" if allowed is None else "AND rowid IN (SELECT value FROM json_each(:allowed))"
    rows = connection.execute(
        f"SELECT rowid, distance FROM {row.table} WHERE embedding MATCH :query AND k = :limit {within}",
        {"query": query, "limit": min(limit, _MAX_NEIGHBOURS), "allowed": json.dumps(list(allowed or ()))},
    )
    return [(int(found[0]), 1.0 - float(found[1])) for found in rows]


def list_sample(connection: apsw.Connection, count: int) -> list[int]:
    """Return the first `count` chunks that have a vector: what a question is compared with to see what "unlike"
    means.
    """
    rows = connection.execute(
        "SELECT chunk_id FROM chunks WHERE embedded = 'ready' ORDER BY chunk_id DESC LIMIT ?", (count,)
    )
    return [int(row[0]) for row in rows]


def list_after(connection: apsw.Connection, row: EmbedderRow, chunk_id: int) -> list[int]:
    """Return the chunks behind `chunk_id` that have a vector."""
    rows = connection.execute(f"SELECT rowid FROM {row.table}_rowids WHERE rowid > ? ORDER BY rowid", (chunk_id,))
    return [int(found[0]) for found in rows]


def get(connection: apsw.Connection, row: EmbedderRow, chunk_id: int) -> bytes | None:
    """Return a chunk's vector, float32."""
    found = connection.execute(f"SELECT embedding FROM {row.table} WHERE rowid = ?", (chunk_id,)).fetchone()
    return None if found is None else bytes(found[0])


def _drop(connection: apsw.Connection, row: EmbedderRow) -> None:
    connection.execute(f"DROP TABLE {row.table}")
    connection.execute("DELETE FROM embedders WHERE embedder_id = ?", (row.embedder_id,))
