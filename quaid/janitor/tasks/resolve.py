"""Resolve contradictions: one of two facts holds since a day, both are merged, or the owner decides.

No fact is deleted unless its owner answers that neither is true.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta

from quaid.capture.facts import render_statement, supersede
from quaid.claims import Reading, find_lost_detail, find_lost_words
from quaid.config import own_names
from quaid.index import graph
from quaid.index.documents import Document
from quaid.janitor import fact_edits
from quaid.janitor.decision import CONFLICT, CORRECT
from quaid.janitor.judging import Judgement, read_judgements
from quaid.janitor.model_text import clean_reason, find_unsupported, quote, show_change, statement_problem
from quaid.janitor.questions import Question
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks import compare
from quaid.janitor.tasks.compare import MergeGroup, Pair, PairFinder, PairQuestion
from quaid.local.claimed import OTHER_PERSON
from quaid.local.runs import Decision
from quaid.model import Edit, name_key
from quaid.recall.hits import whose_word
from quaid.text.dates import find_dates
from quaid.text.zones import order_key
from quaid.vault import notes
from quaid.vault.merging import BETWEEN_SENTENCES

TASK = "resolve"
MAX_RESOLVED = 60
"""Conflicts that one run judges; the others are left for the next run."""
_SIGNED = "You have signed one of the two, and not the other."
_SHOWN, _TITLE = 300, 60
"""The characters of a fact next to its box, and in the title."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_REVISED = ("revise_a", "revise_b")
_ORIGINS = {"agent": "an assistant", "tool": "a tool", "import": "an imported file"}
_FIRST_PERSON = frozenset({"i", "i'm", "i've", "me", "mine", "my", "our", "us", "we"})
_UNITS = {"day": 1, "days": 1, "week": 7, "weeks": 7}
_MAX_SPAN = 60

Resolution = tuple[Decision, Sequence[tuple[Document, Sequence[Document]]]]
"""A decision, and the facts that stay and say something else afterwards, with those that they were."""


def plan_resolve(context: TaskContext) -> Iterator[Decision]:
    """Yield what the owner has answered, then decisions on the conflicts that `compare` has found. If neither can be
    decided, a question asks which of the two is true.
    """
    found = PairFinder(context)
    taken: set[str] = set()
    for question in context.answered:
        pair = compare.find_asked_pair(found.facts, question)
        decision = _follow(context, pair, question) if pair is not None else None
        if pair is not None and decision is not None:
            taken |= {pair.a.id, pair.b.id}
            yield decision
    if context.only_answers:
        return
    compared = compare.days_compared(context, compare.TASK, found.facts)
    new = [fact for fact in found.not_compared(TASK) if fact.id in compared]
    vetoed = {veto.key for veto in context.vetoes}
    near = [pair for pair in found.pairs(new) if pair.may_clash and pair.key(TASK) not in vetoed]
    compared_as = {pair: compare.judgement_key(context, compare.TASK, pair) for pair in near}
    known = read_judgements(context, compared_as.values())
    conflicts = [pair for pair, key in compared_as.items() if key in known and known[key].says in compare.CONFLICTS]
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
            if len(compare.days_compared(context, compare.TASK, were)) == len(were):
                compare.mark_compared(context, compare.TASK, [fact])
    compare.mark_compared(context, TASK, [fact for fact in new if fact.id not in unsettled])


class _Resolving(PairQuestion):
    def find_problem(self, pair: Pair, judgement: Judgement) -> str | None:
        if judgement.says == "compatible" and judgement.keep != "both":
            return "what is compatible is kept: keep_both"
        if problem := _find_day_problem(pair, judgement):
            return problem
        if judgement.keep in {"merge", *_REVISED}:
            return _find_wording_problem(pair, judgement)
        if judgement.keep in {"a", "b"}:
            winner, loser = _winner_first(pair, judgement)
            was_learned_earlier = order_key(winner.created) < order_key(loser.created)
            is_older = was_learned_earlier and (winner.valid_from or "") <= (loser.valid_from or "")
            return "an update replaces the older one" if judgement.says == "update" and is_older else None
        return None


