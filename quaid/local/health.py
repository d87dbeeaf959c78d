"""A snapshot of the memory after each run of the janitor, in local.db: numbers to chart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date, timedelta

from quaid.local.tables import Tables, parse_rows

_KEPT_DAYS = 400


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The memory at a moment (ISO 8601, UTC).

    `kinds` and `statuses` count notes, `chunks` and `embedded` what can be searched and what of it by meaning. Sizes
    are bytes; `repository_bytes` is what git keeps. `recall_p50_ms` is of the day before, None when nothing was asked.
    `waiting` questions waited for the owner. `cost_usd` is what the run took, None where a price is unknown.
    """

    at: str
    kinds: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    superseded: int = 0
    entities: int = 0
    edges: int = 0
    chunks: int = 0
    embedded: int = 0
    index_bytes: int = 0
    repository_bytes: int = 0
    recall_p50_ms: float | None = None
    gaps: int = 0
    waiting: int = 0
    cost_usd: float | None = 0.0

    @property
    def day(self) -> str:
        return self.at[:10]

    @property
    def notes(self) -> int:
        return sum(self.kinds.values())

    @property
    def pending(self) -> int:
        """Facts that were not reviewed yet."""
        return self.statuses.get("pending", 0)

    @property
    def embedded_share(self) -> float | None:
        return self.embedded / self.chunks if self.chunks else None


class HealthLog(Tables):
    """The snapshots."""

    SCHEMA = """
-- The memory at a moment, as JSON.
CREATE TABLE IF NOT EXISTS health (at TEXT PRIMARY KEY, snapshot TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

    def add(self, snapshot: Snapshot) -> None:
        """Add it, and delete those that are older than 400 days."""
        oldest = (date.fromisoformat(snapshot.day) - timedelta(days=_KEPT_DAYS)).isoformat()
        with self._transaction() as connection:
            row = (snapshot.at, json.dumps(asdict(snapshot)))
            connection.execute("INSERT OR REPLACE INTO health (at, snapshot) VALUES (?,?)", row)
            connection.execute("DELETE FROM health WHERE at < ?", (oldest,))

    def by_day(self, since: str) -> list[Snapshot]:
        """Return the last snapshot of each day from `since` (ISO) on, oldest first, with the cost of all runs of the
        day.
        """
        rows = self._rows("SELECT snapshot FROM health WHERE at >= ? ORDER BY at", since)
        days: dict[str, Snapshot] = {}
        for snapshot in parse_rows(_parse_snapshot, rows):
            earlier = days.get(snapshot.day, Snapshot(snapshot.at, cost_usd=None))
            costs = [cost for cost in (earlier.cost_usd, snapshot.cost_usd) if cost is not None]
            days[snapshot.day] = replace(snapshot, cost_usd=sum(costs) if costs else None)
        return list(days.values())


def _parse_snapshot(row: tuple[str]) -> Snapshot:
    """Return the snapshot in a row. What only an older or newer Quaid counts is ignored; what it did not count is 0.

    Raises:
        ValueError, TypeError, AttributeError, KeyError: it is not a snapshot.
    """
    stored = json.loads(row[0])
    values = {one.name: stored[one.name] for one in fields(Snapshot) if one.name in stored}
    date.fromisoformat(stored["at"][:10])
    for name, value in values.items():
        numbers = value.values() if name in {"kinds", "statuses"} else [] if name == "at" else [value]
        if not all(number is None or isinstance(number, int | float) for number in numbers):
            raise TypeError(name)
    return Snapshot(**values)
