"""A connection to the index of one vault that PostgreSQL keeps, and its statements out of those of the port."""

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg_pool import ConnectionPool

from quaid.errors import LockedError
from quaid.index import contents
from quaid.index.port import Values
from quaid.index.postgres.vectors import PgVectors
from quaid.index.postgres.words import PgWords
from quaid.index.scope import NOTE_TABLES

Raw: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
TABLES = (
    "documents", "chunks", "passages", "names", "edges", "links", "pending", "citations", "passed_over", "postings",
    "lengths", "embedders", "vectors", "meta",
)  # fmt: skip
_CASCADED = frozenset(NOTE_TABLES)
"""Tables whose rows go with their document."""
_NUMBERED = {
    "documents": ("doc_id", "last_document"), "chunks": ("chunk_id", "last_chunk"),
    "embedders": ("embedder_id", "last_embedder"),
}  # fmt: skip
_SETTINGS = (
    "SELECT set_config('quaid.vault', %s, true), set_config('quaid.owners', %s, true), "
    "set_config('search_path', %s, true), set_config('lock_timeout', '30s', true), set_config('jit', 'off', true)"
)
_INTO_DOCUMENTS = "INSERT INTO documents "
_MAX_WAITING = 1 << 20
"""Characters of statements that are sent together."""
_COUNTERS = "version, last_document, last_chunk, last_embedder"
MAX_KEY = 600
"""Characters of what is looked up by an index: PostgreSQL refuses to keep more than 2,700 bytes in one."""
KEYED = frozenset({"documents", "names", "edges", "links", "pending", "citations"})
"""Tables whose texts are all looked up, or shown in one line."""
_PART = re.compile(r"'(?:[^']|'')*'|::|CROSS JOIN|(?P<list>json_each\()?(?:\?(?P<number>\d*)|:(?P<name>[a-z]\w*))|%")
_WRITES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE)\b")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class Place:
    """The rows of one vault: its number, where they are looked for, and `owners`, a JSON list of the caller's names."""

    vault: int
    name: str
    search_path: str
    owners: str = ""


@dataclass(slots=True)
class _Work:
    """A transaction that is under way on a connection of the pool."""

    cursor: psycopg.ClientCursor[tuple[Any, ...]]
    version: int = 0
    writes: int = 0
    last: dict[str, int] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)
    size: int = 0

    def write(self, statement: str) -> None:
        """Keep a statement that returns nothing, to be sent with what comes after it: each trip to the server costs as
        much as the row that it brings.
        """
        self._gather_rows()
        self.waiting.append(statement)
        self._grow(len(statement))

    def insert(self, head: str, row: str) -> None:
        """Keep a row in the same way. Those of one `head`, INSERT INTO …, become one statement."""
        self.rows.setdefault(head, []).append(row)
        self._grow(len(row))

    def send(self, *statements: str) -> list[Any]:
        """Run what waits, then `statements`, and return the rows of the last."""
        self._gather_rows()
        together = [*self.waiting, *statements]
        self.waiting, self.size = [], 0
        if not together:
            return []
        self.cursor.execute(";\n".join(together))
        while self.cursor.nextset():
            pass
        return self.cursor.fetchall() if self.cursor.description else []

    def _gather_rows(self) -> None:
        # Of a note its document first, which the others refer to.
        heads = sorted(self.rows, key=lambda head: not head.startswith(_INTO_DOCUMENTS))
        self.waiting += [f"{head} VALUES {','.join(self.rows[head])}" for head in heads]
        self.rows = {}

    def _grow(self, size: int) -> None:
        self.writes += 1
        self.size += size
        if self.size > _MAX_WAITING:
            self.send()


