"""The commits of a run: the decisions in each, their messages, and their merge into the owner's branch."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quaid.errors import LockedError, NoteChangedError
from quaid.history.authorship import JANITOR
from quaid.history.vault_history import History
from quaid.janitor import questions
from quaid.janitor.decision import RunReport
from quaid.janitor.worktree import Worktree
from quaid.local.runs import Decision
from quaid.model import Edit, Message
from quaid.vault import files, transaction
from quaid.vault.layout import Layout

MERGE_ATTEMPTS = 5
_DONE = {
    "approve": ("approved", "fact"),
    "rewrite": ("reworded", "fact"),
    "reject": ("rejected", "fact"),
    "date": ("dated", "fact"),
    "link": ("linked", "fact"),
    "merge": ("merged", "fact"),
    "supersede": ("replaced", "fact"),
    "correct": ("corrected", "fact"),
    "keep_both": ("kept both of", "pair"),
    "conflict": ("settled", "contradiction"),
    "forget": ("forgot", "fact"),
    "dispute": ("forgot", "disputed fact"),
    "pin": ("pinned", "fact"),
    "graduate": ("activated", "fact"),
    "promote": ("promoted", "fact"),
    "fold": ("added observations to", "core note"),
    "trim": ("shortened", "core note"),
    "update": ("updated", "document"),
    "shorten": ("shortened", "document"),
    "digest": ("listed", "question without an answer"),
}
"""Kind of a decision -> the verb for having done it, and its object."""
_MAX_SUMMARY = 60
"""Characters of a run in one line, after `janitor: `."""
HOUSEKEEPING = frozenset({"digest"})
"""Kinds that are only mentioned for a run without any other."""


@dataclass(frozen=True, slots=True)
class RunCommit:
    """One commit. `message` is its text where its decisions do not give it, `author` the name and e-mail address of the
    person who decided, or the janitor's.
    """

    decisions: tuple[Decision, ...]
    message: Message | None = None
    author: tuple[str, str] = JANITOR

    @property
    def edits(self) -> list[Edit]:
        return net_edits([self])


def net_edits(commits: Iterable[RunCommit]) -> list[Edit]:
    """Return one edit for each path, from the bytes before the first decision to those after the last."""
    net: dict[str, Edit] = {}
    for edit in (edit for commit in commits for decision in commit.decisions for edit in decision.edits):
        before = net[edit.rel_path].before if edit.rel_path in net else edit.before
        net[edit.rel_path] = Edit(edit.rel_path, before, edit.after)
    return [edit for edit in net.values() if edit.before != edit.after]


# -- messages --------------------------------------------------------------------------------------------------------


def message_of(commit: RunCommit, run: str) -> Message:
    """Return the message of `commit`: the decision and why, or a line for each of several."""
    if commit.message is not None:
        return commit.message
    first, count = commit.decisions[0], len(commit.decisions)
    trailers = (
        *trailers_of(first.task, run, first.model, first.prompt),
        *(("Quaid-Decision", decision.key) for decision in commit.decisions),
        *(("Quaid-Fact", fact) for decision in commit.decisions for fact in decision.facts),
    )
    if count == 1:
        body = "\n\n".join(part for part in (first.why, first.detail) if part)
        return Message(f"janitor({first.task}): {first.subject}", body, trailers)
    whys = Counter(decision.why for decision in commit.decisions)
    shared = [why for why, number in whys.items() if number > 1]
    lines = [
        f"- {decision.subject.removeprefix(first.kind).strip()}{'' if decision.why in shared else f': {decision.why}'}"
        for decision in commit.decisions
    ]
    body = "\n\n".join([*shared, "\n".join(lines)])
    return Message(f"janitor({first.task}): {in_words({first.kind: count})}", body, trailers)


def trailers_of(
    task: str, run: str, model: str | None = None, prompt: str | None = None
) -> tuple[tuple[str, str], ...]:
    named = (("Quaid-Task", task), ("Quaid-Run", run), ("Quaid-Model", model), ("Quaid-Prompt", prompt))
    return tuple((key, value) for key, value in named if value)


def in_words(kinds: Mapping[str, int]) -> str:
    """Return how many decisions of each kind were carried out, the most first: `approved 278 facts, merged 1`."""
    parts, last = [], ""
    for kind, number in sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0])):
        verb, noun = _DONE.get(kind, (kind, "note"))
        parts.append(f"{verb} {number:,}" if noun == last else f"{verb} {number:,} {noun}{'s' * (number != 1)}")
        last = noun
    return ", ".join(parts)


def summary_of(report: RunReport) -> Message:
    """Return the message of the merge: the run in one line, and its decisions."""
    kinds = Counter(decision.kind for decision in report.done)
    minor = {kind: kinds.pop(kind) for kind in HOUSEKEEPING & kinds.keys()}
    answered = len(report.answered)
    parts = [f"carried out {answered} answer{'s' * (answered != 1)}"] if answered else []
    parts += [f"asks {len(report.asked)}"] if report.asked else []
    shown = kinds or Counter({} if parts else minor)
    while sum(shown.values()) and len(", ".join([in_words(shown), *parts])) > _MAX_SUMMARY and len(shown) > 1:
        del shown[min(shown, key=lambda kind: shown[kind])]  # the body lists them all
    parts = [part for part in (in_words(shown), *parts) if part] or ["closed what is no longer asked"]
    body = "\n".join(f"- {decision.subject}" for decision in report.done if not decision.is_minor)
    return Message(f"janitor: {', '.join(parts)}", body, trailers_of("janitor", report.run))


# -- answers of the owner --------------------------------------------------------------------------------------------


def plan_answers(root: Path, history: History) -> tuple[list[Edit], Message]:
    """Return the edits of the owner that ticked a box and are not committed, and the message of their commit."""
    answered = []
    for question in questions.list_questions(root, Layout.of_vault(root)):
        before = history.read_at("HEAD", question.rel_path) if question.answer is not None else None
        if before not in (None, question.data):
            answered.append(Edit(question.rel_path, before, question.data))
    count = f"{len(answered)} question{'s' * (len(answered) > 1)}"
    return answered, Message(f"review: {count} answered", trailers=(("Quaid-Task", "review"),))


def commit_answers(root: Path, history: History, wait_s: float) -> None:
    """Commit boxes that were ticked and not committed, in the owner's name: they are answers all the same."""
    answered, message = plan_answers(root, history)
    if answered:
        with transaction.begin(root, history, wait_s):
            for edit in answered:
                # A tick keeps the size: written in place within a second, git would take the file for unchanged.
                files.write_note(root, edit.rel_path, edit.after, edit.after)
            history.commit(answered, message, author=history.owner())


