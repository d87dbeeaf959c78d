"""Facts that cannot both be true: found by one task, decided by the next, and none of them lost."""

from __future__ import annotations

import pytest
from janitor_context import Known, carry_out, context_of
from janitor_facts import COMPATIBLE, DIFFERENT, UPDATE, body_of, head_of, judging, saying, write_fact
from vaults import assert_verified

from quaid.janitor.tasks import compare, resolve

ACME, BETA = "Maya works at Acme as a designer.", "Maya works at Beta as a designer."


def resolved(judgement, resolution, **more):
    return {"verdict": judgement, "resolution": resolution, "reason": "She changed her job.", **more}


def updating(scripted, answer):
    """A model that calls every pair an update and settles it as `answer` says."""
    return scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: answer))


def night(memory, service, judged, tasks=(compare.plan_compare, resolve.plan_resolve)):
    """What the tasks decide one after the other, on the same state."""
    memory.sync()
    context = context_of(memory, models=service.models("anthropic"), judged=judged)
    return [decision for task in tasks for decision in task(context)]


@pytest.fixture
def jobs(vault):
    write_fact(vault, "acme", ACME, "- [[Maya]] works_at [[Acme]]", valid_from="2024-03-01")
    write_fact(vault, "beta", BETA, "- [[Maya]] works_at [[Beta]]", valid_from="2026-10-01")
    return vault


def test_the_later_fact_replaces_the_earlier(jobs, scripted):
    service = updating(scripted, resolved("update", "keep_b"))
    known = Known()
    with jobs.memory() as memory:
        (decision,) = night(memory, service, known)
        assert (decision.task, decision.kind) == ("resolve", "correct")
        assert decision.subject == f'replace "{ACME[:-1]}" with "{BETA[:-1]}"'
        assert decision.why == "She changed her job."
        assert decision.model.startswith("wise")
        assert [body["model"] for body in service.asked] == ["quick", "wise"]
        carry_out(memory, [decision])
        assert night(memory, service, known) == []
        assert_verified(memory)
    assert len(service.asked) == 2
    head = head_of(jobs, "facts/acme.md")
    assert (head["superseded_by"], head["valid_until"]) == ("[[beta]]", "2026-10-01")
    assert body_of(jobs, "facts/acme.md").startswith(ACME)
    assert "superseded_by" not in head_of(jobs, "facts/beta.md")


def test_a_replaced_fact_that_says_more_than_its_successor_is_a_question(vault, scripted):
    write_fact(vault, "acme", f"{ACME} Each winter she travels to Lima by train.", valid_from="2024-03-01")
    write_fact(vault, "beta", BETA, valid_from="2026-10-01")
    service = updating(scripted, resolved("update", "keep_b"))
    with vault.memory() as memory:
        (decision,) = night(memory, service, Known())
    assert (decision.kind, decision.always_asks) == ("correct", True)
    assert decision.why == 'She changed her job. It drops "Each winter she travels to Lima by train.".'


def test_a_question_that_waits_is_proposed_again_without_asking(jobs, scripted):
    service = updating(scripted, resolved("update", "keep_b"))
    known = Known()
    with jobs.memory() as memory:
        assert night(memory, service, known) == night(memory, service, known) != []
    assert len(service.asked) == 2


def test_what_is_compatible_is_asked_about_once(jobs, scripted):
    service, known = scripted(compare=judging(lambda a, b: DIFFERENT)), Known()
    with jobs.memory() as memory:
        assert night(memory, service, known) == night(memory, service, known) == []
    assert len(service.asked) == 1


@pytest.mark.parametrize("answer", [
    resolved("compatible", "keep_both"),
    resolved("update", "keep_both"),  # a story goes on
])  # fmt: skip
def test_what_changes_nothing_is_asked_about_once(jobs, scripted, answer):
    service, known = updating(scripted, answer), Known()
    with jobs.memory() as memory:
        assert night(memory, service, known) == []
        asked = len(service.asked)
        assert night(memory, service, known) == []
    assert len(service.asked) == asked


