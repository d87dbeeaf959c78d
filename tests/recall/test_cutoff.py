"""How many hits there are, and how much of them is shown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.recall.cutoff import dynamic_k, fit, tokens, trim

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

_texts = st.lists(st.text("abcdef \n…é", max_size=300), max_size=8)


_nothing = [""] * 8


@given(_texts, st.integers(0, 200))
def test_a_budget_is_never_exceeded_and_the_best_come_first(texts, budget):
    fitted = fit(texts, budget, _nothing.__getitem__)
    assert sum(map(tokens, fitted)) <= budget
    assert len(fitted) <= len(texts)
    assert list(fitted[:-1]) == texts[: max(len(fitted) - 1, 0)]
    if fitted and fitted[-1] != texts[len(fitted) - 1]:
        kept = fitted[-1].removesuffix(" …")
        assert kept != fitted[-1]
        assert texts[len(fitted) - 1].startswith(kept)
    if sum(map(tokens, texts)) <= budget:
        assert list(fitted) == texts


@given(_texts, st.lists(st.text("xyz ", max_size=400), min_size=8, max_size=8), st.integers(0, 400))
def test_what_room_is_left_goes_into_longer_versions_best_first(texts, longer, budget):
    fitted = fit(texts, budget, longer.__getitem__)
    plain = fit(texts, budget, _nothing.__getitem__)
    assert sum(map(tokens, fitted)) <= budget
    assert len(fitted) == len(plain)
    assert all(text in (plain[n], longer[n]) for n, text in enumerate(fitted))


def test_a_longer_version_is_taken_where_it_fits():
    assert fit(["a" * 8, "b" * 8], 100, ["a" * 80, "b" * 80].__getitem__) == ["a" * 80, "b" * 80]
    assert fit(["a" * 8, "b" * 8], 23, ["a" * 80, "b" * 80].__getitem__) == ["a" * 80, "b" * 8]
    assert fit(["a" * 8], 1, ["a" * 80].__getitem__) == []


@given(st.text("ab \n", max_size=400), st.integers(0, 80))
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
