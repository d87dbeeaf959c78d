"""The worktree merged into the owner's branch: one merge commit of what still fits the owner's files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quaid.errors import LockedError, NoteChangedError
from quaid.history.authorship import JANITOR
from quaid.history.vault_history import History
from quaid.janitor import questions
from quaid.janitor.decision import Decision
from quaid.janitor.night_commits import NightCommit, message_of, net_edits, without_paths
from quaid.janitor.worktree import Worktree
from quaid.model import Edit, Message
from quaid.settings import GitSettings
from quaid.vault import files, transaction
from quaid.vault.layout import Layout

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class NightMerge:
    """`dropped` did not fit what the owner has written meanwhile; `left` is on disk and not committed."""

    commit: str | None
    dropped: tuple[Decision, ...] = ()
    left: tuple[str, ...] = ()


def commit_answers(root: Path, history: History, wait_s: float) -> None:
    """Commit boxes that were ticked and not committed, as the owner's word: they are answers all the same."""
    if answered := list_uncommitted_answers(root, history):
        with transaction.begin(root, history, wait_s):
            for edit in answered:
                # A tick keeps the size: written in place within a second, git would take the file for unchanged.
                files.write_note(root, edit.rel_path, edit.after, edit.after)
            history.commit(answered, answers_message(answered), author=history.owner())


def list_uncommitted_answers(root: Path, history: History) -> list[Edit]:
    """Return the edits of the owner that ticked a box and are not committed."""
    answered = []
    for question in questions.list_questions(root, Layout.of_vault(root)):
        before = history.read_at("HEAD", question.rel_path) if question.answer is not None else None
        if before not in (None, question.data):
            answered.append(Edit(question.rel_path, before, question.data))
    return answered


def answers_message(answered: Sequence[Edit]) -> Message:
    """Return the message of the commit that records answers."""
    count = f"{len(answered)} question{'s' * (len(answered) > 1)}"
    return Message(f"review: {count} answered", trailers=(("Quaid-Task", "review"),))


def moved_paths(root: Path, edits: Iterable[Edit]) -> set[str]:
    """Return the paths of `edits` whose files the owner has changed since."""
    return {edit.rel_path for edit in edits if files.read_note(root, edit.rel_path) != edit.before}


def replay(worktree: Worktree, commits: Sequence[NightCommit], base: str, run: str) -> None:
    """Reset the worktree to the commit `base` and make `commits` on it again."""
    worktree.reset(base)
    for commit in commits:
        worktree.commit(commit.edits, message_of(commit, run), commit.author)


def merge_night(
    root: Path,
    history: History,
    worktree: Worktree,
    commits: Sequence[NightCommit],
    message: Message,
    run: str,
    git: GitSettings,
) -> NightMerge:
    """Merge the commits of the worktree into the owner's branch.

    Decisions about files that the owner has changed since are dropped, with those that rest on them: the rest is
    committed again on the owner's newest commit, so that the history holds only what counts.

    Raises:
        LockedError: the owner's branch keeps moving, or another writer does not end.
    """
    dropped: list[Decision] = []
    kept = list(commits)
    for _ in range(ATTEMPTS):
        with transaction.begin(root, history, git.wait_s):
            net = net_edits(kept)
            if not net:
                return NightMerge(None, tuple(dropped))
            moved = moved_paths(root, net)
            if not moved:
                change = transaction.VaultChange(
                    f"janitor {run}", tuple(net), message, author=JANITOR, merged=worktree.tip
                )
                try:
                    committed = transaction.apply(root, change, history)
                except NoteChangedError:
                    continue
                return NightMerge(committed.id, tuple(dropped), committed.left)
        kept, lost = without_paths(kept, moved)
        dropped += lost
        replay(worktree, kept, history.state().head or worktree.base, run)
    raise LockedError("Your branch keeps changing while the janitor merges")
