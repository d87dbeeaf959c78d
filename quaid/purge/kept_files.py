"""The files of a work tree and of a state folder without a text: what can be made again is deleted, the rest changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from quaid.local.database import open_local
from quaid.place import AS_OF_DIR, DOCS_FILE, INDEX_FILE, LOCAL_FILE, write_private
from quaid.purge.rules import PurgeRules
from quaid.purge.wording import Wording
from quaid.sqlite import transaction

if TYPE_CHECKING:
    from apsw import SQLiteValue

_MADE_AGAIN = ("model_answers", "project_notes", "doc_checks")
"""Tables of local.db whose rows go whole: half an answer is none."""
_SQLITE = b"SQLite format 3\0"


def iterate_files(folder: Path, skipped: Sequence[str] = (".git",)) -> Iterator[Path]:
    """Yield every regular file below `folder`; no link is followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in skipped)
        files = (Path(place, name) for name in sorted(names))
        yield from (path for path in files if path.name not in skipped and path.is_file() and not path.is_symlink())


def clean_tree(top: Path, rules: PurgeRules) -> None:
    """Take the text out of the files below `top`, and out of their names."""
    for path in iterate_files(top):
        data = path.read_bytes()
        changed = rules.change_file(data)
        if changed is None:
            path.unlink()
            _remove_empty(path.parent, top)
            continue
        if changed != data:
            _overwrite(path, changed)
        name = os.fsencode(path.relative_to(top))
        if (new := rules.change_path(name)) != name:
            target = top / os.fsdecode(new)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            _remove_empty(path.parent, top)


def clean_state(state: Path, wording: Wording) -> None:
    """Take the text out of what this machine keeps of a vault. The indexes are deleted: they are made again."""
    shutil.rmtree(state / AS_OF_DIR, ignore_errors=True)
    for name in (INDEX_FILE, DOCS_FILE):
        for path in state.glob(f"{name}*"):
            path.unlink()
    if (state / LOCAL_FILE).exists():
        _clean_local(state / LOCAL_FILE, wording)
    for path in iterate_files(state):
        if path.name.startswith((LOCAL_FILE, "cache.db")) and not path.name.endswith((".damaged", ".tmp")):
            continue
        data = path.read_bytes()
        if data.startswith(_SQLITE):  # a database that was set aside
            if path.name.endswith(".damaged"):
                path.unlink()
        elif (changed := wording.replace(data)) != data:
            write_private(path, changed)
        if wording.is_in(os.fsencode(path.name)):
            path.unlink(missing_ok=True)


def iterate_rows(connection: apsw.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield (table, value) for each text and blob in a database, those that full-text search keeps for itself too."""
    for table in list_tables(connection):
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            for value in row:
                if isinstance(value, str):
                    yield table, value.encode("utf-8", "surrogatepass")
                elif isinstance(value, bytes):
                    yield table, value


def list_tables(connection: apsw.Connection) -> list[str]:
    """The tables that hold rows of their own, by name."""
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    return [str(name).replace('"', '""') for (name,) in connection.execute(query)]


def _clean_local(path: Path, wording: Wording) -> None:
    def holds(*values: SQLiteValue) -> SQLiteValue:
        value = values[0]
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        return isinstance(data, bytes) and wording.is_in(data)

    def cleaned(*values: SQLiteValue) -> SQLiteValue:
        value = values[0]
        if isinstance(value, str):
            return wording.replace(value.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        return wording.replace(value) if isinstance(value, bytes) else value

    with closing(open_local(path)) as connection:
        connection.create_scalar_function("holds", holds, 1, deterministic=True)
        connection.create_scalar_function("cleaned", cleaned, 1, deterministic=True)
        with transaction(connection):
            for table in list_tables(connection):
                for column in [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]:
                    whole = f'DELETE FROM "{table}"'
                    part = f'UPDATE OR REPLACE "{table}" SET "{column}" = cleaned("{column}")'
                    connection.execute(f'{whole if table in _MADE_AGAIN else part} WHERE holds("{column}")')
        compact(connection)


def compact(connection: apsw.Connection) -> None:
    """Write a database anew, so that no page of it holds what was deleted, and empty its write-ahead log."""
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _overwrite(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name[:40]}.{os.urandom(6).hex()}.tmp")
    draft.write_bytes(data)
    shutil.copymode(path, draft)
    draft.replace(path)


def _remove_empty(folder: Path, top: Path) -> None:
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
