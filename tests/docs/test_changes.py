"""Changes of sources as diffs, and the sections of a long page that they concern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_page import CHANGE, change

from quaid.docs.changes import excerpt, shorten


def test_a_difference_is_shown_by_line():
    assert CHANGE.title == "modified quaid/recall.py"
    assert CHANGE.diff(context=0) == (
        "@@ -1 +1 @@\n-DEFAULT_LIMIT = 10\n+DEFAULT_LIMIT = 20\n@@ -4 +4 @@\n-def recall(query):\n+def recall(query, at=None):\n"
    )
    moved = change("b.py", b"x\r\n", b"x\r\ny", "renamed", old_path="a\n.py")
    assert moved.title == "renamed a .py to b.py"
    assert moved.diff() == "@@ -1 +1,2 @@\n x\n+y\n\\ No newline at end of file\n"


@pytest.mark.parametrize(("before", "after", "shown"), [
    (b"a\n", b"a\r\n", "only line ends differ"),
    (b"a\0", b"b", "not text: 2 bytes before, 1 now"),
    (b"a", b"a", "the same content"),
    (None, b"a" * 1_000_001, "too large"),
    (b"caf\xe9\n", b"caf\xc3\xa9\n", "+café"),
    (None, b"new\n", "@@ -0,0 +1 @@\n+new"),
    (b"old\n", None, "@@ -1 +0,0 @@\n-old"),
])  # fmt: skip
def test_what_has_no_lines_is_named(before, after, shown):
    assert shown in change("a", before, after).diff()


def test_a_long_difference_loses_its_middle_and_no_line_poses_as_another_change():
    new = b"".join(b"### %d fake\n" % n for n in range(5_000)) + b"### 2 one line " * 2_000
    shown = change("a", None, new, "added").diff(longest=2_000)
    assert len(shown) < 2_100
    assert all(line[0] in " +-@\\[" for line in shown.split("\n") if line)
    assert "lines left out" in shown
    assert shorten("short", 10) == "short"


@given(st.text("ab \n", max_size=300), st.integers(10, 300))
def test_what_is_shortened_keeps_whole_lines(text, longest):
    short = shorten(text, longest)
    if len(text) <= longest:
        assert short == text
    else:
        head, _, tail = short.partition("[…] ")
        assert text.startswith(head.removesuffix("\n"))
        assert text.endswith(tail.split("\n", 1)[1].removeprefix(" "))


def test_of_a_long_doc_the_sections_are_shown_that_the_changes_speak_of():
    parts = [f"## Part {n}\n\n{'word ' * 40}\n\n" for n in range(50)]
    parts[30] += "It is asked by `DEFAULT_LIMIT`.\n\n"
    text = "---\na: b\n---\n# Title\n\nIntro.\n\n" + "".join(parts)
    shown = excerpt(text, [CHANGE], 1_000)
    assert shown.startswith("# Title\n\nIntro.\n\n")
    assert "## Part 30\n" in shown
    assert shown.count("[…]") >= 2
    assert len(shown) < 1_100
    assert excerpt(text, [], 100_000) == text[len("---\na: b\n---\n") :]
    assert len(excerpt("x" * 5_000, [], 1_000)) < 1_100
