"""What the owner of the database does for large vaults, now and then: an HNSW of their own, if it finds what is near.

One for each vault would be too many: PostgreSQL locks all indexes of a table that it plans a question for, and its lock
table is full at some two thousand. A vault of ordinary size is scanned in a few milliseconds.
"""

from typing import Any, cast

import psycopg

from quaid.index.port import EmbedderRow
from quaid.index.postgres.connection import Place, Raw
from quaid.index.postgres.server import find_extensions, find_place
from quaid.index.postgres.vectors import EF_SEARCH, near

LARGE = 50_000
"""The number of vectors from which on a vault has an HNSW."""
MIN_RECALL = 0.95
_SAMPLE, _NEIGHBOURS = 50, 10
_EQUAL = 1e-6


def index_vectors(uri: str, name: str, large: int = LARGE, min_recall: float = MIN_RECALL) -> float | None:
    """Make the HNSW of the vault called `name`, or drop it where it is not worth having; `uri` is that of the role that
    owns the schema. Questions are answered during it. Return the share of the nearest that it finds: less than
    `min_recall`, and it is dropped. None where the vault is too small for one.

    Raises:
        LookupError: there is no such vault.
    """
    with psycopg.connect(uri, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        place = find_place(connection, name, find_extensions(connection))
        if place is None:
            raise LookupError(name)
        # For as long as the connection is open, which is nobody else's, only this vault is seen.
        for setting, value in (("quaid.vault", str(place.vault)), ("search_path", place.search_path)):
            connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        found = connection.execute(
            "SELECT embedder_id, fingerprint, dimension, (SELECT count(*) FROM vectors v WHERE v.vault = e.vault "
            "AND v.embedder_id = e.embedder_id) FROM embedders e WHERE vault = %s AND active = 1",
            (place.vault,),
        ).fetchone()
        row = EmbedderRow(found[0], found[1], found[2], {}, active=True) if found else None
        count = int(found[3]) if found else 0
        wanted = row if count >= large else None
        _drop_others(connection, place, wanted)
        if wanted is None:
            return None
        made = (
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {_name(place, wanted)} ON vectors "
            f"USING hnsw ((embedding::vector({wanted.dimension:d})) vector_cosine_ops) "
            f"WHERE vault = {place.vault:d} AND embedder_id = {wanted.embedder_id:d}"
        )
        connection.execute(cast("Any", made))
        connection.execute("ANALYZE vectors")
        recall = _measure(connection, place, wanted)
        if recall < min_recall:
            _drop_others(connection, place, None)
        else:
            _use(connection, place, [wanted.embedder_id])
        return recall


def _name(place: Place, row: EmbedderRow) -> str:
    return f"vectors_ann_{place.vault}_{row.embedder_id}"


def _drop_others(connection: Raw, place: Place, current: EmbedderRow | None) -> None:
    """Drop what there is for other embedders of the vault, or was left half made; nobody asks it from then on."""
    _use(connection, place, [])
    found = connection.execute(
        "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE i.indrelid = 'vectors'::regclass AND c.relname LIKE %s AND NOT (c.relname = %s AND i.indisvalid)",
        (f"vectors\\_ann\\_{place.vault}\\_%", _name(place, current) if current else ""),
    ).fetchall()
    for (name,) in found:
        connection.execute(cast("Any", f"DROP INDEX CONCURRENTLY {name}"))


def _measure(connection: Raw, place: Place, row: EmbedderRow) -> float:
    """Return the share of the nearest of some vectors that the HNSW finds."""
    sample = connection.execute(
        "SELECT embedding::text FROM vectors WHERE vault = %s AND embedder_id = %s ORDER BY chunk_id DESC LIMIT %s",
        (place.vault, row.embedder_id, _SAMPLE),
    ).fetchall()
    roughly = near(place.vault, row).replace(":query", "%(query)s")
    exactly = roughly.replace(f"::vector({row.dimension})", "")  # which no HNSW serves
    found = wanted = 0
    for (query,) in sample:
        with connection.transaction():
            connection.execute("SELECT set_config('hnsw.ef_search', %s, true)", (str(EF_SEARCH),))
            connection.execute("SELECT set_config('enable_sort', 'off', true)")
            distances, nearest = (
                [
                    float(distance)
                    for _, distance in connection.execute(
                        cast("Any", f"SELECT chunk_id, {which} ORDER BY distance LIMIT {_NEIGHBOURS}"), {"query": query}
                    )
                ]
                for which in (roughly, exactly)
            )
        found += sum(distance <= nearest[-1] + _EQUAL for distance in distances)  # any of those that are equally far
        wanted += len(nearest)
    return found / max(1, wanted)


def _use(connection: Raw, place: Place, embedders: list[int]) -> None:
    connection.execute("UPDATE quaid.vaults SET ann = %s WHERE vault = %s", (embedders, place.vault))
