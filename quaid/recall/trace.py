"""The trace of a recall: what each stage was given, what it left, and how long it took."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from quaid.model import Hit, Recall

MIN_SHOWN = 0.005
"""Smaller scores round to nothing and are not shown."""
_DEGRADED = {"vectors": "vectors: searched by words and graph only. See why with: quaid doctor"}


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


def split_score(hit: Hit) -> dict[str, float]:
    """Return what the score of a hit is made of, the most first; what counts against it is negative."""
    parts = dict(hit.evidence)
    # The rest was added later: by an exact name, the order, a model.
    later = hit.score - sum(parts.values())
    if parts and abs(later) >= MIN_SHOWN:
        parts["later stages"] = later
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def group_left_out(trace: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Return the hits that were found and are not shown: reason -> id -> score, the best first."""
    reasons: dict[str, dict[str, float | None]] = {}
    for item in sorted(trace.get("cut", ()), key=lambda item: -item["score"]):
        reasons.setdefault(item["why"], {}).setdefault(item["id"], item["score"])
    return reasons


def list_degraded(degraded: Sequence[str], trace: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each thing that an answer went without, from its trace where that has one."""
    sentences = [str(sentence) for sentence in trace.get("degraded", [])]
    named = {sentence.split(":", 1)[0] for sentence in sentences}
    bare = [name for name in degraded if name not in named]
    problems = [stage["problem"] for stage in trace.get("stages", []) if "problem" in stage]
    known = {**_DEGRADED, "model": f"model: the order is not a model's. {' '.join(problems)}".rstrip()}
    return [known.get(name, name if ": " in name else f"degraded: {name}") for name in bare] + sentences


def with_degraded(answer: Recall, more: Iterable[str]) -> Recall:
    """Return the answer with the short names of `more`; the sentences behind them go into the trace."""
    degraded = list(more)
    names = [sentence.split(":", 1)[0] for sentence in degraded]
    if not names:
        return answer
    sentences = [sentence for sentence in degraded if ": " in sentence]
    known = answer.trace.get("degraded", [])
    return replace(
        answer,
        degraded=tuple(dict.fromkeys([*answer.degraded, *names])),
        trace={**answer.trace, "degraded": [*(known if isinstance(known, list) else []), *sentences]},
    )
