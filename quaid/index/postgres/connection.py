"""A connection to the index of one vault that PostgreSQL keeps, and its statements out of those of the port."""

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool

from quaid.errors import LockedError
from quaid.index import contents
from quaid.index.port import Values
from quaid.index.postgres.vectors import PgVectors
from quaid.index.postgres.words import PgWords, make_vector
from quaid.index.scope import NOTE_TABLES, PRIVATE

TABLES = (*NOTE_TABLES, "documents", "vectors", "embedders", "passed_over", "meta")
"""All tables, those that a deleted document takes its rows from first."""
_NUMBERED = {
    "documents": ("doc_id", "last_document"), "chunks": ("chunk_id", "last_chunk"),
    "embedders": ("embedder_id", "last_embedder"),
}  # fmt: skip
_BEGIN = (
    "BEGIN {mode}; SET LOCAL standard_conforming_strings = on; SELECT set_config('quaid.vault', '{vault}', true), "
    "set_config('quaid.owners', {owners}, true), set_config('search_path', quaid.search_path(), true), "
    "set_config('lock_timeout', '30s', true), set_config('jit', 'off', true), "
    "set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true); "
    "SELECT {columns} FROM quaid.vaults WHERE vault = {vault} {lock}"
)
"""Each statement is planned once for a connection, for any vault: only ever a part of a table is a vault's."""
_COUNTERS = ("version", "last_document", "last_chunk", "last_embedder")
_MAX_WAITING = 1 << 20
"""Characters of rows that are inserted together."""
MAX_KEY = 600
"""Characters of what is looked up by an index: PostgreSQL refuses to keep more than 2,700 bytes in one."""
KEYED = frozenset({"documents", "names", "edges", "links", "tags", "pending", "citations"})
"""Tables whose texts are all looked up, or shown in one line."""
_PART = re.compile(
    r"'(?:[^']|'')*'|::|CROSS JOIN|json_group_array\(json_array|"
    r"(?P<json>json_each\()?(?P<given>\?\d*|:[a-z]\w*)|(?P<not>NOT )?"
    r"IN \(SELECT (?P<item>value|CAST\(value AS INTEGER\)) FROM json_each\((?P<listed>\?\d*|:[a-z]\w*)\)\)"
)
_WORDS = {"CROSS JOIN": "JOIN", "json_group_array(json_array": "json_agg(json_build_array"}
_KINDS = {"value": "text", "CAST(value AS INTEGER)": "int"}
_ESCAPED = re.compile(r'["\\]')
_WRITES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE)\b")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Place:
    """The rows of one vault: its number and name, and the names of the caller, None for all."""

    vault: int
    name: str
    owners: tuple[str, ...] | None = None


