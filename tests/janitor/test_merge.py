"""One fact of several: what the winner takes over, what the losers keep, and that all else of their notes stays."""

from __future__ import annotations

import pytest
from hand_written import parse_note

from quaid.capture.facts import supersede
from quaid.janitor import fact_edits
from quaid.janitor.settling import redirect
from quaid.model import Citation, Edge
from quaid.vault.frontmatter import FrontmatterBrokenError, parse

WINNER = """---
id: 01a
type: preference   # mine
status: approved
owner: maya
confidence: 0.8
session: s1
source: user
keywords: [coffee, milk]
turns: ["[[20-1402-2f1c9a#^t3]]"]
colour: green
---
[[Maya]] takes oat milk.

- [[Maya]] prefers [[Oat milk]]
"""
LOSER = """---
id: 01b
type: fact
status: active
owner: maya
confidence: 0.95
confirmations: 2
session: s2
source: assistant
keywords: milk, breakfast
turns:
  - [[21-0900-aaaaaa#^t1]]
  - "[[20-1402-2f1c9a#^t3]]"
tags: [food]
---
Maya likes oat milk.

- [[Maya]] prefers [[oat milk]]
- [[Oat milk]] part_of [[Breakfast]]
"""


def merged(winner=WINNER, *losers, statement=None):
    """(the winner's note, the edits)"""
    given = [(f"facts/l{n}.md", loser.encode()) for n, loser in enumerate(losers or (LOSER,))]
    edits = fact_edits.merge(("facts/w.md", winner.encode()), given, statement)
    assert [edit.rel_path for edit in edits] == ["facts/w.md", *(path for path, _ in given)]
    assert [edit.before for edit in edits] == [winner.encode(), *(data for _, data in given)]
    return parse_note("facts/w.md", edits[0].after), edits


def test_the_winner_takes_over_what_the_loser_has_and_all_else_stays():
    note, edits = merged()
    assert (note.id, note.owner, note.session, note.source) == ("01a", "maya", "s1", "user")
    assert (note.status, note.confidence, note.confirmations) == ("active", 0.95, 3)
    assert note.citations == (Citation("20-1402-2f1c9a", 3), Citation("21-0900-aaaaaa", 1))
    assert note.keywords == ("coffee", "milk", "breakfast")
    assert note.edges == (Edge("Maya", "prefers", "Oat milk"), Edge("Oat milk", "part_of", "Breakfast"))
    assert note.text == "Maya takes oat milk."
    assert not note.problems
    after = edits[0].after.decode()
    assert "type: preference   # mine\n" in after
    assert "colour: green\n" in after
    assert after.endswith(
        "[[Maya]] takes oat milk.\n\n- [[Maya]] prefers [[Oat milk]]\n- [[Oat milk]] part_of [[Breakfast]]\n"
    )
    assert edits[1].after.decode() == LOSER.replace("tags: [food]\n", 'tags: [food]\nsuperseded_by: "[[w]]"\n')
    note, _ = merged(WINNER, LOSER, LOSER.replace("0.95", "0.99").replace("01b", "01c"))
    assert (note.confidence, note.confirmations) == (0.99, 6)


def test_windows_line_ends_and_a_byte_order_mark_stay():
    _, edits = merged("\ufeff" + WINNER.replace("\n", "\r\n"))
    after = edits[0].after
    assert after.startswith(b"\xef\xbb\xbf---\r\n")
    assert after.count(b"\n") == after.count(b"\r\n")
    assert after.endswith(b"- [[Oat milk]] part_of [[Breakfast]]\r\n")


def test_a_new_wording_takes_the_place_of_the_old_and_is_as_certain_as_the_least_certain():
    note, edits = merged(statement="Maya likes and takes oat milk.")
    assert note.text == "Maya likes and takes oat milk."
    assert note.source == "assistant"
    assert b"takes oat milk.\n\n- [[Maya]] prefers" in edits[0].after


@pytest.mark.parametrize(("one", "other", "both"), [
    ("shared", None, "private"),
    (None, "shared", "private"),
    ("public", "shared", "shared"),
    ("public", "public", "public"),
])  # fmt: skip
def test_the_most_private_of_them_counts(one, other, both):
    texts = [
        text.replace("owner: maya\n", f"owner: maya\nprivacy: {privacy}\n" if privacy else "owner: maya\n")
        for text, privacy in ((WINNER, one), (LOSER, other))
    ]
    assert merged(*texts)[0].privacy == both


@pytest.mark.parametrize(("one", "other", "both"), [
    ("pending", "pending", "pending"),
    ("pending", "approved", "active"),
    ("approved", "pending", "active"),
    ("active", "pending", "active"),
])  # fmt: skip
def test_nothing_becomes_active_that_nobody_has_reviewed(one, other, both):
    texts = (WINNER.replace("approved", one), LOSER.replace("status: active", f"status: {other}"))
    assert merged(*texts)[0].status == both


def test_notes_without_heads_are_merged_too():
    note, edits = merged("Maya takes oat milk.\n", "Maya likes oat milk.")
    assert (note.status, note.confirmations, note.confidence) == ("active", 1, None)
    assert parse(edits[0].after.decode()).fields == {"confirmations": "1"}
    assert edits[1].after.decode() == '---\nsuperseded_by: "[[w]]"\n---\nMaya likes oat milk.'


@pytest.mark.parametrize(
    "broken", ["---\nid: x\n", "---\nid: [x\n---\nMaya.\n", "---\nsuperseded_by: x\nsuperseded_by: y\n---\nM.\n"]
)
def test_one_note_that_cannot_be_edited_stops_all(broken):
    with pytest.raises(FrontmatterBrokenError):
        merged(WINNER, LOSER, broken)
    with pytest.raises(UnicodeDecodeError):
        fact_edits.merge(("facts/w.md", WINNER.encode()), [("facts/l.md", b"\xff\xfe")])


@pytest.mark.parametrize(("head", "until", "expected"), [
    ("", "2026-11-20", "2026-11-20"),
    ("valid_until: 2025-01-01\n", "2026-11-20", "2025-01-01"),
    ("", None, None),
])  # fmt: skip
def test_what_is_replaced_held_until_then_unless_it_says_otherwise(head, until, expected):
    edit = supersede("facts/l.md", f"---\nid: l\n{head}---\nMaya.\n".encode(), "facts/2026/11/w.md", until)
    note = parse_note("facts/l.md", edit.after)
    assert (note.superseded_by, note.valid_until) == ("w", expected)


def test_a_redirected_link_is_found_in_each_of_its_forms():
    text = b"[[Old]] [[Old.md]] | [[Old\\|x]] | [[old#H]] [[Old|y]] [[Older]]"
    assert redirect(text, "Old", "New") == b"[[New|Old]] [[New|Old]] | [[New\\|x]] | [[New#H]] [[New|y]] [[Older]]"
