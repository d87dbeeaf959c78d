"""What a question puts in quotes or brackets is found as it stands; an apostrophe quotes nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.recall.query import find_names, find_phrases


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('When did she read "nothing is impossible"?', ("nothing is impossible",)),
        ("When did she read “Becoming Nicole,” or «Dune»?", ("Becoming Nicole", "Dune")),
        ('"a b", "c d" and again "a b"', ("a b", "c d")),
        ("„guten Tag“", ("guten Tag",)),
        ("the 'big red' bike", ("big red",)),
        ("'it's mine' she said", ("it's mine",)),
        ("‘Harry Potter and the Philosopher’s Stone’ again", ("Harry Potter and the Philosopher’s Stone",)),
        ('is it "Eternal Sunshine of the Spotless Mind?"', ("Eternal Sunshine of the Spotless Mind",)),
        ("Maya's and John's", ()),
        ("Maya’s and John’s", ()),
        ("the students' and teachers' rooms", ()),
        ("rock 'n' roll", ()),
        ("'tis the dogs' bowl", ()),
        ("the '90s and the kids' room", ()),
        ("‘90s and the kids’ room", ()),
        ('5\' 10" tall and 6" pipes', ()),
        ('an "unclosed one', ()),
        ('"over\ntwo lines"', ()),
        ('"" and "?" and "x"', ()),
        (f'"{"long " * 60}"', ()),
        ("no quotes at all", ()),
        ("", ()),
    ],
)
def test_phrases_are_what_stands_between_quotes(text, phrases):
    assert find_phrases(text) == phrases


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("what is [[Maya Chen]]'s job", ("Maya Chen",)),
        ("[[entities/Maya Chen.md#Job|her]] and [[Acme^x]]", ("Maya Chen", "Acme")),
        ("[[Maya]] [[Maya]]", ("Maya",)),
        ("[Maya] [[]] [[ ]] [[a]b]] [[", ()),
    ],
)
def test_wikilinks_name_their_targets(text, names):
    assert find_names(text) == names


marks = st.lists(st.sampled_from(list("\"'“”„«»‘’[]|#/ \nab1")), max_size=40).map("".join)


@given(st.text() | marks)
def test_any_text_has_phrases_and_names_of_its_own_words(text):
    squeezed = " ".join(text.split())
    for found in (*find_phrases(text), *find_names(text)):
        assert found
        assert found in squeezed


@pytest.mark.parametrize("piece", ["'", "'a ", '"', "“", "‘", "‘a ", "'a'b", "[[", "[[a|", "„“", "a’b", "«"])
def test_a_hundred_thousand_marks_take_no_time(piece):
    text = piece * (100_000 // len(piece))
    started = time.perf_counter()
    find_phrases(text)
    find_names(text)
    assert time.perf_counter() - started < 1.0
