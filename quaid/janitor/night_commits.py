"""Commits of a night: which decisions are in one, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quaid.janitor.decision import Decision
from quaid.janitor.removal_guard import net_edits
from quaid.model import Edit, Message

Trailers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NightCommit:
    """One commit. `message` is what it says where its decisions do not say it themselves."""

    decisions: tuple[Decision, ...]
    message: Message | None = None

    @property
    def edits(self) -> list[Edit]:
        return [Edit(path, before, after) for path, (before, after) in net_edits(self.decisions).items()]


def message_of(step: NightCommit, run: str) -> Message:
    """What the commit of `step` says: the decision and why, or a line for each of several."""
    if step.message is not None:
        return step.message
    first, count = step.decisions[0], len(step.decisions)
    trailers = (
        *trailers_of(first.task, run, first.model, first.prompt),
        *(("Quaid-Decision", decision.key) for decision in step.decisions),
        *(("Quaid-Fact", fact) for decision in step.decisions for fact in decision.facts),
    )
    if count == 1:
        body = "\n\n".join(part for part in (first.why, first.detail) if part)
        return Message(f"janitor({first.task}): {first.subject}", body, trailers)
    lines = (f"- {decision.subject}: {decision.why}".rstrip(": ") for decision in step.decisions)
    return Message(f"janitor({first.task}): {first.kind} {count} notes", "\n".join(lines), trailers)


def trailers_of(task: str, run: str, model: str | None = None, prompt: str | None = None) -> Trailers:
    named = (("Quaid-Task", task), ("Quaid-Run", run), ("Quaid-Model", model), ("Quaid-Prompt", prompt))
    return tuple((key, value) for key, value in named if value)


def without_paths(steps: Sequence[NightCommit], moved: set[str]) -> tuple[list[NightCommit], list[Decision]]:
    """`steps` without the decisions that touch the paths `moved`, or what such a decision has touched; and those."""
    tainted = set(moved)
    kept: list[NightCommit] = []
    lost: list[Decision] = []
    for step in steps:
        clean = []
        for decision in step.decisions:
            if tainted.isdisjoint(decision.paths):
                clean.append(decision)
            else:
                tainted.update(decision.paths)
                lost.append(decision)
        kept += [NightCommit(tuple(clean), step.message)] if clean else []
    return kept, lost
