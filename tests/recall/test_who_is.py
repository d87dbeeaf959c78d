"""`Who is NAME?` and `get NAME` answer with relations, and with what is known now."""

from __future__ import annotations

import pytest
from matrices import for_each

from quaid import Memory
from quaid.errors import NoteNotFoundError
from quaid.mcp.results import note_result


@pytest.fixture
def memory(tmp_path):
    with Memory.create(tmp_path / "vault")[0] as memory:
        memory.link("Maya Chen", "sibling_of", "Tom Reed")
        memory.link("Maya Chen", "has_pet", "Biscuit")
        memory.remember("Maya Chen works at Acme.", valid_from="2024-01-01")
        memory.remember("Maya Chen works at Globex.", replaces="Maya Chen works at Acme.")
        memory.remember("Maya Chen lived in Oslo until 2020.", valid_until="2020-12-31")
        memory.remember("Maya Chen moves to Porto in 2090.", valid_from="2090-01-01")
        memory.remember("Maya Chen is allergic to peanuts.")
        memory.remember("Maya Lopez plays chess.")
        yield memory


@for_each("question", ["Who is Maya Chen?", "who's Maya Chen", "Tell me about Maya Chen.", "Wer ist Maya Chen?",
                       "Qui est Maya Chen ?", "¿Quién es Maya Chen?", "Maya Chen是谁？", "Maya Chen"])  # fmt: skip
def test_who_somebody_is_comes_first_with_all_relations_that_are_true_now(memory, question):
    first, *others = memory.recall(question, depth="fast", keep=False).hits
    assert first.kind == "entity"
    assert set(first.text.split("; ")) == {
        "Maya Chen sibling of Tom Reed", "Maya Chen has pet Biscuit", "Maya Chen works at Globex",
    }  # fmt: skip
    assert "Maya Chen is allergic to peanuts." in [hit.text for hit in others]
    assert not any("Acme" in hit.text for hit in others)


def test_what_is_nobodys_name_is_a_question_like_others(memory):
    for question in ("Who is allergic to peanuts?", "Who is Maya Chen's sister?", "Who is nobody?"):
        hits = memory.recall(question, depth="fast", keep=False).hits
        assert not hits or hits[0].score < 1 or hits[0].kind != "entity", question


@pytest.mark.parametrize("name", ["Maya Chen", "[[Maya Chen]]", "Chen"])
def test_a_person_is_read_by_name_with_what_is_known_now(memory, name):
    view = memory.get(name)
    assert view.document.title == "Maya Chen"
    known = sorted(fact.partition(" (since ")[0] for fact in view.known)
    assert known == ["Maya Chen is allergic to peanuts.", "Maya Chen works at Globex."]
    given = note_result(view).structured_content
    assert "Maya Chen works_at Globex" in given["edges"]
    assert not any("Acme" in edge for edge in given["edges"])
    assert given["known"] == list(view.known)


def test_of_two_people_of_one_name_each_has_what_is_theirs(memory):
    memory.link("Anna Kowalski", "works_at", "Acme")
    memory.link("Anna Lind", "lives_in", "Oslo")
    memory.remember("Anna Lind sings in a choir.")
    with pytest.raises(NoteNotFoundError):
        memory.get("Anna")
    assert memory.get("Anna Kowalski").known == ()
    assert memory.get("Anna Lind").known == ("Anna Lind sings in a choir.",)
