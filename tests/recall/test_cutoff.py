"""How many hits there are, and how much of them is shown."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from quaid.recall.cutoff import dynamic_k, tokens, trim


@given(st.integers(1, 10**7))
def test_it_is_the_formula_within_its_bounds_and_never_falls(count):
    hits = dynamic_k(count)
    assert hits == min(max(round(11.5 * math.log(count) - 61.7), 10), 50)
    assert hits <= dynamic_k(count + 1)


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
