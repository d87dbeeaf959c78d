"""Compare facts, each pair once: facts that say the same become one, contradictions are left to `resolve`.

Facts with equal words are joined automatically, look-alikes if a model says so and no certain difference separates
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from quaid.claims import difference, find_lost_detail, is_about_others, normal_form
from quaid.index.documents import Document
from quaid.janitor.fact_merge import MergeGroup, join, join_equal, merge_decision
from quaid.janitor.judging import Judgement, set_aside_keys
from quaid.janitor.pairs import Pair, PairFinder, PairQuestion, find_merge_problem, mark_compared
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision

TASK = "compare"
CONFLICTS = frozenset({"conflict", "update"})
"""What `resolve` decides."""
MAX_ASKED = 1_000
"""Pairs that one run puts to the model, the most alike first; the others are left for the next run."""
_MAX_ROUNDS = 5
"""Three facts that are one take two rounds: the first two facts, then their merge and the third."""


def plan_compare(context: TaskContext) -> Iterator[Decision]:
    """Yield merges of facts that say the same. `update` and `conflict` are judgements for `resolve`."""
    found = PairFinder(context)
    claims = MergeGroups(found.facts)
    for _, group in groupby(sorted(found.facts, key=_words), key=_words):
        if (claim := join_equal(list(group))) is not None:
            claims.put(claim)
    if context.models is not None:
        _compare(context, found, claims)
    for claim in claims.merged():
        decision = merge_decision(context, TASK, claim)
        if decision is not None:
            yield decision


class MergeGroups:
    """The claim that each fact belongs to so far."""

    def __init__(self, facts: Sequence[Document]) -> None:
        self._claims = {fact.id: MergeGroup.of(fact) for fact in facts}

    def of(self, fact: Document) -> MergeGroup:
        return self._claims[fact.id]

    def put(self, claim: MergeGroup) -> None:
        self._claims |= dict.fromkeys((fact.id for fact in claim.members), claim)

    def merged(self) -> list[MergeGroup]:
        """Return the claims with more than one fact, in the order of the facts."""
        return list({claim.fact.id: claim for claim in self._claims.values() if len(claim.members) > 1}.values())

    def between(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return `pairs` as pairs of the claims that their facts belong to by now, each once, without merged ones."""
        found = [
            Pair.of(self.of(pair.a).fact, self.of(pair.b).fact, pair.likeness, is_opposed=pair.is_opposed)
            for pair in pairs
        ]
        return list({(pair.a.id, pair.b.id): pair for pair in reversed(found) if pair.a.id != pair.b.id}.values())[::-1]

    def join(self, same: Iterable[tuple[Pair, Judgement]]) -> list[Pair]:
        """Join the pairs that are the same, the most alike first. Return the pairs to ask about again, because one of
        their facts now says something else.
        """
        again: list[Pair] = []
        changed: set[str] = set()
        for pair, judgement in sorted(same, key=lambda item: -item[0].likeness):
            a, b = self.of(pair.a), self.of(pair.b)
            if not changed.isdisjoint((a.fact.id, b.fact.id)):
                again.append(pair)
            elif (joined := join(a, b, judgement)) is not None:
                self.put(joined)
                changed.add(joined.fact.id)
        return again


def may_be_same(pair: Pair) -> bool:
    """Return whether the two can become one: no certain difference separates them, and one of them may change."""
    is_fixed = pair.a.is_protected and pair.b.is_protected
    return not is_fixed and difference(pair.a.text, pair.b.text) is None


class _Comparison(PairQuestion):
    def find_problem(self, pair: Pair, judgement: Judgement) -> str | None:
        if judgement.says != "same":
            return None
        if not may_be_same(pair):
            differs = difference(pair.a.text, pair.b.text)
            return f"they are not the same: their {differs} differ" if differs else None
        if judgement.keep == "merge":
            return find_merge_problem(pair, judgement.text)
        if judgement.keep not in {"a", "b"}:
            return "what is the same needs keep: a, b or merge"
        winner, loser = (pair.a, pair.b) if judgement.keep == "a" else (pair.b, pair.a)
        lost = find_lost_detail(winner.text, loser.text)
        return f"{judgement.keep} lacks {lost!r}: merge them" if lost else None


def _compare(context: TaskContext, found: PairFinder, claims: MergeGroups) -> None:
    """Join what the model calls the same, until there is no more to join, and store what has been compared."""
    new = found.not_compared(TASK)
    left = found.pairs(new)
    vetoed = {veto.key for veto in context.vetoes}
    unsettled: set[str] = set()
    conflicts: dict[Pair, Judgement] = {}
    for _ in range(_MAX_ROUNDS):
        asked = [pair for pair in claims.between(left) if pair.key(TASK) not in vetoed and _is_worth_asking(pair)]
        if not asked:
            break
        judgements = _Comparison(context, TASK).judge_pairs(asked, MAX_ASKED)
        # A pair that was set aside does not stop its facts from being compared with others and resolved.
        aside = set_aside_keys(context)
        unjudged = (pair for pair in asked if pair not in judgements and pair.key(TASK) not in aside)
        unsettled |= {fact.id for pair in unjudged for fact in (pair.a, pair.b)}
        conflicts |= {pair: judgement for pair, judgement in judgements.items() if judgement.says in CONFLICTS}
        same = [(pair, judgement) for pair, judgement in judgements.items() if judgement.says == "same"]
        left = claims.join(item for item in same if may_be_same(item[0]))
    unsettled |= {fact.id for pair in left for fact in (pair.a, pair.b)}
    # What contradicts a fact contradicts the claim that it has become.
    became = (
        (merged, judgement)
        for pair, judgement in conflicts.items()
        if any(len(claims.of(fact).members) > 1 for fact in (pair.a, pair.b))
        for merged in claims.between([pair])
    )
    context.judgements.add(TASK, {pair.key(TASK): judgement.render() for pair, judgement in became})
    compared = {claims.of(fact).fact.id: claims.of(fact) for fact in new}
    settled = [claim.fact for claim in compared.values() if unsettled.isdisjoint(fact.id for fact in claim.members)]
    mark_compared(context, TASK, settled)


def _is_worth_asking(pair: Pair) -> bool:
    is_equal = pair.a.text_hash == pair.b.text_hash
    is_about_same = pair.is_opposed or not is_about_others(pair.a.text, pair.b.text)
    return pair.is_at_one_time and (may_be_same(pair) or (is_about_same and not is_equal))


def _words(fact: Document) -> tuple[str, ...]:
    words = normal_form(fact.text) if fact.is_whole else fact.text_hash or ""
    return fact.owner, fact.project or "", words, fact.valid_from or "", fact.valid_until or ""
