"""The report of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from quaid.local.runs import Decision
from quaid.model import ModelUsage


@dataclass(slots=True)
class RunReport:
    """Filled while a run goes on.

    `done` was carried out, `asked` has become questions, `held_back` was not done, with the reason; `answered` are
    subjects of questions that the owner had answered; `closed` counts those that are not asked any more,
    `overruled` decisions that would undo what the owner has written into a fact.
    `waiting` are tasks that need a model, `failed` are tasks
    with what went wrong. `lost` are answers of the owner's own questions that
    would have gone: then nothing was merged. `commit` is the merge. `stale` are the documents that their sources have
    left behind, when the run is over.
    """

    run: str
    started: datetime
    is_dry_run: bool = False
    done: list[Decision] = field(default_factory=list)
    asked: list[Decision] = field(default_factory=list)
    held_back: list[tuple[Decision, str]] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    closed: int = 0
    vetoed: int = 0
    overruled: int = 0
    waiting: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    usage: ModelUsage = field(default_factory=ModelUsage)
    commit: str | None = None
    notes: int = 0
    took_s: float = 0.0

    @property
    def changed(self) -> bool:
        return bool(self.done or self.asked or self.answered or self.closed)
