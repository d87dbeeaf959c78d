"""Lines queued by `quaid note` until the next extraction of their session."""

from collections.abc import Collection
from datetime import datetime, timedelta

from quaid.local.tables import Tables
from quaid.redaction import admit

OVERDUE = timedelta(days=1)
"""The time after which no conversation is expected to take up a line."""


class SessionNotes(Tables):
    """The queue of lines."""

    SCHEMA = (
        "CREATE TABLE IF NOT EXISTS notes_to_self "
        "(note_id INTEGER PRIMARY KEY, session TEXT, text TEXT NOT NULL, created TEXT NOT NULL)"
    )

    def add(self, text: str, session: str | None, now: datetime) -> None:
        """Queue a line for `session`, or for whichever session is extracted next."""
        row = (session and admit(session).text, admit(text).text, now.isoformat())
        with self._open() as connection:
            connection.execute("INSERT INTO notes_to_self (session, text, created) VALUES (?,?,?)", row)

    def waiting(self, session: str) -> list[tuple[int, str]]:
        """Return (note_id, text) of the lines for `session` and for no session in particular, oldest first."""
        query = "SELECT note_id, text FROM notes_to_self WHERE session = ? OR session IS NULL ORDER BY note_id"
        return [(int(note_id), str(text)) for note_id, text in self._rows(query, session)]

    def list_overdue(self, now: datetime) -> list[tuple[str | None, datetime]]:
        """Return each session, None for any, whose first line has waited for `OVERDUE`, and when that was queued."""
        rows = self._rows("SELECT session, min(created) FROM notes_to_self GROUP BY session ORDER BY 2")
        first = [(session, datetime.fromisoformat(created)) for session, created in rows]
        return [(session, created) for session, created in first if now - created >= OVERDUE]

    def remove(self, note_ids: Collection[int]) -> None:
        """Delete the lines with these ids."""
        if note_ids:
            with self._open() as connection:
                connection.executemany("DELETE FROM notes_to_self WHERE note_id = ?", [(i,) for i in note_ids])

    def count(self) -> int:
        """Return the number of lines that wait."""
        return sum(int(row[0]) for row in self._rows("SELECT count(*) FROM notes_to_self"))
