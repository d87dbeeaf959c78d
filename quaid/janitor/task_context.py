"""The context of a task while it plans: the state that the run has reached, and nothing that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from quaid.janitor.questions import Question, question_path, read_question
from quaid.janitor.run_report import RunReport
from quaid.model import Edit, Use
from quaid.settings import Settings
from quaid.vault import markdown, notes
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.docs.judgements import StaleDoc
    from quaid.index.port import IndexConnection
    from quaid.janitor.project_docs import GrownDoc
    from quaid.llm import Models
    from quaid.local.recall_log import Gap
    from quaid.local.runs import Judgements


@dataclass(frozen=True, slots=True)
class Veto:
    """A decision that its owner has undone: which task's, about what evidence, and how its commit read."""

    task: str
    key: str
    subject: str
    body: str = ""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One task's view of the memory.

    `index` is read-only and up to date with the files as this run left them; `read` gives a file's bytes by its path in
    the vault, None where there is none. `use_of` maps ids to how memories were used. `models` is None where no model
    may be asked. `vetoes` of this task, newest first, are examples for a prompt of what the owner did not want;
    `vetoed` are the keys of all of them, of whatever task; `done` are those of what this run has carried out already.
    `answered` are the questions between two facts that the owner has answered with a choice; with `only_answers`
    nothing else is to be decided.
    `gaps` are the questions asked in vain, newest first. `ledger` plans this device's recall counters. `written` is
    when a commit last changed each file. `stale_docs` and `grown_docs` look at the documents of projects. `report`
    takes remarks and what was not judged. `doubts` says of facts, by path, why their owner is asked before they count.
    `outranks` tells whether the first of two facts must not give way to the second unless its owner says so.
    """

    settings: Settings
    now: datetime
    index: IndexConnection
    read: Callable[[str], bytes | None]
    use_of: Callable[[Iterable[str]], Mapping[str, Use]]
    judgements: Judgements
    models: Models | None = None
    vetoes: Sequence[Veto] = ()
    vetoed: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    answered: Sequence[Question] = ()
    only_answers: bool = False
    gaps: Sequence[Gap] = ()
    ledger: Callable[[], Edit | None] = lambda: None
    written: Mapping[str, datetime] = field(default_factory=dict)
    stale_docs: Callable[[], Sequence[StaleDoc]] = tuple
    grown_docs: Callable[[], Sequence[GrownDoc]] = tuple
    report: RunReport = field(default_factory=partial(RunReport, "", datetime.min.replace(tzinfo=UTC)))
    doubts: Mapping[str, str] = field(default_factory=dict)
    outranks: Callable[[str, str], bool] = lambda _, __: False
    progress: Callable[[str, int, int], None] | None = None

    @property
    def layout(self) -> Layout:
        """The places of Quaid's notes in the vault."""
        return Layout.of(self.settings.vault)

    def read_core(self, core: str) -> tuple[bytes | None, str] | None:
        """The bytes and text of a core note that may be edited; (None, "") where there is none yet.

        None for one that is pinned or verified, in the middle of a merge, or not text.
        """
        data = self.read(core)
        if data is None:
            return None, ""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        note = notes.parse_note(core, data, place=self.layout)
        may_edit = not (note.pinned or note.verified or markdown.has_conflict_markers(text))
        return (data, text) if may_edit else None

    def is_asked(self, key: str, kinds: Iterable[str]) -> bool:
        """Return whether a decision of one of `kinds` on the evidence `key` waits for an answer of its owner."""
        paths = [question_path(kind, key, self.layout) for kind in kinds]
        found = [read_question(path, data) for path in paths if (data := self.read(path)) is not None]
        return any(question and question.key == key and question.answer is None for question in found)
