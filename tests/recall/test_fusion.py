"""Several rankings -> one score per chunk, by values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.recall.search import convex, min_max, reciprocal_rank


def test_min_max_moves_scores_to_0_and_1():
    assert min_max([(1, 10.0), (2, 6.0), (3, 2.0)], 2.0) == {1: 1.0, 2: 0.5, 3: 0.0}
    assert min_max([(1, 8.0), (2, 4.0)], floor=0.0) == {1: 1.0, 2: 0.5}
    assert min_max([(1, 3.0), (2, 3.0)], 3.0) == {1: 1.0, 2: 1.0}
    assert min_max([(1, 0.5), (2, -0.5)], floor=0.0) == {1: 1.0, 2: 0.0}
    assert min_max([]) == {}


def test_convex_weighs_the_two_channels():
    fused = convex({1: 1.0, 2: 0.5}, {2: 1.0, 3: 0.4}, 0.6)
    assert fused == pytest.approx({1: 0.4, 2: 0.8, 3: 0.24})
    assert convex({1: 0.7}, {}, 0.6) == {1: 0.7}
    assert convex({}, {1: 0.7}, 0.6) == {1: 0.7}


def test_reciprocal_rank_counts_places():
    fused = reciprocal_rank([([(1, 9.0), (2, 8.0)], 0.7), ([(2, 5.0)], 0.3)])
    assert fused[1] == pytest.approx(0.7)
    assert fused[2] == pytest.approx((0.7 / 62 + 0.3 / 61) * 61)
    assert reciprocal_rank([([(1, 9.0)], 0.7), ([], 0.3)]) == {1: pytest.approx(1.0)}
    assert reciprocal_rank([([], 0.7), ([], 0.3)]) == {}


_rankings = st.dictionaries(st.integers(1, 9), st.floats(0, 100), max_size=8).map(
    lambda scores: sorted(scores.items(), key=lambda item: -item[1])
)


@given(_rankings, _rankings, st.floats(0, 1))
def test_fused_scores_stay_in_0_to_1_and_forget_nobody(keyword, vector, weight):
    ids = {i for i, _ in (*keyword, *vector)}
    fused = convex(min_max(keyword, floor=0.0), min_max(vector), weight)
    places = reciprocal_rank([(vector, weight), (keyword, 1 - weight)])
    assert set(fused) == ids
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in (*fused.values(), *places.values()))
    if keyword and vector:
        assert set(places) == ids
