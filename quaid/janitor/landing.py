"""From the bench into the owner's branch: one merge commit of what still fits the owner's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quaid.errors import LockedError, NoteChangedError
from quaid.history.vault_history import History
from quaid.janitor import questions
from quaid.janitor.decision import Decision
from quaid.janitor.steps import Step, message_of, without
from quaid.janitor.worktree import JANITOR, Bench
from quaid.model import Edit, Message
from quaid.settings import GitSettings
from quaid.vault import files, transaction

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Landed:
    """`dropped` did not fit what the owner has written meanwhile; `left` is on disk and not committed."""

    commit: str | None
    dropped: tuple[Decision, ...] = ()
    left: tuple[str, ...] = ()


def commit_answers(root: Path, history: History, wait_s: float) -> None:
    """A box that was ticked and not committed is an answer all the same: commit it, as the owner's word."""
    answered = []
    for path in sorted((root / questions.FOLDER).glob("*.md")):
        rel_path = path.relative_to(root).as_posix()
        now, before = files.read_note(root, rel_path), history.read_at("HEAD", rel_path)
        question = questions.read_question(rel_path, now) if now is not None and before not in (None, now) else None
        if question is not None and question.answer is not None:
            answered.append(Edit(rel_path, before, now))
    if answered:
        with transaction.begin(root, history, wait_s):
            for edit in answered:
                # A tick keeps the size: written in place within a second, git would take the file for unchanged.
                files.write_note(root, edit.rel_path, edit.after, edit.after)
            count = f"{len(answered)} question{'s' * (len(answered) > 1)}"
            history.commit(answered, Message(f"review: {count} answered", trailers=(("Quaid-Task", "review"),)))


def do_again(bench: Bench, steps: Sequence[Step], base: str, run: str) -> None:
    """Throw away what was done on the bench, and do `steps` on the commit `base`."""
    bench.begin_again(base)
    for step in steps:
        bench.commit(step.edits, message_of(step, run))


def land(
    root: Path, history: History, bench: Bench, steps: Sequence[Step], message: Message, run: str, git: GitSettings
) -> Landed:
    """Merge what was done on the bench.

    Decisions about files that the owner has changed since are dropped, with those that rest on them: the bench is done
    anew without them, on the owner's newest commit, so that the history holds only what counts.

    Raises:
        LockedError: the owner's branch keeps moving, or another writer does not end.
    """
    dropped: list[Decision] = []
    kept = list(steps)
    for _ in range(ATTEMPTS):
        with transaction.begin(root, history, git.wait_s):
            net = Step(tuple(decision for step in kept for decision in step.decisions)).edits
            if not net:
                return Landed(None, tuple(dropped))
            moved = {edit.rel_path for edit in net if files.read_note(root, edit.rel_path) != edit.before}
            if not moved:
                change = transaction.VaultChange(
                    f"janitor {run}", tuple(net), message, author=JANITOR, merged=bench.tip
                )
                try:
                    committed = transaction.apply(root, change, history)
                except NoteChangedError:
                    continue
                return Landed(committed.id, tuple(dropped), committed.left)
        kept, lost = without(kept, moved)
        dropped += lost
        do_again(bench, kept, history.state().head or bench.base, run)
    raise LockedError("Your branch keeps changing while the janitor merges")
