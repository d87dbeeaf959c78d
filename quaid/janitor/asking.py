"""Which questions are asked, and when one closes without an answer.

At most three a week, one about a note for each kind of decision, the most useful first. A decision without room for its
question waits and is planned again by the next run; after 60 days the safe choice is made for it, as for a question
that nobody has answered. A question names each fact that it rests on with a hash, `evidence: ["ID HASH"]`, and closes
when one of them says something else, has ended or is gone: a late yes is never about what was true once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from quaid.index.documents import Document
from quaid.janitor.decision import CONFLICT, CORRECT, DISPUTE, fact_evidence
from quaid.janitor.disputes import find_disputed
from quaid.janitor.questions import Answer, Question, list_quoted
from quaid.janitor.tasks.compare import find_asked_pair
from quaid.local.runs import Decision, Decisions, evidence_key
from quaid.model import Use, note_name
from quaid.text import endings
from quaid.text.zones import order_key
from quaid.vault import frontmatter, notes

MAX_A_WEEK = 3
WAIT_DAYS = 60
"""Days after which the safe choice is made for a question that nobody answered, or that had no room."""
NO_ROOM = f"it waits: {MAX_A_WEEK} questions a week are asked, one about a note, the most useful first"
UNANSWERED = f"Nobody answered for {WAIT_DAYS} days"
NEVER_ASKED = f"There was no room to ask for {WAIT_DAYS} days, so it is no"
_USEFUL = (CONFLICT, "supersede", CORRECT, "reject", "rewrite", "merge", "fold", "promote", "trim", "update", "shorten")
"""Kinds of decisions, the most useful to ask about first: which of two facts an agent receives, before what is added
to a core note, before what only takes up room. `forget` is last.
"""
_FINDERS = {CONFLICT: find_asked_pair, DISPUTE: find_disputed}
"""Kind -> what finds the facts as they were asked about."""
_BY_CONFIRMATION = frozenset({"forget", "reject"})
"""Kinds whose question closes when the fact is confirmed."""


def choose_default(question: Question, now: datetime) -> Answer | None:
    """Return the safe choice for a question that nobody has answered for 60 days; None for any other question."""
    is_old = _created_on(question, now) <= (now - timedelta(days=WAIT_DAYS)).date().isoformat()
    choice: Answer = "both" if question.kind == CONFLICT else "no"
    return choice if is_old and question.answer is None else None


def select_asked(
    wanted: Sequence[Decision],
    questions: Collection[Question],
    waiting: Decisions,
    uses: Mapping[str, Use],
    now: datetime,
) -> list[Decision]:
    """Return the decisions to ask about `now`, in the owner's zone, the most useful first. `questions` are the open
    ones, and `uses` give how often each fact was recalled.
    """
    since = (now - timedelta(days=7)).date().isoformat()
    recent = {each.key for each in questions if each.kind != DISPUTE and _created_on(each, now) > since}
    room = MAX_A_WEEK - len(recent.union(waiting.list_asked(since)))
    taken = {(each.kind, name) for each in questions for name in each.about}

    def rank(decision: Decision) -> tuple[int, int]:
        place = _USEFUL.index(decision.kind) if decision.kind in _USEFUL else len(_USEFUL)
        return place, -sum(uses[fact].accesses for fact in decision.facts if fact in uses)

    chosen: list[Decision] = []
    for decision in sorted(wanted, key=rank):
        about = {(decision.kind, note_name(path)) for path in list_quoted(decision)}
        if len(chosen) < room and taken.isdisjoint(about):
            chosen.append(decision)
            taken |= about
    return chosen


def list_evidence(decision: Decision, facts: Iterable[Document], day: str) -> list[str]:
    """Return the facts that `decision` rests on, of the living `facts`, each with a hash of what it says."""
    return [f"{fact.id} {_hash(fact, decision.kind, day)}" for fact in facts if fact.id in decision.facts]


def has_changed(question: Question, facts: Collection[Document], uses: Mapping[str, Use], day: str) -> bool:
    """Return whether a fact that `question` rests on says something else now, has ended, is gone, or was used again."""
    find = _FINDERS.get(question.kind)
    if find is not None and find(facts, question) is None:
        return True
    head = frontmatter.parse(question.data.decode("utf-8", "replace"))
    evidence = head.fields.get("evidence")
    stored = {str(line) for line in evidence} if isinstance(evidence, list) else set()
    named = {line.partition(" ")[0] for line in stored}
    now = {f"{fact.id} {_hash(fact, question.kind, day)}" for fact in facts if fact.id in named}
    is_used = question.kind == "forget" and any(
        order_key(uses[fact].last_access) > order_key(question.created) for fact in named if fact in uses
    )
    return now != stored or is_used


def _created_on(question: Question, now: datetime) -> str:
    """Return the day (ISO) on which it was asked, in the zone of `now`."""
    created = notes.parse_time(question.created)
    return created.astimezone(now.tzinfo).date().isoformat() if created is not None else ""


def _hash(fact: Document, kind: str, day: str) -> str:
    state = [f"over: {endings.is_over(fact, day)}", f"owner's: {fact.pinned or fact.verified}"]
    state += [f"confirmed: {fact.confirmations}"] if kind in _BY_CONFIRMATION else []
    return evidence_key("asked", fact_evidence(fact), *state)[:8]
