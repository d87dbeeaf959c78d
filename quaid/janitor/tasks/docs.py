"""Documents of projects: exact edits after which stale ones are true again, and cuts of those that have grown.

For a stale document the fast model first judges which of the changes matter to it, and the deep model proposes the
edits. A stale document is not shortened: any change of a document counts as a check of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from quaid.docs.catalogue import Doc
from quaid.docs.documentation import MAX_UPDATES
from quaid.docs.judgements import TASK, judge_doc
from quaid.docs.updater import describe_since, make_cut, make_edit, quote
from quaid.docs.updates import DocUpdate, ask_cleanup, ask_update
from quaid.errors import ModelAnswerError, ModelRefusedError
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, SourceEdit
from quaid.vault import headings

CLEANUP = "docs_cleanup"
MAX_REFUSED_CHARACTERS = 1_500
"""Characters of a refused change that a model is shown."""
Found = TypeVar("Found")


def plan_docs_staleness(context: TaskContext) -> Iterator[Decision]:
    """Yield an update of each stale document, the longest stale first; a run asks the deep model about
    `MAX_UPDATES` of them.

    Raises:
        ModelError: as `Models.ask`, but an answer about one document that cannot be used.
    """
    models = context.models
    if context.settings.janitor.policies.update == "off" or models is None:
        return
    oldest_first = sorted(
        context.documents.stale(),
        key=lambda found: (found.freshness.since.when if found.freshness.since else "", found.doc.id),
    )
    stale = {evidence_key(TASK, *found.evidence): found for found in oldest_first}
    left = MAX_UPDATES
    for key, found in _list_undecided(context, "update", stale).items():
        doc = found.doc
        if not left or not _is_unchanged(context, doc, found.data):
            continue
        with _noting_unusable_answers(context, TASK, key, doc):
            judged = found.narrow(judge_doc(found, models, context.judgements))
            if not judged.freshness.is_stale:
                continue
            left -= 1
            refused = _list_refused(context, doc)
            update = ask_update(models, doc.rel_path, judged.text, judged.changes, judged.files, refused)
            if update.edits:
                yield _decide(TASK, "update", key, doc, update, make_edit(judged, update), describe_since(judged))
            else:
                judged.mark_true(update.summary or "it is true as it is", context.judgements)


def plan_docs_cleanup(context: TaskContext) -> Iterator[Decision]:
    """Yield cuts for documents that have grown, the largest first; a run asks about `MAX_UPDATES` of them.

    Raises:
        ModelError: as `Models.ask`.
    """
    models = context.models
    if context.settings.janitor.policies.shorten == "off" or models is None:
        return
    largest_first = sorted(context.documents.grown(context.now), key=lambda found: (-len(found[1]), found[0].id))
    grown = {evidence_key(CLEANUP, found[0].evidence(found[1])): found for found in largest_first}
    left = MAX_UPDATES
    for key, (doc, data, changes, growth) in _list_undecided(context, "shorten", grown).items():
        if not left or not _is_unchanged(context, doc, data):
            continue
        left -= 1
        with _noting_unusable_answers(context, CLEANUP, key, doc):
            text = data.decode("utf-8", "surrogateescape")
            cuts = ask_cleanup(models, doc.rel_path, text, _list_refused(context, doc))
            if cuts is None:
                context.judgements.add(CLEANUP, {key: "nothing to cut"})
                continue
            why = f"It was changed {changes:,} times in three months and is {growth:.1f} times what it was"
            yield _decide(CLEANUP, "shorten", key, doc, cuts, make_cut(doc, data, cuts), why)


def _list_undecided(context: TaskContext, kind: str, found: Mapping[str, Found]) -> dict[str, Found]:
    """Return the items of `found`, by the key of their evidence, that neither the owner nor a run has decided about."""
    known = context.judgements.known(list(found)) if found else {}
    settled = context.vetoed | known.keys() | {decision.key for decision in context.report.done}
    return {key: value for key, value in found.items() if key not in settled and not context.is_asked(key, (kind,))}


def _is_unchanged(context: TaskContext, doc: Doc, data: bytes) -> bool:
    """Return whether a document of the vault is committed as it was read."""
    if not doc.is_in_vault or context.read(doc.rel_path) == data:
        return True
    context.report.remarks.append(f"{doc.id} was changed and not committed: nothing is proposed for it until it is.")
    return False


@contextmanager
def _noting_unusable_answers(context: TaskContext, task: str, key: str, doc: Doc) -> Iterator[None]:
    """Store that the answer about one document cannot be used: the run goes on, and does not ask again."""
    try:
        yield
    except (ModelAnswerError, ModelRefusedError) as error:
        context.judgements.add(task, {key: "no usable answer"})
        context.report.remarks.append(f"Nothing is proposed for {_name(doc)} until it or its sources change: {error}")


def _decide(
    task: str, kind: str, key: str, doc: Doc, update: DocUpdate, edit: Edit | SourceEdit, more: str
) -> Decision:
    """Return the decision to make `edit`, which carries out `update`, of `doc`."""
    branch = edit if isinstance(edit, SourceEdit) else None
    where = "It becomes a branch in its repository, for you to merge or to delete." if branch else ""
    why = (update.summary, more, where)
    return Decision(
        task=task,
        kind=kind,
        key=key,
        edits=(edit,) if isinstance(edit, Edit) else (),
        branch=branch,
        subject=f"{kind} {_name(doc)}",
        why=" ".join(part if part.endswith(".") else f"{part}." for part in why if part),
        model=update.model,
        prompt=update.prompt,
        detail=quote(update.detail),
    )


def _name(doc: Doc) -> str:
    """`projects/recall/GUIDE.md`, or `docs/recall.md of quaid`, on one line."""
    name = doc.rel_path if doc.is_in_vault else f"{doc.registry_path} of {doc.project}"
    return headings.one_line(quote(name))


def _list_refused(context: TaskContext, doc: Doc) -> list[str]:
    """Return the earlier changes of `doc` that its owner refused, the newest first."""
    name = _name(doc)
    texts = (f"{veto.subject}\n{veto.body}" for veto in context.vetoes if name in veto.subject)
    return [text.strip()[:MAX_REFUSED_CHARACTERS] for text in texts]
