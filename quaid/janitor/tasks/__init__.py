"""The janitor's tasks, and the table of all of them in their order.

A task that fails does not stop the later ones. A task that needs a model is left out where there is none.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NamedTuple, cast

from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision


class Task(NamedTuple):
    """A task. `switch` is the setting in `systems.*` that it depends on; `module` plans it. A task without a module
    decides nothing: the run itself does it.
    """

    name: str
    switch: str = ""
    module: str = ""
    needs_model: bool = False

    @property
    def plan(self) -> Callable[[TaskContext], Iterable[Decision]]:
        """The function `plan_NAME` of the task's module."""
        module = import_module(f"quaid.janitor.tasks.{self.module}")
        return cast("Callable[[TaskContext], Iterable[Decision]]", getattr(module, f"plan_{self.name}"))


TASKS: tuple[Task, ...] = (
    Task("extract"),  # learns from conversations that waited for a model
    Task("memories"),  # asks about what has changed in the memories of other programs that you follow
    Task("embeddings"),  # gives every note its vector
    Task("review", "memory", "review", needs_model=True),  # approves, rewrites or rejects new facts
    Task("temporal", "memory", "temporal"),  # gives dates to times that are relative to their moment
    Task("edges", "memory", "edges", needs_model=True),  # links the people and places that a fact relates
    Task("compare", "memory", "compare"),  # merges facts that say the same, and finds contradictions
    Task("resolve", "memory", "resolve"),  # decides which of two such facts holds, and since when, or asks you
    Task("decay", "memory", "decay"),  # asks about facts that nobody has needed for long; a model judges them first
    Task("graduate", "memory", "review"),  # makes approved facts active
    Task("workspace", "workspace", "core_notes", needs_model=True),  # keeps the core notes short
    Task("docs_staleness", "projects", "docs", needs_model=True),  # updates documents whose sources changed
    Task("docs_cleanup", "projects", "docs", needs_model=True),  # shortens documents that have grown
    Task("snippets", "", "core_notes", needs_model=True),  # adds observations, themes and facts to the core notes
    Task("gaps", "workspace", "gaps"),  # lists questions without an answer
    Task("rag", "projects"),  # indexes the documents of projects
    Task("cleanup"),  # removes what is no longer needed from the state folder
    Task("update_check"),  # reports the version of Quaid, if asked for: no network
)
