"""Decay: facts that nobody has needed for so long that they have faded. Quaid asks whether they may go.

Decay itself edits nothing: the confidence that a fact still has follows from its last use, each time it is queried.
Facts that are pinned, verified, immutable, superseded or lately confirmed are left alone. If there is a model, it looks
at the faded facts first: it proposes to forget one, to give it more time, or to pin it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from quaid.index import documents, graph, references
from quaid.index.documents import Document, find_protected
from quaid.index.port import IndexConnection
from quaid.janitor import fact_edits
from quaid.janitor.judging import Judgement, ModelQuestion, read_judgements
from quaid.janitor.model_text import clean_reason, quote
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, Use, note_name
from quaid.recall import scoring
from quaid.recall.records import RecallRecords
from quaid.vault import headings, notes

TASK = "decay"
FLOOR = 0.1
"""A fact with less confidence becomes a question."""
MAX_ASKED = 20
"""Facts that a run asks about, the most faded first, those with an open question included."""
EXTENSION_DAYS = 90
_CAN_FADE = (
    "kind = 'fact' AND superseded_by IS NULL AND NOT pinned AND NOT verified AND durability IS NOT 'immutable' "
    "AND created < ?"
)


class FadedFact(NamedTuple):
    """A fact that fades, perhaps below the floor. `confidence` is what is left of the original `sure`; `last` is the
    day (ISO) it was used or learned. Only facts below the floor have their text.
    """

    document: Document
    use: Use
    confidence: float
    last: str

    @property
    def sure(self) -> float:
        return _original_confidence(self.document)

    @property
    def falls_in_days(self) -> float:
        """The days from `last` until it falls below the floor, if nobody needs it."""
        return scoring.days_above(FLOOR, self.sure, self.use)

    @property
    def key(self) -> str:
        """The key of its evidence: a fact that is used or confirmed again is another case."""
        return evidence_key(TASK, self.document.content_hash, self.last)

    @property
    def pin_key(self) -> str:
        return evidence_key(TASK, self.document.content_hash, self.last, "pin")


def _original_confidence(fact: Document) -> float:
    return scoring.UNSURE if fact.confidence is None else fact.confidence


class _DecayReview(ModelQuestion[FadedFact]):
    prompt = "decay_review"
    output_tokens = 120

    def show(self, item: FadedFact) -> dict[str, Any]:
        row = item.document
        fields = {
            "text": row.text,
            "type": row.type,
            "confidence": item.sure,
            "learned": (row.created or "")[:10],
            "last_used": item.use.last_access and item.last,
            "times_used": item.use.accesses,
            "times_said": 1 + row.confirmations,
            "said_by": row.speaker,
            "valid_from": row.valid_from,
            "valid_until": row.valid_until,
        }
        return {key: value for key, value in fields.items() if value is not None}

    def read(self, _: FadedFact, given: Mapping[str, Any], answer: Answer) -> Judgement:
        until = _extension(self.context) if given["verdict"] == "extend" else ""
        reason = clean_reason(given["reason"])
        return Judgement(given["verdict"], reason, until=until, model=answer.model, prompt=answer.prompt)


def plan_decay(context: TaskContext) -> Iterator[Decision]:
    """Yield a question for each faded fact to forget, and a decision for each to pin. One that a model gives more time
    is judged again after it.
    """
    faded = {one.key: one for one in _list_faded(context)}
    judgements = dict(_DecayReview(context).judge(faded)) if context.models is not None else {}
    for key, one in faded.items():
        judgement = judgements.get(key, Judgement("extend"))
        if context.models is None:
            used = "learned" if one.use.last_access is None else "used last"
            why = (
                f"Nobody has needed this since it was {used} on {notes.format_day(one.last)}: of its confidence of "
                f"{one.sure:.2f} no more than {one.confidence:.2f} is left."
            )
            judgement = Judgement("delete", why)
        kind, edits = "forget", None
        replaced: list[references.Related] = []
        if judgement.says == "delete":
            # The facts that it replaced go with it: nothing else explains them.
            replaced = references.replaces(context.index, one.document)
            paths = [one.document.path, *(each.path for each in replaced)]
            removed = tuple(Edit(path, context.read(path), None) for path in paths)
            is_unchanged = notes.content_hash(removed[0].before or b"") == one.document.content_hash
            is_there = all(edit.before is not None for edit in removed)
            edits = removed if is_there and is_unchanged and not find_protected(context.index, paths) else None
        elif judgement.says == "pin":
            kind, data = "pin", context.read(one.document.path)
            if data is not None and notes.content_hash(data) == one.document.content_hash:
                with suppress(*fact_edits.UNSAFE):
                    edits = (fact_edits.set_fields(one.document.path, data, {"pinned": True}),)
        if edits is not None:
            subject, facts = f"{kind} {quote(one.document.text)}", (one.document.id, *(each.id for each in replaced))
            by = judgement.model, judgement.prompt
            decision = Decision(TASK, kind, key, edits, subject, judgement.reason, facts, *by)
            asks, detail = kind == "forget", _describe(one, replaced)
            yield replace(decision, key=key if asks else one.pin_key, always_asks=asks, detail=detail)


def _list_faded(context: TaskContext) -> list[FadedFact]:
    """Return the facts below the floor to ask about, most faded first: none that was confirmed in the last thirty days,
    that the owner keeps or that has more time.
    """
    index = context.index
    began = (context.now - timedelta(days=scoring.UNTOUCHED_DAYS)).date().isoformat()
    below = {
        one.document.doc_id: one
        for one in list_fading(index, context.records, context.written, context.now, began)
        if one.confidence < FLOOR and (scoring.days_since(one.last, context.now) or 0.0) > scoring.UNTOUCHED_DAYS
    }
    cited = graph.cited_turns(index, below)
    turns = documents.fetch_candidates(index, [chunk_id for _, chunk_id in cited])
    confirmed = set()
    for doc_id, chunk_id in cited:
        idle = scoring.days_since(turns[chunk_id].said_at or turns[chunk_id].created, context.now)
        if idle is not None and idle <= scoring.UNTOUCHED_DAYS:
            confirmed.add(doc_id)
    facts = documents.fetch_candidates(index, documents.first_chunks(index, below.keys() - confirmed)).values()
    found = [below[fact.doc_id]._replace(document=fact) for fact in facts]
    faded = sorted(found, key=lambda one: (one.confidence, one.document.path))
    faded = [one for one in faded if not {one.key, one.pin_key} & context.vetoed]
    until = {key: judgement.until for key, judgement in read_judgements(context, (one.key for one in faded)).items()}
    extended_now = sum(day == _extension(context) for day in until.values())
    waiting = [one for one in faded if until.get(one.key, "") < context.day]
    return waiting[: max(0, MAX_ASKED - extended_now)]


def _extension(context: TaskContext) -> str:
    """Return the last day of the time that this run gives a fact."""
    return (context.now + timedelta(days=EXTENSION_DAYS)).date().isoformat()


def _describe(faded: FadedFact, replaced: Sequence[references.Related]) -> str:
    """Return what the owner needs to decide on a faded fact."""
    document, use = faded.document, faded.use
    used = f"{notes.format_day(use.last_access)}, {use.accesses:,} times in all" if use.last_access else "never"
    speaker = f" from {document.speaker}" if document.speaker else ""
    session = f" in session {document.session}" if document.session else ""
    lines = [
        f"> {headings.one_line(document.text)}",
        "",
        f"- learned {notes.format_day(document.created or '')}{speaker}{session}",
        f"- used last: {used}",
        f"- confidence: {faded.sure:.2f} then, {faded.confidence:.2f} now",
        f"- note: [[{note_name(document.path)}]]",
        *(f"- goes with it, as it had replaced it: {headings.one_line(each.text)}" for each in replaced),
    ]
    return "\n".join(lines)


def list_fading(
    index: IndexConnection,
    records: RecallRecords,
    written: Mapping[str, datetime],
    now: datetime,
    created_before: str,
) -> list[FadedFact]:
    """Return the facts that can fade and were learned before a day (ISO), by path; `written` is when a commit last
    changed each file.
    """
    rows = documents.find_documents(index, _CAN_FADE, (created_before,))
    uses = records.strengths([row.id for row in rows])
    found = []
    for row in rows:
        use, changed = uses.get(row.id, scoring.NEVER_USED), written.get(row.path)
        # A fact that was stated years ago and imported yesterday has had one day to be needed.
        known = (use.last_access, row.created, changed.date().isoformat() if changed else None)
        last = max(day[:10] for day in known if day)
        left = scoring.retained(_original_confidence(row), last, use, now)
        found.append(FadedFact(row, use, left, last))
    return found
