"""Documents of projects: exact edits after which stale ones are true again, and cuts of those that have grown.

A stale document is not shortened: any change of a document counts as a check of it.
"""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from quaid.docs.catalogue import Doc
from quaid.docs.documentation import MAX_UPDATES, Documentation
from quaid.docs.updates import DocUpdate, OpenDoc, clean, propose_branch
from quaid.errors import ModelAnswerError, ModelRefusedError, QuaidError, name_first
from quaid.janitor.decision import RunReport
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision, Judgements
from quaid.model import SourceEdit
from quaid.settings import Settings


def plan_docs_staleness(context: TaskContext) -> Iterator[Decision]:
    """Yield an update of each stale document, the most certain first; a run asks the deep model about `MAX_UPDATES` of
    them.

    Raises:
        ModelError: as `OpenDoc.ask`, but an answer about one document that cannot be used.
    """
    return _plan(context, "update", context.documents.stale())


def plan_docs_cleanup(context: TaskContext) -> Iterator[Decision]:
    """Yield cuts for documents that have grown, the largest first; limits and errors are those of updates."""
    return _plan(context, "shorten", context.documents.grown(context.now))


def _plan(
    context: TaskContext, kind: Literal["update", "shorten"], found: Iterable[OpenDoc | str]
) -> Iterator[Decision]:
    models, policy = context.models, getattr(context.settings.janitor.policies, kind)
    if models is None or policy == "off" or not context.settings.docs.check:
        return
    remarks, left = context.report.remarks, MAX_UPDATES
    for opened in found:
        if isinstance(opened, str):
            remarks.append(opened)
            continue
        doc, key = opened.doc, opened.key
        settled = context.vetoed | context.judgements.known([key]).keys() | {each.key for each in context.report.done}
        if not left or key in settled or context.is_asked(key, (kind,)):
            continue
        if not opened.is_committed:
            remarks.append(f"{doc.id} was changed and not committed: nothing is proposed for it until it is.")
            continue
        left -= 1
        try:
            refused = [f"{veto.subject}\n{veto.body}".strip() for veto in context.vetoes if _name(doc) in veto.subject]
            update = opened.ask(models, context.judgements, refused)
        except (ModelAnswerError, ModelRefusedError) as error:
            # The run goes on, and the same is not asked again.
            context.judgements.add(opened.task, {key: "no usable answer"})
            remarks.append(f"Nothing is proposed for {_name(doc)} until it or its sources change: {error}")
            continue
        if update.edits:
            yield _decide(kind, opened, update)


def _decide(kind: str, opened: OpenDoc, update: DocUpdate) -> Decision:
    edit = opened.make_edit(update)
    branch = edit if isinstance(edit, SourceEdit) else None
    where = "It becomes a branch in its repository, for you to merge or to delete." if branch else ""
    return Decision(
        task=opened.task,
        kind=kind,
        key=opened.key,
        edits=() if isinstance(edit, SourceEdit) else (edit,),
        branch=branch,
        subject=f"{kind} {_name(opened.doc)}",
        why=" ".join(filter(None, (update.summary, opened.why, where))),
        model=update.model,
        prompt=update.prompt,
        detail=opened.describe(update),
    )


def _name(doc: Doc) -> str:
    """`projects/recall/GUIDE.md`, or `docs/recall.md of quaid`, on one line."""
    return clean(doc.rel_path if doc.is_in_vault else f"{doc.registry_path} of {doc.project}")


# -- in the run itself ---------------------------------------------------------------------------------------------


def carry_out(decision: Decision, judgements: Judgements) -> str:
    """Create the branch of a decision, and return a sentence that names it.

    Raises:
        NoteChangedError: the document has changed since.
        ProposalError: it cannot be created now, and why.
    """
    assert decision.branch is not None
    branch = propose_branch(decision.branch, decision.task, decision.key, judgements).branch
    folder = shlex.quote(str(Path(decision.branch.folder).resolve()))
    return f"{decision.subject}: look at {branch} and merge it: git -C {folder} merge {branch}"


def index_documents(documentation: Documentation) -> list[str]:
    """Add new projects of the vault, bring the index of the documents up to date, and describe what is new."""
    try:
        homes = documentation.discover()
        news = [f"{home.name} is a project now. See it with: quaid project show {home.name}" for home in homes]
    except QuaidError as error:
        news = [f"New projects could not be looked for: {error}"]
    try:
        added = documentation.sync().added
        return news + ([f"New documents: {name_first(added)}"] if added else [])
    except QuaidError as error:
        return [*news, f"The documents could not be indexed: {error}"]


def report_stale(documentation: Documentation, settings: Settings, report: RunReport) -> None:
    """Add the documents that are stale now to the report of a run."""
    if not (settings.systems.projects and settings.docs.check):
        return
    try:
        report.stale = [doc.id for doc, freshness in documentation.check() if freshness.is_stale]
    except QuaidError as error:
        report.remarks.append(f"Which documents are stale is not known: {error}")
    if report.stale:
        report.remarks.append(f"Stale documents: {name_first(report.stale)}. See why with: quaid docs check")
