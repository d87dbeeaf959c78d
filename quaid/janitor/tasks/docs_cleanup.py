"""Documents that have grown by being added to again and again: cuts of exact passages, in the document's own words.

Only one that is true is shortened: a change, whatever it changes, makes a document count as looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quaid.docs.cleanup import GrownDoc, ask_cleanup, cleanup_edit
from quaid.janitor import documents
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import Context
from quaid.local.runs import key_of

if TYPE_CHECKING:
    from quaid.llm import Models

TASK, KIND = "docs_cleanup", "shorten"


def plan(context: Context) -> Iterator[Decision]:
    """Cuts for documents that have grown, the largest first; a run asks about `docs.most_updates` of them.

    Raises:
        ModelError: as `Models.ask`.
    """
    if context.settings.janitor.policies.shorten == "off" or context.models is None:
        return
    grown = {key_of(TASK, found.doc.evidence(found.data)): found for found in sorted(context.grown_docs(), key=_size)}
    left = context.settings.docs.most_updates
    for key, found in documents.undecided(context, KIND, grown).items():
        if not left or not documents.is_free(context, found.doc, found.data):
            continue
        left -= 1
        decision = None
        with documents.answering(context, TASK, key, found.doc):
            decision = _decide(context, context.models, key, found)
        if decision is not None:
            yield decision


def _decide(context: Context, models: Models, key: str, found: GrownDoc) -> Decision | None:
    doc, churn = found.doc, found.churn
    cuts = ask_cleanup(models, doc.rel_path, found.text, documents.refused(context, doc))
    if cuts is None:
        context.judgements.add(TASK, {key: "nothing to cut"})
        return None
    grown = f"It was changed {churn.changes:,} times in three months and is {churn.growth or 1:.1f} times what it was"
    return documents.decide(TASK, KIND, key, doc, cuts, cleanup_edit(found, cuts), grown)


def _size(found: GrownDoc) -> tuple[int, str]:
    """Sorts the largest to the front."""
    return -found.churn.size, found.doc.id
