"""Three versions of a text into one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.vault.merge import merge_lines

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"d"]), max_size=8).map(b"".join)


@pytest.mark.parametrize(("base", "ours", "theirs", "merged"), [
    (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n", b"A\nb\nC\n"),
    (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nB\nc\n", b"A\nB\nc\n"),  # side by side
    (b"a\nb\n", b"A\nb\n", b"a\nremark\nb\n", b"A\nremark\nb\n"),  # added below a changed line
    (b"a\n", b"x\n", b"y\n", None),
    (b"a\n", b"x\n", b"x\n", b"x\n"),  # the same on both sides
    (b"a\nb\n", b"a\nx\nb\n", b"a\ny\nb\n", None),  # added at one place
    (b"a\nb\nc\n", b"a\nc\n", b"a\nB\nc\n", None),  # removed and changed
    (b"", b"x\n", b"", b"x\n"),
])  # fmt: skip
def test_both_sides_are_kept_unless_they_change_the_same(base, ours, theirs, merged):
    assert merge_lines(base, ours, theirs) == merged
    assert merge_lines(base, theirs, ours) == merged


@given(LINES, LINES)
def test_a_side_that_changed_nothing_gives_way(base, other):
    assert merge_lines(base, other, base) == merge_lines(base, base, other) == other
    assert merge_lines(base, other, other) == other
