"""The commits of a night: the decisions in each, their combined edits, and the message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from quaid.history.authorship import JANITOR
from quaid.janitor.decision import Decision
from quaid.janitor.run_report import RunReport
from quaid.model import Edit, Message

Trailers = tuple[tuple[str, str], ...]

_DONE = {
    "approve": ("approved", "fact"),
    "rewrite": ("reworded", "fact"),
    "reject": ("rejected", "fact"),
    "date": ("dated", "fact"),
    "link": ("linked", "fact"),
    "merge": ("merged", "fact"),
    "supersede": ("replaced", "fact"),
    "keep_both": ("kept both of", "pair"),
    "conflict": ("settled", "contradiction"),
    "forget": ("forgot", "fact"),
    "dispute": ("forgot", "disputed fact"),
    "pin": ("pinned", "fact"),
    "graduate": ("activated", "fact"),
    "promote": ("promoted", "fact"),
    "fold": ("added observations to", "core note"),
    "distil": ("distilled the journal into", "core note"),
    "trim": ("shortened", "core note"),
    "update": ("updated", "document"),
    "shorten": ("shortened", "document"),
    "digest": ("listed", "question without an answer"),
    "ledger": ("noted recalls in", "file"),
}
"""Kind of a decision -> the word for having done it, and what it was done to."""
_MAX_SUMMARY = 60
"""Characters of a night in one line, behind `janitor: `."""
HOUSEKEEPING = frozenset({"digest", "ledger"})
"""Kinds that only a night without any other tells of."""


@dataclass(frozen=True, slots=True)
class NightCommit:
    """One commit. `message` is what it says where its decisions do not say it themselves, `author` the name and e-mail
    address of the person who decided, or the janitor's.
    """

    decisions: tuple[Decision, ...]
    message: Message | None = None
    author: tuple[str, str] = JANITOR

    @property
    def edits(self) -> list[Edit]:
        """One edit for each path, from the bytes before the first decision to those after the last."""
        net: dict[str, Edit] = {}
        for edit in (edit for decision in self.decisions for edit in decision.edits):
            before = net[edit.rel_path].before if edit.rel_path in net else edit.before
            net[edit.rel_path] = Edit(edit.rel_path, before, edit.after)
        return [edit for edit in net.values() if edit.before != edit.after]


def net_edits(commits: Sequence[NightCommit]) -> list[Edit]:
    """Return what `commits` come to: one edit for each path."""
    return NightCommit(tuple(decision for commit in commits for decision in commit.decisions)).edits


def message_of(commit: NightCommit, run: str) -> Message:
    """The message of `commit`: the decision and why, or a line for each of several."""
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
    lines = (f"- {decision.subject}: {decision.why}".rstrip(": ") for decision in commit.decisions)
    return Message(f"janitor({first.task}): {in_words({first.kind: count})}", "\n".join(lines), trailers)


def in_words(kinds: Mapping[str, int]) -> str:
    """Return how many decisions of each kind were carried out, the most first: `approved 278 facts, merged 1`."""
    told, last = [], ""
    for kind, number in sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0])):
        verb, noun = _DONE.get(kind, (kind, "note"))
        told.append(f"{verb} {number:,}" if noun == last else f"{verb} {number:,} {noun}{'s' * (number != 1)}")
        last = noun
    return ", ".join(told)


def trailers_of(task: str, run: str, model: str | None = None, prompt: str | None = None) -> Trailers:
    named = (("Quaid-Task", task), ("Quaid-Run", run), ("Quaid-Model", model), ("Quaid-Prompt", prompt))
    return tuple((key, value) for key, value in named if value)


def without_paths(commits: Sequence[NightCommit], paths: set[str]) -> tuple[list[NightCommit], list[Decision]]:
    """`commits` without the decisions that touch `paths`, or what such a decision has touched; and those decisions."""
    tainted = set(paths)
    kept: list[NightCommit] = []
    dropped: list[Decision] = []
    for commit in commits:
        clean = []
        for decision in commit.decisions:
            if tainted.isdisjoint(decision.paths):
                clean.append(decision)
            else:
                tainted.update(decision.paths)
                dropped.append(decision)
        kept += [replace(commit, decisions=tuple(clean))] if clean else []
    return kept, dropped


def summary_of(report: RunReport) -> Message:
    """Return the message of the merge: the night in one line, and what it decided."""
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
