"""Documents that have grown by being added to again and again: cuts of exact passages, in the document's own words.

Only one that is true is shortened: a change, whatever it changes, makes a document count as looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from quaid.docs.edits import cleanup_edit
from quaid.docs.updater import ask_cleanup
from quaid.janitor import doc_decisions
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import key_of

TASK, KIND = "docs_cleanup", "shorten"


def plan(context: TaskContext) -> Iterator[Decision]:
    """Cuts for documents that have grown, the largest first; a run asks about `docs.most_updates` of them.

    Raises:
        ModelError: as `Models.ask`.
    """
    if context.settings.janitor.policies.shorten == "off" or context.models is None:
        return
    largest_first = sorted(context.grown_docs(), key=lambda found: (-found.churn.size, found.doc.id))
    grown = {key_of(TASK, found.doc.evidence(found.data)): found for found in largest_first}
    left = context.settings.docs.most_updates
    for key, found in doc_decisions.undecided(context, KIND, grown).items():
        doc, churn = found.doc, found.churn
        if not left or not doc_decisions.is_unchanged(context, doc, found.data):
            continue
        left -= 1
        decision = None
        with doc_decisions.noting_unusable_answers(context, TASK, key, doc):
            cuts = ask_cleanup(context.models, doc.rel_path, found.text, doc_decisions.refused(context, doc))
            if cuts is None:
                context.judgements.add(TASK, {key: "nothing to cut"})
                continue
            growth = f"is {churn.growth or 1:.1f} times what it was"
            why = f"It was changed {churn.changes:,} times in three months and {growth}"
            decision = doc_decisions.decide(TASK, KIND, key, doc, cuts, cleanup_edit(found, cuts), why)
        if decision is not None:
            yield decision
