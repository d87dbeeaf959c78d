"""Propose cuts of exact passages for documents that have grown by many additions.

A stale document is not shortened: any change of a document counts as a check of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from quaid.docs.documentation import MAX_UPDATES
from quaid.docs.updater import make_cut
from quaid.docs.updates import ask_cleanup
from quaid.janitor import doc_decisions
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision, evidence_key

TASK, KIND = "docs_cleanup", "shorten"


def plan_docs_cleanup(context: TaskContext) -> Iterator[Decision]:
    """Yield cuts for documents that have grown, the largest first; a run asks about `MAX_UPDATES` of them.

    Raises:
        ModelError: as `Models.ask`.
    """
    if context.settings.janitor.policies.shorten == "off" or context.models is None:
        return
    largest_first = sorted(context.documents.grown(context.now), key=lambda found: (-len(found.data), found.doc.id))
    grown = {evidence_key(TASK, found.doc.evidence(found.data)): found for found in largest_first}
    left = MAX_UPDATES
    for key, found in doc_decisions.undecided(context, KIND, grown).items():
        doc = found.doc
        if not left or not doc_decisions.is_unchanged(context, doc, found.data):
            continue
        left -= 1
        decision = None
        text = found.data.decode("utf-8", "surrogateescape")
        with doc_decisions.noting_unusable_answers(context, TASK, key, doc):
            cuts = ask_cleanup(context.models, doc.rel_path, text, doc_decisions.list_refused(context, doc))
            if cuts is None:
                context.judgements.add(TASK, {key: "nothing to cut"})
                continue
            growth = f"is {found.growth:.1f} times what it was"
            why = f"It was changed {found.changes:,} times in three months and {growth}"
            decision = doc_decisions.decide(TASK, KIND, key, doc, cuts, make_cut(doc, found.data, cuts), why)
        if decision is not None:
            yield decision
