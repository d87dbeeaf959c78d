"""Documents that their sources have left behind: the deep model proposes exact edits after which they are true again.

The fast model says first which of the changes matter to a document at all; what it has said once is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quaid.docs.edits import since_of, update_edit
from quaid.docs.updater import Update, ask_update
from quaid.docs.weighing import TASK, StaleDoc, note_still_true, weigh
from quaid.janitor import doc_decisions
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import key_of

if TYPE_CHECKING:
    from quaid.llm import Models

KIND = "update"


def plan(context: TaskContext) -> Iterator[Decision]:
    """An update of each document that is stale, those first that have been so for longest; a run asks the deep model
    about `docs.most_updates` of them.

    Raises:
        ModelError: as `Models.ask`, but an answer about one document that cannot be used.
    """
    if context.settings.janitor.policies.update == "off" or context.models is None:
        return
    oldest_first = sorted(
        context.stale_docs(),
        key=lambda found: (found.freshness.since.when if found.freshness.since else "", found.doc.id),
    )
    stale = {key_of(TASK, *found.evidence): found for found in oldest_first}
    left = context.settings.docs.most_updates
    for key, found in doc_decisions.undecided(context, KIND, stale).items():
        if not left or not doc_decisions.is_unchanged(context, found.doc, found.data):
            continue
        decision = None
        with doc_decisions.noting_unusable_answers(context, TASK, key, found.doc):
            weighed = found.narrowed(weigh(found, context.models, context.judgements))
            if weighed.freshness.is_stale:
                left -= 1
                decision = _decide(context, context.models, key, weighed)
        if decision is not None:
            yield decision


def _decide(context: TaskContext, models: Models, key: str, stale: StaleDoc) -> Decision | None:
    doc, refused = stale.doc, doc_decisions.refused(context, stale.doc)
    update = ask_update(models, doc.rel_path, stale.text, stale.changes, stale.files, refused)
    if isinstance(update, Update):
        return doc_decisions.decide(TASK, KIND, key, doc, update, update_edit(stale, update), since_of(stale))
    note_still_true(stale, update.summary or "it is true as it is", context.judgements)
    return None
