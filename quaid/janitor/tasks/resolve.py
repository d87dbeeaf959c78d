"""Resolve contradictions: one of two facts holds since a day, both are merged, or their owner is asked.

No fact is deleted unless its owner answers that neither is true.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

from quaid.capture.facts import supersede
from quaid.claims import find_lost_words
from quaid.index.documents import Document
from quaid.janitor import fact_edits
from quaid.janitor.decision import CONFLICT
from quaid.janitor.fact_merge import MergeGroup, join, merge_decision, repointed, shortened, unchanged_bytes
from quaid.janitor.judging import Judgement, read_judgements
from quaid.janitor.model_text import clean_reason, quote, show_change
from quaid.janitor.pairs import (
    Pair,
    PairFinder,
    PairQuestion,
    days_compared,
    find_asked_pair,
    find_merge_problem,
    mark_compared,
)
from quaid.janitor.questions import Question
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks import compare
from quaid.local.runs import Decision
from quaid.model import Edit
from quaid.text.dates import find_dates
from quaid.vault import notes
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = "resolve"
MAX_RESOLVED = 60
"""Conflicts that one run judges; the others are left for the next run."""
_SIGNED = "You have signed one of the two, and not the other."
_SHOWN, _TITLE = 300, 60
"""The characters of a fact next to its box, and in the title."""
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # noqa: RUF001
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


Resolution = tuple[Decision, Sequence[tuple[Document, Sequence[Document]]]]
"""A decision, and the facts that stay and say something else afterwards, with those that they were."""


def plan_resolve(context: TaskContext) -> Iterator[Decision]:
    """Yield what the owner has answered, then decisions on the conflicts that `compare` has found. If neither can be
    decided, a question asks which of the two is true.
    """
    found = PairFinder(context)
    taken: set[str] = set()
    for question in context.answered:
        pair = find_asked_pair(found.facts, question)
        decision = _follow(context, pair, question) if pair is not None else None
        if pair is not None and decision is not None:
            taken |= {pair.a.id, pair.b.id}
            yield decision
    if not context.only_answers:
        yield from _settle(context, found, taken)


def _settle(context: TaskContext, found: PairFinder, taken: set[str]) -> Iterator[Decision]:
    """Yield decisions on conflicts between facts that are not `taken`."""
    compared = days_compared(context, compare.TASK, found.facts)
    new = [fact for fact in found.not_compared(TASK) if fact.id in compared]
    near = found.pairs(new)
    vetoed = {veto.key for veto in context.vetoes}
    known = read_judgements(context, (pair.key(compare.TASK) for pair in near))
    conflicts = [
        pair
        for pair in near
        if (first := known.get(pair.key(compare.TASK))) is not None
        and first.says in compare.CONFLICTS
        and pair.is_at_one_time
        and pair.key(TASK) not in vetoed
    ]
    judgements = _Resolving(context, TASK).judge_pairs(conflicts, MAX_RESOLVED)
    conflicts_of = Counter(fact.id for pair in conflicts for fact in (pair.a, pair.b))
    resolutions = {pair: _resolve(context, pair, judgements[pair]) for pair in conflicts if pair in judgements}
    unsettled = {fact.id for pair in conflicts if resolutions.get(pair, True) is not None for fact in (pair.a, pair.b)}
    decided = [(pair, resolution) for pair, resolution in resolutions.items() if resolution is not None]
    # Questions last: what is decided need not be asked.
    for pair, (decision, becomes) in sorted(decided, key=lambda item: item[1][0].kind == CONFLICT):
        ids = {pair.a.id, pair.b.id}
        if not taken.isdisjoint(ids):
            continue
        yield decision
        if decision.kind == CONFLICT:
            continue  # a question changes nothing: there may be another about the same fact
        taken |= ids
        if any(conflicts_of[fact] > 1 for fact in ids):
            continue  # what it becomes is compared with the others
        for fact, were in becomes:  # a fact that was compared as it was need not be as it will be
            if len(days_compared(context, compare.TASK, were)) == len(were):
                mark_compared(context, compare.TASK, [fact])
    mark_compared(context, TASK, [fact for fact in new if fact.id not in unsettled])


class _Resolving(PairQuestion):
    def find_problem(self, pair: Pair, judgement: Judgement) -> str | None:
        if judgement.says == "compatible" and judgement.keep != "both":
            return "what is compatible is kept: keep_both"
        if judgement.keep == "merge":
            return find_merge_problem(pair, judgement.text)
        if judgement.keep in {"a", "b"}:
            winner, loser = _winner_first(pair, judgement)
            was_learned_earlier = (winner.created or "") < (loser.created or "")
            is_older = was_learned_earlier and (winner.valid_from or "") <= (loser.valid_from or "")
            return "an update replaces the older one" if judgement.says == "update" and is_older else None
        known = {day for fact in (pair.a, pair.b) for day in _list_days(fact)}
        for end, day in judgement.days.items():
            if not _DAY.fullmatch(day) or day not in known:
                return f"{end} is {day}, which neither tells"
        for fact, since, until in _times(pair, judgement):
            begin, finish = fact.valid_from or since, fact.valid_until or until
            if begin and finish and begin[:10] > finish[:10]:
                return f"{finish[:10]} is before {begin[:10]}"
        return None


def _list_days(fact: Document) -> Iterator[str]:
    """Yield the days that a fact gives, each with the one before it."""
    stated_at = notes.parse_time(fact.created)
    given = (notes.parse_time((day or "")[:10]) for day in (fact.created, fact.valid_from, fact.valid_until))
    days = [day.date() for day in given if day is not None]
    if stated_at is not None:
        days += [day for mention in find_dates(fact.text, stated_at) for day in (mention.start, mention.end)]
    for day in days:
        yield day.isoformat()
        if day > date.min:
            yield (day - timedelta(days=1)).isoformat()


def _resolve(context: TaskContext, pair: Pair, judgement: Judgement) -> Resolution | None:
    """Return None when nothing changes: both can be true, or one has changed since it was judged."""
    if judgement.says == "compatible":
        return None
    try:
        resolution = _carry_out(context, pair, judgement)
        if resolution is not None or (judgement.says == "update" and judgement.keep == "both"):
            return resolution  # steps of a story need no dates
        return _ask_owner(context, pair, judgement)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None


def _carry_out(context: TaskContext, pair: Pair, judgement: Judgement) -> Resolution | None:
    """Return None when the judgement does not say what to change, or that must stay as it is."""
    if _is_outranked(context, pair, judgement):
        return None
    if judgement.keep == "merge":
        claim = join(MergeGroup.of(pair.a), MergeGroup.of(pair.b), judgement)
        decision = merge_decision(context, TASK, claim) if claim is not None else None
        return (decision, [(claim.fact, claim.members)]) if claim is not None and decision else None
    if judgement.keep == "both":
        return _date(context, pair, judgement)
    if judgement.keep not in {"a", "b"}:
        return None
    winner, loser = _winner_first(pair, judgement)
    if loser.is_protected or (edits := _supersede(context, winner, loser)) is None:
        return None
    subject = _replacing(loser, winner)
    detail = show_change([winner.text, loser.text], [winner.text])
    decision = _decision(pair, judgement, "supersede", edits, subject, detail)
    lost = _find_lost_sentence(winner.text, loser.text)
    why = f"{decision.why} It drops {quote(lost, _SHOWN)}." if lost else decision.why
    return replace(decision, why=why, always_asks=bool(lost)), ()


def _find_lost_sentence(winner: str, loser: str) -> str:
    """Return a sentence of several that the replaced fact states and that is about something else; empty if none is."""
    sentences = _BETWEEN_SENTENCES.split(loser)
    lost = (each for each in sentences if 2 * len(find_lost_words(winner, each)) > len(find_lost_words("", each)))
    return next(lost, "") if len(sentences) > 1 else ""


def _ask_owner(context: TaskContext, pair: Pair, judgement: Judgement) -> Resolution | None:
    """Return the question which of the two is true; None where an answer could not be carried out."""
    both = (pair.a, pair.b)
    if any(unchanged_bytes(context, fact) is None for fact in both):
        return None
    choices = tuple((fact.path, quote(fact.text, _SHOWN)[1:-1]) for fact in both)
    subject = f"which is true: {quote(pair.a.text, _TITLE)} or {quote(pair.b.text, _TITLE)}?"
    detail = _SIGNED if _is_outranked(context, pair, judgement) else ""
    decision = _decision(pair, judgement, CONFLICT, (), subject, detail)
    why = clean_reason(judgement.reason, "They cannot both be true, and nothing says which is.")
    return replace(decision, why=why, choices=choices, always_asks=True), ()


def _follow(context: TaskContext, pair: Pair, question: Question) -> Decision | None:
    """Return the decision that carries out the owner's answer; None for a note that cannot be edited safely."""
    data = {fact.path: unchanged_bytes(context, fact) for fact in (pair.a, pair.b)}
    if None in data.values():
        return None
    judgement = Judgement("contradiction", "Its owner has said so.", keep=question.answer or "")
    winner, loser = _winner_first(pair, judgement)
    edits: tuple[Edit, ...] | None = tuple(Edit(path, before, None) for path, before in data.items())
    subject, after = f'remove "{shortened(pair.a.text)}" and "{shortened(pair.b.text)}"', []
    if question.answer != "neither":
        try:
            edits = _supersede(context, winner, loser)
        except (FrontmatterBrokenError, UnicodeDecodeError):
            return None
        subject, after = _replacing(loser, winner), [winner.text]
    if edits is None:
        return None
    return _decision(pair, judgement, CONFLICT, edits, subject, show_change([pair.a.text, pair.b.text], after))


