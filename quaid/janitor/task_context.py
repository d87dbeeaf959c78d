"""The context of a task while it plans: the state that the run has reached, and nothing that writes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from quaid.docs.documentation import Documentation
from quaid.history.authorship import Ranking
from quaid.index import documents
from quaid.index.documents import Document
from quaid.index.port import IndexConnection
from quaid.janitor.decision import RunReport
from quaid.janitor.questions import Question, question_path, read_question
from quaid.llm import Models
from quaid.local.runs import Judgements
from quaid.recall.records import RecallRecords
from quaid.settings import Settings
from quaid.vault import files
from quaid.vault.layout import Layout


class Veto(NamedTuple):
    """A decision that its owner has undone: its task, the key of its evidence, and the message of its commit."""

    task: str
    key: str
    subject: str
    body: str = ""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One task's view of the memory.

    `root` is the vault as this run left it, and `index` is up to date with it. `models` is None where no model may be
    called. `vetoes` of this task, newest first, show a model what the owner refused; `vetoed` are the keys of all
    tasks. `answered` are the questions between two facts that the
    owner has answered; with `only_answers` nothing else is decided. `written` is when a commit last changed each file.
    `documents` are those of projects. `doubts` give, by path, the reason to ask the owner before a fact counts.
    `ranking` decides which of two facts must not give way.
    """

    root: Path
    settings: Settings
    now: datetime
    index: IndexConnection
    records: RecallRecords
    judgements: Judgements
    documents: Documentation
    models: Models | None = None
    vetoes: Sequence[Veto] = ()
    vetoed: frozenset[str] = frozenset()
    answered: Sequence[Question] = ()
    only_answers: bool = False
    written: Mapping[str, datetime] = field(default_factory=dict)
    report: RunReport = field(default_factory=partial(RunReport, "", datetime.min.replace(tzinfo=UTC)))
    doubts: Mapping[str, str] = field(default_factory=dict)
    ranking: Ranking | None = None
    progress: Callable[[str, int, int], None] | None = None

    @property
    def day(self) -> str:
        """The day of the run (ISO)."""
        return self.now.date().isoformat()

    @property
    def layout(self) -> Layout:
        """The places of Quaid's notes in the vault."""
        return Layout.of(self.settings.vault)

    def read(self, rel_path: str) -> bytes | None:
        """Return a file's bytes by its path in the vault; None where there is none."""
        return files.read_note(self.root, rel_path)

    def find_facts(self, condition: str, *values: str) -> list[Document]:
        """Return the facts that no other replaced and that match an SQL condition, with their first texts, by path."""
        where = f"kind = 'fact' AND superseded_by IS NULL AND {condition}"
        found = documents.find_documents(self.index, where, values)
        chunks = documents.first_chunks(self.index, [document.doc_id for document in found])
        facts = documents.fetch_candidates(self.index, chunks).values()
        return sorted(facts, key=lambda fact: fact.path)

    def is_asked(self, key: str, kinds: Iterable[str]) -> bool:
        """Return whether an open question is about a decision of one of `kinds` on the evidence `key`."""
        paths = [question_path(kind, key, self.layout) for kind in kinds]
        found = [read_question(path, data) for path in paths if (data := self.read(path)) is not None]
        return any(question and question.key == key and question.answer is None for question in found)
