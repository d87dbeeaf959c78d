"""The trace of a recall: what each stage was given, what it left, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class RecallTrace:
    """Notes of one recall. `quaid recall --explain` draws them, the recall log keeps the times."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.stages: list[dict[str, Any]] = []
        self.cut: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """Time the body as stage `name`; what it puts into the dict is shown with it. Safe from several threads."""
        noted: dict[str, Any] = {"stage": name, "took_ms": 0.0}
        self.stages.append(noted)
        clock = time.perf_counter()
        try:
            yield noted
        finally:
            noted["took_ms"] = round((time.perf_counter() - clock) * 1000, 2)

    def leave_out(self, hit_id: str, score: float, why: str) -> None:
        """Note a candidate that is not shown, and why."""
        self.cut.append({"id": hit_id, "score": round(score, 4), "why": why})

    @property
    def took_ms(self) -> float:
        """Milliseconds since the question was asked."""
        return (time.perf_counter() - self._started) * 1000

    def as_shape(self) -> dict[str, Any]:
        """Return what `Recall.trace` holds; `took_ms` is by stage, summed where a stage ran twice."""
        took: dict[str, float] = {}
        for stage in self.stages:
            took[stage["stage"]] = round(took.get(stage["stage"], 0.0) + stage["took_ms"], 2)
        return {**self.facts, "stages": self.stages, "cut": self.cut, "took_ms": took}