def _supersede(context: TaskContext, winner: Document, loser: Document) -> tuple[Edit, ...] | None:
    """Return edits that replace one by the other; None when it has changed since it was judged."""
    data = unchanged_bytes(context, loser)
    if data is None:
        return None
    until = (winner.valid_from or winner.created or "")[:10]
    has_begun = bool(until) and (loser.valid_from or "")[:10] <= until
    edit = supersede(loser.path, data, winner.path, until if has_begun else None)
    return edit, *repointed(context, (loser,), winner.path)


def _date(context: TaskContext, pair: Pair, judgement: Judgement) -> Resolution | None:
    """Both hold, each in its time: only ends that nobody has given yet are filled in."""
    edits: list[Edit] = []
    becomes = []
    dated_texts = []
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
        becomes.append((dated, [fact]))
        dated_texts.append(f"{fact.text} ({', '.join(f'{key}: {day}' for key, day in given.items())})")
    if not edits:
        return None
    subject = f'date "{shortened(pair.a.text)}" and "{shortened(pair.b.text)}"'
    decision = _decision(
        pair,
        judgement,
        "keep_both",
        tuple(edits),
        subject,
        show_change([fact.text for _, (fact,) in becomes], dated_texts),
    )
    return decision, becomes


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


def _replacing(loser: Document, winner: Document) -> str:
    return f'replace "{shortened(loser.text)}" with "{shortened(winner.text)}"'


def _is_outranked(context: TaskContext, pair: Pair, judgement: Judgement) -> bool:
    """Return whether a fact that its owner has signed would give way to one that they have not."""
    winner, loser = (fact.path for fact in _winner_first(pair, judgement))
    ways = {"a": [(loser, winner)], "b": [(loser, winner)], "merge": [(loser, winner), (winner, loser)]}
    ranking = context.ranking
    return ranking is not None and any(ranking.outranks(*way) for way in ways.get(judgement.keep, ()))


def _winner_first(pair: Pair, judgement: Judgement) -> tuple[Document, Document]:
    return (pair.a, pair.b) if judgement.keep == "a" else (pair.b, pair.a)


def _times(pair: Pair, judgement: Judgement) -> Iterator[tuple[Document, str | None, str | None]]:
    """Yield each of the two facts with its first and last day."""
    days = judgement.days
    yield pair.a, days.get("a_from"), days.get("a_until")
    yield pair.b, days.get("b_from"), days.get("b_until")
