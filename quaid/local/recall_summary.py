"""Statistics over the log of recalls: how fast recall was, how often it answered, what it went without."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from quaid.local.recall_log import RecallEntry

BUCKETS_MS = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)
"""Upper ends of the histogram's bars; one more bar holds what took longer."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Half of the `count` measurements were within `p50_ms`, 95 of 100 within `p95_ms` (nearest rank)."""

    count: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Bar:
    """The number of recalls that took more than the bar before and at most `up_to_ms` (None: any longer)."""

    up_to_ms: float | None
    count: int


class RecallDay(NamedTuple):
    """The recalls of one day (YYYY-MM-DD, UTC)."""

    date: str
    recalls: int
    answered: int
    degraded: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class RecallSummary:
    """The statistics of a log. `degraded` counts recalls by kind of degradation, `doors` by where they came from."""

    recalls: int = 0
    first: str | None = None
    last: str | None = None
    answered: int = 0
    unanswered: int = 0
    latency: Latency | None = None
    stages: Mapping[str, Latency] = field(default_factory=dict)
    histogram: tuple[Bar, ...] = ()
    days: tuple[RecallDay, ...] = ()
    degraded_recalls: int = 0
    degraded: Mapping[str, int] = field(default_factory=dict)
    doors: Mapping[str, int] = field(default_factory=dict)


def summarise(entries: Sequence[RecallEntry]) -> RecallSummary:
    """Return the summary of `entries`, in any order."""
    if not entries:
        return RecallSummary()
    times = [entry.at for entry in entries]
    stages: dict[str, list[float]] = {}  # in the order in which the entries name them
    by_date: dict[str, list[RecallEntry]] = {}
    for entry in entries:
        by_date.setdefault(entry.at[:10], []).append(entry)
        for name, took_ms in entry.stages.items():
            stages.setdefault(name, []).append(took_ms)
    answered = sum(bool(entry.hits) for entry in entries)
    took = [entry.took_ms for entry in entries]
    kinds = Counter(kind for entry in entries for kind in sorted({name.split(":", 1)[0] for name in entry.degraded}))
    bars = Counter(bisect_left(BUCKETS_MS, each) for each in took)
    days = []
    for day, same in sorted(by_date.items()):
        latency = measure(entry.took_ms for entry in same)
        found, poor = sum(bool(entry.hits) for entry in same), sum(bool(entry.degraded) for entry in same)
        days.append(RecallDay(day, len(same), found, poor, latency.p50_ms, latency.p95_ms))
    return RecallSummary(
        recalls=len(entries),
        first=min(times),
        last=max(times),
        answered=answered,
        unanswered=len(entries) - answered,
        latency=measure(took),
        stages={name: measure(measured) for name, measured in stages.items()},
        histogram=tuple(Bar(end, bars[number]) for number, end in enumerate((*BUCKETS_MS, None))),
        days=tuple(days),
        degraded_recalls=sum(bool(entry.degraded) for entry in entries),
        degraded=dict(kinds.most_common()),
        doors=dict(Counter(entry.door for entry in entries).most_common()),
    )


def measure(took_ms: Iterable[float]) -> Latency:
    """Return median and 95th percentile of at least one measurement."""
    ordered = sorted(took_ms)
    p50, p95 = (ordered[ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
    return Latency(len(ordered), round(p50, 2), round(p95, 2))