def _find_day_problem(pair: Pair, judgement: Judgement) -> str | None:
    """Return why the days cannot be when the facts hold: they do not follow from these, or end too soon."""
    known = {day for fact in (pair.a, pair.b) for day in _list_days(fact)}
    known |= {_shift(day, span) for day in known for span in _list_spans(pair)}
    for end, day in judgement.days.items():
        if not _DAY.fullmatch(day) or day not in known:
            return f"{end} is {day}, which neither gives"
    if judgement.days.get("from", "") > judgement.days.get("until", "9"):
        return "until is before from"
    for fact, since, until in _times(pair, judgement):
        begin, finish = fact.valid_from or since, fact.valid_until or until
        if (since or until) and begin and finish and begin[:10] > finish[:10]:
            return f"{finish[:10]} is before {begin[:10]}"
    return None


def _find_wording_problem(pair: Pair, judgement: Judgement) -> str | None:
    """Return why `merged_text` cannot be the new wording. That of an update need not have the days and numbers of the
    fact that is out of date; one that revises a fact has all else of it.
    """
    text, revised = judgement.text, {"revise_a": pair.a, "revise_b": pair.b}.get(judgement.keep)
    if judgement.says != "update":
        return compare.find_merge_problem(pair, text) if revised is None else "only an update is revised"
    if not text or statement_problem(text, f"{pair.a.text} {pair.b.text}"):
        return "merged_text must be one plain sentence"
    if added := find_unsupported(text, [pair.a.text, pair.b.text, *map(notes.format_day, judgement.days.values())]):
        return f"merged_text has {added[0]}, which neither gives"
    lost = find_lost_detail(text, pair.b.text)
    missing = compare.lost_by_update(text, revised.text) if revised is not None else [lost] if lost else []
    return f"merged_text leaves out {', '.join(missing)}" if missing else None


def _list_spans(pair: Pair) -> set[int]:
    """Return by how many days "a week" or "ten days" in the two facts may move a day."""
    found = {0}
    for reading in (Reading(pair.a.text), Reading(pair.b.text)):
        found |= {days for unit, days in _UNITS.items() if unit in reading.words}
        counted = ((int(number), _UNITS.get(unit, 0)) for number, unit in reading.numbers if number.isdecimal())
        found |= {count * days for count, days in counted if count < _MAX_SPAN}
    return found | {-days for days in found}


def _shift(day: str, days: int) -> str:
    try:
        return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
    except (ValueError, OverflowError):
        return day


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
    winner, loser = (fact.path for fact in _winner_first(pair, judgement))
    ways = {
        **{keep: [(loser, winner)] for keep in ("a", "b", *_REVISED)},
        "merge": [(loser, winner), (winner, loser)],
    }
    ranking = context.ranking
    # A fact that its owner has signed does not give way to one that they have not.
    is_outranked = ranking is not None and any(ranking.outranks(*way) for way in ways.get(judgement.keep, ()))
    try:
        resolution = None if is_outranked else _carry_out(context, pair, judgement)
    except fact_edits.UNSAFE:
        return None
    is_story = judgement.says == "update" and judgement.keep == "both"  # its steps need no dates
    if resolution is not None or is_story:
        return resolution
    if any(compare.unchanged_bytes(context, fact) is None for fact in (pair.a, pair.b)):
        return None
    subject = f"which is true: {quote(pair.a.text, _TITLE)} or {quote(pair.b.text, _TITLE)}?"
    decision = _decide(pair, judgement, CONFLICT, (), subject, _SIGNED if is_outranked else "")
    why = clean_reason(judgement.reason, "They cannot both be true, and nothing says which is.")
    choices = tuple((fact.path, quote(fact.text, _SHOWN)[1:-1]) for fact in (pair.a, pair.b))
    return replace(decision, why=why, choices=choices, always_asks=True), ()


