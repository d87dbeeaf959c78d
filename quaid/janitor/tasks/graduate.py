"""Graduate: what a review has approved becomes active, last of the memory's tasks and only where none has failed."""

from __future__ import annotations

from collections.abc import Iterator

from quaid.index import documents
from quaid.janitor import fact_edits, model_text
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import key_of
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = "graduate"


def plan(context: TaskContext) -> Iterator[Decision]:
    """A decision for each approved fact that nothing has replaced."""
    for document in documents.find_documents(
        context.index,
        "kind = 'fact' AND status = 'approved' AND superseded_by IS NULL AND NOT pinned AND NOT verified",
    ):
        data = context.read(document.path)
        if data is None:
            continue
        try:
            edit = fact_edits.graduate(document.path, data)
        except (FrontmatterBrokenError, UnicodeDecodeError):
            continue  # `quaid doctor` names it
        text = documents.text_of(context.index, document.doc_id)
        yield Decision(
            task=TASK,
            kind="graduate",
            key=key_of(TASK, document.content_hash),
            edits=(edit,),
            subject=f"graduate {model_text.quote(text)}",
            why="A review has approved it.",
            facts=(document.id,),
            is_minor=True,
        )
