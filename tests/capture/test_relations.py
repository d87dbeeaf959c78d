"""Edges in one form: each relation one name, one direction."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from matrices import for_each

from quaid.capture.relations import INVERSES, SYMMETRIC, SYNONYMS, TYPES, entity_types, is_known, normalise_edge
from quaid.errors import BadInputError
from quaid.model import ENTITY_TYPES, Edge

DATA = Path(os.environ.get("QUAID_DATA") or Path(__file__).parents[3] / "shared" / "data") / "extraction"

known_relations = st.sampled_from(sorted({*INVERSES, *SYNONYMS, *SYMMETRIC, *TYPES}))
names = st.text(min_size=1, max_size=12) | st.text("[]|# aB", min_size=1, max_size=12)
plain_names = st.sampled_from(["Maya Chen", "sam", "Acme", "Zoë", "äpfel", "Luna"])


def normalise(subject, relation, object_):
    edge = normalise_edge(Edge(subject, relation, object_))
    return (edge.subject, edge.relation, edge.object)


@given(names, known_relations | st.text(max_size=14), names)
def test_normalising_twice_is_normalising_once(subject, relation, object_):
    try:
        once = normalise_edge(Edge(subject, relation, object_))
    except BadInputError:
        assume(False)
    assert normalise_edge(once) == once


@given(plain_names, st.sampled_from(sorted(INVERSES)), plain_names)
def test_both_directions_of_an_inverse_pair_are_one_edge(subject, relation, object_):
    assume(subject != object_)
    assert normalise(subject, relation, object_) == normalise(object_, INVERSES[relation], subject)


@given(plain_names, st.sampled_from(sorted(SYNONYMS)), plain_names)
def test_a_synonym_keeps_its_direction(subject, relation, object_):
    assume(subject != object_)
    assert normalise(subject, relation, object_) == normalise(subject, SYNONYMS[relation], object_)


@given(plain_names, st.sampled_from(sorted(SYMMETRIC)), plain_names)
def test_a_symmetric_relation_is_ordered_by_name(subject, relation, object_):
    assume(subject != object_)
    edge = normalise_edge(Edge(subject, relation, object_))
    assert edge == normalise_edge(Edge(object_, relation, subject))
    assert edge.subject.casefold() < edge.object.casefold()


def test_the_tables_lead_to_canonical_names_in_one_step():
    canonical = {*INVERSES.values(), *SYNONYMS.values(), *SYMMETRIC, *TYPES}
    assert not canonical & {*INVERSES, *SYNONYMS}
    assert not INVERSES.keys() & SYNONYMS.keys()
    assert not set(INVERSES.values()) & SYMMETRIC


@for_each(("written", "expected"), [
    (("A", "child_of", "B"), ("B", "parent_of", "A")),
    (("A", "owned_by", "B"), ("B", "owns", "A")),
    (("A", "led_to", "B"), ("B", "caused_by", "A")),
    (("A", "caused", "B"), ("B", "caused_by", "A")),
    (("A", "resulted_in", "B"), ("B", "caused_by", "A")),
    (("Facebook", "employs", "Maya"), ("Maya", "works_at", "Facebook")),
    (("Luna", "pet_of", "Maya"), ("Maya", "has_pet", "Luna")),
    (("W", "mother_of", "S"), ("W", "parent_of", "S")),
    (("W", "father_of", "S"), ("W", "parent_of", "S")),
    (("Zoe", "married_to", "Adam"), ("Adam", "spouse_of", "Zoe")),
    (("A", "likes", "B"), ("A", "prefers", "B")),
    (("A", "because_of", "B"), ("A", "caused_by", "B")),
    (("sam", "knows", "Maya"), ("Maya", "knows", "sam")),
    (
        ("Caroline's grandmother", "grandmother_of", "Caroline"),
        ("Caroline's grandmother", "grandparent_of", "Caroline"),
    ),
    (("Caroline", "supported_by", "her friends"), ("her friends", "supports", "Caroline")),
    (("Becoming Nicole", "written_by", "Amy"), ("Amy", "wrote", "Becoming Nicole")),
])  # fmt: skip
def test_edges_take_their_canonical_form(written, expected):
    assert normalise(*written) == expected


@for_each("relation", [
    "enjoys", "loves", "works_with", "gift_from", "felt", "has_birthday_around", "is_a", "wants_to_work_in", "met",
    "visited",
])  # fmt: skip
def test_what_is_only_nearly_the_same_stays_as_it_is(relation):
    assert normalise("Maya", relation, "Acme") == ("Maya", relation, "Acme")


@for_each(
    "written",
    ["Works At", "worksAt", "works-at", " works_at ", "WORKS AT", "[[works at]]", "works for", "is employed by"],
)
def test_relations_are_spelled_in_snake_case(written):
    assert normalise("Maya", written, "Acme") == ("Maya", "works_at", "Acme")


def test_names_lose_brackets_and_surplus_space():
    assert normalise("[[Maya Chen|Maya]]", "owns", " [[Red  \n bike#Frame]] ") == ("Maya Chen", "owns", "Red bike")
    assert normalise("the [[Acme]] office", "located_in", "[[[[Oslo]]]]") == ("the Acme office", "located_in", "Oslo")


@pytest.mark.parametrize(("edge", "word"), [
    (Edge("", "knows", "B"), "lacks a name"),
    (Edge("A", "knows", " [[]] "), "lacks a name"),
    (Edge("A", "", "B"), "lacks a relation"),
    (Edge("A", " -42- ", "B"), "lacks a relation"),
    (Edge("Maya", "knows", "[[maya]]"), "to itself"),
])  # fmt: skip
def test_an_edge_that_is_empty_label_is_refused(edge, word):
    with pytest.raises(BadInputError, match=word):
        normalise_edge(edge)


@for_each(("relation", "expected"), [
    ("works_at", ("person", "organization")),
    ("employs", ("organization", "person")),
    ("Works For", ("person", "organization")),
    ("lives_in", ("person", "place")),
    ("has_pet", ("person", "pet")),
    ("pet_of", ("pet", "person")),
    ("parent_of", ("person", "person")),
    ("child_of", ("person", "person")),
    ("prefers", ("person", "concept")),
    ("caused_by", ("concept", "concept")),
    ("symbolizes", ("concept", "concept")),
    ("", ("concept", "concept")),
])  # fmt: skip
def test_a_relation_tells_what_it_joins(relation, expected):
    assert entity_types(relation) == expected


def test_all_implied_types_exist():
    assert {kind for pair in TYPES.values() for kind in pair} <= set(ENTITY_TYPES)


def test_the_edges_a_model_found_take_one_form_each():
    if not DATA.exists():
        pytest.skip("the extraction collection is not here: set QUAID_DATA to the folder that holds extraction/")
    answers = [json.loads(path.read_text("utf-8")) for path in sorted(DATA.glob("*/session_*.json"))]
    edges = [Edge(**edge) for answer in answers for fact in answer["facts"] for edge in fact["edges"]]
    normalised = [normalise_edge(edge) for edge in edges]
    assert [normalise_edge(edge) for edge in normalised] == normalised
    assert Edge("Melanie", "spouse_of", "Melanie's husband") in normalised
    assert Edge("Caroline", "friend_of", "Melanie") in normalised
    assert not {edge.relation for edge in normalised} & {*INVERSES, *SYNONYMS}


def test_what_has_one_object_at_a_time_has_a_known_name():
    from_words = {"died_on", "born_on", "diagnosed_on", "lives_in", "works_at", "spouse_of", "has_birthday"}
    assert all(map(is_known, from_words)), "no model is asked what it is called"
    assert normalise_edge(Edge("Ben", "has_birthday", "4 April")).relation == "born_on"
