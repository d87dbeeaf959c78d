"""All tasks in their order: a table to read.

A task of the phase `memory` that fails takes the later ones of that phase with it, and nothing graduates that night;
the other phases go on. A task that needs a model waits where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, cast

from quaid.janitor.decision import Decision
from quaid.janitor.task_context import TaskContext

Plan = Callable[[TaskContext], Iterable[Decision]]
Phase = Literal["prepare", "memory", "workspace", "infrastructure"]


@dataclass(frozen=True, slots=True)
class Task:
    """One task: what it does, in words, and whether it can do without a model."""

    name: str
    phase: Phase
    does: str
    needs_model: bool = False
    by_runner: bool = False
    """The run itself does it: nothing is decided."""
    system: str = ""
    """The switch in `systems.*` that it hangs on; empty means the one of its phase, if there is one."""

    @property
    def switch(self) -> str:
        return self.system or (self.phase if self.phase in {"memory", "workspace"} else "")

    @property
    def plan(self) -> Plan:
        """The function `plan` of the module `janitor/tasks/NAME.py`."""
        return cast("Plan", import_module(f"quaid.janitor.tasks.{self.name}").plan)


TASKS: tuple[Task, ...] = (
    Task("embeddings", "prepare", "gives every note its vector", by_runner=True),
    Task("review", "memory", "approves, rewrites or rejects what was learned since the last night", needs_model=True),
    Task("temporal", "memory", "gives dates to times that are told relative to their moment"),
    Task("compare", "memory", "merges facts that say the same, and finds those that cannot both be true"),
    Task("resolve", "memory", "decides which of two such facts holds, and since when, or asks you"),
    Task("decay", "memory", "asks about facts that nobody has needed for long"),
    Task("decay_review", "memory", "proposes what to do with them", needs_model=True),
    Task("graduate", "memory", "makes approved facts active"),
    Task("promotion", "workspace", "proposes lasting, important facts for the core notes", needs_model=True),
    Task("workspace", "workspace", "keeps the core notes short", needs_model=True),
    Task(
        "docs_staleness",
        "workspace",
        "brings documents up to date that their sources have left behind",
        needs_model=True,
        system="projects",
    ),
    Task("docs_cleanup", "workspace", "shortens documents that have grown", needs_model=True, system="projects"),
    Task("snippets", "workspace", "folds observations into the core notes", needs_model=True, system="journal"),
    Task("journal", "workspace", "distils the journal into the core notes", needs_model=True, system="journal"),
    Task("gaps", "workspace", "lists what was asked in vain"),
    Task("fold", "infrastructure", "writes this device's recall counters down"),
    Task("rag", "infrastructure", "indexes the documents of projects", by_runner=True, system="projects"),
    Task("cleanup", "infrastructure", "removes what is no longer needed from the state folder", by_runner=True),
    Task("update_check", "infrastructure", "says which Quaid this is, if asked for: no network", by_runner=True),
)
