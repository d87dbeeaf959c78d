"""Three versions of a text into one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.history.merge import merge_lines, revert_change

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"d"]), max_size=8).map(b"".join)


@for_each(("base", "ours", "theirs", "merged"), [
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


def note(status, text, remark="", more=""):
    return f"---\nid: 01x\nstatus: {status}\n{more}---\n{text}\n{remark}".encode()


def test_a_change_is_taken_back_and_what_came_after_it_stays():
    before, after = note("pending", "Maya drinks milk"), note("approved", "Maya drinks oat milk")
    now = note("active", "Maya drinks oat milk", "\nAsk her.\n", "pinned: true\n")
    kept = note("active", "Maya drinks milk", "\nAsk her.\n", "pinned: true\n")
    assert revert_change(before, after, now) == (kept, ())
    assert revert_change(before, after, after) == (before, ())
    changed = note("active", "Maya drinks soy milk")
    assert revert_change(before, after, changed) == (changed, (b"Maya drinks soy milk\n",))
    broken = b"---\nstatus: [\n---\nMaya drinks oat milk\n"
    assert revert_change(before, after, broken)[0] == broken.replace(b"oat ", b"")


def test_a_key_that_came_with_the_change_goes_unless_it_was_changed_since():
    before, after = note("active", "A"), note("active", "B", more="confirmations: 2\n")
    assert revert_change(before, after, note("active", "B", "C\n", "confirmations: 2\n")) == (
        note("active", "A", "C\n"),
        (),
    )
    now = note("pinned", "B", more="confirmations: 3\n")
    assert revert_change(before, after, now) == (note("pinned", "A", more="confirmations: 3\n"), ())


def test_of_many_lines_that_were_added_only_the_changed_one_stays():
    before, added = b"mine\n", [b"line %d\n" % number for number in range(33)]
    now = before + b"".join([*added[:20], b"line twenty\n", *added[21:]])
    assert revert_change(before, before + b"".join(added), now) == (b"mine\nline twenty\n", (b"line twenty\n",))


@given(LINES, LINES, LINES)
def test_what_nobody_changed_since_is_taken_back_whole(before, after, now):
    assert revert_change(before, after, after) == (before, ())
    assert revert_change(before, after, before) == (before, ())
    assert revert_change(before, before, now) == (now, ())
    whole = merge_lines(after, now, before)
    assert whole is None or revert_change(before, after, now) == (whole, ())


def test_a_change_is_taken_out_of_lines_that_end_otherwise_on_disk():
    before, after = b"a\nb\nc", b"a\nB\nc"
    assert revert_change(before, after, b"a\r\nB\r\nnew\nc") == (b"a\r\nb\r\nnew\nc", ())
