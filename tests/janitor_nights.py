"""Nights whose tasks are made up; all else is real."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

from vaults import Vault

from quaid.capture.facts import NewFact, plan_fact
from quaid.janitor import runner
from quaid.janitor.fact_edits import rewrite, set_fields
from quaid.janitor.runner import RunOptions
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, Message
from quaid.vault import transaction


def tidying(vault: Vault, monkeypatch):
    """`tidy(plan, …)` runs a night in which the tasks plan so; it gives the report."""

    def run(*plans, phase="memory", **options):
        rows = [
            SimpleNamespace(name=f"task{n}", needs_model=False, module="made_up", switch=phase, plan=p)
            for n, p in enumerate(plans)
        ]
        monkeypatch.setattr(runner, "TASKS", tuple(rows))
        with vault.memory() as memory:
            return memory.janitor.run(RunOptions(**options))

    return run


def decide(context, path, after, *, kind="rewrite", task="task0", **fields):
    """A decision to make of the note at `path` what `after` makes of its bytes."""
    data = context.read(path)
    edit = after(path, data) if callable(after) else Edit(path, data, after)
    key = evidence_key(task, path, str(fields.pop("evidence", "")))
    usual = {"subject": f"{kind} {path}", "why": "It reads better."}
    return Decision(task, kind, key, (edit,), **{**usual, **fields})


def approve(path, data):
    return set_fields(path, data, {"status": "approved"})


def rewriting(path, text, **fields):
    def plan(context):
        if text.encode() not in context.read(path):
            yield decide(context, path, lambda p, data: rewrite(p, data, text), **fields)

    return plan


def remember(vault, *texts):
    """Paths of facts that Quaid has written, all in one commit."""
    planned = [plan_fact(NewFact(text), datetime.now(UTC))[1] for text in texts]
    with vault.memory() as memory, transaction.begin(vault.root, memory.git, 5):
        transaction.apply(
            vault.root, transaction.VaultChange("facts", tuple(planned), Message("remember: facts")), memory.git
        )
    return [edit.rel_path for edit in planned]
