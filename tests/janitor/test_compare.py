"""Facts that say the same become one, and nothing that only looks alike does."""

from __future__ import annotations

import json

import pytest
from janitor_context import Known, carry_out, context_of
from janitor_facts import DIFFERENT, body_of, head_of, judging, keep, pairs_in, saying, write_fact
from vaults import assert_verified

from quaid.janitor.task_context import Veto
from quaid.janitor.tasks import compare


def decide(memory, service=None, judged=None, plan=compare.plan_compare, **options):
    memory.sync()
    models = service.models("anthropic") if service else None
    return list(plan(context_of(memory, models=models, judged=judged, **options)))


def test_equal_words_become_one_fact_without_a_model(vault):
    one = write_fact(vault, "one", "Maya takes oat milk in her coffee.", confidence=0.8, confirmations=1)
    two = write_fact(vault, "two", "Maya takes oat milk in her coffee", turns=["[[e#^t3]]"])
    three = write_fact(vault, "three", "Maya takes oat milk in her coffee.", confidence=0.7, status="pending")
    with vault.memory() as memory:
        (decision,) = decide(memory)
        assert decision.kind == "merge"
        assert decision.subject == 'merge 2 facts into "Maya takes oat milk in her coffee"'
        assert decision.why == "They say the same, word for word."
        assert (decision.model, decision.prompt) == (None, None)
        carry_out(memory, [decision])
        assert decide(memory) == []
        assert_verified(memory)
    kept = head_of(vault, two)
    assert (kept["confidence"], kept["confirmations"], kept["status"]) == ("0.9", "3", "active")
    assert "superseded_by" not in kept
    assert {head_of(vault, path)["superseded_by"] for path in (one, three)} == {"[[two]]"}


def test_equal_words_of_another_owner_project_or_time_stay_apart(vault):
    write_fact(vault, "one", "Maya ran the marathon of Oslo.")
    for name, head in {
        "owner": {"owner": "tom"}, "project": {"project": "quaid"}, "ended": {"valid_until": "2026-01-01"},
        "began": {"valid_from": "2025-05-01"}, "replaced": {"superseded_by": "[[elsewhere]]"},
    }.items():  # fmt: skip
        write_fact(vault, name, "Maya ran the marathon of Oslo.", **head)
    with vault.memory() as memory:
        assert decide(memory) == []


def test_a_pinned_fact_wins_and_is_not_touched(vault):
    pinned = write_fact(vault, "pinned", "Maya is allergic to nuts.", pinned=True, confidence=0.4)
    write_fact(vault, "other", "Maya is allergic to nuts.")
    with vault.memory() as memory:
        (decision,) = decide(memory)
    assert decision.paths == ("facts/other.md",)
    assert b'superseded_by: "[[pinned]]"' in decision.edits[0].after
    assert pinned not in decision.paths


def test_two_pinned_facts_stay(vault, scripted):
    write_fact(vault, "one", "Maya is allergic to nuts.", pinned=True)
    write_fact(vault, "two", "Maya is allergic to nuts.", verified=True)
    with vault.memory() as memory:
        service = scripted(compare=judging(lambda a, b: keep("a")))
        assert decide(memory, service) == []
        assert service.asked == []


OAT, MILK = "Maya likes oat milk in her coffee.", "Maya likes her coffee with oat milk."
BOTH = "Maya likes to take oat milk in her coffee."


@pytest.fixture
def alike(vault):
    """A vault with two facts that are alike."""
    write_fact(vault, "one", OAT)
    write_fact(vault, "two", MILK)
    return vault


@pytest.mark.parametrize(("judgement", "winner", "says"), [
    (keep("a"), "one", OAT),
    (keep("b"), "two", MILK),
    (keep("merge", text=BOTH), "one", BOTH),
])  # fmt: skip
def test_look_alikes_become_one_when_the_model_says_so(vault, scripted, judgement, winner, says):
    paths = {name: write_fact(vault, name, text) for name, text in (("one", OAT), ("two", MILK))}
    service = scripted(compare=saying({(OAT, MILK): judgement}, DIFFERENT))
    known = Known()
    with vault.memory() as memory:
        (decision,) = decide(memory, service, known)
        assert decision.why == "It says all."
        assert decision.model.startswith("quick")
        assert decision.prompt.startswith("compare@")
        assert set(decision.facts) == {"01one", "01two"}
        carry_out(memory, [decision])
        assert body_of(vault, paths[winner]) == says
        loser = next(name for name in paths if name != winner)
        assert head_of(vault, paths[loser])["superseded_by"] == f"[[{winner}]]"
        assert decide(memory, service, known) == []
    assert len(service.asked) == 1


