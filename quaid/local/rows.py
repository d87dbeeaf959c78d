"""Every value of a database, whatever its tables are: looked through, changed, and written to the disk anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from quaid.errors import DiskFailedError
from quaid.local.database import open_local, translated
from quaid.sqlite import transaction

if TYPE_CHECKING:
    from apsw import SQLiteValue

_MADE_AGAIN = ("model_answers", "project_notes", "doc_checks")
"""Tables of local.db whose rows go whole: half an answer is none."""


def clean_rows(path: Path, holds: Callable[[bytes], bool], clean: Callable[[bytes], bytes]) -> None:
    """Change each value of local.db at `path` that `holds` something as `clean` does; rows that can be made again go.

    Raises:
        DiskFullError, StateDamagedError, LockedError, VaultReadOnlyError: local.db cannot be used.
    """

    def is_held(*values: SQLiteValue) -> SQLiteValue:
        data = _encode(values[0])
        return data is not None and holds(data)

    def cleaned(*values: SQLiteValue) -> SQLiteValue:
        data = clean(_encode(values[0]) or b"")
        return data.decode("utf-8", "replace") if isinstance(values[0], str) else data

    with closing(open_local(path)) as connection, translated(connection):
        connection.create_scalar_function("holds", is_held, 1, deterministic=True)
        connection.create_scalar_function("cleaned", cleaned, 1, deterministic=True)
        with transaction(connection):
            for table in _list_tables(connection):
                for column in [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]:
                    change = f'UPDATE OR REPLACE "{table}" SET "{column}" = cleaned("{column}")'
                    change = f'DELETE FROM "{table}"' if table in _MADE_AGAIN else change
                    connection.execute(f'{change} WHERE holds("{column}")')
        _compact(connection)


def compact(path: Path) -> None:
    """Write the database at `path` anew, so that no page of it holds what was deleted, and empty its log."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        _compact(connection)


def iterate_values(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (table, value) for each text and blob of a database, those that full-text search keeps for itself too.

    Raises:
        DiskFailedError: it cannot be read.
    """
    with _reading(path) as connection:
        for table in _list_tables(connection):
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield from ((table, data) for value in row if (data := _encode(value)) is not None)


def find_phrases(path: Path, phrases: Sequence[str], owners: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (full-text index, owner) for each row that finds the words of one of `phrases`, whatever signs stand
    between them: what such an index keeps of words is packed. `owners` are queries, by the names of indexes, for what
    a row is indexed of; the owner is empty where there is none.

    Raises:
        DiskFailedError: it cannot be read.
    """
    with _reading(path) as connection:
        query = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%USING fts5 %'"
        for (name,) in list(connection.execute(query)):
            for phrase in phrases:
                quoted = '"' + phrase.replace('"', '""').replace("\0", " ") + '"'
                rows: list[tuple[SQLiteValue, ...]] = []
                with suppress(apsw.SQLError):  # a text without a word is in no full-text index
                    rows = list(connection.execute(f'SELECT rowid FROM "{name}" WHERE "{name}" MATCH ?', (quoted,)))
                for row in rows:
                    owner = connection.execute(owners[name], row).fetchone() if name in owners else None
                    yield str(name), str(owner[0]) if owner else ""


@contextmanager
def _reading(path: Path) -> Iterator[apsw.Connection]:
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            yield connection
    except apsw.Error as error:
        raise DiskFailedError(path, str(error)) from error


def _list_tables(connection: apsw.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    return [str(name).replace('"', '""') for (name,) in connection.execute(query)]


def _compact(connection: apsw.Connection) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _encode(value: object) -> bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else None
