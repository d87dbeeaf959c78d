"""Facts about the same that cannot both be true, or no longer: found here, decided by `resolve`. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from quaid.claims import is_about_others
from quaid.janitor.decision import Decision
from quaid.janitor.evidence import mark_compared
from quaid.janitor.judgements import judge
from quaid.janitor.pairs import Pair, PairFinder
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks import duplicates

TASK = "contradictions"
CONFLICTS = frozenset({"contradiction", "update"})
MAX_ASKED = 1_000
"""Pairs that are put to the model in one run, the most alike first; the others wait for the next."""


def plan(context: TaskContext) -> Iterator[Decision]:
    """No decisions but judgements: `contradiction` and `update` are for `resolve`, `compatible` is done with.

    Raises:
        ModelError: as `Models.ask`.
    """
    found = PairFinder(context)
    new = found.not_compared(TASK)
    asked = [pair for pair in found.pairs(new) if may_conflict(pair)]
    same = context.judgements.known([pair.key(duplicates.TASK) for pair in asked])
    asked = [pair for pair in asked if not same.get(pair.key(duplicates.TASK), "").startswith("duplicate")]
    # Those of opposed edges go first: they are the likeliest.
    asked.sort(key=lambda pair: not pair.is_opposed)
    judged = {pair for pair, _ in judge(context, TASK, asked, lambda _pair, _judgement: None, MAX_ASKED)}
    unsettled = {fact.id for pair in asked if pair not in judged for fact in (pair.a, pair.b)}
    mark_compared(context, TASK, [fact for fact in new if fact.id not in unsettled])
    yield from ()


def may_conflict(pair: Pair) -> bool:
    """Return whether a model is to be asked: both can be true on the same day, and they are about the same."""
    return pair.is_at_one_time and (pair.is_opposed or not is_about_others(pair.a.text, pair.b.text))