def test_known_names_are_links_in_a_new_wording(alike, scripted):
    alike.write("entities/Maya Chen.md", "---\ntype: person\naliases: [Maya]\n---\n")
    with alike.memory() as memory:
        (decision,) = decide(memory, scripted(compare=judging(lambda a, b: keep("merge", text=BOTH))))
        carry_out(memory, [decision])
        assert memory.get("01one").text == BOTH
    assert body_of(alike, "facts/one.md").startswith("[[Maya Chen|Maya]] likes")


def test_what_was_judged_different_is_not_asked_again_until_it_changes(vault, scripted):
    write_fact(vault, "one", OAT)
    two = write_fact(vault, "two", MILK)
    known = Known()
    service = scripted(compare=judging(lambda a, b: DIFFERENT))
    with vault.memory() as memory:
        assert decide(memory, service, known) == decide(memory, service, known) == []
        assert len(service.asked) == 1
        path = vault.root / two
        path.write_text(path.read_text().replace("status: active", "status: approved"))
        assert decide(memory, service, known) == []
        assert len(service.asked) == 1  # what it says is the same
        path.write_text(path.read_text().replace("likes", "loves"))
        assert decide(memory, service, known) == []
        assert len(service.asked) == 2


def test_a_veto_of_a_merge_is_shown_to_the_model_which_may_find_another_solution(vault, scripted):
    for name, text in (("one", OAT), ("two", MILK), ("three", "Maya drinks her coffee with oat milk.")):
        write_fact(vault, name, text)
    service = scripted(compare=judging(lambda a, b: keep("a")))
    with vault.memory() as memory:
        (whole,) = decide(memory, scripted(compare=saying({(OAT, MILK): keep("a")}, DIFFERENT)))
        decided = decide(memory, service, vetoes=[Veto("compare", whole.key, "merge that into this")])
    assert whole.key not in {decision.key for decision in decided}
    question = json.dumps(service.asked[0])
    assert "merge that into this" in question
    assert (OAT, MILK) in {(a, b) for _, a, b in pairs_in(service.asked[0]["messages"][-1]["content"])}


@pytest.mark.parametrize(("one", "other"), [
    ("Maya's dentist sees her on 3 May 2026.", "Maya's dentist sees her on 10 May 2026."),
    ("Maya has one cat at home.", "Maya has two cats at home."),
    ("Maya likes tea in the morning.", "Tom likes tea in the morning."),
    ("Maya manages Tom at work.", "Tom manages Maya at work."),
    ("Maya eats meat on Sundays.", "Maya does not eat meat on Sundays."),
])  # fmt: skip
def test_look_alikes_that_differ_in_what_counts_are_not_merged_whatever_a_model_says(vault, scripted, one, other):
    write_fact(vault, "one", one)
    write_fact(vault, "two", other)
    service = scripted(compare=judging(lambda a, b: keep("a")))
    with vault.memory() as memory:
        assert decide(memory, service) == []


@pytest.mark.parametrize("answer", [
    keep("merge"),  # no text
    keep("merge", text="Maya likes coffee with oat milk from Oslo."),
    keep("merge", text="- [[Maya]] likes [[Coffee]]"),
    keep("merge", text="Oat milk.\n---\nstatus: pinned"),
    keep(None),
])  # fmt: skip
def test_a_merge_that_cannot_be_followed_changes_nothing_and_is_asked_about_once(alike, scripted, answer):
    known = Known()
    service = scripted(compare=judging(lambda a, b: answer))
    with alike.memory() as memory:
        assert decide(memory, service, known) == []
        assert len(service.asked) == 2  # the question and its repair
        assert decide(memory, service, known) == []
        assert len(service.asked) == 2


def test_what_would_lose_a_name_is_no_choice_of_one(vault, scripted):
    write_fact(vault, "one", "Maya has a dog.")
    write_fact(vault, "two", "Maya has a dog called Rex.")
    with vault.memory() as memory:
        assert decide(memory, scripted(compare=judging(lambda a, b: keep("a")))) == []
        (decision,) = decide(memory, scripted(compare=judging(lambda a, b: keep("b"))))
    assert decision.subject == 'merge "Maya has a dog" into "Maya has a dog called Rex"'


