"""The usage of memories: accesses, last access and Bjork's storage strength, of this device and of all others.

A row is what one device has counted for one memory since it began. This device's own rows (its name is empty here)
change with every recall. Earlier versions wrote the counters of each device to a ledger in `usage/`: those are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quaid.model import Use
from quaid.sqlite import transaction

if TYPE_CHECKING:
    import apsw

SCHEMA = """
-- One device's counters for one memory; the device that this file belongs to is ''.
-- Strength is in ten-thousandths, so that a sum does not depend on its order.
CREATE TABLE IF NOT EXISTS usage (
    id TEXT NOT NULL, device TEXT NOT NULL, accesses INTEGER NOT NULL, last_access TEXT, strength INTEGER NOT NULL,
    PRIMARY KEY (id, device)
) STRICT, WITHOUT ROWID;
-- Which state of each ledger file the rows above mirror.
CREATE TABLE IF NOT EXISTS ledgers (device TEXT PRIMARY KEY, stamp TEXT NOT NULL) STRICT, WITHOUT ROWID;
-- The name of the ledger that an earlier version wrote for this device. One row at most.
CREATE TABLE IF NOT EXISTS device (name TEXT PRIMARY KEY, place TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

BASE_GAIN = 0.05
DIFFICULTY_BONUS = 3.0
_UNIT = 10_000
_OWN = ""
_RECORD = """
INSERT INTO usage (id, device, accesses, last_access, strength)
VALUES (?, '', 1, ?, ?)
ON CONFLICT (id, device) DO UPDATE SET
    accesses = accesses + 1,
    last_access = max(coalesce(last_access, ''), excluded.last_access),
    strength = strength + excluded.strength
"""
# The same order as vault/ledger.later: between two recalls strength can only have been taken away.
_KEEP_LATER = """
INSERT INTO usage (id, device, accesses, last_access, strength)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id, device) DO UPDATE SET
    accesses = excluded.accesses, last_access = excluded.last_access, strength = excluded.strength
WHERE (excluded.accesses, coalesce(excluded.last_access, ''), -excluded.strength)
    > (accesses, coalesce(last_access, ''), -strength)
"""

ReadLedger = Callable[[str], Mapping[str, Use]]


class Usage:
    """The counters in local.db, on a connection opened with `SCHEMA`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._mirrored: Mapping[str, str] | None = None

    def of(self, ids: Iterable[str]) -> dict[str, Use]:
        """Return the use of these memories by all devices together; an id that was never used is left out.

        `strength` is what is left after weakening, never below zero.
        """
        rows = self._connection.execute(
            "SELECT id, sum(accesses), max(last_access), max(0, sum(strength)) FROM usage "
            "WHERE id IN (SELECT value FROM json_each(?)) GROUP BY id",
            (json.dumps(list(ids)),),
        )
        return {row[0]: Use(row[1], row[2], row[3] / _UNIT) for row in rows}

    def most_used(self, limit: int) -> list[tuple[str, Use]]:
        """Return the memories recalled most often by all devices together, most first."""
        rows = self._connection.execute(
            "SELECT id, sum(accesses) AS total, max(last_access) AS last, max(0, sum(strength)) FROM usage "
            "GROUP BY id HAVING total > 0 ORDER BY total DESC, last DESC, id LIMIT ?",
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

    def mirror(self, stamps: Mapping[str, str], read: ReadLedger) -> None:
        """Read the ledgers whose stamp has changed; `stamps` is device -> stamp.

        This device's own ledger counts where it is ahead of local.db.
        """
        if stamps == self._mirrored:
            return
        if stamps != self._known():
            with transaction(self._connection):
                row = self._connection.execute("SELECT name FROM device").fetchone()
                own, known = row and row[0], self._known()  # another process may have been quicker
                for device in [*known]:
                    if known[device] != stamps.get(device):
                        self._connection.execute("DELETE FROM usage WHERE device = ?", (device,))
                        self._connection.execute("DELETE FROM ledgers WHERE device = ?", (device,))
                for device, stamp in stamps.items():
                    if known.get(device) != stamp:
                        name = _OWN if device == own else device
                        rows = (
                            (note_id, name, use.accesses, use.last_access, round(use.strength * _UNIT))
                            for note_id, use in read(device).items()
                        )
                        self._connection.executemany(_KEEP_LATER, rows)
                        self._connection.execute("INSERT INTO ledgers (device, stamp) VALUES (?, ?)", (device, stamp))
        self._mirrored = dict(stamps)

    def _known(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self._connection.execute("SELECT device, stamp FROM ledgers")}
