"""Facts that nobody has needed for so long that they have faded: whether they may go is asked, never decided.

Decay itself edits nothing: how sure a fact still is follows from when it was used last, each time it is asked for. What
is pinned, verified, immutable, superseded, or was said again lately is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from quaid.index import backlinks, documents, graph
from quaid.index.documents import Document, find_protected
from quaid.janitor.decision import Decision
from quaid.janitor.model_text import quote
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import evidence_key
from quaid.model import Edit, Use, note_name
from quaid.recall import scoring
from quaid.vault import headings, notes

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

FLOOR = 0.1
"""Less confidence than this, and a fact is asked about."""
MAX_ASKED = 20
"""The maximum of facts for a run, the most faded first; those with an unanswered question count."""
EXTENSION_DAYS = 90
EXTENDED = "extended until "

_EXTENDED = re.compile(rf"{EXTENDED}(\d{{4}}-\d\d-\d\d)")
_MAY_FADE = (
    "kind = 'fact' AND superseded_by IS NULL AND NOT pinned AND NOT verified AND durability IS NOT 'immutable' "
    "AND created < ?"
)


@dataclass(frozen=True, slots=True)
class FadedFact:
    """A fact that fades, and may be below the floor by now. `confidence` is what is left of `sure`; `last` is the day
    (ISO) it was used or learned. `text` is there for those that are asked about.
    """

    document: Document
    use: Use
    sure: float
    confidence: float
    last: str
    text: str = ""

    @property
    def falls_in_days(self) -> float:
        """The days from `last` until it is below the floor, if nobody needs it."""
        return scoring.days_above(FLOOR, self.sure, self.use)

    @property
    def key(self) -> str:
        """Used or said again, it is another case."""
        return evidence_key("decay", self.document.content_hash, self.last)

    @property
    def pin_key(self) -> str:
        return evidence_key("decay", self.document.content_hash, self.last, "pin")


def plan(context: TaskContext) -> Iterator[Decision]:
    """A question for each, where no model is there to look at them first."""
    if context.models is not None:
        return
    for faded in list_faded(context):
        used = "learned" if faded.use.last_access is None else "used last"
        why = (
            f"Nobody has needed this since it was {used} on {notes.format_day(faded.last)}: of its confidence of "
            f"{faded.sure:.2f} no more than {faded.confidence:.2f} is left."
        )
        decision = forget(context, faded, "decay", why)
        if decision is not None:
            yield decision


def list_faded(context: TaskContext) -> list[FadedFact]:
    """The facts to ask about, faded most first, without those that the owner wants to keep or that were given time."""
    faded = [one for one in _list_below_floor(context) if not {one.key, one.pin_key} & context.vetoed]
    known = context.judgements.known([one.key for one in faded])
    until = {key: found[1] for key, text in known.items() if (found := _EXTENDED.match(text))}
    looked_at_tonight = sum(day == last_day(context) for day in until.values())
    waiting = [one for one in faded if until.get(one.key, "") < context.now.date().isoformat()]
    return waiting[: max(0, MAX_ASKED - looked_at_tonight)]


def last_day(context: TaskContext) -> str:
    """Of the time that a fact is given tonight."""
    return (context.now + timedelta(days=EXTENSION_DAYS)).date().isoformat()


def forget(
    context: TaskContext, faded: FadedFact, task: str, why: str, model: str | None = None, prompt: str | None = None
) -> Decision | None:
    """The question whether a fact may go, and with it the facts that it had replaced: without it nothing says so.

    None where one of those is pinned or verified, or the note is not what was judged.
    """
    replaced = backlinks.replaces(context.index, faded.document)
    edits = [Edit(path, context.read(path), None) for path in (faded.document.path, *(one.path for one in replaced))]
    is_gone = any(edit.before is None for edit in edits)
    if is_gone or find_protected(context.index, [edit.rel_path for edit in edits]):
        return None
    if notes.content_hash(edits[0].before or b"") != faded.document.content_hash:
        return None
    return Decision(
        task=task,
        kind="forget",
        key=faded.key,
        edits=tuple(edits),
        subject=f"forget {quote(faded.text)}",
        why=why,
        facts=(faded.document.id, *(one.id for one in replaced)),
        model=model,
        prompt=prompt,
        always_asks=True,
        detail=describe(faded, [one.text for one in replaced]),
    )


def describe(faded: FadedFact, replaced: Collection[str] = ()) -> str:
    """The text that tells its owner all about a faded fact, to decide on it."""
    document, use = faded.document, faded.use
    used = f"{notes.format_day(use.last_access)}, {use.accesses:,} times in all" if use.last_access else "never"
    said_by = f" from {document.speaker}" if document.speaker else ""
    session = f" in session {document.session}" if document.session else ""
    lines = [
        f"> {headings.one_line(faded.text)}",
        "",
        f"- learned {notes.format_day(document.created or '')}{said_by}{session}",
        f"- used last: {used}",
        f"- confidence: {faded.sure:.2f} then, {faded.confidence:.2f} now",
        f"- note: [[{note_name(document.path)}]]",
        *(f"- goes with it, as it had replaced it: {headings.one_line(text)}" for text in replaced),
    ]
    return "\n".join(lines)


def list_fading(
    index: IndexConnection,
    use_of: Callable[[Collection[str]], Mapping[str, Use]],
    written: Mapping[str, datetime],
    now: datetime,
    created_before: str,
) -> list[FadedFact]:
    """Return the facts that may fade and were learned before a day (ISO), by path; `written` is when a commit last
    changed each file.
    """
    rows = documents.find_documents(index, _MAY_FADE, (created_before,))
    uses = use_of([row.id for row in rows])
    return [_faded(row, uses.get(row.id, scoring.NEVER_USED), written.get(row.path), now) for row in rows]


def _list_below_floor(context: TaskContext) -> list[FadedFact]:
    """All facts under the floor, faded most first, but those that were said again in the last thirty days."""
    began = (context.now - timedelta(days=scoring.UNTOUCHED_DAYS)).date().isoformat()
    fading = list_fading(context.index, context.use_of, context.written, context.now, began)
    below = [
        one
        for one in fading
        if one.confidence < FLOOR and (scoring.days_since(one.last, context.now) or 0.0) > scoring.UNTOUCHED_DAYS
    ]
    doc_ids = [one.document.doc_id for one in below]
    cited = graph.cited_turns(context.index, doc_ids)
    turns = documents.fetch_candidates(context.index, [chunk_id for _, chunk_id in cited])
    said_again = set()
    for doc_id, chunk_id in cited:
        idle = scoring.days_since(turns[chunk_id].said_at or turns[chunk_id].created, context.now)
        if idle is not None and idle <= scoring.UNTOUCHED_DAYS:
            said_again.add(doc_id)
    facts = documents.fetch_candidates(context.index, documents.first_chunks(context.index, doc_ids)).values()
    texts = {fact.doc_id: fact.text for fact in facts}
    kept = [
        replace(one, text=texts[one.document.doc_id])
        for one in below
        if one.document.doc_id in texts and one.document.doc_id not in said_again
    ]
    return sorted(kept, key=lambda one: (one.confidence, one.document.path))


def _faded(row: Document, use: Use, written: datetime | None, now: datetime) -> FadedFact:
    sure = scoring.UNSURE if row.confidence is None else row.confidence
    # What was said years ago and came into the memory yesterday has had a day to be needed.
    known = (use.last_access, row.created, written.date().isoformat() if written else None)
    last = max(day[:10] for day in known if day)
    return FadedFact(row, use, sure, scoring.retained(sure, last, use, now), last)