def _carry_out(context: TaskContext, pair: Pair, judgement: Judgement) -> Resolution | None:
    """Return None when the judgement does not say what to change, or that must stay as it is."""
    if judgement.keep == "merge":
        claim = compare.join(MergeGroup(pair.a, (pair.a,)), MergeGroup(pair.b, (pair.b,)), judgement)
        decision = compare.merge_decision(context, TASK, claim) if claim is not None else None
        return (decision, [(claim.fact, claim.members)]) if claim is not None and decision else None
    if judgement.keep == "both":
        return _date(context, pair, judgement)
    winner, loser = _winner_first(pair, judgement)
    if loser.is_protected or judgement.keep not in {"a", "b", *_REVISED}:
        return None
    word, doubt = _find_doubt(context, winner, loser)
    if judgement.says == "contradiction" and winner is pair.a:
        doubt = doubt or "It was stated earlier than what it would replace."
    if judgement.keep in _REVISED:
        decision, becomes = _revise(context, pair, judgement), [(_revised(loser, judgement), [loser])]
    else:
        decision = _supersede(context, pair, judgement, CORRECT if word == "owner" else "supersede")
        becomes = [(_with_days(winner, judgement), [winner])] if judgement.days else []
    if decision is None:
        return None
    if doubt:
        decision = replace(decision, why=f"{decision.why} {doubt}".strip(), always_asks=True)
    # Of several sentences of the replaced fact, one may be about something else.
    sentences = BETWEEN_SENTENCES.split(loser.text) if judgement.keep not in _REVISED else []
    lost = [each for each in sentences if 2 * len(find_lost_words(winner.text, each)) > len(find_lost_words("", each))]
    if len(sentences) > 1 and lost:
        why = f"{decision.why} It drops {quote(lost[0], _SHOWN)}."
        decision = replace(decision, why=why, always_asks=True)
    return decision, becomes


def _find_doubt(context: TaskContext, winner: Document, loser: Document) -> tuple[str, str]:
    """Return whose word `winner` is, and why the owner is asked before it changes `loser`: nobody has stated the
    change, or somebody else has stated it about the owner. Empty for the owner, and for who corrects themselves.
    """
    keys = graph.with_aliases(context.index, own_names(context.root, context.settings))
    word, before = (whose_word(fact.source, fact.speaker, keys) for fact in (winner, loser))
    if word == "owner" or (word == before and name_key(winner.speaker or "") == name_key(loser.speaker or "")):
        return word, ""
    if word != OTHER_PERSON:
        return word, f"Nobody has stated it: it comes from {_ORIGINS[word]}." if before in {
            "owner",
            OTHER_PERSON,
        } else ""
    words = Reading(loser.text).words
    is_about_owner = any(set(key.split()) & words for key in keys) or (before == "owner" and _FIRST_PERSON & words)
    return word, f"{winner.speaker or 'Somebody else'} has stated it about you." if is_about_owner else ""


def _with_days(fact: Document, judgement: Judgement) -> Document:
    """Return a fact as it will be, with the days of `judgement`."""
    days = judgement.days
    return fact._replace(valid_from=days.get("from", fact.valid_from), valid_until=days.get("until", fact.valid_until))


def _revised(fact: Document, judgement: Judgement) -> Document:
    return _with_days(fact, judgement)._replace(text=judgement.text, text_hash=notes.text_hash(judgement.text))


def _revise(context: TaskContext, pair: Pair, judgement: Judgement) -> Decision | None:
    """Return the decision to give a fact the day that another one has moved; None when it has changed since."""
    fact = _winner_first(pair, judgement)[1]
    data = compare.unchanged_bytes(context, fact)
    if data is None:
        return None
    after = _revised(fact, judgement)
    text = render_statement(judgement.text, graph.entity_names(context.index))
    edit = fact_edits.rewrite(fact.path, data, text, fact_edits.changed_period(fact, after))
    if notes.parse_fact(fact.path, edit.after or b"").text_hash != after.text_hash:
        return None  # its owner has written more there than the claim
    subject = f'move the day of "{compare.shortened(fact.text)}"'
    return _decide(pair, judgement, "rewrite", (edit,), subject, show_change([fact.text], [judgement.text]))


