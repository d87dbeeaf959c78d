"""The vector channel: a set of vectors per embedder, filled while an older one answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from quaid.index import contents
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.model import name_key

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
    return {str(row[0]) for row in connection.execute("SELECT DISTINCT text_key FROM chunks")}


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
    """Once nothing is pending: the newest set takes over, older ones go."""
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
    return [str(row[0]) for row in connection.execute("SELECT text_key FROM chunks WHERE embedded <> 'ready'")]


def _with_text(connection: IndexConnection, where: str, *values: object) -> list[tuple[int, str, str]]:
    text = "CASE context WHEN '' THEN text ELSE context || ': ' || text END"
    rows = connection.execute(f"SELECT chunk_id, text_key, {text} FROM chunks {where}", values)
    return [(row[0], row[1], row[2]) for row in rows]


def list_missing(connection: IndexConnection, row: EmbedderRow, limit: int) -> list[tuple[int, str, str]]:
    """Return the same of chunks without a vector in the set of `row`, which need not be the newest."""
    return _with_text(connection, f"WHERE {_is_missing(connection, row)} ORDER BY chunk_id DESC LIMIT ?", limit)


def count_missing(connection: IndexConnection) -> int:
    """Return the number of chunks that no question can find by meaning now."""
    known = list_embedders(connection)
    serving = next((row for row in known if row.active), None)
    if serving is None or serving is known[-1]:
        return count_pending(connection)
    held = (
        f"SELECT count(*) FROM ({connection.vectors.held(serving)}) held"  # a chunk that goes takes its vectors along
    )
    row = connection.execute(f"SELECT (SELECT count(*) FROM chunks) - ({held})").fetchone()
    return int(row[0]) if row else 0


def count_pending(connection: IndexConnection) -> int:
    row = connection.execute("SELECT count(*) FROM chunks WHERE embedded <> 'ready'").fetchone()
    return int(row[0]) if row else 0


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


def search(
    connection: IndexConnection, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """Return (chunk_id, cosine similarity) of chunks, of those in `allowed` if it is given, nearest first. `query` is a
    float32 vector.
    """
    return connection.vectors.search(row, query, limit, allowed)


def list_sample(connection: IndexConnection, row: EmbedderRow, count: int) -> list[int]:
    """Return the `count` newest chunks that have a vector in the set of `row`: what a question is compared with to see
    what "unlike" means.
    """
    held = f"SELECT chunk_id FROM ({connection.vectors.held(row)}) held ORDER BY chunk_id DESC LIMIT ?"
    rows = connection.execute(held, (count,))
    return [int(found[0]) for found in rows]


def list_after(connection: IndexConnection, row: EmbedderRow, chunk_id: int) -> list[int]:
    """Return the chunks behind `chunk_id` that have a vector."""
    held = f"SELECT chunk_id FROM ({connection.vectors.held(row)}) held WHERE chunk_id > ? ORDER BY chunk_id"
    rows = connection.execute(held, (chunk_id,))
    return [int(found[0]) for found in rows]


def get(connection: IndexConnection, row: EmbedderRow, chunk_id: int) -> bytes | None:
    """Return a chunk's vector, float32."""
    return connection.vectors.get(row, [chunk_id]).get(chunk_id)


def _is_missing(connection: IndexConnection, row: EmbedderRow) -> str:
    return f"chunk_id NOT IN ({connection.vectors.held(row)})"


def _drop(connection: IndexConnection, row: EmbedderRow) -> None:
    connection.vectors.drop(row)
    connection.execute("DELETE FROM embedders WHERE embedder_id = ?", (row.embedder_id,))
