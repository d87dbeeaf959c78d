"""All tasks in their order: a table to read.

A task that fails does not keep the later ones from running. A task that needs a model waits where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from quaid.janitor.decision import Decision
from quaid.janitor.task_context import TaskContext

Plan = Callable[[TaskContext], Iterable[Decision]]


@dataclass(frozen=True, slots=True)
class Task:
    """One task: what it does, in words, and whether it can do without a model."""

    name: str
    switch: str
    """The switch in `systems.*` that it depends on; empty where there is none."""
    does: str
    needs_model: bool = False
    by_runner: bool = False
    """The run itself does it: nothing is decided."""

    @property
    def plan(self) -> Plan:
        """The function `plan` of the module `janitor/tasks/NAME.py`."""
        return cast("Plan", import_module(f"quaid.janitor.tasks.{self.name}").plan)


TASKS: tuple[Task, ...] = (
    Task("embeddings", "", "gives every note its vector", by_runner=True),
    Task("review", "memory", "approves, rewrites or rejects what was learned since the last night", needs_model=True),
    Task("temporal", "memory", "gives dates to times that are told relative to their moment"),
    Task("edges", "memory", "links the people and places that a fact told by itself relates", needs_model=True),
    Task("compare", "memory", "merges facts that say the same, and finds those that cannot both be true"),
    Task("resolve", "memory", "decides which of two such facts holds, and since when, or asks you"),
    Task("decay", "memory", "asks about facts that nobody has needed for long"),
    Task("decay_review", "memory", "proposes what to do with them", needs_model=True),
    Task("graduate", "memory", "makes approved facts active"),
    Task("promotion", "workspace", "proposes lasting, important facts for the core notes", needs_model=True),
    Task("workspace", "workspace", "keeps the core notes short", needs_model=True),
    Task(
        "docs_staleness",
        "projects",
        "brings documents up to date that their sources have left behind",
        needs_model=True,
    ),
    Task("docs_cleanup", "projects", "shortens documents that have grown", needs_model=True),
    Task("snippets", "journal", "folds observations into the core notes", needs_model=True),
    Task("journal", "journal", "distils the journal into the core notes", needs_model=True),
    Task("gaps", "workspace", "lists what was asked in vain"),
    Task("fold", "", "writes this device's recall counters down"),
    Task("rag", "projects", "indexes the documents of projects", by_runner=True),
    Task("cleanup", "", "removes what is no longer needed from the state folder", by_runner=True),
    Task("update_check", "", "says which Quaid this is, if asked for: no network", by_runner=True),
)
