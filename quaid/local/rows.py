"""Every value of a database, whatever its tables are: read, cleaned of a text or of secrets, and written anew."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw

from quaid.errors import DiskFailedError
from quaid.local.database import open_local, translated
from quaid.redaction import VERSION, admit
from quaid.sqlite import DAILY, transaction

_MADE_AGAIN = ("model_answers", "doc_checks")
"""Tables of local.db whose rows go whole: half an answer is none."""
_TEXTS = (
    *(("model_answers", "answer"), ("doc_checks", "found"), ("recall_log", "query")),
    *(("gaps", "text"), ("notes_to_self", "text"), ("janitor_runs", "problem")),
)
"""The columns with words of people and models, by table."""


def clean_rows(path: Path, clean: Callable[[bytes], bytes]) -> None:
    """Change each value of local.db at `path` that `clean` changes; rows that can be made again go.

    Raises:
        UnwritableError, LockedError, StateDamagedError: local.db cannot be used.
    """
    with closing(open_local(path)) as connection, translated(connection):
        with transaction(connection):
            columns = [
                (table, str(row[1]))
                for table in _list_tables(connection)
                for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall()
            ]
            _clean(connection, columns, clean)
        _compact(connection)


def redact_rows(path: Path) -> int:
    """Take the secrets out of local.db at `path`, unless these rules have done so before; return how many texts had
    some.

    Raises:
        UnwritableError, LockedError, StateDamagedError: local.db cannot be used.
    """

    def redact(data: bytes) -> bytes:
        return admit(data.decode("utf-8", "surrogatepass")).text.encode("utf-8", "surrogatepass")

    if not path.exists():
        return 0
    schema = "CREATE TABLE IF NOT EXISTS scrubbed (gate INTEGER)"
    with closing(open_local(path, schema)) as connection, translated(connection):
        if connection.execute("SELECT max(gate) FROM scrubbed").fetchone() == (VERSION,):
            return 0
        changed = connection.total_changes()
        with transaction(connection):
            there = _list_tables(connection)
            _clean(connection, [pair for pair in _TEXTS if pair[0] in there], redact)
            changed = connection.total_changes() - changed
            connection.execute("INSERT INTO scrubbed VALUES (?)", (VERSION,))
        connection.execute("VACUUM")
        Path(f"{path}{DAILY}").unlink(missing_ok=True)
        return changed


def _clean(connection: apsw.Connection, columns: Iterable[tuple[str, str]], clean: Callable[[bytes], bytes]) -> None:
    def cleaned(*values: "apsw.SQLiteValue") -> "apsw.SQLiteValue":
        data = _encode(values[0])
        if data is None or (changed := clean(data)) == data:
            return values[0]
        return changed.decode("utf-8", "replace") if isinstance(values[0], str) else changed

    connection.create_scalar_function("cleaned", cleaned, 1, deterministic=True)
    for table, column in columns:
        change = f'UPDATE OR REPLACE "{table}" SET "{column}" = cleaned("{column}")'
        change = f'DELETE FROM "{table}"' if table in _MADE_AGAIN else change
        connection.execute(f'{change} WHERE "{column}" <> cleaned("{column}")')


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
                rows: list[tuple[apsw.SQLiteValue, ...]] = []
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
