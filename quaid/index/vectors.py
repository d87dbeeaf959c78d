"""The vector channel: one vec0 table per embedder, cosine by brute force."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apsw

from quaid.index import database

_MAX_NEIGHBOURS = 4096
"""sqlite-vec refuses to look for more."""
_MISSING = "chunk_id NOT IN (SELECT rowid FROM {}_rowids)"
"""sqlite-vec keeps the rows of a table there."""
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
        if not row.active:
            _drop(connection, row)  # half filled
    serving = active_embedder(connection)
    if serving is not None and serving.fingerprint == fingerprint:  # the change of model was taken back
        has_vector = f"CASE WHEN chunk_id IN (SELECT rowid FROM {serving.table}_rowids) THEN 'ready' ELSE 'pending' END"
        connection.execute(f"UPDATE chunks SET embedded = {has_vector}")
        return serving
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
    where = "WHERE embedded = 'pending' AND embedded <> 'ready' ORDER BY chunk_id DESC LIMIT ?"
    return _with_text(connection, where, limit)


def list_pending_keys(connection: apsw.Connection) -> list[str]:
    """Return the text keys of all chunks without a vector."""
    return [str(row[0]) for row in connection.execute("SELECT text_key FROM chunks WHERE embedded <> 'ready'")]


def _with_text(connection: apsw.Connection, where: str, limit: int) -> list[tuple[int, str, str]]:
    text = "CASE context WHEN '' THEN text ELSE context || ': ' || text END"
    rows = connection.execute(f"SELECT chunk_id, text_key, {text} FROM chunks {where}", (limit,))
    return [(row[0], row[1], row[2]) for row in rows]


def list_missing(connection: apsw.Connection, row: EmbedderRow, limit: int) -> list[tuple[int, str, str]]:
    """Return the same of chunks without a vector in the set of `row`, which need not be the newest."""
    return _with_text(connection, f"WHERE {_MISSING.format(row.table)} ORDER BY chunk_id DESC LIMIT ?", limit)


def count_missing(connection: apsw.Connection) -> int:
    """Return the number of chunks that no question can find by meaning now."""
    known = list_embedders(connection)
    serving = next((row for row in known if row.active), None)
    if serving is None or serving is known[-1]:
        return count_pending(connection)
    held = f"(SELECT count(*) FROM {serving.table}_rowids)"  # a chunk that goes takes its vectors with it
    row = connection.execute(f"SELECT (SELECT count(*) FROM chunks) - {held}").fetchone()
    return int(row[0]) if row else 0


def count_pending(connection: apsw.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM chunks WHERE embedded <> 'ready'").fetchone()
    return int(row[0]) if row else 0


def insert(connection: apsw.Connection, row: EmbedderRow, items: Iterable[tuple[int, str, bytes]]) -> None:
    """Add (chunk_id, text_key, float32 vector) to the set of `row`. A chunk that changed, went or was embedded by
    another process meanwhile is passed over.
    """
    is_newest = list_embedders(connection)[-1].embedder_id == row.embedder_id
    mark = "UPDATE chunks SET embedded = 'ready' WHERE chunk_id = ? AND text_key = ? AND embedded <> 'ready'"
    look = f"SELECT 1 FROM chunks WHERE chunk_id = ? AND text_key = ? AND {_MISSING.format(row.table)}"
    highest = int(connection.execute(f"SELECT coalesce(max(rowid), 0) FROM {row.table}_rowids").get)
    late = []
    for chunk_id, key, vector in items:
        if is_newest:
            connection.execute(mark, (chunk_id, key))
            is_wanted = bool(connection.changes())
        else:
            is_wanted = connection.execute(look, (chunk_id, key)).fetchone() is not None
        if is_wanted:
            connection.execute(f"INSERT INTO {row.table} (rowid, embedding) VALUES (?, ?)", (chunk_id, vector))
            if row.active and chunk_id < highest:
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


def list_sample(connection: apsw.Connection, row: EmbedderRow, count: int) -> list[int]:
    """Return the `count` newest chunks that have a vector in the set of `row`: what a question is compared with to see
    what "unlike" means.
    """
    rows = connection.execute(f"SELECT rowid FROM {row.table}_rowids ORDER BY rowid DESC LIMIT ?", (count,))
    return [int(found[0]) for found in rows]


def list_after(connection: apsw.Connection, row: EmbedderRow, chunk_id: int) -> list[int]:
    """Return the chunks behind `chunk_id` that have a vector."""
    rows = connection.execute(f"SELECT rowid FROM {row.table}_rowids WHERE rowid > ? ORDER BY rowid", (chunk_id,))
    return [int(found[0]) for found in rows]


def get(connection: apsw.Connection, row: EmbedderRow, chunk_id: int) -> bytes | None:
    """Return a chunk's vector, float32."""
    found = connection.execute(f"SELECT embedding FROM {row.table} WHERE rowid = ?", (chunk_id,)).fetchone()
    return None if found is None else bytes(found[0])


def list_blocks(connection: apsw.Connection, row: EmbedderRow) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield all vectors in the blocks in which sqlite-vec keeps them: which places of a block are taken, a bit each;
    the chunk at each place, int64; its vector, float32.
    """
    yield from connection.execute(
        f"SELECT validity, rowids, vectors FROM {row.table}_chunks c JOIN {row.table}_vector_chunks00 v "
        "ON v.rowid = c.chunk_id"
    )


def _drop(connection: apsw.Connection, row: EmbedderRow) -> None:
    connection.execute(f"DROP TABLE {row.table}")
    connection.execute("DELETE FROM embedders WHERE embedder_id = ?", (row.embedder_id,))
