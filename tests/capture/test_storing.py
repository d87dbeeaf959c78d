"""New facts beside what is known: each stored once, said again counted, edges in normal form, a file written once."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples

from quaid.capture.entities import EntityNames
from quaid.capture.facts import NewFact, plan_fact, plan_facts
from quaid.model import Edge
from quaid.vault import frontmatter, notes
from quaid.vault.notes import StoredNote

NOW = datetime(2026, 11, 20, 14, 2, tzinfo=UTC)
MILK = "Maya prefers oat milk in her coffee."


def names(*pairs):
    return EntityNames(pairs, lambda _: None, NOW)


def new(statement=MILK, turns=("[[e2#^t1]]",), session="s2", **details):
    return NewFact(statement, session=session, turns=tuple(turns), status="pending", **details)


def known(statement=MILK, session="s1", turns=("[[e1#^t1]]",), **details):
    _, edit = plan_fact(NewFact(statement, session=session, turns=tuple(turns), **details), NOW)
    return StoredNote(edit.rel_path, edit.after)


def again(twin, plan):
    """`twin` as the plan leaves it."""
    edit = next(edit for edit in plan.edits if edit.rel_path == twin.rel_path)
    assert edit.before == twin.data
    return StoredNote(twin.rel_path, edit.after)


def fields(edit):
    return frontmatter.parse(edit.after.decode()).fields


def plan(facts, same=None, **options):
    made = plan_facts(facts, same or [None] * len(facts), options.pop("names", None) or names(), NOW, **options)
    paths = [edit.rel_path for edit in made.edits]
    assert len(set(paths)) == len(paths)
    assert all(edit.after != edit.before for edit in made.edits)
    return made


def test_a_new_fact_is_a_pending_note():
    made = plan([new(edges=(Edge("Maya", "likes", "Oat Milk"),))])
    fact, *entities = made.edits
    assert fields(fact)["status"] == "pending"
    assert fields(fact)["turns"] == ["[[e2#^t1]]"]
    assert "- [[Maya]] prefers [[Oat Milk]]" in fact.after.decode()
    assert fact.after.decode().split("---\n")[2].startswith("[[Maya]] prefers oat milk")
    assert [edit.rel_path for edit in entities] == ["entities/Maya.md", "entities/Oat Milk.md"]
    assert (made.entities, made.edges) == (("Maya", "Oat Milk"), 1)
    assert [(stored.path, stored.outcome) for stored in made.stored] == [(fact.rel_path, "created")]


def test_nothing_new_is_no_edit():
    made = plan([])
    assert (made.edits, made.stored, made.entities, made.edges) == ((), (), (), 0)


def test_names_that_come_later_are_linked_too():
    made = plan([new("Tom sings in a choir."), new("He sings well there.", edges=(Edge("Tom", "member_of", "Choir"),))])
    assert "[[Tom]] sings in a choir." in made.edits[0].after.decode()


def test_what_is_said_in_another_session_confirms():
    twin = known(confidence=0.8)
    made = plan([new(edges=(Edge("Maya", "likes", "Oat Milk"),))], [twin])
    (edit,) = made.edits
    assert (fields(edit)["confirmations"], fields(edit)["confidence"]) == ("1", "0.82")
    assert fields(edit)["turns"] == ["[[e1#^t1]]", "[[e2#^t1]]"]
    assert (made.stored[0].id, made.stored[0].outcome, made.edges, made.entities) == (twin.id, "confirmed", 0, ())


@pytest.mark.parametrize("fact", [new(session="s1", turns=["[[e1#^t9]]"]), new(session="s1"), new(source="assistant")])
def test_the_same_session_and_the_assistant_confirm_nothing_but_are_cited(fact):
    twin = known(confidence=0.8)
    made = plan([fact], [twin])
    (edit,) = made.edits
    assert "confirmations" not in fields(edit)
    assert fields(edit)["confidence"] == "0.8"
    assert fields(edit)["turns"] == ["[[e1#^t1]]", *fact.turns]
    assert made.stored[0].outcome == "known"


def test_a_session_that_grows_confirms_once():
    twin = known()
    twin = again(twin, plan([new()], [twin]))
    later = plan([new(turns=["[[e2#^t7]]"])], [twin])
    assert fields(later.edits[0])["confirmations"] == "1"
    assert later.stored[0].outcome == "known"
    assert plan([new(turns=["[[e2#^t7]]"])], [again(twin, later)]).edits == ()


def test_in_one_session_a_fact_is_confirmed_once_whoever_begins():
    said = [new(turns=["[[e2#^t2]]"], source="assistant"), new(turns=["[[e2#^t3]]"]), new(turns=["[[e2#^t4]]"])]
    for order in itertools.permutations(said):
        made = plan(list(order), [known() for _ in order][:1] * 3)
        (edit,) = made.edits
        assert fields(edit)["confirmations"] == "1"
        assert len(fields(edit)["turns"]) == 4
        assert sorted(stored.outcome for stored in made.stored) == ["confirmed", "known", "known"]


def test_what_an_answer_says_twice_is_one_note_with_all_turns():
    made = plan([new(), new("Tom runs every day."), new(turns=["[[e2#^t5]]", "[[e2#^t1]]"])], [None, None, 0])
    milk, _ = made.edits
    assert fields(milk)["turns"] == ["[[e2#^t1]]", "[[e2#^t5]]"]
    assert "confirmations" not in fields(milk)
    assert [stored.outcome for stored in made.stored] == ["created", "created", "known"]
    assert made.stored[0].id == made.stored[2].id


@pytest.mark.parametrize("data", [b"\xff\xfe", b"---\nturns: [a\n---\nx\n"])
def test_a_known_note_that_its_owner_has_broken_stays_as_it_is(data):
    twin = StoredNote("facts/x.md", data)
    made = plan([new()], [twin])
    assert made.edits == ()
    assert made.stored[0].outcome == "known"


def test_the_owners_words_in_a_known_note_stay():
    data = b"---\r\n# mine\r\nid: 01x\r\nturns: '[[e1#^t1]]'\r\n---\r\nMaya drinks tea.\r\n\r\nMy remark."
    made = plan([new()], [StoredNote("facts/x.md", data)])
    after = made.edits[0].after.decode()
    assert "# mine\r\n" in after
    assert after.endswith("---\r\nMaya drinks tea.\r\n\r\nMy remark.")
    assert fields(made.edits[0])["turns"] == ["[[e1#^t1]]", "[[e2#^t1]]"]


def test_edges_are_placed_and_said_once():
    edges = (Edge("Maya", "parent_of", "Tom"), Edge("Tom", "child_of", "Maya"), Edge("Maya", "mentored_by", "Mia"))
    made = plan([new(edges=edges)])
    lines = [line for line in made.edits[0].after.decode().splitlines() if line.startswith("- ")]
    assert lines == ["- [[Maya]] parent_of [[Tom]]", "- [[Mia]] mentors [[Maya]]"]
    assert made.edges == 2


def test_an_edge_between_two_names_of_one_person_is_dropped():
    met = EntityNames([], lambda _: None, NOW, speakers=["Melanie"])
    made = plan([new("Melanie is called Mel.", edges=(Edge("Mel", "nickname_of", "Melanie"),))], names=met)
    assert made.edges == 0
    assert [edit.rel_path for edit in made.edits][1:] == ["entities/Melanie.md"]


def test_a_statement_cannot_leave_its_place():
    hostile = "--- id: x --- Maya [[../../x]] said `- [[A]] owns [[B]]` and # more %% then %%"
    made = plan(
        [new(hostile, keywords=("a: b", "[c]", "---"), speaker="Maya: x", edges=(Edge("../../etc", "owns", "a/../b"),))]
    )
    for edit in made.edits:
        assert edit.rel_path.startswith(("facts/2026/11/", "entities/"))
        assert ".." not in edit.rel_path.split("/")
    note = notes.parse_note(made.edits[0].rel_path, made.edits[0].after)
    assert note.problems == ()
    assert (note.keywords, note.speaker, note.status) == (("a: b", "[c]", "---"), "Maya: x", "pending")


claims = st.sampled_from([MILK, "Maya owns a boat.", "Tom sings in a choir.", "Tom lives in Oslo."])


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(claims, st.integers(1, 9), st.sampled_from(["user", "assistant"])), max_size=10), st.sets(claims)
)
def test_storing_the_same_answer_again_changes_nothing(said, before):
    """As when a crash kept its caller from hearing of it: every claim is known by then."""
    facts = [new(text, [f"[[e2#^t{turn}]]"], source=source) for text, turn, source in said]
    there = {text: known(text) for text in before}
    first = plan(facts, [there.get(fact.text, _place_of(facts, place)) for place, fact in enumerate(facts)])
    assert len(first.stored) == len(facts)
    written = {edit.rel_path: edit.after for edit in first.edits}
    stored = {
        fact.text: StoredNote(done.path, written.get(done.path) or there[fact.text].data)
        for fact, done in zip(facts, first.stored, strict=True)
    }
    assert plan(facts, [stored[fact.text] for fact in facts]).edits == ()


def _place_of(facts, place):
    earlier = [n for n in range(place) if facts[n].text == facts[place].text]
    return earlier[0] if earlier else None
