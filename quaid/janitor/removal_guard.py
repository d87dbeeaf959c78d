"""What stops a run, or a part of it, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quaid.errors import QuaidError
from quaid.history.vault_history import History
from quaid.janitor.decision import Decision
from quaid.model import Kind
from quaid.place import CONFIG_FILE
from quaid.vault import layout, notes

MIN_BUDGET = 20
SHRUNK_COUNT = 10
SHRUNK_SHARE = 0.2


class JanitorStoppedError(QuaidError):
    """A run that would do harm, or works on something that may be broken."""

    code = "janitor_stopped"

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(f"The janitor changed nothing: {reason}. {next_step}")


@dataclass(slots=True)
class Budget:
    """How many notes a run may still change in meaning: a share of all, and twenty at least."""

    left: int

    @classmethod
    def of(cls, notes: int, share: float) -> Budget:
        return cls(max(MIN_BUDGET, int(notes * share)))

    def take(self, decision: Decision) -> bool:
        """Whether there is room for `decision`, whose room it then takes. Minor ones need none."""
        size = 0 if decision.is_minor else len(set(decision.paths))
        if size > self.left:
            return False
        self.left -= size
        return True


def check_size(notes_now: int, notes_before: int | None) -> None:
    """A vault that has lost many notes since the last run may be half mounted.

    Raises:
        JanitorStoppedError: it has.
    """
    lost = (notes_before or 0) - notes_now
    if notes_before and lost > SHRUNK_COUNT and lost > notes_before * SHRUNK_SHARE:
        raise JanitorStoppedError(
            f"{lost:,} of {notes_before:,} notes are gone since its last run",
            "If that is right: quaid janitor run --accept-removals",
        )


def check_branch(history: History) -> str:
    """The newest commit of the owner's branch, which has the vault in it.

    Raises:
        JanitorStoppedError: there is none.
    """
    state = history.state()
    if state.detached:
        raise JanitorStoppedError("HEAD is on no branch", "Switch to yours first: git switch BRANCH")
    if state.head is None or history.read_at(state.head, CONFIG_FILE) is None:
        raise JanitorStoppedError("the vault is not committed yet", "Commit your notes first: git add -A && git commit")
    return state.head


def is_protected(decision: Decision) -> bool:
    """Whether it changes a fact that its owner has pinned or verified."""
    facts = [
        notes.parse_note(edit.rel_path, edit.before)
        for edit in decision.edits
        if edit.before is not None and layout.kind_of(edit.rel_path, None) is Kind.FACT
    ]
    return any(note.pinned or note.verified for note in facts)


def changed_lines(before: bytes | None, after: bytes | None) -> frozenset[int]:
    """Numbers, from 1, of the lines of `before` that an edit changes or removes."""
    from difflib import SequenceMatcher

    old = (before or b"").splitlines()
    new = (after or b"").splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return frozenset(
        number + 1
        for tag, start, end, _, _ in matcher.get_opcodes()
        if tag in {"replace", "delete"}
        for number in range(start, end)
    )


def net_edits(decisions: Sequence[Decision]) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Path -> (bytes before the first decision, bytes after the last): what all of them come to."""
    net: dict[str, tuple[bytes | None, bytes | None]] = {}
    for decision in decisions:
        for edit in decision.edits:
            before = net[edit.rel_path][0] if edit.rel_path in net else edit.before
            net[edit.rel_path] = (before, edit.after)
    return {path: pair for path, pair in net.items() if pair[0] != pair[1]}
