"""The owner's policy for a night: each decision is carried out, asked about, held back or dropped.

What the owner has vetoed or switched off is dropped, what touches a pinned or verified note is held back; what the
policy says, or lines that a person wrote, make it a question; what goes over the budget waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from quaid.history.branches import written_by_others
from quaid.janitor.questions import Question
from quaid.janitor.vetoes import is_byproduct, read_vetoes
from quaid.janitor.worktree import JANITOR
from quaid.model import Edit, Kind
from quaid.vault import notes
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.history.branches import VaultCommit
    from quaid.history.vault_history import History
    from quaid.janitor.decision import Decision
    from quaid.janitor.run_report import RunReport
    from quaid.settings import Settings

MAX_QUESTIONS = 20
"""Nobody answers more at a time."""
MIN_BUDGET = 20
"""The notes that a run may always change in meaning, however small the share of all is."""


class Policy:
    """The owner's will in one run: `vetoes`, `questions` that are open by key, `consents` given to keys.

    `log` is the owner's history, parents before children, and `base` the commit that the run began at.
    """

    def __init__(
        self, settings: Settings, history: History, log: Sequence[VaultCommit], base: str, report: RunReport
    ) -> None:
        self._settings = settings
        self._layout = Layout.of(settings.vault)
        self._branches = history.branches
        self._base = base
        self._report = report
        self._own = {settings.git.email, JANITOR[1]}
        self._by_others = written_by_others(log, self._own)
        self._budget = max(MIN_BUDGET, int(report.notes * settings.janitor.change_budget))
        self.vetoes = read_vetoes(log, self._own, history.boundary, self._branches.read_blobs)
        self.questions: dict[str, Question] = {}
        self.consents: set[str] = set()

    def is_vetoed(self, key: str) -> bool:
        """Return whether the owner has undone or refused it; the key tells the task as well as the evidence."""
        return any(veto.key == key for veto in self.vetoes)

    def admits(self, decision: Decision) -> bool:
        """Return whether `decision` is to be carried out; where not, enter in the report what becomes of it."""
        report = self._report
        if self.is_vetoed(decision.key):
            report.vetoed += 1
            return False
        policy = getattr(self._settings.janitor.policies, decision.kind, "ask")
        has_consent = decision.key in self.consents
        if policy == "off" or (decision.key in self.questions and not has_consent):
            return False
        question = "" if has_consent else self._why_ask(decision, policy)
        if any(map(self._is_protected, decision.edits)):
            report.held_back.append((decision, "it is about a pinned or verified note"))
        elif question and len(report.asked) >= MAX_QUESTIONS:
            report.held_back.append((decision, "there are enough questions for one night"))
        elif question:
            report.asked.append(replace(decision, detail=f"{decision.detail}\n\n{question}".strip()))
        elif (cost := 0 if decision.is_minor else len(set(decision.paths))) > self._budget:
            report.held_back.append((decision, "the night's budget of changes is spent"))
        else:
            self._budget -= cost
            return True
        return False

    def _why_ask(self, decision: Decision, policy: str) -> str:
        if decision.always_asks:
            return "This is always asked."
        if policy == "ask":
            return f"Asked because janitor.policies.{decision.kind} is ask."
        touched = [edit.rel_path for edit in decision.edits if self._changes_human_lines(edit)]
        return f"Asked because you wrote what it changes in {touched[0]}." if touched else ""

    def _changes_human_lines(self, edit: Edit) -> bool:
        if edit.before is None or edit.rel_path not in self._by_others or is_byproduct(edit.rel_path):
            return False
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, edit.before.splitlines(), (edit.after or b"").splitlines(), autojunk=False)
        human = self._branches.human_lines(edit.rel_path, self._base, self._own)
        return any(
            tag in {"replace", "delete"} and not human.isdisjoint(range(start + 1, end + 1))
            for tag, start, end, _, _ in matcher.get_opcodes()
        )

    def _is_protected(self, edit: Edit) -> bool:
        """Return whether an edit changes a fact that its owner has pinned or verified."""
        if edit.before is None:
            return False
        note = notes.parse_note(edit.rel_path, edit.before, place=self._layout)
        return note.kind is Kind.FACT and (note.pinned or note.verified)
