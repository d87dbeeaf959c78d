"""What was accepted is done, though the notes have moved on since; what is decided is not asked about as well."""

from __future__ import annotations

import pytest
from janitor_context import Known, context_of
from janitor_facts import judging, keep, write_fact
from janitor_nights import decide, remember, rewriting

from quaid.capture.facts import supersede
from quaid.janitor.fact_edits import rewrite
from quaid.janitor.task_context import Veto
from quaid.janitor.tasks import compare
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit

MEMORY = "# Memory\n\n## Learned\n\n- Maya lives in Leeds\n"


def adding(line, beside, task):
    """A plan that asks to add a line to MEMORY.md and to take all that `beside` says; a model would be asked again once
    one of them has changed.
    """

    def plan(context):
        before, other = context.read("MEMORY.md"), context.read(beside)
        if other is not None and before == MEMORY.encode():
            edits = (Edit("MEMORY.md", before, before + f"- {line}\n".encode()), Edit(beside, other, None))
            kind = "fold" if task == "task0" else "distil"  # one question of a kind is open about a note
            yield Decision(task, kind, evidence_key(task, line), edits, f"add {line}", "It is new.", always_asks=True)

    return plan


def accept_all(vault):
    with vault.memory() as memory:
        memory.janitor.answer("all", "yes")


@pytest.mark.slow
def test_two_accepted_changes_of_one_note_are_both_done(vault, tidy):
    vault.write("MEMORY.md", MEMORY)
    vault.write("snippets/MEMORY.snippets.md", "- paints\n")
    vault.write("journal/MEMORY.journal.md", "Long walks.\n")
    vault.save()
    plans = (
        adding("Paints on Sundays", "snippets/MEMORY.snippets.md", "task0"),
        adding("Walks at night", "journal/MEMORY.journal.md", "task1"),
    )
    assert len(tidy(*plans).asked) == 2
    accept_all(vault)
    report = tidy(*plans)
    assert len(report.answered) == 2
    text = (vault.root / "MEMORY.md").read_text()
    assert text.startswith(MEMORY)
    assert sorted(text.removeprefix(MEMORY).splitlines()) == ["- Paints on Sundays", "- Walks at night"]
    assert not (vault.root / "snippets/MEMORY.snippets.md").exists()
    assert not (vault.root / "journal/MEMORY.journal.md").exists()


@pytest.mark.slow
def test_what_its_owner_wrote_since_stays_beside_what_they_accepted(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")
    tidy(rewriting(one, "Maya drinks oat milk every day", always_asks=True))
    note = vault.root / one
    note.write_text(note.read_text().replace("type: fact\n", "type: fact\ntags: [breakfast]\n"))
    vault.save()
    accept_all(vault)
    tidy(lambda context: ())
    assert "Maya drinks oat milk every day" in note.read_text()
    assert "tags: [breakfast]" in note.read_text()


@pytest.mark.slow
def test_what_no_longer_fits_is_closed_and_said(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")

    def plan(context):
        if b"drinks oat milk" in context.read(one):
            yield decide(context, one, lambda p, d: rewrite(p, d, "Maya drinks oat milk every day"), always_asks=True)

    tidy(plan)
    note = vault.root / one
    note.write_text(note.read_text().replace("drinks oat milk", "has stopped drinking milk"))
    vault.save()
    accept_all(vault)
    report = tidy(plan)
    assert report.closed == 1
    assert "came too late" in report.remarks[0]
    assert "has stopped drinking milk" in note.read_text()
    assert not list((vault.root / "review").glob("*.md"))


def test_a_fact_that_was_merged_this_night_is_not_asked_about_as_well(vault, tidy):
    one, two = remember(vault, "Maya drinks oat milk", "Maya takes oat milk")

    def review(context):
        yield decide(
            context, one, lambda p, data: rewrite(p, data, "Maya drinks oat milk now"), always_asks=True, facts=("one",)
        )

    def merge(context):
        yield decide(
            context,
            one,
            lambda p, data: supersede(p, data, two, None),
            kind="merge",
            task="task1",
            facts=("one", "two"),
        )

    report = tidy(review, merge)
    assert [decision.kind for decision in report.done] == ["merge"]
    assert report.asked == []
    assert not list((vault.root / "review").glob("*.md"))


def test_a_model_is_told_the_day_and_what_its_owner_took_back_before_and_after(vault, scripted):
    write_fact(vault, "one", "Maya takes oat milk in her coffee.")
    write_fact(vault, "two", "Maya likes her coffee with oat milk.")
    body = "They say the same.\n\n- before: Tom has a cat.\n- before: Tom has a pet.\n- after: Tom has a cat."
    service = scripted(compare=judging(lambda a, b: keep("a")))
    with vault.memory() as memory:
        memory.sync()
        vetoes = [Veto("compare", "0" * 16, "janitor(compare): merge …", body)]
        (decision,) = compare.plan_compare(
            context_of(memory, models=service.models("anthropic"), judged=Known(), vetoes=vetoes)
        )
    question = service.asked[0]["messages"][-1]["content"]
    assert "Friday 2026-11-20" in question
    assert '{"before": ["Tom has a cat.", "Tom has a pet."], "after": ["Tom has a cat."]}' in question
    assert decision.detail.splitlines() == [
        "- before: Maya takes oat milk in her coffee.",
        "- before: Maya likes her coffee with oat milk.",
        "- after: Maya takes oat milk in her coffee.",
    ]