def _follow(context: TaskContext, pair: Pair, question: Question) -> Decision | None:
    """Return the decision that carries out the owner's answer; None for a note that cannot be edited safely."""
    data = {fact.path: compare.unchanged_bytes(context, fact) for fact in (pair.a, pair.b)}
    if None in data.values():
        return None
    judgement = Judgement("contradiction", "Its owner has said so.", keep=question.answer or "")
    if question.answer != "neither":
        try:
            return _supersede(context, pair, judgement, CONFLICT)
        except fact_edits.UNSAFE:
            return None
    edits = tuple(Edit(path, before, None) for path, before in data.items())
    subject = f'remove "{compare.shortened(pair.a.text)}" and "{compare.shortened(pair.b.text)}"'
    return _decide(pair, judgement, CONFLICT, edits, subject, show_change([pair.a.text, pair.b.text], []))


def _supersede(context: TaskContext, pair: Pair, judgement: Judgement, kind: str) -> Decision | None:
    """Return the decision to replace one by the other; None when the loser has changed since it was judged."""
    winner, loser = _winner_first(pair, judgement)
    data, winning = compare.unchanged_bytes(context, loser), compare.unchanged_bytes(context, winner)
    if data is None or winning is None:
        return None
    after = winner if winner.is_protected else _with_days(winner, judgement)
    until = (after.valid_from or winner.created or "")[:10]
    # What was to begin later when it was changed was never true.
    has_begun = bool(until) and (loser.valid_from or "")[:10] <= min(until, (winner.created or "9")[:10])
    edit = supersede(loser.path, data, winner.path, until if has_begun else None)
    days = fact_edits.changed_period(winner, after)
    dated = (fact_edits.set_fields(winner.path, winning, days),) if days else ()
    edits = (edit, *dated, *compare.repointed(context, (loser,), winner.path))
    subject = f'replace "{compare.shortened(loser.text)}" with "{compare.shortened(winner.text)}"'
    return _decide(pair, judgement, kind, edits, subject, show_change([loser.text], [winner.text]))


def _date(context: TaskContext, pair: Pair, judgement: Judgement) -> Resolution | None:
    """Both hold, each in its time: only ends that nobody has given yet are filled in."""
    edits: list[Edit] = []
    becomes = []
    texts = []
    for fact, since, until in _times(pair, judgement):
        missing = (("valid_from", since, fact.valid_from), ("valid_until", until, fact.valid_until))
        given = {key: day for key, day, known in missing if day and not known}
        data = compare.unchanged_bytes(context, fact)
        if not given or fact.is_protected or data is None:
            continue
        edits.append(fact_edits.set_fields(fact.path, data, given))
        dated = fact._replace(valid_from=fact.valid_from or since, valid_until=fact.valid_until or until)
        becomes.append((dated, [fact]))
        texts.append(f"{fact.text} ({', '.join(f'{key}: {day}' for key, day in given.items())})")
    if not edits:
        return None
    subject = f'date "{compare.shortened(pair.a.text)}" and "{compare.shortened(pair.b.text)}"'
    detail = show_change([fact.text for _, (fact,) in becomes], texts)
    return _decide(pair, judgement, "keep_both", tuple(edits), subject, detail), becomes


def _decide(
    pair: Pair, judgement: Judgement, kind: str, edits: tuple[Edit, ...], subject: str, detail: str
) -> Decision:
    by, facts = (judgement.model, judgement.prompt), (pair.a.id, pair.b.id)
    key = pair.key(TASK) if kind == CONFLICT else compare.solution_key(TASK, pair, judgement)
    return Decision(TASK, kind, key, edits, subject, judgement.reason, facts, *by, detail=detail)


def _winner_first(pair: Pair, judgement: Judgement) -> tuple[Document, Document]:
    return (pair.a, pair.b) if judgement.keep in {"a", "revise_b"} else (pair.b, pair.a)


def _times(pair: Pair, judgement: Judgement) -> Iterator[tuple[Document, str | None, str | None]]:
    """Yield each of the two facts with its first and last day."""
    days = judgement.days
    yield pair.a, days.get("a_from"), days.get("a_until")
    yield pair.b, days.get("b_from"), days.get("b_until")