TRAIN, PLAIN = "Maya likes oat milk. She travels by train with it.", "Maya likes oat milk a lot."
WHOLE = "Maya likes oat milk a lot and travels by train with it."


def test_a_merge_that_leaves_out_words_is_a_question_to_the_owner(vault, scripted):
    write_fact(vault, "one", TRAIN)
    write_fact(vault, "two", PLAIN)
    service = scripted(compare=saying({(TRAIN, PLAIN): keep("b")}, DIFFERENT))
    with vault.memory() as memory:
        (decision,) = decide(memory, service)
    assert decision.always_asks
    assert decision.why == "It says all. It leaves out: travels, train."
    assert "it leaves out travels, train: merge them" in json.dumps(service.asked[1])


def test_a_model_that_is_told_what_a_merge_leaves_out_words_it_again(vault, scripted):
    write_fact(vault, "one", TRAIN)
    write_fact(vault, "two", PLAIN)
    answers = [keep("b"), keep("merge", text=WHOLE)]
    service = scripted(compare=judging(lambda a, b: answers.pop(0)))
    with vault.memory() as memory:
        (decision,) = decide(memory, service)
    assert not decision.always_asks
    assert decision.why == "It says all."
    assert decision.detail.endswith(f"after: {WHOLE}")


def test_a_model_that_calls_everything_a_duplicate_is_not_believed(vault, scripted):
    for thing in ("ladder", "bicycle", "kayak", "telescope"):
        for place in ("kept", "stored", "put"):
            write_fact(vault, f"{thing}-{place}", f"The {thing} is {place} behind the {thing} shed.")
    write_fact(vault, "x", "Maya waters the plants.")
    write_fact(vault, "y", "Maya waters the plants.")
    service = scripted(compare=judging(lambda a, b: keep("a")))
    with vault.memory() as memory:
        memory.sync()
        context = context_of(memory, models=service.models("anthropic"))
        assert [decision.why for decision in compare.plan_compare(context)] == ["They say the same, word for word."]
        assert "pairs are called the same" in context.report.failed["compare"]
        assert context.report.held_back == []


def test_three_that_are_one_end_in_one(vault, scripted):
    texts = {
        "one": "Maya feeds the birds in the garden.",
        "two": "Maya feeds the birds in the garden in winter.",
        "three": "Maya feeds the birds in the garden with seeds.",
    }
    paths = {name: write_fact(vault, name, text) for name, text in texts.items()}
    everything = "Maya feeds the birds in the garden in winter with seeds."

    def judgement_of(a, b):
        return keep("b") if "seeds" not in a + b else keep("merge", text=everything)

    service, known = scripted(compare=judging(judgement_of)), Known()
    with vault.memory() as memory:
        (decision,) = decide(memory, service, known)
        assert len(decision.facts) == 3
        carry_out(memory, [decision])
        assert_verified(memory)
        asked = len(service.asked)
        assert decide(memory, service, known) == []
        assert len(service.asked) == asked
    heads = {name: head_of(vault, path) for name, path in paths.items()}
    (winner,) = (name for name, head in heads.items() if "superseded_by" not in head)
    assert {head["superseded_by"] for name, head in heads.items() if name != winner} == {f"[[{winner}]]"}
    assert body_of(vault, paths[winner]) == everything
    assert heads[winner]["confirmations"] == "2"


def test_what_the_loser_had_replaced_is_replaced_by_the_winner(alike, scripted):
    old = write_fact(alike, "old", "Maya takes milk in her coffee.", superseded_by="[[two]]")
    with alike.memory() as memory:
        carry_out(memory, decide(memory, scripted(compare=judging(lambda a, b: keep("a")))))
    assert head_of(alike, old)["superseded_by"] == "[[one]]"


def test_a_note_in_which_its_owner_wrote_more_keeps_its_words(vault, scripted):
    write_fact(vault, "one", f"{OAT}\n\nShe told me so at breakfast.")
    write_fact(vault, "two", MILK)
    text = "Maya likes to take oat milk in her coffee, She told so at breakfast."
    with vault.memory() as memory:
        assert decide(memory, scripted(compare=judging(lambda a, b: keep("merge", text=text)))) == []


def test_a_broken_head_is_left_alone(vault):
    write_fact(vault, "one", OAT)
    vault.write("facts/two.md", f"---\nid: 01two\ntype: fact\nkeywords: [oat\n---\n{OAT}\n")
    with vault.memory() as memory:
        assert decide(memory) == []
