"""The edges that a statement states by its form: precise rather than many."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from matrices import for_each

from quaid.capture.stated_relations import read_relations

TOLD = datetime(2026, 11, 22, 12, tzinfo=UTC)


def edges(text: str, speaker: str | None = "Maya Chen") -> list[tuple[str, str, str]]:
    return [(edge.subject, edge.relation, edge.object) for edge in read_relations(text, TOLD, "Maya Chen", speaker)[0]]


@for_each(("text", "edge"), [
    ("Lives in Porto", ("Maya Chen", "lives_in", "Porto")),
    ("I live in Porto.", ("Maya Chen", "lives_in", "Porto")),
    ("The user lives in the Netherlands", ("Maya Chen", "lives_in", "Netherlands")),
    ("Tom Okafor now lives in New York City with Zoe.", ("Tom Okafor", "lives_in", "New York City")),
    ("I'm based in Berlin, Germany.", ("Maya Chen", "lives_in", "Berlin")),
    ("I've lived in Rio de Janeiro since 2019", ("Maya Chen", "lives_in", "Rio de Janeiro")),
    ("moved to Ghent in May", ("Maya Chen", "moved_to", "Ghent")),
    ("I moved from Porto to Ghent last month", ("Maya Chen", "moved_to", "Ghent")),
    ("Zoë has moved back to Łódź.", ("Zoë", "moved_to", "Łódź")),
    ("I work at Acme GmbH as an engineer", ("Maya Chen", "works_at", "Acme GmbH")),
    ("Tom works for Marks & Spencer", ("Tom", "works_at", "Marks & Spencer")),
    ("Tom joined Acme as a designer in May", ("Tom", "works_at", "Acme")),
    ("Tom joined Acme in May", ("Tom", "joined", "Acme")),
    ("I left Acme in March 2024.", ("Maya Chen", "left", "Acme")),
    ("I was born in Lisbon", ("Maya Chen", "born_in", "Lisbon")),
    ("I was born on 4 April 1990", ("Maya Chen", "born_on", "1990-04-04")),
    ("My mother was born on 14 April", ("Maya Chen's mother", "born_on", "14 April")),
    ("Tom's mom was born on April 4, 1960.", ("Tom's mother", "born_on", "1960-04-04")),
    ("I am married to Tom Okafor", ("Maya Chen", "spouse_of", "Tom Okafor")),
    ("Anna married Ben in 2019", ("Anna", "spouse_of", "Ben")),
    ("I have a dog called Rex", ("Maya Chen", "has_pet", "Rex")),
    ("Tom has a black cat named Mimi", ("Tom", "has_pet", "Mimi")),
    ("My cat is called Mimi", ("Maya Chen", "has_pet", "Mimi")),
    ("My sister is called Anna", ("Anna", "sibling_of", "Maya Chen")),
    ("My name is Mei Chen", ("Maya Chen", "named", "Mei Chen")),
    ("My brother is Tom", ("Maya Chen", "sibling_of", "Tom")),
    ("My younger brother's Tom, and he skis.", ("Maya Chen", "sibling_of", "Tom")),
    ("Tom's sister is Ines", ("Ines", "sibling_of", "Tom")),
    ("Tom Okafor's mum is Grace Okafor.", ("Grace Okafor", "parent_of", "Tom Okafor")),
    ("Tom's sister is called Ines", ("Ines", "sibling_of", "Tom")),
    ("The user's wife is Zoë", ("Maya Chen", "spouse_of", "Zoë")),
    ("Our new neighbour is Carl Berg", ("Carl Berg", "neighbor_of", "Maya Chen")),
    ("Tom is my brother", ("Maya Chen", "sibling_of", "Tom")),
    ("Ines is Tom's little sister.", ("Ines", "sibling_of", "Tom")),
    ("Ines is the sister of Tom", ("Ines", "sibling_of", "Tom")),
    ("I have a brother named Tom", ("Maya Chen", "sibling_of", "Tom")),
    ("Ines has a daughter, Zoe", ("Ines", "parent_of", "Zoe")),
    ("My boss is Tom Okafor", ("Tom Okafor", "manages", "Maya Chen")),
])  # fmt: skip
def test_what_is_said_plainly_is_an_edge(text, edge):
    assert edges(text) == [edge]


@for_each("text", [
    "I used to live in Porto", "I don't live in Porto", "I no longer work at Acme", "I lived in Porto until 2019",
    "I live in Porto only on weekends", "I worked at Acme", "I would like to live in Porto",
    "Maya wants to move to Ghent", "I will move to Ghent in May", "I moved to Ghent next month",
    "If I lived in Porto I would swim", "Do you live in Porto?", "We live in Porto", "My sister lives in Ghent",
    "My brother was born on 4 April", "He works at Acme", "The office lives in Porto", "Everyone works at Acme",
    "I work at night", "I work for free", "I work at Acme's warehouse", "Tom works at the Acme warehouse",
    "I live in a small flat", "I live in fear", "I moved to the sofa", "Moved to Postgres last week",
    "I moved to Linux in May", "Tom moved to Marketing", "I live in Porto and Lisbon",
    "Tom married Anna and Ben in the town hall", "The API server moved to Kubernetes in May",
    "I left Tom's keys on the table", "I was born in 1990", "I was born on a Tuesday",
    "Maya, who lives in Porto, called", "According to Tom, Maya lives in Porto", "Anna and Ben live in Porto",
    "My brother is German", "My brother is a nurse", "My boss is Head of Sales", "My sister is CEO", "My brother is Tom's",
    "My brother is Tom in the school play", "My sister is Tom's age", "My brother was Tom", "My ex husband is Tom",
    "My brother is not Tom", "Tom is my brother's friend", "Tom is like my brother", "Tom is not my brother",
    "Tom is my brother in law", "Ines is Tom's", "My brothers are Tom and Jan", "My dog is Siamese", "My best man is Tom",
    "Tom's team's boss is Ines", "My mother is Catholic, too", "My partner is Virgo", "My brother is Doctor",
    "My brother is Tom or Jan", "My old boss is Tom", "She is my sister", "This is my brother", "Google is my friend",
    "My favourite colour is called Teal",
    "Maya lives in Porto in the novel Blue", "", "Lives in",
])  # fmt: skip
def test_what_is_not_is_none(text):
    assert edges(text) == []


def test_nobody_is_meant_by_i_where_nobody_is_known_to_speak():
    assert edges("I live in Porto", speaker=None) == []
    assert edges("The user lives in Porto", speaker=None) == [("Maya Chen", "lives_in", "Porto")]
    assert edges("Lives in Porto", speaker=None) == [("Maya Chen", "lives_in", "Porto")]
    assert edges("Lives in Porto", speaker="Tom") == [("Tom", "lives_in", "Porto")]
    assert edges("My mother was born on 4 April", speaker=None) == []
    assert edges("Tom lives in Porto", speaker=None) == [("Tom", "lives_in", "Porto")]


def test_two_sentences_say_two_things():
    assert edges("I moved to Ghent in May. I work at Acme now.") == [
        ("Maya Chen", "moved_to", "Ghent"), ("Maya Chen", "works_at", "Acme"),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "since"), [
    ("moved to Ghent in May", "2026-05"),
    ("I've lived in Porto since 2019", "2019"),
    ("Anna married Ben on 3 June 2019", "2019-06-03"),
    ("I live in Porto", None),
    ("I moved to Ghent in May. I joined Acme in June.", None),
])  # fmt: skip
def test_a_beginning_is_known_by_its_day(text, since):
    assert read_relations(text, TOLD, "Maya Chen", "Maya Chen")[1] == since
