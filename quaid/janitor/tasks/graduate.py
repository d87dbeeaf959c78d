"""Graduate: facts become active, last of the memory's tasks.

Those are what a review has approved and, of what no model reviews, the facts that speak for themselves: nothing stays
pending for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from quaid.index import documents
from quaid.index.documents import Document
from quaid.janitor import fact_edits, model_text
from quaid.janitor.decision import Decision
from quaid.janitor.model_questions import set_aside_keys
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks.review import TASK as REVIEW
from quaid.janitor.tasks.review import list_waiting
from quaid.local.runs import evidence_key
from quaid.recall.scoring import days_since
from quaid.text.quoting import neutralise
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = "graduate"
SURE = 0.7
"""The confidence from which what the owner said themselves needs no review."""
DAYS_TO_OBJECT = 1.0
"""A fact that nobody has reviewed waits this long at least."""
DAYS_WITHOUT_OBJECTION = 30.0
"""After this long it needs no other reason."""


def plan(context: TaskContext) -> Iterator[Decision]:
    """A decision for each fact that nothing has replaced and that is approved, or good without a review."""
    aside = set_aside_keys(context) if context.models is not None else set()
    unreviewed = {fact.document.id for fact in list_waiting(context) if fact.key(REVIEW) in aside} if aside else set()
    statuses = ["approved", "pending"] if context.models is None or unreviewed else ["approved"]
    for document in documents.find_documents(
        context.index,
        "kind = 'fact' AND status IN (SELECT value FROM json_each(?)) AND superseded_by IS NULL AND NOT pinned "
        "AND NOT verified",
        (json.dumps(statuses),),
    ):
        data, text = context.read(document.path), documents.text_of(context.index, document.doc_id)
        why = _reason(document, text, context.now)
        is_left_to_review = document.status == "pending" and context.models is not None
        if data is None or not why or (is_left_to_review and document.id not in unreviewed):
            continue
        try:
            edit = fact_edits.set_status(document.path, data, "active")
        except (FrontmatterBrokenError, UnicodeDecodeError):
            continue  # `quaid doctor` names it
        yield Decision(
            task=TASK,
            kind="graduate",
            key=evidence_key(TASK, document.content_hash),
            edits=(edit,),
            subject=f"activate {model_text.quote(text)}",
            why=why,
            facts=(document.id,),
            is_minor=True,
            always_asks=document.path in context.doubts,
            detail=context.doubts.get(document.path, ""),
        )


def _reason(fact: Document, text: str, now: datetime) -> str:
    """Return why a fact becomes active; empty where it has to wait."""
    if fact.status == "approved":
        return "A review has approved it."
    age = days_since(fact.created, now)
    # What orders its reader about waits for a person.
    if age is None or age < DAYS_TO_OBJECT or neutralise(text) != text:
        return ""
    if fact.confirmations:
        return "It was said more than once, and no model reviews it."
    if fact.source == "user" and (fact.confidence or 0.0) >= SURE:
        return "Its owner said it, and no model reviews it."
    if age >= DAYS_WITHOUT_OBJECTION:
        return f"It has waited {age:.0f} days, and no model reviews it."
    return ""
