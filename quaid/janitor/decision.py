"""What a run decides: kinds of decisions that others know, the evidence of a fact, and the report of the run."""

from dataclasses import dataclass, field
from datetime import datetime

from quaid.index.documents import Document
from quaid.local.runs import Decision
from quaid.model import ModelUsage, Note

CONFLICT = "conflict"
"""The kind of a question which of two facts is true."""
DISPUTE = "dispute"
"""The kind of a question whether to forget a fact that its owner says is wrong."""
CORRECT = "correct"
"""The kind of a replacement that the owner has stated: their later words, which need no question."""
SET_ASIDE = "set_aside"
"""The kind of an item that no model could judge: it is held back, changes nothing and is not judged again."""


def fact_evidence(fact: Document | Note) -> str:
    """Return the evidence of a judgement of a fact: what it says and when it holds, not what each run changes."""
    return "\n".join([fact.id, fact.text_hash or "", fact.valid_from or "", fact.valid_until or ""])


@dataclass(slots=True)
class RunReport:
    """The report of a run, filled while it goes on.

    `done` was carried out, `asked` has become questions, `held_back` was not done, with the reason; `answered` are
    subjects of questions that the owner had answered; `closed` counts those that are not asked any more, `overruled`
    decisions that would undo what the owner has written into a fact. `waiting` are tasks that need a model, `failed`
    are tasks with what went wrong. `lost` are answers of the owner's own questions that would have gone: then nothing
    was merged. `commit` is the merge. `stale` are the documents that their sources have left behind, when the run is
    over.
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
