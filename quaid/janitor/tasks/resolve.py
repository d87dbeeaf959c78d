"""Of two facts that cannot both be true: which one holds, since when, or what both come to. Neither is ever deleted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from quaid.index.facts import LivingFact
from quaid.janitor import fact_edits
from quaid.janitor.decision import Decision
from quaid.janitor.fact_merge import MergeGroup, join, merge_decision, repointed, shortened, unchanged_bytes
from quaid.janitor.judgements import Judgement, judge, merged_text_problem
from quaid.janitor.pairs import Pair, PairFinder, days_compared, mark_compared
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks import contradictions, duplicates
from quaid.model import Edit
from quaid.text.dates import find_dates
from quaid.vault import notes
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = "resolve"
MAX_RESOLVED = 60
"""Conflicts in one run; the others wait for the next."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def plan(context: TaskContext) -> Iterator[Decision]:
    """What becomes of the conflicts that `contradictions` has found.

    Raises:
        ModelError: as `Models.ask`.
    """
    found = PairFinder(context)
    compared = days_compared(context, contradictions.TASK, found.facts)
    done = days_compared(context, TASK, found.facts)
    new = [fact for fact in found.facts if fact.id in compared and fact.id not in done]
    near = [pair for pair in found.pairs(new) if contradictions.may_conflict(pair)]
    vetoed = {veto.key for veto in context.vetoes}
    told = context.judgements.known([pair.key(contradictions.TASK) for pair in near])
    conflicts = [
        pair
        for pair in near
        if told.get(pair.key(contradictions.TASK)) in contradictions.CONFLICTS
        and pair.key(TASK) not in vetoed
        and not (pair.a.is_protected and pair.b.is_protected)
    ]
    judgements = dict(judge(context, TASK, conflicts, problem, MAX_RESOLVED))
    conflicts_of = Counter(fact.id for pair in conflicts for fact in (pair.a, pair.b))
    unsettled: set[str] = set()
    taken: set[str] = set()
    for pair in conflicts:
        ids = {pair.a.id, pair.b.id}
        decided = _decide(context, pair, judgements[pair]) if pair in judgements else None
        if pair not in judgements or decided is not None:
            unsettled |= ids
        if decided is not None and taken.isdisjoint(ids):
            taken |= ids
            yield decided.decision
            if all(conflicts_of[fact] == 1 for fact in ids):  # else what it becomes is compared with the others
                _remember(context, decided.becomes)
    mark_compared(context, TASK, [fact for fact in new if fact.id not in unsettled])


@dataclass(frozen=True, slots=True)
class _Decided:
    """`becomes` are the facts that stay and say something else afterwards, with those that they were."""

    decision: Decision
    becomes: tuple[tuple[LivingFact, tuple[LivingFact, ...]], ...] = ()


def problem(pair: Pair, judgement: Judgement) -> str | None:
    """Why a judgement on `pair` cannot be followed."""
    if judgement.says == "compatible" and judgement.keep != "both":
        return "what is compatible is kept, both of it"
    if judgement.keep == "merge":
        return merged_text_problem(pair, judgement.text)
    if judgement.keep in {"a", "b"}:
        kept, dropped = _kept_first(pair, judgement)
        is_older = (kept.created or "") < (dropped.created or "") and (kept.valid_from or "") <= (
            dropped.valid_from or ""
        )
        return "an update replaces the older one" if judgement.says == "update" and is_older else None
    return _days_problem(pair, judgement)


def _decide(context: TaskContext, pair: Pair, judgement: Judgement) -> _Decided | None:
    """None when nothing is to be changed, or cannot be without touching what is to stay as it is."""
    try:
        if judgement.keep == "merge":
            return _merge(context, pair, judgement)
        if judgement.keep == "both":
            return _date(context, pair, judgement)
        return _supersede(context, pair, judgement) if judgement.keep in {"a", "b"} else None
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None


def _merge(context: TaskContext, pair: Pair, judgement: Judgement) -> _Decided | None:
    claim = join(MergeGroup.of(pair.a), MergeGroup.of(pair.b), judgement)
    decision = merge_decision(context, TASK, claim) if claim is not None else None
    return _Decided(decision, ((claim.fact, claim.members),)) if claim is not None and decision is not None else None