def test_both_hold_each_in_its_time(vault, scripted):
    write_fact(vault, "acme", "Maya worked at Acme until 30 September 2026.", "- [[Maya]] works_at [[Acme]]")
    write_fact(vault, "beta", BETA, "- [[Maya]] works_at [[Beta]]", valid_from="2026-10-01")
    answer = resolved("update", "keep_both", a_until="2026-09-30", b_from="2026-10-01")
    service, known = updating(scripted, answer), Known()
    with vault.memory() as memory:
        (decision,) = night(memory, service, known)
        assert decision.kind == "keep_both"
        assert decision.paths == ("facts/acme.md",)  # the other one says so already
        carry_out(memory, [decision])
        assert night(memory, service, known) == []
    assert head_of(vault, "facts/acme.md")["valid_until"] == "2026-09-30"
    assert len(service.asked) == 2


def test_both_become_one_sentence(vault, scripted):
    write_fact(vault, "one", "Maya has a dog and a cat at home.")
    write_fact(vault, "two", "Maya has another cat at home named Bailey.")
    text = "Maya has a dog, a cat and another cat named Bailey at home."
    service, known = updating(scripted, resolved("update", "merge", merged_text=text)), Known()
    with vault.memory() as memory:
        (decision,) = night(memory, service, known)
        assert (decision.task, decision.kind) == ("resolve", "merge")
        carry_out(memory, [decision])
        asked = len(service.asked)
        assert night(memory, service, known) == []
        assert len(service.asked) == asked
    assert body_of(vault, "facts/one.md") == text
    assert head_of(vault, "facts/two.md")["superseded_by"] == "[[one]]"


@pytest.mark.parametrize("protected", ["pinned", "verified"])
def test_a_protected_fact_is_not_replaced_but_asked_about(vault, scripted, protected):
    write_fact(vault, "acme", ACME, "- [[Maya]] works_at [[Acme]]", **{protected: True})
    write_fact(vault, "beta", BETA, "- [[Maya]] works_at [[Beta]]")
    service = updating(scripted, resolved("update", "keep_b"))
    with vault.memory() as memory:
        (decision,) = night(memory, service, Known())
    assert (decision.kind, decision.edits) == ("conflict", ())


def test_what_is_over_before_the_other_begins_is_no_conflict(vault, scripted):
    write_fact(vault, "acme", ACME, "- [[Maya]] works_at [[Acme]]", valid_until="2026-09-30")
    write_fact(vault, "beta", BETA, "- [[Maya]] works_at [[Beta]]", valid_from="2026-10-01")
    service = scripted(compare=judging(lambda a, b: UPDATE))
    with vault.memory() as memory:
        assert night(memory, service, Known()) == []
    assert service.asked == []


def test_of_three_jobs_two_are_decided_a_night_and_none_points_to_a_replaced_one(vault, scripted):
    for year, firm in ((2023, "Acme"), (2024, "Beta"), (2025, "Gamma")):
        text, edge = f"Maya works at {firm} as a designer.", f"- [[Maya]] works_at [[{firm}]]"
        write_fact(vault, firm.lower(), text, edge, valid_from=f"{year}-01-01")
    service = updating(scripted, resolved("update", "keep_b"))
    known = Known()
    with vault.memory() as memory:
        for _ in range(3):
            carry_out(memory, night(memory, service, known))
        asked = len(service.asked)
        assert night(memory, service, known) == []
        assert len(service.asked) == asked
        assert_verified(memory)
    heads = {name: head_of(vault, f"facts/{name}.md") for name in ("acme", "beta", "gamma")}
    assert [heads[name].get("superseded_by") for name in heads] == ["[[gamma]]", "[[gamma]]", None]


def test_judgements_are_found_in_either_order(vault, scripted):
    write_fact(
        vault, "beta", BETA, "- [[Maya]] works_at [[Beta]]", valid_from="2026-10-01", created="2026-10-02T10:00:00Z"
    )
    write_fact(vault, "acme", ACME, "- [[Maya]] works_at [[Acme]]", created="2026-10-03T10:00:00Z")
    service = scripted(
        compare=saying({(ACME, BETA): UPDATE}, DIFFERENT),
        resolve=saying({(ACME, BETA): resolved("contradiction", "keep_a")}, COMPATIBLE),
    )
    with vault.memory() as memory:
        (decision,) = night(memory, service, Known())
    assert decision.paths == ("facts/beta.md",)