class Raw(psycopg.Connection[tuple[Any, ...]]):
    """A connection that prepares each statement once, and sends it by libpq alone: the cursors of psycopg take longer
    for most statements than PostgreSQL does.
    """

    def __init__(self, pgconn: pq.abc.PGconn, row_factory: Any = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self._names: dict[bytes, bytes] = {}

    def ask(self, statement: bytes, values: list[Any]) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        if (name := self._names.get(statement)) is None:
            name = b"quaid_%d" % len(self._names)
            self._read(self.pgconn.prepare(name, statement))
            self._names[statement] = name
        return self._read(self.pgconn.exec_prepared(name, values, None, pq.Format.BINARY))

    def send(self, statements: str) -> list[tuple[Any, ...]]:
        """Run statements at once, and return the rows of the last."""
        return self._read(self.pgconn.exec_(statements.encode()))

    def _read(self, result: pq.abc.PGresult) -> list[tuple[Any, ...]]:
        if result.status not in {pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK}:
            if self.pgconn.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError(result.get_error_message())
            raise psycopg.errors.error_from_result(result)
        loader = Transformer(self)
        loader.set_pgresult(result)
        return loader.load_rows(0, result.ntuples, tuple)


@dataclass(slots=True)
class _Work:
    """A transaction that is under way on a connection of the pool."""

    raw: Raw
    version: int = 0
    writes: int = 0
    private_to: str | None = None
    """The owner of the note that is being added, where it is private."""
    last: dict[str, int] = field(default_factory=dict)
    rows: dict[str, list[str]] = field(default_factory=dict)
    size: int = 0

    def insert(self, head: str, row: str) -> None:
        """Keep a row until the next statement: those of one `head`, INSERT INTO …, become one."""
        self.rows.setdefault(head, []).append(row)
        self.writes += 1
        self.size += len(row)
        if self.size > _MAX_WAITING:
            self.flush()

    def flush(self) -> None:
        """Insert the rows that wait."""
        if self.rows:
            self.raw.send(clean_text(";".join(f"{head} VALUES {','.join(rows)}" for head, rows in self.rows.items())))
            self.rows, self.size = {}, 0


class Found:
    """The rows of a statement."""

    def __init__(self, rows: list[Any]) -> None:
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
            work.flush()
            work.writes += translated.writes
            return Found(work.raw.ask(translated.sql, bind(translated, values)))

    def executemany(self, statement: str, values: Iterable[Values], /) -> None:
        """Run an INSERT with all its rows at once, another statement with one after the other."""
        head, mark, _ = statement.partition(" VALUES ")
        with self._working(writes=True) as work:
            if mark:
                self._insert_rows(work, head, values)
            for row in () if mark else values:
                self.execute(statement, row)

    def _insert_rows(self, work: _Work, head: str, rows: Iterable[Any]) -> None:
        table = head.split()[2]
        most = MAX_KEY if table in KEYED else None
        added = (self.place.vault, work.private_to) if table in NOTE_TABLES else ()
        if added:
            head = f"{head.removesuffix(')')}, vault, private_to)" if head.endswith(")") else head
        for row in rows:
            work.insert(head, f"({','.join([_as_literal(value, most) for value in (*row, *added)])})")

    def insert(self, table: str, columns: str, values: Sequence[Any], /) -> int:
        """Add a row with the next number of the vault; that of a chunk has its words."""
        column, counter = _NUMBERED[table]
        with self._working(writes=True) as work:
            number = work.last[counter] = work.last[counter] + 1
            if table == "documents":
                row = dict(zip(columns.split(", "), values, strict=True))
                work.private_to = row["owner"][:MAX_KEY] if row["privacy"] == PRIVATE else None
            elif table == "chunks":
                row = dict(zip(columns.split(", "), values, strict=True))
                columns += ", stems, length"
                texts = (row["text"], row["context"], row["keywords"])
                values = [*values, *make_vector(self.place.vault, texts)]
            self._insert_rows(work, f"INSERT INTO {table} ({column}, {columns})", [(number, *values)])
        return number

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the row of the vault, which only one writer can: so none reads what another is about to change."""
        assert self._work is None, "a transaction is under way"
        with self._begun("", ", ".join(_COUNTERS), "FOR UPDATE") as (work, row):
            work.last = dict(zip(_COUNTERS[1:], row[1:], strict=True))
            yield
            counters = ", ".join(f"{name} = {last}" for name, last in work.last.items())
            sums = "(chunks, words) = (SELECT count(*), coalesce(sum(length), 0) FROM chunks) WHERE vault ="
            work.flush()
            work.raw.send(f"UPDATE quaid.vaults SET version = version + 1, {counters}, {sums} {self.place.vault}")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one moment, the one of the transaction that is under way where there is one."""
        if self._work is not None:
            yield
            return
        with self._begun("ISOLATION LEVEL REPEATABLE READ READ ONLY", "version"):
            yield

    @contextmanager
    def _begun(self, mode: str, columns: str, lock: str = "") -> Iterator[tuple[_Work, tuple[int, ...]]]:
        """Yield a transaction with the vault's settings in it, and `columns` of the row of the vault."""
        with self._pool.connection() as raw:
            work, place = _Work(raw), self.place
            owners = _as_literal("" if place.owners is None else json.dumps(place.owners))
            begin = _BEGIN.format(mode=mode, columns=columns, lock=lock, vault=place.vault, owners=owners)
            try:
                row = raw.send(begin)[0]
                work.version = row[0]
                self._under_way.work = work
                yield work, row
                work.flush()
                raw.send("COMMIT")
            except BaseException as error:
                with suppress(psycopg.Error):  # the connection may be gone, and the transaction with it
                    raw.send("ROLLBACK")
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
        for table in TABLES:
            self.execute(f"DELETE FROM {table}")
        contents.set_meta(self, contents.GENERATION, os.urandom(8).hex())

    def close(self) -> None:
        """Nothing is open between two transactions."""


class Statement(NamedTuple):
    """A statement as PostgreSQL takes it. `values` are the parameters in their order, each with what becomes of it: an
    array of `text` or `int`, `json`, or, "", the value itself.
    """

    sql: bytes
    values: tuple[tuple[str, str], ...]
    writes: bool


@lru_cache(maxsize=1024)
def translate(statement: str) -> Statement:
    """Return the statement for PostgreSQL: `IN` of a list is `= ANY` of an array, for which an index is used; the
    hint of a CROSS JOIN means nothing to it.
    """
    values: dict[tuple[str, str], int] = {}
    place = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal place
        given = found["listed"] or found["given"]
        if given is None:
            return _WORDS.get(found[0], found[0])
        if given == "?":
            place += 1
            given = f"?{place}"
        kind = _KINDS.get(found["item"], "json" if found["json"] else "")
        number = values.setdefault((given[1:], kind), len(values) + 1)
        if found["listed"]:
            return f"{'<> ALL' if found['not'] else '= ANY'} (${number}::{kind}[])"
        return f"{found['json'] or ''}${number}"

    sql = _PART.sub(replace, statement)
    return Statement(sql.encode(), tuple(values), bool(_WRITES.match(statement)))


def bind(statement: Statement, values: Values) -> list[bytes | None]:
    """Return the texts of `values` as `statement` has them."""
    named = values if isinstance(values, Mapping) else {f"{at}": value for at, value in enumerate(values, start=1)}
    return [_as_text(named[name], kind) for name, kind in statement.values]


def _as_text(value: Any, kind: str = "") -> bytes | None:
    """Return a value as PostgreSQL reads it, a text without what is none to it; a truth value is a number."""
    if value is None:
        return None
    if kind == "json":
        return json.dumps(_clean(json.loads(value))).encode() if "\\u" in value else value.encode()
    if kind:
        value = json.loads(value)
    if isinstance(value, list):
        quoted = (_ESCAPED.sub(r"\\\g<0>", each) if isinstance(each, str) else each for each in value)
        items = ("NULL" if each is None else f'"{each}"' for each in quoted)
        return clean_text(f"{{{','.join(items)}}}").encode()
    return clean_text(value).encode() if isinstance(value, str) else f"{value:d}".encode()


def _as_literal(value: Any, most: int | None = None) -> str:
    """Return a value as a statement has it, of a text the first `most` characters."""
    if isinstance(value, str):
        return "'" + value[:most].replace("'", "''") + "'"
    return "NULL" if value is None else repr(int(value) if isinstance(value, bool) else value)


def _clean(value: Any) -> Any:
    """Return what is in JSON without what is no text to PostgreSQL, NUL and half characters."""
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return clean_text(value) if isinstance(value, str) else value


def clean_text(text: str) -> str:
    """Return `text` with a mark in the place of each NUL and half character."""
    return _NOT_TEXT.sub("\ufffd", text)
