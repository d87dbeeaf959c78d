"""Compare facts, each pair once: facts that say the same become one, contradictions are left to `resolve`.

Facts with equal words are joined automatically, look-alikes if a model says so and no certain difference separates
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from quaid.capture.facts import render_statement, supersede
from quaid.claims import difference, find_lost_detail, find_lost_words, is_about_others, normal_form
from quaid.index import graph
from quaid.index.documents import Document, find_protected, list_replaced_by
from quaid.janitor import fact_edits
from quaid.janitor.decision import fact_evidence
from quaid.janitor.judging import Judgement, set_aside_keys
from quaid.janitor.model_text import show_change
from quaid.janitor.pairs import Pair, PairFinder, PairQuestion, find_merge_problem, mark_compared
from quaid.janitor.task_context import TaskContext
from quaid.local.claimed import OTHER_PERSON
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, note_name
from quaid.vault import notes
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = "compare"
CONFLICTS = frozenset({"conflict", "update"})
"""What `resolve` decides."""
MAX_ASKED = 1_000
"""Pairs that one run puts to the model, the most alike first; the others are left for the next run."""
WORD_FOR_WORD = "They say the same, word for word."
_MAX_ROUNDS = 5
"""Three facts that are one take two rounds: the first two facts, then their merge and the third."""
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Facts that are one claim. `fact` is the one that stays, as it will be; `members` are all of them as they are,
    that one first.
    """

    fact: Document
    members: tuple[Document, ...]
    judgements: tuple[Judgement, ...] = ()


def plan_compare(context: TaskContext) -> Iterator[Decision]:
    """Yield merges of facts that say the same. `update` and `conflict` are judgements for `resolve`."""
    found = PairFinder(context)
    claims = {fact.id: MergeGroup(fact, (fact,)) for fact in found.facts}
    for _, group in groupby(sorted(found.facts, key=_words), key=_words):
        facts = list(group)
        best = min(facts, key=_rank)
        losers = tuple(fact for fact in facts if fact is not best and not fact.is_protected)
        if losers:
            claims |= dict.fromkeys((fact.id for fact in (best, *losers)), MergeGroup(best, (best, *losers)))
    if context.models is not None:
        _compare(context, found, claims)
    for claim in {claim.fact.id: claim for claim in claims.values() if len(claim.members) > 1}.values():
        decision = merge_decision(context, TASK, claim)
        if decision is not None:
            yield decision


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


def _compare(context: TaskContext, found: PairFinder, claims: dict[str, MergeGroup]) -> None:
    """Join what the model calls the same, until there is no more to join, and store what has been compared."""
    new = found.not_compared(TASK)
    left = found.pairs(new)
    vetoed = {veto.key for veto in context.vetoes}
    unsettled: set[str] = set()
    conflicts: dict[Pair, Judgement] = {}
    for _ in range(_MAX_ROUNDS):
        asked = [pair for pair in _pair_claims(claims, left) if pair.key(TASK) not in vetoed and _is_worth_asking(pair)]
        if not asked:
            break
        judgements = _Comparison(context, TASK).judge_pairs(asked, MAX_ASKED)
        # A pair that was set aside does not stop its facts from being compared with others and resolved.
        aside = set_aside_keys(context)
        unjudged = (pair for pair in asked if pair not in judgements and pair.key(TASK) not in aside)
        unsettled |= {fact.id for pair in unjudged for fact in (pair.a, pair.b)}
        conflicts |= {pair: judgement for pair, judgement in judgements.items() if judgement.says in CONFLICTS}
        same = [item for item in judgements.items() if item[1].says == "same" and may_be_same(item[0])]
        # The most alike are joined first. A pair is asked about again if one of its facts now says something else.
        left = []
        changed: set[str] = set()
        for pair, judgement in sorted(same, key=lambda item: -item[0].likeness):
            a, b = claims[pair.a.id], claims[pair.b.id]
            if not changed.isdisjoint((a.fact.id, b.fact.id)):
                left.append(pair)
            elif (joined := join(a, b, judgement)) is not None:
                claims |= dict.fromkeys((fact.id for fact in joined.members), joined)
                changed.add(joined.fact.id)
    unsettled |= {fact.id for pair in left for fact in (pair.a, pair.b)}
    # What contradicts a fact contradicts the claim that it has become.
    became = {
        merged.key(TASK): judgement.render()
        for pair, judgement in conflicts.items()
        if any(len(claims[fact.id].members) > 1 for fact in (pair.a, pair.b))
        for merged in _pair_claims(claims, [pair])
    }
    context.judgements.add(TASK, became)
    compared = {claims[fact.id].fact.id: claims[fact.id] for fact in new}
    settled = [claim.fact for claim in compared.values() if unsettled.isdisjoint(fact.id for fact in claim.members)]
    mark_compared(context, TASK, settled)


def _pair_claims(claims: dict[str, MergeGroup], pairs: Iterable[Pair]) -> list[Pair]:
    """Return `pairs` as pairs of the claims that their facts belong to by now, each once, without merged ones."""
    found = [
        Pair.of(claims[pair.a.id].fact, claims[pair.b.id].fact, pair.likeness, is_opposed=pair.is_opposed)
        for pair in pairs
    ]
    return list({(pair.a.id, pair.b.id): pair for pair in reversed(found) if pair.a.id != pair.b.id}.values())[::-1]


