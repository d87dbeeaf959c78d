"""A second look, by the deep model, at look-alikes that the fast one has kept apart in the last days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from quaid.janitor.decision import Decision
from quaid.janitor.evidence import days_compared, mark_compared
from quaid.janitor.fact_merge import MergeGroup, join, merge_decision
from quaid.janitor.judgements import judge
from quaid.janitor.pairs import PairFinder
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks import duplicates

TASK = "dedup_review"
MAX_REVIEWED = 20
"""Pairs in one run."""
DAYS = 7
"""A decision that has not been looked at again by then stays as it is."""
MARGIN = 0.12
"""Only pairs this much less alike, or less, than what their model calls a duplicate are worth a second look."""


def plan(context: TaskContext) -> Iterator[Decision]:
    """Merges of what should not have been kept apart, each pair looked at once. What was compared today waits for the
    next night: looking twice at once shows nothing new.

    Raises:
        ModelError: as `Models.ask`.
    """
    found = PairFinder(context)
    today, first = context.now.date(), context.now.date() - timedelta(days=DAYS)
    days = days_compared(context, duplicates.TASK, found.facts)
    recent = [fact for fact in found.facts if first.isoformat() <= days.get(fact.id, "") < today.isoformat()]
    reviewed = days_compared(context, TASK, recent)
    new = [fact for fact in recent if fact.id not in reviewed]
    if not new:
        return
    least = found.duplicate_similarity - MARGIN
    close = [pair for pair in found.pairs(new) if pair.likeness >= least and duplicates.may_be_same(pair)]
    first_judgements = context.judgements.known([pair.key(duplicates.TASK) for pair in close])
    vetoed = {veto.key for veto in context.vetoes}
    asked = [
        pair
        for pair in close
        if first_judgements.get(pair.key(duplicates.TASK)) == "different" and pair.key(TASK) not in vetoed
    ]
    judgements = list(judge(context, TASK, asked, duplicates.problem, MAX_REVIEWED))
    same = [(pair, judgement) for pair, judgement in judgements if judgement.says == "duplicate"]
    left = set(asked) - {pair for pair, _ in judgements} | {pair for pair, _ in same}
    unsettled = {fact.id for pair in left for fact in (pair.a, pair.b)}
    mark_compared(context, TASK, [fact for fact in new if fact.id not in unsettled])
    taken: set[str] = set()
    for pair, judgement in same:
        claim = join(MergeGroup.of(pair.a), MergeGroup.of(pair.b), judgement)
        if claim is None or not taken.isdisjoint((pair.a.id, pair.b.id)):
            continue
        taken |= {pair.a.id, pair.b.id}
        decision = merge_decision(context, TASK, claim)
        if decision is not None:
            yield decision
