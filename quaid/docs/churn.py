"""Whether a doc has grown by being added to again and again: counted from the commits that changed it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from quaid.docs.catalogue import Doc

RECENT = timedelta(days=90)
HALF_A_YEAR = timedelta(days=182)
LARGE = 20_000
"""Bytes: one in ten of 304 READMEs that packages bring along is as large. A smaller doc is read whole."""
MANY_CHANGES = 12
"""In `RECENT`: one a week, for a doc is changed with nearly every piece of work on what it tells of."""
MUCH_GROWTH = 1.5
"""Times what it was: whatever was added replaced nothing."""


@dataclass(frozen=True, slots=True)
class Churn:
    """`changes` in the last 90 days; `size` in bytes now; `was` what that is compared with: the size half a year ago,
    or at its first commit if that is 90 days ago or more; None for a younger doc, which is still being written.
    """

    changes: int
    size: int
    was: int | None

    @property
    def growth(self) -> float | None:
        """Times its former size; None without one."""
        return self.size / max(1, self.was) if self.was is not None else None


@dataclass(frozen=True, slots=True)
class GrownDoc:
    """A doc that shortening is worth asking about."""

    doc: Doc
    data: bytes
    churn: Churn

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")


def measure_churn(commits: Sequence[tuple[datetime, int]], now: datetime) -> Churn:
    """From (when, size in bytes then) of each commit that changed a doc, in any order."""
    sized = sorted(commits)
    older = [size for when, size in sized if when <= now - HALF_A_YEAR]
    first = [size for when, size in sized[:1] if when <= now - RECENT]
    return Churn(
        changes=sum(now - RECENT < when <= now for when, _ in sized),
        size=sized[-1][1] if sized else 0,
        was=next(iter(older[-1:] or first), None),
    )


def is_bloated(churn: Churn) -> bool:
    """Whether shortening it is worth asking about: large, much changed, and much larger than it was."""
    growth = churn.growth
    return churn.size >= LARGE and churn.changes >= MANY_CHANGES and growth is not None and growth >= MUCH_GROWTH
