"""A connection to an index that SQLite keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from quaid.index import contents
from quaid.index.sqlite.vectors import Vec0, enable_vectors
from quaid.index.sqlite.words import Fts5
from quaid.sqlite import Database, transaction


class SqliteIndex(Database):
    """The port of `quaid.index.port`, kept by SQLite: what runs a statement is its own method."""

    application_id = 0x51754964
    file_version = contents.SCHEMA_VERSION
    is_derived = True
    has_vectors = False
    """Whether sqlite-vec is loaded."""

    @property
    def words(self) -> Fts5:
        return Fts5(self)

    @property
    def vectors(self) -> Vec0:
        return Vec0(self)

    @property
    def name(self) -> str:
        return self.filename

    def insert(self, table: str, columns: str, values: Sequence[Any]) -> int:
        """Add a row and return its rowid."""
        self.execute(_insertion(table, columns), values)
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
            yield
        finally:
            with suppress(apsw.Error):  # of a damaged database, which is what the body said
                self.execute("ROLLBACK")

    def version(self) -> tuple[int, int]:
        return int(self.pragma("data_version")), self.total_changes()

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
        rows = list(self.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        virtual = [name for name, sql in rows if (sql or "").upper().startswith("CREATE VIRTUAL")]
        for name in virtual:
            self.execute(f'DROP TABLE "{name}"')
        left = self.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for (name,) in sorted(left, key=lambda row: row[0] == "documents"):
            self.execute(f'DROP TABLE IF EXISTS "{name}"')
        self.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
        contents.set_meta(self, contents.GENERATION, os.urandom(8).hex())


@cache
def _insertion(table: str, columns: str) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES ({','.join('?' * len(columns.split(',')))})"