# -- merging ---------------------------------------------------------------------------------------------------------


def without_paths(commits: Sequence[RunCommit], paths: set[str]) -> tuple[list[RunCommit], list[Decision]]:
    """Return `commits` without the decisions that touch `paths`, or a path of such a decision; and those decisions."""
    tainted = set(paths)
    remaining: list[RunCommit] = []
    dropped: list[Decision] = []
    for commit in commits:
        clean: list[Decision] = []
        for decision in commit.decisions:
            is_tainted = not tainted.isdisjoint(decision.paths)
            tainted.update(decision.paths if is_tainted else ())
            (dropped if is_tainted else clean).append(decision)
        remaining += [replace(commit, decisions=tuple(clean))] if clean else []
    return remaining, dropped


def moved_paths(root: Path, edits: Iterable[Edit]) -> set[str]:
    """Return the paths of `edits` whose files the owner has changed since."""
    return {edit.rel_path for edit in edits if files.read_note(root, edit.rel_path) != edit.before}


def replay(worktree: Worktree, commits: Sequence[RunCommit], base: str, run: str) -> None:
    """Reset the worktree to the commit `base` and make `commits` on it again."""
    worktree.git.reset(base)
    for commit in commits:
        worktree.commit(commit.edits, message_of(commit, run), commit.author)


def merge_run(
    root: Path, history: History, worktree: Worktree, commits: Sequence[RunCommit], report: RunReport, wait_s: float
) -> tuple[list[Decision], tuple[str, ...]]:
    """Merge the commits of the worktree into the owner's branch, with one merge commit that goes into the report.

    Decisions about files that the owner has changed since are dropped, with those that rest on them. The rest is
    committed again on the owner's latest commit, so that the history holds only what counts.

    Returns:
        The dropped decisions, and the paths that are on disk but not committed.

    Raises:
        LockedError: the owner's branch keeps moving, or another writer does not end.
    """
    dropped: list[Decision] = []
    remaining, message = list(commits), summary_of(report)
    for _ in range(MERGE_ATTEMPTS):
        with transaction.begin(root, history, wait_s):
            net = net_edits(remaining)
            if not net:
                return dropped, ()
            moved = moved_paths(root, net)
            if not moved:
                name = f"janitor {report.run}"
                change = transaction.VaultChange(name, tuple(net), message, author=JANITOR, merged=worktree.tip)
                try:
                    committed = transaction.apply(root, change, history)
                except NoteChangedError:
                    continue
                report.commit = committed.id
                return dropped, committed.left
        remaining, lost = without_paths(remaining, moved)
        dropped += lost
        replay(worktree, remaining, history.state().head or worktree.base, report.run)
    raise LockedError("Your branch keeps changing while the janitor merges")
