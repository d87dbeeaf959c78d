"""A connection to an index that SQLite keeps."""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from quaid.index import contents
from quaid.index.fulltext import WEIGHTS, list_best
from quaid.index.port import EmbedderRow
from quaid.sqlite import Database, transaction


class SqliteIndex(Database):
    """The port of `quaid.index.port`, in SQLite: what runs a statement is its own method."""

    application_id = 0x51754964
    file_version = contents.SCHEMA_VERSION
    is_derived = True
    has_vectors = False
    """Whether sqlite-vec is loaded."""
    seen_version: tuple[int, int] | None = None
    """Within a snapshot, the version that it reads: every cached answer asks for it."""

    @property
    def words(self) -> "Fts5":
        return Fts5(self)

    @property
    def vectors(self) -> "Vec0":
        return Vec0(self)

    @property
    def name(self) -> str:
        return self.filename

    def insert(self, table: str, columns: str, values: Sequence[Any]) -> int:
        """Add a row and return its rowid."""
        self.execute(f"INSERT INTO {table} ({columns}) VALUES ({','.join('?' * len(values))})", values)
        return self.last_insert_rowid()

    def transaction(self) -> AbstractContextManager[None]:
        return transaction(self)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one moment, the one of the transaction that is under way where there is one."""
        if self.in_transaction:
            yield
            return
        self.execute("BEGIN")
        try:
            self.seen_version = self.version()  # the first read, which begins the transaction
            yield
        finally:
            self.seen_version = None
            with suppress(apsw.Error):  # of a damaged database, which the body has reported
                self.execute("ROLLBACK")

    def version(self) -> tuple[int, int]:
        return self.seen_version or (int(self.pragma("data_version")), self.total_changes())

    def schema_version(self) -> int:
        return int(self.pragma("user_version"))

    def begin(self) -> None:
        enable_vectors(self)
        self.clear()
        super().begin()

    def find_damage(self) -> str:
        """Return what a check of the whole file finds wrong, other tables than those of this version among it."""
        enable_vectors(self)
        listed = "SELECT name, sql FROM sqlite_schema WHERE name NOT GLOB 'vectors_*'"
        with closing(SqliteIndex(":memory:")) as new:
            new.clear()
            is_whole = set(new.execute(listed)) <= set(self.execute(listed))
        return super().find_damage() or ("" if is_whole else "its tables are not those of an index")

    def clear(self) -> None:
        """Drop everything and create the schema again."""
        self.execute("PRAGMA defer_foreign_keys = ON")
        tables = self.execute(
            "SELECT name, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_schema "
            "WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        # Virtual tables take their own along, and nothing refers to documents any more at the end.
        for name, _ in sorted(tables, key=lambda table: (not table[1], table[0] == "documents")):
            self.execute(f'DROP TABLE IF EXISTS "{name}"')
        self.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
        contents.set_meta(self, contents.GENERATION, os.urandom(8).hex())


def enable_vectors(connection: SqliteIndex) -> None:
    """Load sqlite-vec, once. Readers do so only for the vectors of chunks: it costs a cold start 10 ms."""
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
        self, row: EmbedderRow, query: bytes, limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        import numpy as np

        asked, found = np.frombuffer(query, "<f4"), [(np.empty(0, np.int64), np.empty(0, np.float32))]
        for ids, floats in self.list_blocks(row):  # sqlite-vec's own search takes three times as long
            with np.errstate(invalid="ignore"):
                cosines = np.einsum("ij,j->i", floats, asked)
            has_direction, unlike = np.isfinite(cosines), np.flatnonzero(cosines == 0)
            has_direction[unlike] = floats[unlike].any(axis=1)
            found.append((ids[has_direction], cosines[has_direction]))
        ids, cosines = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return list_best(ids, cosines, limit, allowed)

    def get(self, row: EmbedderRow, chunk_ids: Iterable[int]) -> dict[int, bytes]:
        enable_vectors(self._connection)
        ask = f"SELECT embedding FROM {row.table} WHERE rowid = ?"
        found = ((chunk_id, self._connection.execute(ask, (chunk_id,)).get) for chunk_id in chunk_ids)
        return {chunk_id: bytes(vector) for chunk_id, vector in found if vector is not None}

    def list_blocks(self, row: EmbedderRow) -> Iterator[tuple[Any, Any]]:
        import numpy as np

        for taken, chunk_ids, block in self._connection.execute(
            f"SELECT validity, rowids, vectors FROM {row.table}_chunks c JOIN {row.table}_vector_chunks00 v "
            "ON v.rowid = c.chunk_id"
        ):
            places = np.unpackbits(np.frombuffer(taken, np.uint8), bitorder="little").view(np.bool_)
            ids, floats = np.frombuffer(chunk_ids, "<i8"), np.frombuffer(block, "<f4").reshape(-1, row.dimension)
            yield (ids, floats) if places.all() else (ids[places], floats[places])


@cache
def _extension_path() -> str:
    """Return what `sqlite_vec.loadable_path()` does, without importing it: the import brings numpy along, 50 ms."""
    from importlib.util import find_spec

    found = find_spec("sqlite_vec")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("sqlite_vec")
    return str(Path(found.origin).with_name("vec0"))


_RANKED = (
    f"SELECT rowid AS found, bm25(fulltext, {', '.join(map(str, WEIGHTS))}) AS score "
    "FROM fulltext WHERE fulltext MATCH ?"
)
_TOKENIZER = ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co M* So"]
"""What `tokenize` says in schema.sql, behind porter."""


class Fts5:
    """The words of an index: `Words` of `quaid.index.port`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def insert(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        self._connection.executemany("INSERT INTO fulltext (rowid, text, context, keywords) VALUES (?,?,?,?)", rows)

    def remove(self, chunk_ids: Sequence[int]) -> None:
        self._connection.executemany("DELETE FROM fulltext WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])

    def search(self, match: str, limit: int, allowed: Collection[int] | None) -> list[tuple[int, float]]:
        """Rank all that match; with `allowed` only the best of these come as far as this."""
        if allowed is not None:
            ranked = self._connection.execute(f"{_RANKED} ORDER BY score, rowid", (match,))
            return list(islice(((row[0], -row[1]) for row in ranked if row[0] in allowed), limit))
        # In one row, as another thread would run between two of them.
        rows = self._connection.execute(
            f"SELECT json_group_array(json_array(found, -score)) FROM ({_RANKED} ORDER BY score, rowid LIMIT ?)",
            (match, limit),
        )
        return [(chunk_id, score) for chunk_id, score in json.loads(next(rows)[0])]

    def list_matches(self, match: str, other: str = "") -> tuple[list[int], list[float]]:
        match = f"({match}) AND ({other})" if other else match
        rows = self._connection.execute(
            f"SELECT json_group_array(found), json_group_array(-score) FROM ({_RANKED} ORDER BY rowid)", (match,)
        )
        ids, scores = next(rows)
        return json.loads(ids), json.loads(scores)

    def count(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM fulltext_docsize").get)

    def count_matches(self, match: str, most: int) -> int:
        counted = "SELECT count(*) FROM (SELECT 1 FROM fulltext WHERE fulltext MATCH ? LIMIT ?)"
        return int(self._connection.execute(counted, (match, most)).get)

    def list_stems(self, first: str, after: str, lengths: tuple[int, int], limit: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT term FROM vocabulary WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
            (first, after, *lengths, limit),
        )
        return [str(row[0]) for row in rows]

    def list_chunks(self, stem: str) -> Iterator[int]:
        return (int(row[0]) for row in self._connection.execute("SELECT doc FROM occurrences WHERE term = ?", (stem,)))


def tokenize(text: str) -> list[str]:
    """Return the stems of `text` in their order, as FTS5 splits it, for an engine that keeps them itself."""
    encoded = text.encode("utf-8", "replace")
    found = _tokenizer()(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(stem) for stem in found]


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    return apsw.Connection(":memory:").fts5_tokenizer("porter", _TOKENIZER)
