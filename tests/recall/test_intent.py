"""What a question is after is read from its words, and code is not confused with life."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.model import ENTITY_TYPES, FACT_TYPES
from quaid.recall.intent import INTENTS, Intent, classify

DATA = Path(os.environ.get("QUAID_DATA") or Path(__file__).parents[3] / "shared" / "data")

QUESTIONS = {
    Intent.WHO: """
        Who did Evan meet on his trip to Canada? | whose birthday did she celebrate |
        Which friend helped her move? | tell me about Maya's family
        """,
    Intent.WHEN: """
        When did we go to Rome? | When's my dentist appointment | how long ago did she move |
        For how long has Nate had his turtles? | What year did she graduate? | In which month did we meet? |
        What's the date of the wedding? | can you tell me when she moved | maya birthday |
        When did Maya first visit her favourite restaurant?
        """,
    Intent.WHERE: """
        Where does Maya live? | do you know where Maya lives | Which city does she live in? |
        Which US state was Sam travelling in during October 2023? | What is Maya's address? |
        Where does Maya like to eat?
        """,
    Intent.PREFERENCE: """
        what does Maya like to drink | What's my favourite tea? | which city does Maya like best |
        Which city is Maya's favorite? | who prefers oat milk | Does Deborah like cats? |
        What do Melanie's kids like? | What does Caroline love most about camping? |
        summarize what you know about my preferences | what music is she into
        """,
    Intent.RELATION: """
        how are Maya and Sam related? | Who is Maya's sister? | who's the mother of Sam |
        What are the names of John's children? | how does Maya know Sam | maya's sister | my wife
        """,
    Intent.WHY: """
        Why did Maya leave Acme? | what was the reason she left | What made her leave | how come she left |
        What inspired Caroline's painting?
        """,
    Intent.PROJECT: """
        why did the build fail | where is the config file | when did we deploy the API? |
        What was the bug in the parser? | which function parses dates | how should I structure my repository layer |
        what does the stack trace say | does the CI pass | did the test suite pass |
        What did Maya decide about the database schema? | what's my k8s deploy story? | unit tests
        """,
    Intent.WHAT: """
        What job does Maya do? | What project does Maya work on? | What database does Maya use at work? |
        What programming languages has James worked with? | What did John build for his daughter's test? |
        how many pets does James have | How old is Maya? | what is it like | what does the sky look like |
        What does Nate recommend to make a living room comfy like his? | What did Caroline do when she was sad?
        """,
    Intent.GENERAL: """
        Did she take the test with Sam? | How did the party go? | hello | ...
        """,
}
CASES = [(intent, question.strip()) for intent, asked in QUESTIONS.items() for question in asked.split("|")]


@for_each(("intent", "question"), CASES)
def test_a_question_has_the_intent_of_its_words_in_any_case(intent, question):
    assert {classify(question), classify(question.upper()), classify(question.replace("'", "’"))} == {intent}


WORDS = "who what how does is Maya 's like know and of the sister code into ' ? . name".split()  # noqa: SIM905


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_has_an_intent(text):
    assert classify(text) in Intent


@for_each("piece", ["what does Maya like ", "a", "does ", "' ", "how did and know ", "who is sister of ", "?", "\n"])
def test_a_hundred_thousand_characters_take_no_time(piece):
    text = piece * (100_000 // len(piece))
    started = time.thread_time()
    classify(text)
    assert time.thread_time() - started < 5.0


def test_every_intent_has_a_profile_of_types_that_exist():
    assert set(INTENTS) == set(Intent)
    for profile in INTENTS.values():
        assert 0 < profile.vector_weight < 1
        assert set(profile.type_boosts) <= {*FACT_TYPES, *ENTITY_TYPES}


def test_questions_about_people_are_hardly_ever_taken_for_code():
    path = DATA / "locomo" / "locomo10.json"
    if not path.is_file():
        pytest.skip("the conversations are not here")
    questions = [qa["question"] for one in json.loads(path.read_bytes()) for qa in one["qa"]]
    found = [classify(question) for question in questions]
    assert found.count(Intent.PROJECT) < 0.02 * len(found)
    assert found.count(Intent.GENERAL) < 0.15 * len(found)


def test_most_questions_about_code_are_seen_as_such():
    path = DATA / "precisionmembench" / "retrieval.cases.json"
    if not path.is_file():
        pytest.skip("the cases are not here")
    cases = [case for case in json.loads(path.read_bytes()) if case["query"].strip()]
    of_code = [classify(case["query"]) for case in cases if case["scope"] == ["domain:code"]]
    of_life = [classify(case["query"]) for case in cases if not {"domain:code"} & set(case["scope"])]
    assert of_code.count(Intent.PROJECT) > 0.6 * len(of_code)
    assert of_life.count(Intent.PROJECT) < 0.2 * len(of_life)


@for_each(("intent", "question"), [
    (Intent.WHO, "Wer mag keine Nüsse?"), (Intent.WHO, "Mit wem war ich da?"), (Intent.WHERE, "Où habite notre tante ?"),
    (Intent.WHEN, "¿Hasta cuándo está de viaje?"), (Intent.WHERE, "Onde estão os papéis?"), (Intent.WHY, "Warum war sie da?"),
    (Intent.WHEN, "周报什么时候交？"), (Intent.WHO, "谁不能吃花生？"), (Intent.WHERE, "鍵はどこですか"), (Intent.WHY, "なぜ走るのをやめたの"),
    (Intent.WHAT, "女儿在学什么乐器？"), (Intent.GENERAL, "Ich war da, wo wer wohnt."), (Intent.GENERAL, "妈妈做红烧肉放糖吗？"),
])  # fmt: skip
def test_a_question_word_of_another_language_says_what_is_asked(intent, question):
    assert classify(question) is intent
