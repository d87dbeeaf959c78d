"""A second look, by the deep model, at look-alikes that the fast one has kept apart in the last days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from quaid.janitor.decision import Decision
from quaid.janitor.merging import Claim, join, merge_decision
from quaid.janitor.pairs import Pass, days_seen, mark_seen
from quaid.janitor.task_context import Context
from quaid.janitor.tasks import duplicates
from quaid.janitor.verdicts import judge

TASK = "dedup_review"
MOST_REVIEWED = 20
"""Pairs in one run."""
DAYS = 7
"""What has not been looked at again by then stays as it is."""
MARGIN = 0.12
"""Only pairs this much less alike, or less, than what their model calls a duplicate are worth a second look."""


def plan(context: Context) -> Iterator[Decision]:
    """Merges of what should not have been kept apart, each pair looked at once. What was compared today waits for the
    next night: looking twice at once shows nothing new.

    Raises:
        ModelError: as `Models.ask`.
    """
    found = Pass(context)
    today, first = context.now.date(), context.now.date() - timedelta(days=DAYS)
    days = days_seen(context, duplicates.TASK, found.facts)
    recent = [fact for fact in found.facts if first.isoformat() <= days.get(fact.id, "") < today.isoformat()]
    reviewed = days_seen(context, TASK, recent)
    new = [fact for fact in recent if fact.id not in reviewed]
    if not new:
        return
    least = found.duplicate_similarity - MARGIN
    close = [pair for pair in found.pairs(new) if pair.likeness >= least and duplicates.may_be_same(pair)]
    first_verdicts = context.judgements.known([pair.key(duplicates.TASK) for pair in close])
    vetoed = {veto.key for veto in context.vetoes}
    asked = [
        pair
        for pair in close
        if first_verdicts.get(pair.key(duplicates.TASK)) == "different" and pair.key(TASK) not in vetoed
    ]
    verdicts = list(judge(context, TASK, asked, duplicates.problem, MOST_REVIEWED))
    same = [(pair, verdict) for pair, verdict in verdicts if verdict.says == "duplicate"]
    left = set(asked) - {pair for pair, _ in verdicts} | {pair for pair, _ in same}
    unsettled = {fact.id for pair in left for fact in (pair.a, pair.b)}
    mark_seen(context, TASK, [fact for fact in new if fact.id not in unsettled])
    taken: set[str] = set()
    for pair, verdict in same:
        claim = join(Claim.of(pair.a), Claim.of(pair.b), verdict)
        if claim is None or not taken.isdisjoint((pair.a.id, pair.b.id)):
            continue
        taken |= {pair.a.id, pair.b.id}
        decision = merge_decision(context, TASK, claim)
        if decision is not None:
            yield decision
