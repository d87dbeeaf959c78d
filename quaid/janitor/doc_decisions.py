"""Decisions about the documents of projects: which documents are looked at, and how an edit becomes a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from quaid.docs.updater import quote
from quaid.errors import ModelAnswerError, ModelRefusedError
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import TaskContext
from quaid.model import Edit, SourceEdit
from quaid.vault import headings

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.updates import DocUpdate

TASKS = ("docs_staleness", "docs_cleanup")
MAX_REFUSED_CHARACTERS = 1_500
"""Characters of an undone change that are shown to a model."""
Found = TypeVar("Found")


def undecided(context: TaskContext, kind: str, found: Mapping[str, Found]) -> dict[str, Found]:
    """Of `found`, by the key of its evidence, what nothing was decided about: neither by the owner, nor by an earlier
    night, nor in this one.
    """
    known = context.judgements.known(list(found)) if found else {}
    settled = context.vetoed | context.done | known.keys()
    return {key: value for key, value in found.items() if key not in settled and not context.is_asked(key, (kind,))}


def is_unchanged(context: TaskContext, doc: Doc, data: bytes) -> bool:
    """Return whether nobody is at work on a document of the vault: the night has it as it was read."""
    if not doc.is_in_vault or context.read(doc.rel_path) == data:
        return True
    context.report.remarks.append(f"{doc.id} was changed and not committed: nothing is proposed for it until it is.")
    return False


@contextmanager
def noting_unusable_answers(context: TaskContext, task: str, key: str, doc: Doc) -> Iterator[None]:
    """Note an answer about one document that cannot be used: it says nothing of the others, and is not asked again."""
    try:
        yield
    except (ModelAnswerError, ModelRefusedError) as error:
        context.judgements.add(task, {key: "no usable answer"})
        context.report.remarks.append(f"Nothing is proposed for {name_of(doc)} until it or its sources change: {error}")


def decide(
    task: str, kind: str, key: str, doc: Doc, update: DocUpdate, edit: Edit | SourceEdit, more: str = ""
) -> Decision:
    """The decision to make `edit`, which is `update`, of `doc`."""
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


def refused(context: TaskContext, doc: Doc) -> list[str]:
    """The earlier changes of `doc` that its owner did not want, the newest first."""
    name = name_of(doc)
    told = (f"{veto.subject}\n{veto.body}" for veto in context.vetoes if name in veto.subject)
    return [text.strip()[:MAX_REFUSED_CHARACTERS] for text in told]
