"""A question -> what the channels look for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each
from recall_index import NOW

from quaid.recall.query import find_names, find_phrases, parse


@pytest.mark.parametrize(("text", "names"), [
    ("Where does Maya Chen work?", {"maya chen", "maya", "chen", "work", "where does maya chen work"}),
    ("Maya's cat", {"maya", "cat", "maya cat"}), ("Maya’s cat", {"maya", "cat"}),
    ("is O'Brien at AT&T?", {"o'brien", "at&t"}), ("New York City", {"new york city", "new york", "york city"}),
    ("Jean-Luc", {"jean-luc"}), ("Straße ÉCOLE", {"strasse école"}),
])  # fmt: skip
def test_every_run_of_words_could_be_a_name(text, names):
    assert names <= set(parse(text, NOW).name_keys)


def test_longer_names_come_first_and_stop_words_are_none():
    keys = parse("a b c d e the", NOW).name_keys
    assert keys[0] == "a b c d e the"
    assert [len(key.split()) for key in keys[1:]] == sorted((len(key.split()) for key in keys[1:]), reverse=True)
    assert not {"the", "a"} & set(keys)


@pytest.mark.parametrize("text", ["", "   ", "?!", "…", "\0", "***"])
def test_a_question_without_words_finds_nothing(text):
    assert parse(text, NOW).words == ()


@settings(max_examples=examples(200))
@given(st.text(st.characters(), max_size=60))
def test_any_text_is_a_question(text):
    query = parse(text, NOW)
    query.text.encode()
    assert all(key == key.strip() and key for key in query.name_keys)
    assert len(set(query.name_keys)) == len(query.name_keys)


@for_each(("text", "says_my"), [
    ("What is my sister called?", True), ("where do I live", True), ("I'm allergic to what?", True), ("OUR house", True),
    ("I’ve been where?", True), ("where does Maya live", False), ("the mine in Wales", True), ("Miles", False),
])  # fmt: skip
def test_the_owner_is_named_by_my(text, says_my):
    assert parse(text, NOW, ["Maya Chen", "", "maya"]).owner_keys == (("maya chen", "maya") if says_my else ())
    assert parse(text, NOW).owner_keys == ()


@for_each(("text", "phrases"), [
    ('When did she read "nothing is impossible"?', ("nothing is impossible",)),
    ("When did she read “Becoming Nicole,” or «Dune»?", ("Becoming Nicole", "Dune")),
    ('"a b", "c d" and again "a b"', ("a b", "c d")), ("„guten Tag“", ("guten Tag",)),
    ("the 'big red' bike", ("big red",)), ("'it's mine' she said", ("it's mine",)),
    ("‘Harry Potter and the Philosopher’s Stone’ again", ("Harry Potter and the Philosopher’s Stone",)),
    ('is it "Eternal Sunshine of the Spotless Mind?"', ("Eternal Sunshine of the Spotless Mind",)),
    ("Maya's and John's", ()), ("Maya’s and John’s", ()), ("the students' and teachers' rooms", ()),
    ("rock 'n' roll", ()), ("'tis the dogs' bowl", ()), ("the '90s and the kids' room", ()),
    ("‘90s and the kids’ room", ()), ('5\' 10" tall and 6" pipes', ()), ('an "unclosed one', ()),
    ('"over\ntwo lines"', ()), ('"" and "?" and "x"', ()), (f'"{"long " * 60}"', ()), ("no quotes at all", ()),
    ("", ()),
])  # fmt: skip
def test_phrases_are_what_stands_between_quotes(text, phrases):
    assert find_phrases(text) == phrases


@pytest.mark.parametrize(("text", "names"), [
    ("what is [[Maya Chen]]'s job", ("Maya Chen",)),
    ("[[entities/Maya Chen.md#Job|her]] and [[Acme^x]]", ("Maya Chen", "Acme")), ("[[Maya]] [[Maya]]", ("Maya",)),
    ("[Maya] [[]] [[ ]] [[a]b]] [[", ()),
])  # fmt: skip
def test_wikilinks_name_their_targets(text, names):
    assert find_names(text) == names


marks = st.lists(st.sampled_from(list("\"'“”„«»‘’[]|#/ \nab1")), max_size=40).map("".join)


@given(st.text() | marks)
def test_any_text_has_phrases_and_names_of_its_own_words(text):
    squeezed = " ".join(text.split())
    for found in (*find_phrases(text), *find_names(text)):
        assert found
        assert found in squeezed


@for_each("piece", ["'", "'a ", '"', "“", "‘", "‘a ", "'a'b", "[[", "[[a|", "„“", "a’b", "«"])
def test_a_hundred_thousand_marks_take_no_time(piece):
    text = piece * (100_000 // len(piece))
    started = time.thread_time()
    find_phrases(text)
    find_names(text)
    assert time.thread_time() - started < 5.0
