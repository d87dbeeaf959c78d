"""Statements are told from questions, and a course of events from a single one."""

import pytest

from quaid.recall.intent import asks_about_advice, asks_for_course, asks_of_own_past, is_statement


@pytest.mark.parametrize(("text", "is_told"), [
    ("I'm really looking forward to that evening with everybody", True),
    ("Yesterday the teacher praised me in class. What should I do now?", True),
    ("What should I wear to the party on Friday?", False),
    ("Tell me what you know about the boiler", False),
    ("dentist appointment", False),
    ("", False),
    ("?", False),
])  # fmt: skip
def test_a_statement_asks_nothing(text, is_told):
    assert is_statement(text) is is_told


@pytest.mark.parametrize(("text", "is_course"), [
    ("In what order did I visit the cities?", True),
    ("How did my plans for the garden evolve?", True),
    ("How has my view of it changed since May?", True),
    ("In welcher Reihenfolge war ich dort?", True),
    ("What did I order at the restaurant?", False),
    ("How did you change the wheel?", True),
    ("When did I go to Turku?", False),
])  # fmt: skip
def test_a_course_of_events_is_recognised(text, is_course):
    assert asks_for_course(text) is is_course


def test_what_was_advised_is_no_request_for_advice():
    assert asks_about_advice("What did you recommend for the trip?")
    assert asks_about_advice("the films you mentioned")
    assert not asks_about_advice("What would you recommend for the trip?")
    assert asks_of_own_past("When did I start?")
    assert not asks_of_own_past("How should I start?")
