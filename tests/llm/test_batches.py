"""Batches: nothing is lost, moved or cut, and none is fuller than it may be or emptier than it must."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.llm.prices import batches


def split(sizes, *, into=100, out=0, most_out=1_000):
    return batches(((size, size) for size in sizes), into, out, most_out)


@given(st.lists(st.integers(0, 150)), st.integers(1, 200), st.integers(0, 30), st.integers(1, 90))
def test_batches_hold_all_in_order_and_both_limits(sizes, into, out, most_out):
    made = split(sizes, into=into, out=out, most_out=most_out)
    assert [size for batch in made for size in batch] == sizes
    assert all(made)
    for batch in made:
        assert len(batch) == 1 or (sum(batch) <= into and len(batch) * out <= most_out)
    for batch, following in pairwise(made):
        assert sum(batch) + following[0] > into or (len(batch) + 1) * out > most_out


@pytest.mark.parametrize(("sizes", "options", "expected"), [
    ([], {}, []), ([40, 40, 40], {}, [[40, 40], [40]]), ([500, 10, 10], {}, [[500], [10, 10]]), ([10, 500, 10], {}, [[10], [500], [10]]),
    ([1, 1, 1, 1, 1], {"out": 400}, [[1, 1], [1, 1], [1]]), ([1, 1], {"out": 4_000}, [[1], [1]]), ([0, 0, 0], {"out": 0}, [[0, 0, 0]]),
])  # fmt: skip
def test_a_batch_ends_where_input_or_output_would(sizes, options, expected):
    assert split(sizes, **options) == expected


def test_items_may_come_one_by_one():
    assert split(iter([60, 60])) == [[60], [60]]
