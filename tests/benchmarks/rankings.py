"""What the benchmarks of recall print: the mean of each way to rank, with intervals over whole conversations.

Questions of one conversation are alike, so conversations are drawn anew, not questions (bootstrap, 95%). *ahead* is the
paired difference: Quaid's figure minus that of the row. With six or ten conversations an interval is rather too narrow.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from bench import p95

Measures = dict[str, float]
Rows = dict[str, list[Measures]]
"""By way to rank, the measures of each question."""

QUAID = "hybrid"
BARE = ("keyword", "vector", "fusion")
"""Quaid's channels without any other stage."""
PEERS = ("bm25", "chromadb", "LanceDB hybrid")
"""Other retrievers on the same texts and vectors (peers.py)."""
CUTS = ("R@5", "R@10", "R@20")
RESAMPLES = 4000


@dataclass(frozen=True)
class Asked:
    """One conversation: how many memories there are, the category of each question, what each way to rank finds, and
    how long recall took in ms.
    """

    pool: int
    categories: list[str]
    rows: Rows
    latencies: list[float]


def summarise(asked: Iterable[Asked]) -> dict[str, Any]:
    """The figures of a set: each way to rank, and Quaid and plain fusion by category."""
    asked = [each for each in asked if each.categories]
    latencies = [taken for each in asked for taken in each.latencies]
    categories = sorted({category for each in asked for category in each.categories})
    return {
        "questions": sum(len(each.categories) for each in asked),
        "conversations": len(asked),
        "turns": sum(each.pool for each in asked),
        "rows": {name: _figures(asked, name) for name in asked[0].rows},
        "by_category": {
            category: {name: _figures(asked, name, category) for name in ("fusion", QUAID, "sessions")}
            for category in categories
        },
        "p50_ms": statistics.median(latencies),
        "p95_ms": p95(latencies),
    }


def print_summary(
    figures: Mapping[str, Any], title: str, metrics: Sequence[str], bounded: Sequence[str] = ("R@10",)
) -> None:
    """Print each row: the `metrics`, and the interval of those that are `bounded`."""
    print(
        f"{title}: {figures['questions']} questions, {figures['conversations']} stores, {figures['turns']} memories; "
        f"{figures['machine']}"
    )
    head = "".join(f"{name:>9}" for name in metrics) + "".join(f"{name + ', 95%':>17}" for name in bounded)
    print(f"{'':37}{head}   ahead at R@10, 95%")
    for name, row in figures["rows"].items():
        print(f"{name:37}" + _format(row, metrics, bounded))
    for category, rows in figures["by_category"].items():
        for name, row in rows.items():
            print(f"{f'  {category}, {name}':37}" + _format(row, metrics, bounded))
    print(f"recall p50 {figures['p50_ms']:.1f} ms, p95 {figures['p95_ms']:.1f} ms")


def interval(groups: Iterable[Sequence[float]]) -> tuple[float, float]:
    """The 95% interval of the mean, where whole groups are drawn anew, or the values of the only one."""
    drawn_from = [group for group in groups if len(group)]
    if len(drawn_from) == 1:
        drawn_from = [[value] for value in drawn_from[0]]
    sums, counts = (np.array([measure(group) for group in drawn_from]) for measure in (np.sum, len))
    drawn = _draw(len(sums))
    low, high = np.percentile((drawn @ sums) / (drawn @ counts), [2.5, 97.5])
    return float(low), float(high)


@cache
def _draw(groups: int) -> Any:
    """How often each group is in each resample."""
    return np.random.default_rng(7).multinomial(groups, np.full(groups, 1 / groups), RESAMPLES)


def _figures(asked: Sequence[Asked], name: str, category: str | None = None) -> dict[str, Any]:
    """The mean of each measure with its interval, and how far Quaid is ahead of a rival."""

    def groups(row: str, measure: str) -> list[list[float]]:
        return [
            [
                found[measure]
                for found, its in zip(each.rows[row], each.categories, strict=True)
                if category in (None, its)
            ]
            for each in asked
        ]

    ahead = {}
    if name in (*BARE, *PEERS):
        for cut in CUTS:
            pairs = zip(groups(QUAID, cut), groups(name, cut), strict=True)
            gains = [[one - other for one, other in zip(*pair, strict=True)] for pair in pairs]
            ahead[cut] = (_mean(gains), *interval(gains))
    by_measure = {measure: groups(name, measure) for measure in asked[0].rows[name][0]}
    return {
        **{measure: _mean(found) for measure, found in by_measure.items()},
        "questions": sum(map(len, by_measure[CUTS[0]])),
        "interval": {measure: interval(found) for measure, found in by_measure.items()},
        **({"ahead": ahead} if ahead else {}),
    }


def _mean(groups: Iterable[Sequence[float]]) -> float:
    return statistics.fmean(value for group in groups for value in group)


def _format(row: Mapping[str, Any], metrics: Sequence[str], bounded: Sequence[str]) -> str:
    ahead = "   {:+.3f} ({:+.3f} to {:+.3f})".format(*row["ahead"]["R@10"]) if "ahead" in row else ""
    bounds = "".join("   {:.3f} to {:.3f}".format(*row["interval"][name]) for name in bounded)
    return "".join(f"{row[name]:9.3f}" for name in metrics) + bounds + ahead
