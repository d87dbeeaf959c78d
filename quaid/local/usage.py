"""The uses of memories on this machine: accesses, last access and Bjork's storage strength."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quaid.model import Use

if TYPE_CHECKING:
    import apsw

SCHEMA = """
-- The uses of one memory. Strength is in ten-thousandths, so that a sum does not depend on its order.
CREATE TABLE IF NOT EXISTS uses (
    id TEXT PRIMARY KEY, accesses INTEGER NOT NULL, last_access TEXT NOT NULL, strength INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

BASE_GAIN = 0.05
DIFFICULTY_BONUS = 3.0
_UNIT = 10_000
_RECORD = """
INSERT INTO uses (id, accesses, last_access, strength)
VALUES (?, 1, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    accesses = accesses + 1,
    last_access = max(last_access, excluded.last_access),
    strength = strength + excluded.strength
"""


class Usage:
    """The counters in local.db, on a connection opened with `SCHEMA`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def of(self, ids: Iterable[str]) -> dict[str, Use]:
        """Return the use of these memories; an id that was never used is left out."""
        rows = self._connection.execute(
            "SELECT id, accesses, last_access, strength FROM uses WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(ids)),),
        )
        return {row[0]: Use(row[1], row[2], row[3] / _UNIT) for row in rows}

    def most_used(self, limit: int) -> list[tuple[str, Use]]:
        """Return the memories recalled most often, most first."""
        rows = self._connection.execute(
            "SELECT id, accesses, last_access, strength FROM uses ORDER BY accesses DESC, last_access DESC, id LIMIT ?",
            (limit,),
        )
        return [(row[0], Use(row[1], row[2], row[3] / _UNIT)) for row in rows]

    def record(self, recalled: Mapping[str, float], now: datetime) -> None:
        """Count a recall of each memory, id -> difficulty in [0, 1]; the harder it was to find, the more it gains: 0.05
        * (1 + 3 * difficulty).
        """
        when = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        gains = ((note_id, BASE_GAIN * (1 + DIFFICULTY_BONUS * hard)) for note_id, hard in recalled.items())
        self._connection.executemany(_RECORD, [(note_id, when, round(gain * _UNIT)) for note_id, gain in gains])