def _supersede(context: TaskContext, pair: Pair, judgement: Judgement) -> _Decided | None:
    kept, dropped = _kept_first(pair, judgement)
    data = unchanged_bytes(context, dropped)
    if dropped.is_protected or data is None:
        return None
    until = (kept.valid_from or kept.created or "")[:10]
    has_begun = bool(until) and (dropped.valid_from or "")[:10] <= until
    edit = fact_edits.supersede(dropped.path, data, kept.path, until if has_begun else None)
    return _Decided(
        _decision(
            pair, judgement, "supersede", (edit, *repointed(context, (dropped,), kept.path)),
            f'replace "{shortened(dropped.text)}" by "{shortened(kept.text)}"',
            f"- holds: {kept.text}\n- is replaced: {dropped.text}",
        )
    )  # fmt: skip


def _date(context: TaskContext, pair: Pair, judgement: Judgement) -> _Decided | None:
    """Both hold, each in its time: only ends that nobody has given yet are filled in."""
    edits: list[Edit] = []
    becomes = []
    told = []
    for fact, since, until in (
        (pair.a, judgement.a_from, judgement.a_until),
        (pair.b, judgement.b_from, judgement.b_until),
    ):
        given = {
            key: day
            for key, day, known in (("valid_from", since, fact.valid_from), ("valid_until", until, fact.valid_until))
            if day and not known
        }
        data = unchanged_bytes(context, fact)
        if not given or fact.is_protected or data is None:
            continue
        edits.append(fact_edits.set_fields(fact.path, data, given))
        dated = fact._replace(valid_from=fact.valid_from or since, valid_until=fact.valid_until or until)
        becomes.append((dated, (fact,)))
        told.append(f"- {fact.text} ({', '.join(f'{key}: {day}' for key, day in given.items())})")
    if not edits:
        return None
    subject = f'date "{shortened(pair.a.text)}" and "{shortened(pair.b.text)}"'
    return _Decided(_decision(pair, judgement, "keep_both", tuple(edits), subject, "\n".join(told)), tuple(becomes))


def _decision(
    pair: Pair, judgement: Judgement, kind: str, edits: tuple[Edit, ...], subject: str, detail: str
) -> Decision:
    return Decision(
        task=TASK,
        kind=kind,
        key=pair.key(TASK),
        edits=edits,
        subject=subject,
        why=judgement.reason,
        facts=(pair.a.id, pair.b.id),
        model=judgement.model,
        prompt=judgement.prompt,
        detail=detail,
    )


def _remember(context: TaskContext, becomes: tuple[tuple[LivingFact, tuple[LivingFact, ...]], ...]) -> None:
    """What has been compared as it was need not be compared again as it will be."""
    for task in (duplicates.TASK, contradictions.TASK):
        known = [fact for fact, were in becomes if len(days_compared(context, task, were)) == len(were)]
        mark_compared(context, task, known)


def _kept_first(pair: Pair, judgement: Judgement) -> tuple[LivingFact, LivingFact]:
    return (pair.a, pair.b) if judgement.keep == "a" else (pair.b, pair.a)


def _days_problem(pair: Pair, judgement: Judgement) -> str | None:
    """A day must be one that the facts tell, or the one before it, and no time ends before it begins."""
    known = {day for fact in (pair.a, pair.b) for day in _days(fact)}
    for key in ("a_from", "a_until", "b_from", "b_until"):
        day = getattr(judgement, key)
        if day is not None and (not _DAY.fullmatch(day) or day not in known):
            return f"{key} is {day}, which neither tells"
    for fact, since, until in (
        (pair.a, judgement.a_from, judgement.a_until),
        (pair.b, judgement.b_from, judgement.b_until),
    ):
        begin, end = fact.valid_from or since, fact.valid_until or until
        if begin and end and begin[:10] > end[:10]:
            return f"{end[:10]} is before {begin[:10]}"
    return None


def _days(fact: LivingFact) -> Iterator[str]:
    said = notes.parse_time(fact.created)
    given = (notes.parse_time((day or "")[:10]) for day in (fact.created, fact.valid_from, fact.valid_until))
    told = [day.date() for day in given if day is not None]
    if said is not None:
        told += [day for mention in find_dates(fact.text, said) for day in (mention.start, mention.end)]
    for day in told:
        yield day.isoformat()
        if day > date.min:
            yield (day - timedelta(days=1)).isoformat()
