"""Redaction of texts that are in local.db already, once for each version of the redaction rules."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from quaid.local.database import open_local, translated
from quaid.redaction import VERSION, admit
from quaid.sqlite import DAILY, transaction

if TYPE_CHECKING:
    from apsw import SQLiteValue

_DROPPED = (("model_answers", "answer"), ("project_notes", "told"), ("doc_checks", "found"))
"""Columns of rows that can be made again, and are deleted."""
_REPLACED = (("recall_log", "query"), ("gaps", "text"), ("notes_to_self", "text"), ("janitor_runs", "problem"))


def scrub(path: Path) -> int:
    """Take the secrets out of local.db at `path`, unless these rules have done so before; return how many texts had
    some.

    Raises:
        DiskFullError, StateDamagedError, LockedError, VaultReadOnlyError: local.db cannot be used.
    """

    def admitted(*values: SQLiteValue) -> SQLiteValue:
        return admit(values[0]).text if isinstance(values[0], str) else values[0]

    if not path.exists():
        return 0
    connection = open_local(path, "CREATE TABLE IF NOT EXISTS scrubbed (gate INTEGER)")
    try:
        with translated(connection):
            if connection.execute("SELECT max(gate) FROM scrubbed").fetchone() == (VERSION,):
                return 0
            connection.create_scalar_function("admitted", admitted, 1, deterministic=True)
            changed = connection.total_changes()
            with transaction(connection):
                for table, column in (*_DROPPED, *_REPLACED):
                    with suppress(apsw.SQLError):  # a table that nobody has needed yet
                        change = f"UPDATE {table} SET {column} = admitted({column})"
                        change = f"DELETE FROM {table}" if (table, column) in _DROPPED else change
                        connection.execute(f"{change} WHERE {column} <> admitted({column})")
                changed = connection.total_changes() - changed
                connection.execute("INSERT INTO scrubbed VALUES (?)", (VERSION,))
            connection.execute("VACUUM")
            Path(f"{path}{DAILY}").unlink(missing_ok=True)
            return changed
    finally:
        connection.close()
