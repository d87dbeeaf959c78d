"""Resolve two facts that cannot both be true: one holds since a day, or both are merged. Neither is ever deleted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from quaid.index.facts import LivingFact
from quaid.janitor import fact_edits
from quaid.janitor.decision import Decision
from quaid.janitor.evidence import days_compared, mark_compared
from quaid.janitor.fact_merge import MergeGroup, join, merge_decision, repointed, shortened, unchanged_bytes
from quaid.janitor.judgements import Judgement, judge, merged_text_problem
from quaid.janitor.pairs import Pair, PairFinder
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


@dataclass(frozen=True, slots=True)
class _Resolution:
    """`becomes` are the facts that stay and say something else afterwards, with those that they were."""

    decision: Decision
    becomes: tuple[tuple[LivingFact, tuple[LivingFact, ...]], ...] = ()


def plan(context: TaskContext) -> Iterator[Decision]:
    """Decisions on the conflicts that `contradictions` has found.

    Raises:
        ModelError: as `Models.ask`.
    """
    found = PairFinder(context)
    compared = days_compared(context, contradictions.TASK, found.facts)
    done = days_compared(context, TASK, found.facts)
    new = [fact for fact in found.facts if fact.id in compared and fact.id not in done]
    near = [pair for pair in found.pairs(new) if contradictions.may_conflict(pair)]
    vetoed = {veto.key for veto in context.vetoes}
    known = context.judgements.known([pair.key(contradictions.TASK) for pair in near])
    conflicts = [
        pair
        for pair in near
        if known.get(pair.key(contradictions.TASK)) in contradictions.CONFLICTS
        and pair.key(TASK) not in vetoed
        and not (pair.a.is_protected and pair.b.is_protected)
    ]
    judgements = dict(judge(context, TASK, conflicts, problem, MAX_RESOLVED))
    conflicts_of = Counter(fact.id for pair in conflicts for fact in (pair.a, pair.b))
    unsettled: set[str] = set()
    taken: set[str] = set()
    for pair in conflicts:
        ids = {pair.a.id, pair.b.id}
        resolution = _resolve(context, pair, judgements[pair]) if pair in judgements else None
        if pair not in judgements or resolution is not None:
            unsettled |= ids
        if resolution is not None and taken.isdisjoint(ids):
            taken |= ids
            yield resolution.decision
            if any(conflicts_of[fact] > 1 for fact in ids):
                continue  # what it becomes is compared with the others
            for task in (duplicates.TASK, contradictions.TASK):  # what was compared as it was need not be as it will be
                became = resolution.becomes
                were_compared = [fact for fact, were in became if len(days_compared(context, task, were)) == len(were)]
                mark_compared(context, task, were_compared)
    mark_compared(context, TASK, [fact for fact in new if fact.id not in unsettled])


def problem(pair: Pair, judgement: Judgement) -> str | None:
    """Return why a judgement of `pair` cannot be followed."""
    if judgement.says == "compatible" and judgement.keep != "both":
        return "what is compatible is kept, both of it"
    if judgement.keep == "merge":
        return merged_text_problem(pair, judgement.text)
    if judgement.keep in {"a", "b"}:
        kept, dropped = _kept_first(pair, judgement)
        was_learned_earlier = (kept.created or "") < (dropped.created or "")
        is_older = was_learned_earlier and (kept.valid_from or "") <= (dropped.valid_from or "")
        return "an update replaces the older one" if judgement.says == "update" and is_older else None
    known = {day for fact in (pair.a, pair.b) for day in _list_days(fact)}
    for key in ("a_from", "a_until", "b_from", "b_until"):
        day = getattr(judgement, key)
        if day is not None and (not _DAY.fullmatch(day) or day not in known):
            return f"{key} is {day}, which neither tells"
    for fact, since, until in _times(pair, judgement):
        begin, end = fact.valid_from or since, fact.valid_until or until
        if begin and end and begin[:10] > end[:10]:
            return f"{end[:10]} is before {begin[:10]}"
    return None


def _list_days(fact: LivingFact) -> Iterator[str]:
    """The days that a fact tells, each with the one before it."""
    told_at = notes.parse_time(fact.created)
    given = (notes.parse_time((day or "")[:10]) for day in (fact.created, fact.valid_from, fact.valid_until))
    days = [day.date() for day in given if day is not None]
    if told_at is not None:
        days += [day for mention in find_dates(fact.text, told_at) for day in (mention.start, mention.end)]
    for day in days:
        yield day.isoformat()
        if day > date.min:
            yield (day - timedelta(days=1)).isoformat()


def _resolve(context: TaskContext, pair: Pair, judgement: Judgement) -> _Resolution | None:
    """None when nothing is to be changed, or cannot be without touching what is to stay as it is."""
    try:
        if judgement.keep == "merge":
            claim = join(MergeGroup.of(pair.a), MergeGroup.of(pair.b), judgement)
            decision = merge_decision(context, TASK, claim) if claim is not None else None
            return _Resolution(decision, ((claim.fact, claim.members),)) if claim is not None and decision else None
        if judgement.keep == "both":
            return _date(context, pair, judgement)
        return _supersede(context, pair, judgement) if judgement.keep in {"a", "b"} else None
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None


def _supersede(context: TaskContext, pair: Pair, judgement: Judgement) -> _Resolution | None:
    kept, dropped = _kept_first(pair, judgement)
    data = unchanged_bytes(context, dropped)
    if dropped.is_protected or data is None:
        return None
    until = (kept.valid_from or kept.created or "")[:10]
    has_begun = bool(until) and (dropped.valid_from or "")[:10] <= until
    edit = fact_edits.supersede(dropped.path, data, kept.path, until if has_begun else None)
    edits = (edit, *repointed(context, (dropped,), kept.path))
    subject = f'replace "{shortened(dropped.text)}" by "{shortened(kept.text)}"'
    detail = f"- holds: {kept.text}\n- is replaced: {dropped.text}"
    return _Resolution(_decision(pair, judgement, "supersede", edits, subject, detail))


def _date(context: TaskContext, pair: Pair, judgement: Judgement) -> _Resolution | None:
    """Both hold, each in its time: only ends that nobody has given yet are filled in."""
    edits: list[Edit] = []
    becomes = []
    told = []
    for fact, since, until in _times(pair, judgement):
        given: dict[str, str] = {}
        if since and not fact.valid_from:
            given["valid_from"] = since
        if until and not fact.valid_until:
            given["valid_until"] = until
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
    decision = _decision(pair, judgement, "keep_both", tuple(edits), subject, "\n".join(told))
    return _Resolution(decision, tuple(becomes))


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


def _kept_first(pair: Pair, judgement: Judgement) -> tuple[LivingFact, LivingFact]:
    return (pair.a, pair.b) if judgement.keep == "a" else (pair.b, pair.a)


def _times(pair: Pair, judgement: Judgement) -> Iterator[tuple[LivingFact, str | None, str | None]]:
    """Each of the two facts with the days since when and until when it holds."""
    yield pair.a, judgement.a_from, judgement.a_until
    yield pair.b, judgement.b_from, judgement.b_until
