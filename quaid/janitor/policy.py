"""The owner's policy for a run: each decision is carried out, asked about, held back or dropped.

A decision that the owner has vetoed or switched off is dropped, and one that touches a pinned, verified or locked note
is held back. It becomes a question if the policy says so, or if it changes lines that a person wrote; above the budget
it is held back. What a person wrote into a fact that Quaid made corrects Quaid: it stays, without a question.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from quaid.history.authorship import JANITOR, Authors
from quaid.history.vault_history import History, VaultCommit
from quaid.index.documents import find_protected
from quaid.index.port import IndexConnection
from quaid.janitor.decision import CONFLICT, CORRECT, DISPUTE, RunReport
from quaid.janitor.questions import Question
from quaid.janitor.vetoes import asks, is_by_quaid, read_vetoes
from quaid.local.runs import Decision, Judgements, evidence_key
from quaid.model import Edit, Kind, note_name
from quaid.settings import Settings, find_policy_key
from quaid.vault import notes
from quaid.vault.agent_notes import find_lock
from quaid.vault.layout import Layout

_OVERRULED = frozenset({"rewrite", "date", "merge", "reject"})
"""Kinds of decisions about a fact that would undo what a person changed in it."""
_REPLACED = b"superseded_by:"
MIN_BUDGET = 20
"""The number of notes that a run may always change in meaning, however small the vault is."""


class Policy:
    """The owner's will in one run: `vetoes`, `questions` that are open by key, `consents` given to keys.

    `log` is the owner's history, parents before children, and `base` the commit that the run began at.
    """

    def __init__(
        self,
        settings: Settings,
        history: History,
        log: Sequence[VaultCommit],
        base: str,
        report: RunReport,
        judgements: Judgements,
    ) -> None:
        self._settings = settings
        self._layout = Layout.of(settings.vault)
        self._history = history
        self._base = base
        self._report = report
        self._judgements = judgements
        self._log = log
        self._authors = authors = Authors(settings.git.email)
        by_hand = [each for logged in log if authors.is_by_hand(logged.commit.email) for each in logged.changes]
        self._by_hand = {change.path for change in by_hand}
        self._made_by_hand = {change.path for change in by_hand if change.befores[0] is None}
        self._budget = max(MIN_BUDGET, int(report.notes * settings.janitor.change_budget))
        self._own = {settings.git.email, JANITOR[1]}
        self.vetoes = read_vetoes(log, self._own, history)
        self.questions: dict[str, Question] = {}
        self.consents: set[str] = set()

    def is_vetoed(self, key: str) -> bool:
        """Return whether the owner has undone or refused a decision with this key."""
        return any(veto.key == key for veto in self.vetoes)

    def answered(self) -> list[Question]:
        """Return the questions between two facts that the owner has answered and no run has carried out."""
        return [q for key, q in self.questions.items() if q.kind == CONFLICT and key in self.consents]

    def admits(self, decision: Decision, index: IndexConnection, root: Path) -> bool:
        """Return whether to carry out `decision` about notes of `index`; if not, the report says what becomes of it.
        The owner's files at `root` say which notes are locked.
        """
        report = self._report
        if self.is_vetoed(decision.key):
            report.vetoed += 1
            return False
        policy = self._settings.janitor.policies.of(decision.kind)
        has_consent = decision.key in self.consents
        if policy == "off" or (decision.key in self.questions and not has_consent):
            return False
        question = "" if has_consent else self._why_ask(decision, policy)
        # No run changes a fact that the owner says is wrong before that question is answered.
        disputed = {name for asked in self.questions.values() if asked.kind == DISPUTE for name in asked.about}
        if decision.kind in _OVERRULED and not has_consent and any(map(self._undoes_correction, decision.edits)):
            # It is reported once, though the same judgement is found again in every run.
            mark = evidence_key("overruled", decision.key)
            report.overruled += not self._judgements.known([mark])
            self._judgements.add("overruled", {mark: ""})
        elif not (has_consent and decision.kind == CONFLICT) and find_protected(index, decision.paths):
            report.held_back.append((decision, "it is about a pinned or verified note"))
        elif locked := find_lock(root, decision.edits):
            report.held_back.append((decision, f"{next(iter(locked.values()))} is locked"))
        elif not disputed.isdisjoint(map(note_name, decision.paths)):
            report.held_back.append((decision, "you have said that it is wrong"))
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
            return "Quaid does not decide this alone."
        if policy == "ask":
            return f"Asked because your setting janitor.policies.{find_policy_key(decision.kind)} is ask."
        if decision.kind == CORRECT:
            return ""  # what the owner wrote gives way to what the owner has stated since
        touched = next((edit.rel_path for edit in decision.edits if self._human_lines(edit)), "")
        return f"Asked because you wrote or accepted what it changes in {touched}." if touched else ""

    def _undoes_correction(self, edit: Edit) -> bool:
        """Return whether an edit undoes what a person changed in a fact that Quaid made. Lines that Quaid wrote there
        before are not the person's: they undid a change.
        """
        note = None if edit.before is None else notes.parse_note(edit.rel_path, edit.before, place=self._layout)
        if note is None or note.kind is not Kind.FACT or edit.rel_path in self._made_by_hand:
            return False
        lines = self._human_lines(edit)
        own = {
            change.after
            for logged in (self._log if lines else ())
            if not self._authors.is_by_hand(logged.commit.email) or is_by_quaid(logged.commit, self._own)
            for change in logged.changes
            if change.path == edit.rel_path and change.after
        }
        texts = self._history.runner.read_blobs(own).values()
        return not lines <= {line for data in texts for line in data.splitlines()}

    def _human_lines(self, edit: Edit) -> set[bytes]:
        """Return a person's lines that an edit changes or removes: all of them if another fact replaces this one."""
        if edit.before is None or edit.rel_path not in self._by_hand or asks(edit.rel_path):
            return set()
        from difflib import SequenceMatcher

        before, after = edit.before.splitlines(), (edit.after or b"").splitlines()
        origins = self._history.blame(edit.rel_path, self._base)
        human = {number for number, line in enumerate(origins) if self._authors.is_by_hand(line.email)}
        if any(line.startswith(_REPLACED) for line in after) and not any(line.startswith(_REPLACED) for line in before):
            after = []
        changed = {
            place
            for tag, start, end, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
            if tag in {"replace", "delete"}
            for place in range(start, end)
        }
        return {before[place] for place in changed & human}
