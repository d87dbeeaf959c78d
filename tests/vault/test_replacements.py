"""Exact pieces of a text: found once, replaced as they are written, and no other byte changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.vault import replacements
from quaid.vault.headings import sections, text_start
from quaid.vault.replacements import apply, fit, has_open_fence

DOC = """---
title: One
---
Intro.

# One

The limit is 10.

## Options

- `a`: the limit is 10.

```sh
# no heading
```

Setext too
----------

## Options ##

- `b`: last.
"""


def change(find, replace="", section=""):
    return {"find": find, "replace": replace, "section": section, "reason": "Because."}


def made(text, *changes):
    found, problems = fit(text, [change(*each) if isinstance(each, tuple) else change(each) for each in changes])
    return apply(text, found), [problem for _, problem in problems]


def test_sections_have_their_headings_and_all_below():
    found = [(s.titles, DOC[s.start : s.end].count("\n")) for s in sections(DOC)]
    assert found == [
        ((), 2),
        (("One",), 18),
        (("One", "Options"), 8),
        (("One", "Setext too"), 3),
        (("One", "Options"), 3),
    ]
    assert "".join(DOC[s.start : s.next] for s in sections(DOC)) == DOC[text_start(DOC) :]


def test_a_passage_is_looked_for_in_its_section():
    assert made(DOC, ("limit is 10", "limit is 20"))[1] == [
        '`find` occurs 2 times in the text and must occur once: "limit is 10"'
    ]
    for title in ("Options", "## Options", " options ##"):
        assert made(DOC, ("limit is 10", "limit is 20", title))[0] == DOC.replace(
            "`a`: the limit is 10", "`a`: the limit is 20"
        )
    assert made(DOC, ("last", "first", "Setext too"))[1][0].startswith("`find` occurs 0 times in its section")
    assert made(DOC, ("last", "first", "no heading")) == (DOC, ['there is no heading "no heading"'])
    assert made(DOC, ("## Options ##", "## Choices", "Options"))[0] == DOC.replace("## Options ##", "## Choices")


@pytest.mark.parametrize(("find", "replace", "fault"), [
    ("", "x", "occurs 0 times"),
    (" \n ", "x", "occurs 0 times"),
    ("title: One", "x", "occurs 0 times"),
    ("---\nIntro", "x", "occurs 0 times"),
    ("Intro", "Intro", "says what `find` does"),
    ("ll", "x", "occurs 0 times"),
])  # fmt: skip
def test_what_cannot_be_made_is_said(find, replace, fault):
    after, (problem,) = made(DOC, (find, replace))
    assert (after, fault in problem) == (DOC, True)


def test_places_that_overlap_are_all_counted():
    assert "occurs 2 times" in made("aaa", ("aa", "b"))[1][0]
    assert made("x\r\ny\r\nz", ("\ny\n", "\nb\n")) == ("x\r\nb\r\nz", [])


def test_changes_that_overlap_are_refused_and_neighbours_are_not():
    after, problems = made("one two three", ("one two", "1 2"), ("two three", "2 3"), (" three", " 3"))
    assert after == "1 2 3"
    assert problems == ['it overlaps with another change: "two three"']


@for_each(("text", "find", "replace", "after"), [
    ("a\r\nb\r\nc", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc"),
    ("a\nb\r\nc\r\n", "a\n", "a\nx\n", "a\nx\nb\r\nc\r\n"),
    ("a\r\nb\nc\n", "c", "c\r\nd", "a\r\nb\nc\nd\n"),
    ("a\r\nb", "b", "c\nd", "a\r\nc\r\nd"),
    ("\ufeffa\nb\n", "a", "x", "\ufeffx\nb\n"),
    ("a\nb\n", "b\n", "c", "a\nc\n"),
    ("a\nb", "b", "c\n", "a\nc"),
    ("a\n\nb\n", "\n\nb\n", "", "a\n"),
    ("a\n\nb\n", "b\n", "", "a\n\n"),
    ("a\n", "a\n", "b\n\n", "b\n"),
])  # fmt: skip
def test_newlines_and_the_end_are_those_of_the_text(text, find, replace, after):
    assert made(text, (find, replace)) == (after, [])


def test_fences_and_what_is_said_of_a_change():
    assert not has_open_fence(DOC)
    assert not has_open_fence("")
    assert has_open_fence(DOC + "~~~\n```\n")
    assert has_open_fence("````\n```\n")
    (replacement,), _ = fit(DOC, [change("Intro.", "A word\nbefore.")])
    assert replacements.describe(DOC, replacement) == '- "Intro." becomes "A word before.": Because.'


pieces = st.lists(
    st.sampled_from(
        [
            "# A\n",
            "## B\r\n",
            "a",
            "b",
            " ",
            "\n",
            "\r\n",
            "```\n",
            "Title\n---\n",
            "é",
            "\ufeff",
            "\\",
            "(",
            "---\n",
            "k: v\n",
        ]
    ),
    max_size=25,
).map("".join)


@given(pieces, st.lists(st.tuples(pieces, pieces, st.sampled_from(["", "A", "b", "Title", "x"])), max_size=5))
def test_only_the_passages_change(text, changes):
    found, problems = fit(text, [change(*each) for each in changes])
    assert len(found) + len(problems) == len(changes)
    after = apply(text, found)
    place = shift = 0
    for replacement in found:
        assert place <= replacement.start < replacement.end
        assert replacement.start >= text_start(text)
        assert after[place + shift : replacement.start + shift] == text[place : replacement.start]
        shift += len(replacement.new) - (replacement.end - replacement.start)
        place = replacement.end
    assert after[place + shift :] == text[place:]


@given(pieces)
def test_sections_are_all_of_the_body(text):
    found = list(sections(text))
    body = text[text_start(text) :]
    assert "".join(text[s.start : s.next] for s in found) == body[len(body) - sum(s.next - s.start for s in found) :]
    for section in found:
        assert section.start <= section.body <= section.next <= section.end


@for_each(("text", "change", "after"), [
    ("a\nb\nc\n", (2, 2, ""), "a\nc\n"),
    ("a\nb\nc\n", (1, 2, "x"), "x\nc\n"),
    ("a\nb\nc\n", (2, 3, "x\ny"), "a\nx\ny\n"),
    ("a\nb\nc", (3, 3, "x\n"), "a\nb\nx"),
    ("a\nb\nc", (3, 3, ""), "a\nb\n"),
    ("a\r\nb\r\nc\r\n", (2, 2, "x\ny"), "a\r\nx\r\ny\r\nc\r\n"),
    ("a\n\nb\n", (1, 2, "\n"), "\nb\n"),
    ("---\ntype: fact\n---\na\nb\n", (1, 1, "x"), "---\ntype: fact\n---\nx\nb\n"),
    ("\ufeffa\nb\n", (1, 1, "x"), "\ufeffx\nb\n"),
])  # fmt: skip
def test_lines_are_counted_where_the_text_begins(text, change, after):
    first, last, new = change
    found, problems = replacements.fit_lines(text, [{"from": first, "to": last, "replace": new, "reason": ""}])
    assert (replacements.apply(text, found), problems) == (after, [])


def test_lines_that_are_not_there_are_said():
    assert replacements.number_lines("a\r\n\nb\n") == "1\ta\n2\t\n3\tb"
    for first, last in ((0, 1), (2, 1), (1, 4)):
        change = {"from": first, "to": last, "replace": "", "reason": ""}
        assert replacements.fit_lines("a\n\nb\n", [change]) == (
            [],
            [(0, f"lines {first} to {last}: the note has the lines 1 to 3, and `from` is not after `to`")],
        )
