"""True now is one rule: what has begun and is neither over nor replaced comes first, and what replaces a memory with it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from recall_index import ask, everything, make_index
from vaults import Vault

from quaid.claims import has_other_value
from quaid.index.documents import list_latest_facts
from quaid.index.scope import EVERYTHING
from quaid.recall.blocks import pack

ALL = everything()


def fact(note_id: str, text: str, fields: str = "", edge: str = "") -> tuple[str, str]:
    return f"facts/{note_id}.md", f"---\nid: {note_id}\ntype: fact\n{fields}---\n{text}\n\n{edge}\n"


def episode(name: str, *turns: str, more: str = "") -> tuple[str, str]:
    lines = "\n\n".join(f"**Maya**: {text} ^t{number}" for number, text in enumerate(turns, 1))
    return f"episodes/{name}.md", f"---\nid: {name}\ntype: episode\nsession: {name}\n{more}---\n{lines}\n"


def question(kind: str, *lines: str, box: str = " ", reason: str = "The turn says three cats.") -> tuple[str, str]:
    head = "\n".join(lines)
    boxes = f"- [ ] Yes, do it\n- [{box}] No, and do not ask again\n"
    text = f"---\ntype: review\ntask: resolve\nkind: {kind}\nkey: 3f0c\n{head}\n---\n# ask\n\n{reason}\n\n{boxes}"
    return f"review/{kind}-3f0c.md", text


HOMES = dict([
    fact("home", "Maya lives in Ghent", "created: 2026-01-02\n", "- [[Maya]] lives_in [[Ghent]]"),
    fact("future", "Maya lives in Porto", "created: 2026-03-02\nvalid_from: 2030-01-01\n", "- [[Maya]] lives_in [[Porto]]"),
    fact("dentist", "Maya sees the dentist", "type: event\nvalid_from: 2027-01-01\n"),
])  # fmt: skip


@pytest.mark.parametrize("text", ["Where does Maya live?", "Does Maya live in Porto?"])
def test_a_home_of_later_years_comes_behind_the_present_one(text):
    first, second = ask(make_index(HOMES), text, kinds={"fact"}).hits[:2]
    assert (first.id, first.marks) == ("home", ())
    assert (second.id, second.marks) == ("future", ("not true yet",))
    assert first.contradicts == second.contradicts == first.later_than == second.earlier_than == ()


@pytest.mark.parametrize(("text", "first"), [
    ("When does Maya start at Bolt?", "coming"), ("When did Maya start at Acme?", "job"),
    ("Where does Maya work?", "job"), ("Does Maya work at Bolt?", "job"),
])  # fmt: skip
def test_when_a_state_begins_is_answered_by_that_state(text, first):
    jobs = dict([
        fact("job", "Maya works at Acme until June", "created: 2026-01-02\n", "- [[Maya]] works_at [[Acme]]"),
        fact("coming", "Maya starts at Bolt", "created: 2026-03-02\nvalid_from: 2030-01-01\n",
             "- [[Maya]] works_at [[Bolt]]"),
    ])  # fmt: skip
    assert ask(make_index(jobs), text, kinds={"fact"}).hits[0].id == first


def test_what_will_happen_is_known_now():
    (hit, *_) = ask(make_index(HOMES), "When does Maya see the dentist?").hits
    assert (hit.id, hit.marks) == ("dentist", ())


def test_another_day_has_its_own_truth():
    asked = ask(make_index(HOMES), "Where does Maya live?", at=date(2031, 1, 1), kinds={"fact"})
    assert [hit.id for hit in asked.hits[:2]] == ["future", "home"]


def test_a_plan_that_moved_and_moved_back_has_the_day_that_was_planned_then():
    plans = dict([
        fact("first", "The manual is due on 16 January 2026", "created: 2025-12-22\nsuperseded_by: '[[second]]'\n"),
        fact("second", "The manual is due on 30 January 2026", "created: 2025-12-27\nsuperseded_by: '[[third]]'\n"),
        fact("third", "The manual is due on 16 January", "created: 2026-01-06\nvalid_until: 2026-01-16\n"),
    ])  # fmt: skip
    for day, due in ((date(2025, 12, 24), "first"), (date(2026, 1, 2), "second"), (date(2026, 1, 9), "third")):
        hits = ask(make_index(plans), "When is the manual due?", at=day).hits
        assert [hit.id for hit in hits] == [due]


@pytest.mark.usefixtures("calm")
def test_a_fact_that_replaces_another_begins_on_that_day(vault: Vault):
    with vault.memory() as memory:
        old = memory.remember("My desk is on the third floor")
        new = memory.remember("My desk is on the fifth floor", replaces=old.id)
        birthday = memory.remember("Anna was born on 4 April 1990", durability="immutable")
        corrected = memory.remember("Anna was born on 14 April 1990", durability="immutable", replaces=birthday.id)
        before = memory.recall("Where is my desk?", at=date(2020, 1, 1)).hits
        now = memory.recall("Where is my desk?").hits
    assert "valid_from: " in (vault.root / new.path).read_text()
    assert "valid_from: " not in (vault.root / corrected.path).read_text()
    assert [hit.id for hit in before] == [old.id]
    assert [hit.id for hit in now] == [new.id]


RENT = dict([
    fact("a-old", "The rent is 600 euros", "created: 2026-01-02\nturns: ['[[s#^t1]]']\n"),
    fact("new", "Since the letter it costs 620", "created: 2026-02-02\nturns: ['[[s#^t3]]']\n"),
    episode("s", "our rent is 600 euros, sadly", "that is a lot", "they wrote, it is 620 from now on"),
])  # fmt: skip
ASKED = question("supersede", "replaces: ['[[a-old]]']", "with: '[[new]]'")


def test_what_is_being_replaced_comes_behind_its_successor_and_says_so():
    index = make_index(RENT | dict([ASKED]))
    hits = ask(index, "What is the rent?", profile=ALL).hits
    ids = [hit.id for hit in hits]
    assert ids.index("new") < min(ids.index("a-old"), ids.index("s#t1"))
    old = hits[ids.index("a-old")]
    assert old.marks == ("being replaced by 2026-02-02 “Since the letter it costs 620”",)
    assert (old.earlier_than, old.superseded) == (("new",), False)
    assert set(hits[ids.index("new")].later_than) == {"a-old", "s#t1"}
    text = pack(hits, 500).text
    assert text.index("it costs 620") < text.index("600 euros")


@pytest.mark.parametrize("notes", [
    {}, dict([question("supersede", "replaces: ['[[a-old]]']", "with: '[[new]]'", box="x")]),
    dict([question("supersede", "replaces: ['[[a-old]]']", "with: '[[gone]]'")]),
])  # fmt: skip
def test_without_an_open_question_nothing_is_being_replaced(notes):
    assert all(not hit.marks for hit in ask(make_index(RENT | notes), "What is the rent?", profile=ALL).hits)


def test_what_a_question_would_reject_says_why_it_may_be_wrong_and_comes_behind_its_like():
    notes = dict([
        fact("a", "Maya has two cats at home"), fact("b", "Maya has two dogs at home"),
        question("reject", "replaces: ['[[a]]']"),
    ])  # fmt: skip
    hits = ask(make_index(notes), "What does Maya have at home?").hits
    assert [(hit.id, hit.marks) for hit in hits] == [("b", ()), ("a", ("may be wrong: The turn says three cats.",))]


def test_a_replaced_turn_is_not_shown_without_what_replaced_it():
    notes = RENT | dict([fact("a-old", "The rent is 600 euros", "turns: ['[[s#^t1]]']\nsuperseded_by: '[[new]]'\n")])
    hits = ask(make_index(notes), "the rent is 600 euros", kinds={"turn"}, with_neighbours=True, profile=ALL).hits
    ids = [hit.id for hit in hits]
    stale = hits[ids.index("s#t1")]
    assert ids.index("new") == ids.index("s#t1") - 1
    assert stale.marks == ("replaced by 2026-02-02 “Since the letter it costs 620”",)
    for budget in range(10, 200, 5):  # a small budget has the successor alone
        text = pack(hits, budget, question="the rent is 600 euros").text
        assert "600" not in text or text.index("it costs 620") < text.index("600")


def test_a_turn_that_its_successor_rests_on_too_is_as_true_as_before():
    notes = RENT | dict([
        fact("a-old", "The rent is 600", "turns: ['[[s#^t1]]']\nsuperseded_by: '[[merged]]'\n"),
        fact("merged", "The rent is 600 euros a month", "turns: ['[[s#^t1]]']\n"),
    ])  # fmt: skip
    hits = ask(make_index(notes), "the rent is 600 euros", kinds={"turn"}, profile=ALL).hits
    assert (hits[0].id, hits[0].marks) == ("s#t1", ())


def test_hits_have_the_confidence_of_their_facts():
    index = make_index(dict([fact("a", "Maya drinks tea", "confidence: 0.65\n")]))
    assert ask(index, "What does Maya drink?").hits[0].confidence == 0.65


def test_the_context_of_a_session_shows_what_is_being_replaced_last_and_says_so():
    index = make_index(RENT | dict([ASKED]))
    assert [text for _, text in list_latest_facts(index, EVERYTHING, 5, "2026-11-20")] == [
        "Since the letter it costs 620",
        "The rent is 600 euros (being replaced by “Since the letter it costs 620”)",
    ]


def test_a_session_is_told_of_a_state_to_come_behind_those_that_hold():
    found = list_latest_facts(make_index(HOMES), EVERYTHING, 5, "2026-11-20")
    assert [text for _, text in found[-2:]] == ["Maya lives in Ghent", "Maya lives in Porto (from 2030-01-01)"]


VALUES = dict([
    fact("a-old", "The target weight of Maya is 71 kg", "created: 2026-01-02\nturns: ['[[s#^t1]]']\n"),
    fact("new", "The target weight of Maya is 68 kg", "created: 2026-02-02\nturns: ['[[s#^t2]]']\n"),
    episode("s", "let us say 71 kg as my target weight", "make it 68 kg, my target weight"),
])  # fmt: skip


def test_of_two_values_of_an_attribute_the_later_comes_first_though_it_does_not_name_the_other():
    hits = ask(make_index(VALUES), "What is the target weight of Maya?").hits
    ids = [hit.id for hit in hits]
    assert ids.index("new") < min(ids.index("a-old"), ids.index("s#t1"))
    assert hits[ids.index("a-old")].marks == ("stated before 2026-02-02 “The target weight of Maya is 68 kg”",)
    assert not any(hit.contradicts for hit in hits)


def test_of_what_replaces_the_parts_of_a_turn_the_part_that_is_asked_about_comes_first():
    notes = dict([
        episode("s", "I run every morning, and my favourite dish is tuna"),
        fact("dish", "Tuna is my favourite", "turns: ['[[s#^t1]]']\nsuperseded_by: '[[fish]]'\n"),
        fact("sport", "Every morning begins with a run", "turns: ['[[s#^t1]]']\nsuperseded_by: '[[later]]'\n"),
        fact("fish", "After the allergy was found, no plate, bowl or dish with any fish in it", "created: 2026-02-02\n"),
        fact("later", "Evenings are for running", "created: 2026-03-02\n"),
    ])  # fmt: skip
    hits = ask(make_index(notes), "What is my favourite dish?").hits
    assert [hit.id for hit in hits] == ["fish", "later", "s#t1"]


def test_a_value_of_later_days_is_not_called_the_earlier_statement():
    notes = dict([
        fact("now", "Glosa pays 0.075 dollars a word", "created: 2026-01-02\n"),
        fact("raise", "Glosa pays 0.08 dollars a word", "created: 2026-02-02\nvalid_from: 2030-02\n"),
    ])  # fmt: skip
    hits = ask(make_index(notes), "What does Glosa pay a word?").hits
    assert [(hit.id, hit.marks) for hit in hits] == [("now", ()), ("raise", ("not true yet",))]


def test_a_question_that_names_a_value_gets_that_one_first():
    notes = dict([
        fact("cake", "Priya Ortiz baked a plum cake", "created: 2026-01-02\n"),
        fact("soup", "Priya Ortiz baked a rye bread", "created: 2026-02-02\n"),
    ])  # fmt: skip
    hits = ask(make_index(notes), "Who baked plum cake?").hits
    assert [(hit.id, hit.marks) for hit in hits][:1] == [("cake", ())]


def test_what_was_stated_again_is_the_later():
    notes = VALUES | dict([
        fact("a-old", "The target weight of Maya is 71 kg", "created: 2026-01-02\nturns: ['[[s#^t1]]', '[[z#^t1]]']\n"),
        episode("z", "back to 71 kg as my target weight", more="started: 2026-05-01T10:00:00Z\n"),
    ])  # fmt: skip
    hits = ask(make_index(notes), "What is the target weight of Maya?", kinds={"fact"}).hits
    assert [hit.id for hit in hits] == ["a-old", "new"]


@pytest.mark.parametrize(("one", "other", "has"), [
    ("The rent is 600 euros.", "The rent is 620 euros.", True),
    ("The choir of Maya rehearses on Mondays at 19:00.", "The choir of Maya rehearses on Tuesdays at 20:00.", True),
    ("Maya drives a blue Skoda Octavia.", "Maya drives a white Renault Zoe.", True),
    ("The deposit is 600 euros.", "The deposit was raised to 620 euros.", True),
    ("Maya works at Acme.", "Maya quit smoking.", False),  # the subject alone is no attribute
    ("Maya Chen dislikes ginger.", "Maya Chen learns Greek on Thursdays.", False),
    ("Maya and Tom live in Ghent.", "Maya and Tom will have no cat.", False),
    ("Maya wants answers in Spanish.", "Maya wants no flat listings.", False),  # one may want many things
    ("Maya Chen lives in Ghent.", "Maya Chen lives in Porto.", True),
    ("Maya has two cats.", "Tom has three cats.", False),
    ("The rent is 600 euros.", "The rent is 600 euros a month.", False),  # one says more
    ("The rent is 600 euros.", "The rent is 600 euros", False),
    ("My dentist is on 12 December at 9:30", "Actually, my dentist is on the 14th at 10", True),
    ("The phone number of the cabin is 555-0199", "Sorry, the phone number of the cabin is 555-0200", True),
    ("The standup is at 9.", "Correction: the standup is at 10:30 now.", True),
    ("We have 2 cats", "We have three cats now", True),
    ("My class is on Mondays", "My class is on Tuesdays", True),
    ("My car is a red Fiat", "My new car is a blue Fiat", True),
    ("We have 2 cats", "We have 3 dogs", False),
    ("The standup is at 9", "The standup is in Lisbon", False),
    ("Maya is 34", "Maya is tired", False),
    ("No dogs are allowed here", "Dogs are allowed here", False),
    ("The new office is in Porto", "The old office is in Faro", False),
])  # fmt: skip
def test_two_values_of_an_attribute_differ_in_one_stretch_of_words(one, other, has):
    assert has_other_value(one, other) is has_other_value(other, one) is has


@pytest.mark.usefixtures("calm")
def test_the_index_of_a_question_equals_a_rebuilt_one_before_and_after_its_answer(vault: Vault):
    with vault.memory() as memory:
        old, new = memory.remember("The rent is 600 euros"), memory.remember("They ask 620 a month for the flat")
        names = (Path(old.path).stem, Path(new.path).stem)
        path, text = question("supersede", f"replaces: ['[[{names[0]}]]']", f"with: '[[{names[1]}]]'")
        vault.write(path, text)
        assert [hit.id for hit in memory.recall("What is the rent?").hits][:2] == [new.id, old.id]
        assert memory.verify().ok
        vault.write(path, text.replace("- [ ] No", "- [x] No"))
        assert all(not hit.marks for hit in memory.recall("What is the rent?").hits)
        assert memory.verify().ok
        vault.write(path, text)
        assert memory.recall("What is the rent?").hits[1].marks
        (vault.root / path).unlink()
        assert all(not hit.marks for hit in memory.recall("What is the rent?").hits)
        assert memory.verify().ok