def _is_worth_asking(pair: Pair) -> bool:
    is_equal = pair.a.text_hash == pair.b.text_hash
    is_about_same = pair.is_opposed or not is_about_others(pair.a.text, pair.b.text)
    return pair.is_at_one_time and (may_be_same(pair) or (is_about_same and not is_equal))


def _words(fact: Document) -> tuple[str, ...]:
    words = normal_form(fact.text) if fact.is_whole else fact.text_hash or ""
    return fact.owner, fact.project or "", words, fact.valid_from or "", fact.valid_until or ""


def _rank(fact: Document) -> tuple[object, ...]:
    """Return a sort key for the fact that stays: confirmed by its owner, more certain, more often stated, older."""
    return not fact.is_protected, -(fact.confidence or 0.0), -fact.confirmations, fact.created or "9999", fact.id


# -- merging, for `resolve` too ----------------------------------------------------------------------------------------


def join(a: MergeGroup, b: MergeGroup, judgement: Judgement) -> MergeGroup | None:
    """Return the two as one, as `judgement` says; None when that would change a fact that must stay as it is."""
    is_first = judgement.keep == "a" or (judgement.keep == "merge" and _rank(a.fact) <= _rank(b.fact))
    winner, loser = (a, b) if is_first else (b, a)
    fact = winner.fact
    if judgement.keep == "merge":
        fact = fact._replace(text=judgement.text, text_hash=notes.text_hash(judgement.text))
    if any(each.is_protected for each in loser.members) or (fact.is_protected and fact != winner.members[0]):
        return None
    judgements = (*winner.judgements, *loser.judgements, judgement)
    return MergeGroup(fact, (*winner.members, *loser.members), judgements)


def merge_decision(context: TaskContext, task: str, claim: MergeGroup) -> Decision | None:
    """Return the decision to make one fact of `claim`, a question if that leaves out words of one of them; None when a
    note cannot be edited safely, or has changed since it was judged.
    """
    winner, *losers = claim.members
    merged = claim.fact.text
    known = [(fact.path, data) for fact in claim.members if (data := unchanged_bytes(context, fact)) is not None]
    if len(known) < len(claim.members):
        return None
    try:
        if winner.is_protected:  # it stays as it is, and the others refer to it
            edits = tuple(supersede(path, data, winner.path, None) for path, data in known[1:])
        else:
            names = graph.entity_names(context.index)
            statement = render_statement(merged, names) if claim.fact != winner else None
            edits = fact_edits.merge(known[0], known[1:], statement)
            if notes.parse_fact(winner.path, edits[0].after or b"").text_hash != claim.fact.text_hash:
                return None  # its owner has written more there than the claim
        edits = (*edits, *repointed(context, losers, winner.path))
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    lost = list(dict.fromkeys(word for fact in claim.members for word in find_lost_words(merged, fact.text)))
    last = claim.judgements[-1] if claim.judgements else None
    dropped = f'"{shortened(losers[0].text)}"' if len(losers) == 1 else f"{len(losers)} facts"
    why = " ".join(dict.fromkeys(judgement.reason for judgement in claim.judgements if judgement.reason))
    why += f" It leaves out: {', '.join(lost)}." if lost else ""
    return Decision(
        task=task,
        kind="merge",
        key=evidence_key(task, *map(fact_evidence, claim.members)),
        edits=edits,
        subject=f'merge {dropped} into "{shortened(merged)}"',
        why=why or WORD_FOR_WORD,
        facts=tuple(fact.id for fact in claim.members),
        model=last.model if last else None,
        prompt=last.prompt if last else None,
        detail=show_change((fact.text for fact in claim.members), [merged]),
        always_asks=bool(lost) or len({fact.source == OTHER_PERSON for fact in claim.members}) > 1,
    )


def unchanged_bytes(context: TaskContext, fact: Document) -> bytes | None:
    """Return the note of `fact`; None when it is gone, or has changed since it was judged."""
    data = context.read(fact.path)
    note = notes.parse_fact(fact.path, data) if data is not None else None
    is_same = note is not None and (note.id, note.text_hash, note.superseded_by) == (fact.id, fact.text_hash, None)
    return data if is_same else None


def shortened(text: str) -> str:
    """Return a statement as a subject quotes it."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN].rsplit(' ', 1)[0]} …"


def repointed(context: TaskContext, losers: Sequence[Document], winner_path: str) -> tuple[Edit, ...]:
    """Return edits after which the winner also replaces the facts that `losers` had replaced: there are no chains."""
    called = [name for loser in losers for name in (note_name(loser.path), loser.path.removesuffix(".md"), loser.id)]
    replaced = list_replaced_by(context.index, called)
    others = sorted({*replaced} - find_protected(context.index, replaced) - {winner_path})
    return tuple(supersede(path, data, winner_path, None) for path in others if (data := context.read(path)))
