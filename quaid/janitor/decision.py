"""A decision: one change of the memory that a task proposes, with its reason and the key of its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from quaid.local.runs import Proposal, Proposals
from quaid.model import Edit, SourceEdit

if TYPE_CHECKING:
    from quaid.index.documents import Document
    from quaid.model import Note

CONFLICT = "conflict"
"""The kind of a question which of two facts is true."""
DISPUTE = "dispute"
"""The kind of a question whether to forget a fact that its owner says is wrong."""
SET_ASIDE = "set_aside"
"""The kind of an item that no model could judge: it is held back, changes nothing and is not judged again."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One proposed change of the memory.

    `kind` is the name of its policy (approve, merge, reject …). `key` identifies the evidence: a decision that the
    owner has undone is not proposed again while its key is the same. `subject` follows `janitor(task): `, `why` is the
    body of the commit, `facts` are the ids of the notes it is about. One that `is_minor` shares a commit with others of
    its task; one that `always_asks` is a question whatever the policy says. `detail` shows its owner the compared or
    rewritten texts. `branch` is a change outside the vault: it becomes a branch there after the gate. `choices` are the
    paths and words of the two facts of a `conflict`.
    """

    task: str
    kind: str
    key: str
    edits: tuple[Edit, ...]
    subject: str
    why: str
    facts: tuple[str, ...] = ()
    model: str | None = None
    prompt: str | None = None
    is_minor: bool = False
    always_asks: bool = False
    detail: str = ""
    branch: SourceEdit | None = None
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(edit.rel_path for edit in self.edits)


def fact_evidence(fact: Document | Note) -> str:
    """Return the evidence of a judgement of a fact: what it says and when it holds, not what each run changes."""
    return "\n".join([fact.id, fact.text_hash or "", fact.valid_from or "", fact.valid_until or ""])


class WaitingDecisions:
    """Decisions that are deferred until their owner answers, by key, in local.db."""

    def __init__(self, proposals: Proposals, day: date) -> None:
        self._proposals = proposals
        self._day = day.isoformat()

    def put(self, decision: Decision) -> None:
        fields = {name: getattr(decision, name) for name in Proposal._fields if name != "day"}
        self._proposals.put(Proposal(**fields, day=self._day))

    def get(self, key: str) -> Decision | None:
        found = self._proposals.get(key)
        if found is None:
            return None
        fields = found._asdict()
        del fields["day"]
        return Decision(**fields)