class Found:
    """The rows of a statement."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def __next__(self) -> Any:
        return next(self._rows)

    def fetchone(self) -> Any | None:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    @property
    def get(self) -> Any:
        row = self.fetchone()
        return None if row is None else row[0]


class PostgresIndex:
    """The port of `quaid.index.port`, in PostgreSQL.

    It takes a connection from the pool for a transaction or a snapshot, and for a statement outside of both; the vault
    is a setting of that transaction alone. Each thread has its own; only one may write.
    """

    def __init__(self, pool: ConnectionPool[Raw], place: Place) -> None:
        self._pool = pool
        self.place = place
        self._under_way = threading.local()
        self.words = PgWords(self)
        self.vectors = PgVectors(self)

    @property
    def _work(self) -> _Work | None:
        return getattr(self._under_way, "work", None)

    @property
    def name(self) -> str:
        return f"{self.place.name}:{self.place.vault}"

    def execute(self, statement: str, values: Values = (), /) -> Found:
        translated = translate(statement)
        with self._working(translated.writes) as work:
            asked = work.cursor.mogrify(translated.sql, bind(translated, values))
            if translated.writes:
                work.write(asked)
                return Found(())
            return Found(work.send(asked))

    def executemany(self, statement: str, values: Iterable[Values], /) -> None:
        """Run an INSERT with all its rows at once, another statement with one after the other."""
        rows = list(values)
        if not rows:
            return
        head, mark, _ = statement.partition(" VALUES ")
        with self._working(writes=True) as work:
            for row in rows:
                if mark:
                    self._insert_row(work, head, list(row))
                else:
                    self.execute(statement, row)

    @staticmethod
    def _insert_row(work: _Work, head: str, row: Sequence[Any]) -> None:
        stored = shorten(row) if head.split()[2] in KEYED else row
        translated = translate(f"({','.join('?' * len(stored))})")
        work.insert(head, work.cursor.mogrify(translated.sql, bind(translated, stored)))

    def insert(self, table: str, columns: str, values: Sequence[Any], /) -> int:
        """Add a row with the next number of the vault."""
        column, counter = _NUMBERED[table]
        with self._working(writes=True) as work:
            number = work.last[counter] = work.last[counter] + 1
            self._insert_row(work, f"INSERT INTO {table} ({column}, {columns})", [number, *values])
        return number

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the row of the vault, which only one writer can: so none reads what another is about to change."""
        assert self._work is None, "a transaction is under way"
        begin = f"BEGIN; {{}}; SELECT {_COUNTERS} FROM quaid.vaults WHERE vault = {self.place.vault} FOR UPDATE"
        with self._begun(begin) as (work, row):
            work.last = dict(zip(_COUNTERS.split(", ")[1:], row[1:], strict=True))
            yield
            self.words.flush()
            counters = ", ".join(f"{name} = {last}" for name, last in work.last.items())
            work.write(f"UPDATE quaid.vaults SET version = version + 1, {counters} WHERE vault = {self.place.vault}")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one moment, the one of the transaction that is under way where there is one."""
        if self._work is not None:
            yield
            return
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}; SELECT version FROM quaid.vaults WHERE vault = "
        with self._begun(f"{begin}{self.place.vault}"):
            yield

    @contextmanager
    def _begun(self, begin: str) -> Iterator[tuple[_Work, tuple[int, ...]]]:
        """Yield a transaction that `begin` begins, with the vault's settings in it, and the row that it returns."""
        with self._pool.connection() as raw:
            work = _Work(psycopg.ClientCursor(raw))
            settings = work.cursor.mogrify(
                _SETTINGS, (str(self.place.vault), self.place.owners, self.place.search_path)
            )
            try:
                row = work.send(begin.format(settings))[0]
                work.version = row[0]
                self._under_way.work = work
                yield work, row
                work.send("COMMIT")
            except BaseException as error:
                self.words.forget()
                with suppress(psycopg.Error):  # the connection may be gone, and the transaction with it
                    raw.execute("ROLLBACK")
                if isinstance(error, psycopg.errors.LockNotAvailable):
                    raise LockedError("Another Quaid process is updating the index") from error
                raise
            finally:
                self._under_way.work = None

    @contextmanager
    def _working(self, writes: bool) -> Iterator[_Work]:
        """Yield the transaction that is under way, else one for what the body does."""
        if self._work is None:
            with self.transaction() if writes else self.snapshot():
                assert self._work is not None
                yield self._work
        else:
            yield self._work

    def version(self) -> tuple[int, int]:
        with self._working(writes=False) as work:
            return work.version, work.writes

    def schema_version(self) -> int:
        """Return the one of this Quaid: a server of another has another database."""
        return contents.SCHEMA_VERSION

    def clear(self) -> None:
        """Forget the rows of the vault, and begin anew under a new generation; its numbers go on."""
        self.words.forget()
        for table in TABLES:
            if table not in _CASCADED:
                self.execute(f"DELETE FROM {table}")
        contents.set_meta(self, contents.GENERATION, os.urandom(8).hex())

    def close(self) -> None:
        """Nothing is open between two transactions."""


class Statement(NamedTuple):
    """A statement as psycopg takes it; `lists` are the parameters that are lists in JSON."""

    sql: str
    lists: frozenset[int | str]
    is_numbered: bool
    writes: bool


@lru_cache(maxsize=1024)
def translate(statement: str) -> Statement:
    """Return what PostgreSQL is asked instead: the hint of a CROSS JOIN means nothing to it."""
    lists: set[int | str] = set()
    is_numbered = False
    place = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal is_numbered, place
        text, opened = found[0], found["list"] or ""
        if text == "CROSS JOIN":
            return "JOIN"
        if found["number"] is None and found["name"] is None:
            return text.replace("%", "%%")
        key: int | str = found["name"] or (f"p{found['number']}" if found["number"] else place)
        if opened:
            lists.add(key)
        if found["number"]:
            is_numbered = True
        if isinstance(key, int):
            place += 1
            return f"{opened}%s"
        return f"{opened}%({key})s"

    sql = _PART.sub(replace, statement)
    return Statement(sql, frozenset(lists), is_numbered, bool(_WRITES.match(statement)))


def bind(statement: Statement, values: Values) -> dict[str, Any] | list[Any]:
    """Return `values` as `statement` names them and as PostgreSQL can keep them."""
    if isinstance(values, Mapping):
        return {name: _clean(value, is_list=name in statement.lists) for name, value in values.items()}
    if statement.is_numbered:
        named = {f"p{number}": value for number, value in enumerate(values, start=1)}
        return {name: _clean(value, is_list=name in statement.lists) for name, value in named.items()}
    return [_clean(value, is_list=place in statement.lists) for place, value in enumerate(values)]


def shorten(values: Sequence[Any]) -> list[Any]:
    """Return `values` of a row of one of `KEYED`, no text longer than an index can keep."""
    return [value[:MAX_KEY] if isinstance(value, str) else value for value in values]


def _clean(value: Any, *, is_list: bool) -> Any:
    """Return a value without what is no text to PostgreSQL, NUL and half characters; a truth value is a number."""
    if isinstance(value, str):
        if is_list and "\\u" in value:
            return json.dumps([_clean_item(item) for item in json.loads(value)])
        return clean_text(value)
    return int(value) if isinstance(value, bool) else value


def _clean_item(item: Any) -> Any:
    if isinstance(item, list):
        return [_clean_item(each) for each in item]
    return clean_text(item) if isinstance(item, str) else item


def clean_text(text: str) -> str:
    """Return `text` with a mark in the place of each NUL and half character."""
    if text.isascii():
        return text.replace("\0", _REPLACEMENT) if "\0" in text else text
    return _NOT_TEXT.sub(_REPLACEMENT, text)
