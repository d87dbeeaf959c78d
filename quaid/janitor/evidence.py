"""Evidence that decisions rest on, so that the same is not judged, asked or proposed again.

A decision about five observations has one key, and a sixth observation would make it another one. So what each rested
on is remembered, and nothing that a refused decision rested on is proposed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from quaid.local.runs import evidence_key

if TYPE_CHECKING:
    from quaid.index.facts import LivingFact
    from quaid.janitor.task_context import TaskContext
    from quaid.model import Note


def fact_evidence(fact: LivingFact | Note) -> str:
    """The evidence of a judgement of a fact: what it says and when it holds, not what each run changes."""
    return "\n".join([fact.id, fact.text_hash or "", fact.valid_from or "", fact.valid_until or ""])


def days_compared(context: TaskContext, task: str, facts: Iterable[LivingFact]) -> dict[str, str]:
    """Id -> the day (ISO) on which `task` has compared the fact as it is now; those it has not are left out."""
    keys = {_compared_key(task, fact): fact.id for fact in facts}
    return {keys[key]: day for key, day in context.judgements.known(list(keys)).items()}


def mark_compared(context: TaskContext, task: str, facts: Iterable[LivingFact]) -> None:
    """Remember that `task` has nothing more to ask about these, as they are or are about to be."""
    day = context.now.date().isoformat()
    context.judgements.add(task, {_compared_key(task, fact): day for fact in facts})


def remember_evidence(context: TaskContext, task: str, key: str, evidence: Collection[str]) -> None:
    """Remember the parts that the decision `key` rests on."""
    context.judgements.add(task, {evidence_key("evidence", key): " ".join(sorted(evidence))})


def refused_evidence(context: TaskContext) -> set[str]:
    """The parts that decisions rested on which the owner has undone or refused."""
    keys = {*context.vetoed, *(veto.key for veto in context.vetoes)}
    known = context.judgements.known([evidence_key("evidence", key) for key in keys])
    return {part for parts in known.values() for part in parts.split()}


def _compared_key(task: str, fact: LivingFact) -> str:
    return evidence_key(f"{task} seen", fact_evidence(fact))
