"""What a task sees while it plans: the state that the run has reached, and nothing that writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from quaid.index.documents import Document
from quaid.model import Edit, Use
from quaid.settings import Settings
from quaid.vault import notes

if TYPE_CHECKING:
    import apsw

    from quaid.docs.cleanup import GrownDoc
    from quaid.docs.judgements import StaleDoc
    from quaid.llm import Models
    from quaid.local.gaps import Gap
    from quaid.model import Note


class Judgements(Protocol):
    """What was judged before: a verdict that changed nothing is not asked for again while its evidence is the same."""

    def known(self, keys: Collection[str]) -> Mapping[str, str]:
        """Of `keys` those that were judged, with the verdict."""

    def add(self, task: str, verdicts: Mapping[str, str]) -> None:
        """Remember the verdict of each key."""


@dataclass(frozen=True, slots=True)
class Veto:
    """A decision that its owner has undone: which task's, about what evidence, and how its commit read."""

    task: str
    key: str
    subject: str
    body: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """One task's view of the memory.

    `index` is read-only and in step with the files as the run has left them; `read` gives a file's bytes by its path in
    the vault, None where there is none. `use_of` maps ids to how memories were used. `models` is None where no model
    may be asked. `vetoes` of this task, newest first, are examples for a prompt of what the owner did not want;
    `vetoed` are the keys of all of them, of whatever task; `done` are those of what this run has carried out already.
    `gaps` are the questions asked in vain, newest first. `ledger` plans this device's recall counters. `written` is
    when a commit last changed each file. `stale_docs` and `grown_docs` look at the documents of projects. `remark`
    puts a sentence into the run's report.
    """

    settings: Settings
    now: datetime
    index: apsw.Connection
    read: Callable[[str], bytes | None]
    use_of: Callable[[Iterable[str]], Mapping[str, Use]]
    judgements: Judgements
    models: Models | None = None
    vetoes: Sequence[Veto] = ()
    vetoed: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    gaps: Sequence[Gap] = ()
    ledger: Callable[[], Edit | None] = lambda: None
    written: Mapping[str, datetime] = field(default_factory=dict)
    stale_docs: Callable[[], Sequence[StaleDoc]] = tuple
    grown_docs: Callable[[], Sequence[GrownDoc]] = tuple
    remark: Callable[[str], None] = lambda _: None
    progress: Callable[[str, int, int], None] | None = None

    def note(self, document: Document) -> Note | None:
        """The note of a document as it stands, parsed; None when it is gone."""
        data = self.read(document.path)
        return None if data is None else notes.parse_note(document.path, data)
