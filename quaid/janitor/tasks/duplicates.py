"""Facts that say the same become one: those equal to the letter by themselves, look-alikes when a model says so and
no certain difference sets them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from quaid.claims import difference, find_lost_detail
from quaid.errors import ModelError
from quaid.index.facts import LivingFact
from quaid.janitor.decision import Decision
from quaid.janitor.evidence import mark_compared
from quaid.janitor.fact_merge import MergeGroup, join, join_equal, merge_decision
from quaid.janitor.judgements import Judgement, judge, merged_text_problem
from quaid.janitor.pairs import Pair, PairFinder
from quaid.janitor.task_context import TaskContext

TASK = "duplicates"
MAX_ASKED = 1_000
"""Pairs that are put to the model in one run, the most alike first; the others wait for the next."""
_ROUNDS = 5
"""Three facts that are one take two: the first two, then what they have become and the third."""


def plan(context: TaskContext) -> Iterator[Decision]:
    """Merges of what says the same.

    Raises:
        ModelError: as `Models.ask`, after the decisions that need no more of the model.
    """
    found = PairFinder(context)
    claims = MergeGroups(found.facts)
    claims.merge_equal()
    trouble: ModelError | None = None
    if context.models is not None:
        try:
            _merge_alike(context, found, claims)
        except ModelError as error:
            trouble = error
    for claim in claims.merged():
        decision = merge_decision(context, TASK, claim)
        if decision is not None:
            yield decision
    if trouble is not None:
        raise trouble


class MergeGroups:
    """The claim that each fact belongs to so far."""

    def __init__(self, facts: Sequence[LivingFact]) -> None:
        self._facts = facts
        self._claims = {fact.id: MergeGroup.of(fact) for fact in facts}

    def of(self, fact: LivingFact) -> MergeGroup:
        return self._claims[fact.id]

    def put(self, claim: MergeGroup) -> None:
        self._claims |= dict.fromkeys((fact.id for fact in claim.members), claim)

    def merged(self) -> list[MergeGroup]:
        """The claims of several facts, in the order of the facts."""
        return list({claim.fact.id: claim for claim in self._claims.values() if len(claim.members) > 1}.values())

    def between(self, pairs: Iterable[Pair]) -> list[Pair]:
        """`pairs` as pairs of the claims that their facts belong to by now, each once; what is one is left out."""
        found = [Pair.of(self.of(pair.a).fact, self.of(pair.b).fact, pair.likeness) for pair in pairs]
        return list({(pair.a.id, pair.b.id): pair for pair in reversed(found) if pair.a.id != pair.b.id}.values())[::-1]

    def join(self, same: Iterable[tuple[Pair, Judgement]]) -> list[Pair]:
        """Put together what is the same, the most alike first. Given are the pairs that must be asked about again, as
        one of theirs now says something else.
        """
        waiting: list[Pair] = []
        changed: set[str] = set()
        for pair, judgement in sorted(same, key=lambda item: -item[0].likeness):
            a, b = self.of(pair.a), self.of(pair.b)
            if not changed.isdisjoint((a.fact.id, b.fact.id)):
                waiting.append(pair)
            elif (joined := join(a, b, judgement)) is not None:
                self.put(joined)
                changed.add(joined.fact.id)
        return waiting

    def merge_equal(self) -> None:
        """One claim of all that have the same words, the same owner and project, and hold in the same time."""
        for _, group in groupby(sorted(self._facts, key=_words), key=_words):
            facts = list(group)
            claim = join_equal(facts) if len(facts) > 1 else None
            if claim is not None:
                self.put(claim)


def may_be_same(pair: Pair) -> bool:
    """Return whether a model is to be asked: nothing that is certain sets the two apart, and one of them may change."""
    is_fixed = pair.a.is_protected and pair.b.is_protected
    return not is_fixed and pair.is_at_one_time and difference(pair.a.text, pair.b.text) is None


def problem(pair: Pair, judgement: Judgement) -> str | None:
    """Return why a judgement of `pair` cannot be followed."""
    if judgement.says != "duplicate":
        return None
    if judgement.keep == "merge":
        return merged_text_problem(pair, judgement.text)
    if judgement.keep not in {"a", "b"}:
        return "a duplicate needs keep: a, b or merge"
    kept, dropped = (pair.a, pair.b) if judgement.keep == "a" else (pair.b, pair.a)
    lost = find_lost_detail(kept.text, dropped.text)
    return f"{judgement.keep} lacks {lost!r}: merge them" if lost else None


def _merge_alike(context: TaskContext, found: PairFinder, claims: MergeGroups) -> None:
    """Join what the model calls duplicates, until there is no more to join; remember what has been compared."""
    new = found.not_compared(TASK)
    left = [pair for pair in found.pairs(new) if pair.likeness > 0]
    vetoed = {veto.key for veto in context.vetoes}
    unsettled: set[str] = set()
    for _ in range(_ROUNDS):
        asked = [pair for pair in claims.between(left) if pair.key(TASK) not in vetoed and may_be_same(pair)]
        if not asked:
            break
        judgements = dict(judge(context, TASK, asked, problem, MAX_ASKED))
        unsettled |= {fact.id for pair in asked if pair not in judgements for fact in (pair.a, pair.b)}
        left = claims.join((pair, judgement) for pair, judgement in judgements.items() if judgement.says == "duplicate")
    unsettled |= {fact.id for pair in left for fact in (pair.a, pair.b)}
    compared = {claims.of(fact).fact.id: claims.of(fact) for fact in new}
    settled = [claim.fact for claim in compared.values() if unsettled.isdisjoint(fact.id for fact in claim.members)]
    mark_compared(context, TASK, settled)


def _words(fact: LivingFact) -> tuple[str, ...]:
    return fact.owner, fact.project or "", fact.text_hash, fact.valid_from or "", fact.valid_until or ""
