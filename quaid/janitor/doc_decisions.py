"""Decisions about the documents of projects: which documents they are for, and how an edit becomes a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from quaid.docs.updater import quote
from quaid.errors import ModelAnswerError, ModelRefusedError
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision
from quaid.model import Edit, SourceEdit
from quaid.vault import headings

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.updates import DocUpdate

TASKS = ("docs_staleness", "docs_cleanup")
MAX_REFUSED_CHARACTERS = 1_500
"""Characters of a refused change that a model is shown."""
Found = TypeVar("Found")


def undecided(context: TaskContext, kind: str, found: Mapping[str, Found]) -> dict[str, Found]:
    """Return the items of `found`, by the key of their evidence, that neither the owner nor a run has decided about."""
    known = context.judgements.known(list(found)) if found else {}
    settled = context.vetoed | context.done | known.keys()
    return {key: value for key, value in found.items() if key not in settled and not context.is_asked(key, (kind,))}


def is_unchanged(context: TaskContext, doc: Doc, data: bytes) -> bool:
    """Return whether a document of the vault is committed as it was read."""
    if not doc.is_in_vault or context.read(doc.rel_path) == data:
        return True
    context.report.remarks.append(f"{doc.id} was changed and not committed: nothing is proposed for it until it is.")
    return False


@contextmanager
def noting_unusable_answers(context: TaskContext, task: str, key: str, doc: Doc) -> Iterator[None]:
    """Store that the answer about one document cannot be used: the run goes on, and does not ask again."""
    try:
        yield
    except (ModelAnswerError, ModelRefusedError) as error:
        context.judgements.add(task, {key: "no usable answer"})
        context.report.remarks.append(f"Nothing is proposed for {name_of(doc)} until it or its sources change: {error}")


def decide(
    task: str, kind: str, key: str, doc: Doc, update: DocUpdate, edit: Edit | SourceEdit, more: str = ""
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
        subject=f"{kind} {name_of(doc)}",
        why=" ".join(part if part.endswith(".") else f"{part}." for part in why if part),
        model=update.model,
        prompt=update.prompt,
        detail=quote(update.detail),
    )


def name_of(doc: Doc) -> str:
    """`projects/recall/GUIDE.md`, or `docs/recall.md of quaid`, on one line."""
    name = doc.rel_path if doc.is_in_vault else f"{doc.registry_path} of {doc.project}"
    return headings.one_line(quote(name))


def list_refused(context: TaskContext, doc: Doc) -> list[str]:
    """Return the earlier changes of `doc` that its owner refused, the newest first."""
    name = name_of(doc)
    texts = (f"{veto.subject}\n{veto.body}" for veto in context.vetoes if name in veto.subject)
    return [text.strip()[:MAX_REFUSED_CHARACTERS] for text in texts]
