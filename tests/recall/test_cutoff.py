"""How many hits, how much of them, and which of them cannot both be true."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.recall.contradictions import SINGLE_VALUED, find_opposed, find_pairs
from quaid.recall.cutoff import dynamic_k, tokens, trim

# -- the number of hits, dynamic K --------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "most", "hits"), [
    (0, 50, 3), (1, 50, 3), (200, 50, 3), (300, 50, 4), (500, 50, 10), (1_000, 50, 18), (5_000, 50, 36), (10_000, 50, 44),
    (20_000, 50, 50), (100_000, 50, 50), (100_000, 90, 71), (1_000_000, 200, 97),
])  # fmt: skip
def test_the_number_of_hits_grows_with_the_memory(count, most, hits):
    assert dynamic_k(count, 3, most) == hits


@given(st.integers(1, 10**7), st.integers(0, 20), st.integers(20, 100))
def test_it_is_the_formula_within_its_bounds_and_never_falls(count, least, most):
    hits = dynamic_k(count, least, most)
    assert hits == min(max(round(11.5 * math.log(count) - 61.7), least), most)
    assert least <= hits <= dynamic_k(count + 1, least, most) <= most


# -- a budget of tokens ----------------------------------------------------------------------------------------------


def test_a_letter_of_a_script_without_spaces_is_a_token():
    assert (tokens("abcd"), tokens("我对花生过敏"), tokens("")) == (1, 6, 0)


@given(st.text("ab \n水", max_size=400), st.integers(0, 80))
def test_a_trimmed_text_is_its_beginning_marked(text, most):
    kept = trim(text, most)
    assert tokens(kept) <= max(most, 0)
    if tokens(text) <= most:
        assert kept == text
    elif kept:
        assert kept.endswith(" …")
        assert text.startswith(kept.removesuffix(" …"))


def test_a_text_is_cut_at_a_word_and_a_stump_is_left_out():
    assert trim("one two three four five six seven eight nine ten eleven twelve", 13) == (
        "one two three four five six seven eight nine ten …"
    )
    assert trim("one two three four five six seven eight nine ten eleven twelve", 5) == ""


# -- contradictions --------------------------------------------------------------------------------------------------


def test_two_values_of_what_has_one_contradict_each_other():
    edges = {
        1: [("Maya", "lives_in", "Oslo")],
        2: [("maya", "lives_in", "Bergen")],
        3: [("Maya", "lives_in", "OSLO")],
        4: [("Maya", "likes", "Bergen")],
        5: [("Tom", "lives_in", "Leeds")],
    }
    assert find_pairs(edges) == {(1, 2), (2, 3)}
    assert find_opposed(edges) == {1: {2}, 2: {1, 3}, 3: {2}}


def test_relations_of_many_values_do_not():
    assert find_pairs({1: [("Maya", "likes", "tea")], 2: [("Maya", "likes", "milk")]}) == set()
    assert {"lives_in", "works_at", "born_on"} <= SINGLE_VALUED
    assert not {"likes", "knows", "visited"} & SINGLE_VALUED


def test_a_note_that_says_both_contradicts_neither():
    both = [("Maya", "lives_in", "Oslo"), ("Maya", "lives_in", "Bergen")]
    assert find_pairs({1: both, 2: [("Maya", "lives_in", "Oslo")]}) == set()
    assert find_pairs({1: both}) == set()


_edge = st.tuples(
    st.sampled_from(["Maya", "maya", "Tom"]),
    st.sampled_from(["lives_in", "works_at", "likes"]),
    st.sampled_from(["Oslo", "oslo", "Bergen"]),
)


@given(st.dictionaries(st.integers(1, 6), st.lists(_edge, max_size=4), max_size=6))
def test_contradicting_is_mutual_and_takes_two(edges):
    opposed = find_opposed(edges)
    assert all(one in opposed[other] for one, others in opposed.items() for other in others)
    assert all(one not in others for one, others in opposed.items())
    assert all(one < other for one, other in find_pairs(edges))
