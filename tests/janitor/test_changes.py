"""What changes: days that move, values that grow, corrections, and what the owner has undone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from janitor_context import Known, carry_out, context_of
from janitor_facts import DIFFERENT, UPDATE, body_of, head_of, judging, keep, pairs_in, saying, write_fact
from vaults import assert_verified

from quaid.janitor.model_text import show_change
from quaid.janitor.task_context import Veto
from quaid.janitor.tasks import compare, resolve
from quaid.vault import frontmatter

EXAM = "Mia has her driving exam in Harburg on 12 December 2026."
MOVED = "Mia's driving exam was postponed to 19 December 2026."
ALTONA = "Mia lives in Altona until 12 December 2026."
SLIPS = "Mia's move to Barmbek slips by a week."
LINK = "- [[Mia]] has [[Driving exam]]"


def settled(resolution, verdict="update", **more):
    return {"verdict": verdict, "resolution": resolution, "reason": "It was moved.", **more}


def night(memory, service, known, vetoes=()):
    """What `compare` and `resolve` decide, one after the other, and both carried out."""
    decided = []
    for task in (compare, resolve):
        memory.sync()
        mine = [veto for veto in vetoes if veto.task == task.TASK]
        context = context_of(memory, models=service.models("anthropic"), judged=known, vetoes=mine)
        context = replace(context, vetoed=frozenset(veto.key for veto in vetoes))
        plan = compare.plan_compare if task is compare else resolve.plan_resolve
        made = [decision for decision in plan(context) if decision.key not in context.vetoed]
        carry_out(memory, [decision for decision in made if not decision.always_asks])
        decided += made
    assert_verified(memory)
    return decided


@pytest.fixture
def exam(vault):
    write_fact(vault, "exam", EXAM, LINK, valid_from="2026-12-12", valid_until="2026-12-12")
    write_fact(
        vault, "moved", MOVED, LINK, valid_from="2026-11-10", created="2026-11-10T18:00:00Z", durability="mutable"
    )
    return vault


def test_a_merge_of_an_update_takes_the_days_of_the_newer_statement(exam, scripted):
    text = "Mia has her driving exam in Harburg on 19 December 2026."
    answer = settled("merge", merged_text=text, **{"from": "2026-12-19", "until": "2026-12-19"})
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: answer))
    with exam.memory() as memory:
        (decision,) = night(memory, service, Known())
        assert not decision.always_asks  # that it was postponed need not be repeated
        living = [path for path in ("facts/exam.md", "facts/moved.md") if "superseded_by" not in head_of(exam, path)]
        (path,) = living
        assert body_of(exam, path).startswith(text)
        assert (head_of(exam, path)["valid_from"], head_of(exam, path)["valid_until"]) == ("2026-12-19", "2026-12-19")
        assert memory.recall("when is the driving exam?").hits[0].text == text


def test_without_days_of_the_model_a_merge_has_those_of_the_newer_statement_and_none_of_the_older(exam, scripted):
    text = "Mia has her driving exam in Harburg on 19 December 2026."
    answer = settled("merge", merged_text=text)
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: answer))
    with exam.memory() as memory:
        night(memory, service, Known())
    heads = [head_of(exam, path) for path in ("facts/exam.md", "facts/moved.md")]
    (head,) = [head for head in heads if "superseded_by" not in head]
    assert "2026-12-12" not in (head.get("valid_from"), head.get("valid_until"))


def test_the_fact_that_replaces_another_gets_the_days_that_the_model_gives(exam, scripted):
    answer = settled("keep_b", **{"from": "2026-12-19", "until": "2026-12-19"})
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: answer))
    known = Known()
    with exam.memory() as memory:
        (decision,) = night(memory, service, known)
        asked = len(service.asked)
        assert night(memory, service, known) == []
        assert len(service.asked) == asked  # its days are no news
    assert decision.kind == "correct"
    moved, old = head_of(exam, "facts/moved.md"), head_of(exam, "facts/exam.md")
    assert (moved["valid_from"], moved["valid_until"]) == ("2026-12-19", "2026-12-19")
    assert (old["superseded_by"], old["valid_until"]) == ("[[moved]]", "2026-12-12")


def test_a_plan_that_was_replaced_before_it_began_gets_no_end(vault, scripted):
    write_fact(vault, "exam", EXAM, LINK, valid_from="2026-12-12")
    write_fact(vault, "moved", MOVED, LINK, valid_from="2026-12-19")
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: settled("keep_b")))
    with vault.memory() as memory:
        night(memory, service, Known())
    assert "valid_until" not in head_of(vault, "facts/exam.md")


def test_a_day_that_nobody_gives_is_sent_back_and_not_stored(exam, scripted):
    answer = settled("keep_b", **{"from": "2027-03-01"})
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: answer))
    with exam.memory() as memory:
        assert [decision.kind for decision in night(memory, service, Known())] == ["correct"]
    assert "which neither gives" in str(service.asked)
    assert "2027" not in str(head_of(exam, "facts/moved.md"))


def test_a_fact_whose_end_is_moved_is_revised_and_all_else_of_it_stays(vault, scripted):
    write_fact(vault, "altona", ALTONA, "- [[Mia]] lives_in [[Altona]]", valid_until="2026-12-12")
    write_fact(vault, "slips", SLIPS, "- [[Mia]] moves_to [[Barmbek]]")
    answer = settled("revise_a", merged_text="Mia lives in Altona until 19 December 2026.", until="2026-12-19")
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: answer))
    known = Known()
    with vault.memory() as memory:
        (decision,) = night(memory, service, known)
        assert (decision.kind, decision.always_asks) == ("rewrite", False)
        asked = len(service.asked)
        assert night(memory, service, known) == []
        assert len(service.asked) == asked
    assert body_of(vault, "facts/altona.md").startswith("Mia lives in Altona until 19 December 2026.")
    assert head_of(vault, "facts/altona.md")["valid_until"] == "2026-12-19"
    assert "superseded_by" not in head_of(vault, "facts/slips.md")


def test_a_fact_with_a_day_of_a_replaced_one_is_compared_with_its_successor(vault, scripted):
    """They share neither an entity nor a word, and both were compared before."""
    flat = "Until then the flat in Altona belongs to Mia."
    old, new = (f"The van for Barmbek comes on {day} December." for day in (12, 19))
    write_fact(vault, "flat", flat, valid_until="2026-12-12")
    write_fact(vault, "old", old, valid_from="2026-12-12")
    service, known = scripted(compare=judging(lambda a, b: DIFFERENT)), Known()
    with vault.memory() as memory:
        night(memory, service, known)
        write_fact(vault, "new", new, valid_from="2026-12-19")
        answers = {
            "compare": saying({(old, new): UPDATE}, DIFFERENT),
            "resolve": judging(lambda a, b: settled("keep_b")),
        }
        service.answers |= answers
        assert [decision.kind for decision in night(memory, service, known)] == ["correct"]
        before = len(service.asked)
        night(memory, service, known)
        pairs = [pairs_in(body["messages"][-1]["content"]) for body in service.asked[before:]]
    assert [{a, b} for found in pairs for _, a, b in found] == [{flat, new}]


# -- which facts are compared ------------------------------------------------------------------------------------------


def asked_about(memory, service):
    night(memory, service, Known())
    return {frozenset((a, b)) for body in service.asked for _, a, b in pairs_in(body["messages"][-1]["content"])}


def test_two_values_of_one_thing_are_compared_whatever_their_projects_and_words(vault, scripted):
    old, new = (
        "Mia pays a deposit of 600 euros for [[Haus Birkenhain]].",
        "[[Haus Birkenhain]] wants a 620 euros deposit.",
    )
    write_fact(vault, "old", old, project="move")
    write_fact(vault, "new", new, "- [[Haus Birkenhain]] wants [[Deposit]]")
    vault.write("entities/Haus Birkenhain.md", "---\nid: 01haus\ntype: place\ncreated: 2026-11-01T00:00:00Z\n---\n")
    service = scripted(compare=judging(lambda a, b: DIFFERENT))
    with vault.memory() as memory:
        assert len(asked_about(memory, service)) == 1


def test_facts_of_two_projects_are_not_merged(vault, scripted):
    write_fact(vault, "one", "The tests need ninety seconds here.", project="larder")
    write_fact(vault, "two", "The tests need ninety seconds here, too.", project="tollgate")
    service = scripted(compare=judging(lambda a, b: keep("a")))
    with vault.memory() as memory:
        assert night(memory, service, Known()) == []


def test_what_was_over_when_the_other_was_stated_is_not_compared(vault, scripted):
    write_fact(
        vault, "one", "Mia saw her dentist on 5 October 2026.", "- [[Mia]] saw [[Dentist]]", valid_until="2026-10-05"
    )
    write_fact(
        vault, "two", "Mia sees her dentist on 7 December 2026.", "- [[Mia]] sees [[Dentist]]", valid_from="2026-12-07"
    )
    service = scripted(compare=judging(lambda a, b: DIFFERENT))
    with vault.memory() as memory:
        assert asked_about(memory, service) == set()


# -- whose change it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new", "asks"), [
    ({}, {}, False),  # the owner corrects themselves
    ({"speaker": "Jonas"}, {"speaker": "Jonas"}, False),
    ({"speaker": "Jonas"}, {}, False),
    ({}, {"source": "assistant"}, True),  # nobody has stated it
    ({}, {"source": "import"}, True),
    ({"source": "assistant"}, {"source": "assistant"}, False),
    ({}, {"speaker": "Jonas"}, True),  # somebody else has stated it about the owner
])  # fmt: skip
def test_only_a_change_that_its_speaker_has_not_stated_is_asked_about(vault, scripted, old, new, asks):
    vault.write("quaid.toml", 'owner_name = "Mia"\n')
    write_fact(
        vault, "old", "Mia works at Acme as a nurse.", "- [[Mia]] works_at [[Acme]]", **{"source": "user", **old}
    )
    write_fact(
        vault, "new", "Mia works at Beta as a nurse.", "- [[Mia]] works_at [[Beta]]", **{"source": "user", **new}
    )
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: settled("keep_b")))
    with vault.memory() as memory:
        (decision,) = night(memory, service, Known())
    assert decision.always_asks is asks


def test_what_another_person_changes_of_their_own_plan_is_not_asked_about(vault, scripted):
    vault.write("quaid.toml", 'owner_name = "Mia"\n')
    write_fact(vault, "old", "The book club meets at seven.", speaker="Tom", source="user")
    write_fact(vault, "new", "The book club meets at eight.", speaker="Jonas", source="user")
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: settled("keep_b")))
    with vault.memory() as memory:
        (decision,) = night(memory, service, Known())
    assert (decision.kind, decision.always_asks) == ("supersede", False)


def test_an_earlier_statement_that_wins_is_asked_about(vault, scripted):
    write_fact(vault, "old", "Mia works at Acme as a nurse.", "- [[Mia]] works_at [[Acme]]")
    write_fact(vault, "new", "Mia works at Beta as a nurse.", "- [[Mia]] works_at [[Beta]]")
    answer = settled("keep_a", verdict="contradiction")
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: answer))
    with vault.memory() as memory:
        (decision,) = night(memory, service, Known())
    assert decision.always_asks


# -- what was undone ---------------------------------------------------------------------------------------------------


def test_after_an_undo_another_solution_is_proposed_and_the_undone_one_is_not(vault, scripted):
    old, new = "Mia's exam is in Harburg in December.", "Mia's exam is in Harburg, in January now."
    write_fact(vault, "old", old)
    write_fact(vault, "new", new)
    known = Known()
    answers = {"compare": judging(lambda a, b: UPDATE), "resolve": judging(lambda a, b: settled("keep_b"))}
    with vault.memory() as memory:
        memory.sync()
        service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(
            lambda a, b: settled("merge", merged_text="Mia's exam is in Harburg in December, in January now.")))  # fmt: skip
        before = {path: (vault.root / path).read_bytes() for path in ("facts/old.md", "facts/new.md")}
        (merge,) = night(memory, service, known)
        for path, data in before.items():
            (vault.root / path).write_bytes(data)
        veto = Veto("resolve", merge.key, merge.subject, show_change([old, new], ["both"]))
        service.answers |= answers
        (decision,) = night(memory, service, known, [veto])
        assert (decision.kind, decision.key != merge.key) == ("correct", True)


def test_a_solution_that_was_undone_and_is_proposed_again_is_not_asked_for_every_night(vault, scripted):
    old, new = "Mia's exam is in Harburg in December.", "Mia's exam is in Harburg, in January now."
    write_fact(vault, "old", old)
    write_fact(vault, "new", new)
    known = Known()
    service = scripted(compare=judging(lambda a, b: UPDATE), resolve=judging(lambda a, b: settled("keep_b")))
    with vault.memory() as memory:
        memory.sync()
        before = (vault.root / "facts/old.md").read_bytes()
        (undone,) = night(memory, service, known)
        (vault.root / "facts/old.md").write_bytes(before)
        veto = Veto("resolve", undone.key, undone.subject, undone.detail)
        assert night(memory, service, known, [veto]) == []
        asked = len(service.asked)
        assert night(memory, service, known, [veto]) == []
        assert len(service.asked) == asked
    assert "superseded_by" not in frontmatter.parse(before.decode()).fields
