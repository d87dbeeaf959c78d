"""This device's recall counters, written down in usage/: merging devices is adding."""

from __future__ import annotations

from collections.abc import Iterator

from quaid.janitor.decision import Decision
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import evidence_key


def plan(context: TaskContext) -> Iterator[Decision]:
    """One edit of this device's ledger, none when it is up to date."""
    edit = context.ledger()
    if edit is not None:
        key = evidence_key("fold", edit.rel_path, context.now.isoformat())
        yield Decision("fold", "ledger", key, (edit,), "write down what was recalled", "", is_minor=True)
