"""Propose exact edits, by the deep model, after which stale documents are true again.

The fast model first judges which of the changes matter to a document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quaid.docs.documentation import MAX_UPDATES
from quaid.docs.judgements import TASK, StaleDoc, judge_doc
from quaid.docs.updater import describe_since, make_edit
from quaid.docs.updates import ask_update
from quaid.janitor import doc_decisions
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision, evidence_key

if TYPE_CHECKING:
    from quaid.llm import Models

KIND = "update"


def plan_docs_staleness(context: TaskContext) -> Iterator[Decision]:
    """Yield an update of each stale document, the longest stale first; a run asks the deep model about
    `MAX_UPDATES` of them.

    Raises:
        ModelError: as `Models.ask`, but an answer about one document that cannot be used.
    """
    if context.settings.janitor.policies.update == "off" or context.models is None:
        return
    oldest_first = sorted(
        context.documents.stale(),
        key=lambda found: (found.freshness.since.when if found.freshness.since else "", found.doc.id),
    )
    stale = {evidence_key(TASK, *found.evidence): found for found in oldest_first}
    left = MAX_UPDATES
    for key, found in doc_decisions.undecided(context, KIND, stale).items():
        if not left or not doc_decisions.is_unchanged(context, found.doc, found.data):
            continue
        decision = None
        with doc_decisions.noting_unusable_answers(context, TASK, key, found.doc):
            judged = found.narrow(judge_doc(found, context.models, context.judgements))
            if judged.freshness.is_stale:
                left -= 1
                decision = _decide(context, context.models, key, judged)
        if decision is not None:
            yield decision


def _decide(context: TaskContext, models: Models, key: str, stale: StaleDoc) -> Decision | None:
    doc, refused = stale.doc, doc_decisions.list_refused(context, stale.doc)
    update = ask_update(models, doc.rel_path, stale.text, stale.changes, stale.files, refused)
    if update.edits:
        return doc_decisions.decide(TASK, KIND, key, doc, update, make_edit(stale, update), describe_since(stale))
    stale.mark_true(update.summary or "it is true as it is", context.judgements)
    return None
