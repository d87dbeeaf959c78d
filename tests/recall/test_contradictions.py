"""Which facts cannot both be true, and which of them is the later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each
from recall_index import make_index

from quaid.index.scope import Scope
from quaid.recall.contradictions import compare_times, find_pairs, list_opposed


@for_each(("edges", "pairs"), [
    ([("Maya", "lives_in", "Oslo"), ("maya", "lives_in", "Bergen"), ("Maya", "lives_in", "OSLO")], {(0, 1), (1, 2)}),
    ([("Maya", "likes", "tea"), ("Maya", "likes", "milk"), ("Tom", "lives_in", "Leeds")], set()),
    ([("Maya", "lives_in", "Porto"), ("Maya", "moved_to", "Ghent")], {(0, 1)}),
    ([("Maya", "lives_in", "Porto"), ("Maya", "lives_in", "Porto, Portugal")], set()),
    ([("Maya", "lives_in", "York"), ("Maya", "lives_in", "Yorkshire")], {(0, 1)}),
    ([("Ines", "manages", "Sven"), ("Marek", "manages", "Sven"), ("Marek", "manages", "Tilda")], {(0, 1)}),
    ([("Sven", "reports_to", "Ines"), ("Marek", "manages", "Sven"), ("Sven", "manages", "Ida")], {(0, 1)}),
    ([("Anna", "spouse_of", "Tom"), ("Tom", "married_to", "Zoe"), ("Anna", "spouse_of", "Tom")], {(0, 1), (1, 2)}),
])  # fmt: skip
def test_two_values_of_what_has_one_contradict_each_other(edges, pairs):
    assert find_pairs({number: [edge] for number, edge in enumerate(edges)}) == pairs


def test_a_note_that_says_both_contradicts_neither():
    both = [("Maya", "lives_in", "Oslo"), ("Maya", "lives_in", "Bergen")]
    assert find_pairs({1: both, 2: [("Maya", "lives_in", "Oslo")]}) == find_pairs({1: both}) == set()


_edge = st.tuples(
    st.sampled_from(["Maya", "maya", "Tom"]),
    st.sampled_from(["lives_in", "works_at", "likes", "spouse_of"]),
    st.sampled_from(["Oslo", "oslo", "Bergen"]),
)


@given(st.dictionaries(st.integers(1, 6), st.lists(_edge, max_size=4), max_size=6))
def test_contradicting_takes_two(edges):
    assert all(one < other for one, other in find_pairs(edges))


def fact(note_id: str, edge: str, fields: str = "") -> str:
    return f"---\nid: {note_id}\n{fields}---\nSomething in its own words.\n\n- {edge}\n"


def test_facts_meet_whatever_their_words_by_all_names_of_their_subject():
    index = make_index({
        "entities/Maya Chen.md": "---\nid: 01m\ntype: person\naliases: [Maya]\n---\n",
        "facts/a.md": fact("01a", "[[Maya]] lives_in [[Porto]]"),
        "facts/b.md": fact("01b", "[[Maya Chen]] moved_to [[Ghent]]"),
        "facts/c.md": fact("01c", "[[Maya Chen]] lives_in [[Ghent]]"),
        "facts/d.md": fact("01d", "[[Tom]] lives_in [[Leeds]]"),
    })  # fmt: skip
    ids = {path: doc_id for doc_id, path in index.execute("SELECT doc_id, path FROM documents")}
    a, b, c, d = (ids[f"facts/{name}.md"] for name in "abcd")
    assert list_opposed(index, [a]) == {(a, b), (a, c)}
    assert list_opposed(index, [b]) == {(a, b)}
    assert list_opposed(index, [d]) == set()
    assert list_opposed(index, []) == set()


def test_two_managers_of_one_person_oppose_each_other():
    index = make_index({
        "facts/a.md": fact("01a", "[[Ines]] manages [[Sven]]"),
        "facts/b.md": fact("01b", "[[Marek]] manages [[Sven]]"),
        "facts/c.md": fact("01c", "[[Ines]] manages [[Tilda]]"),
    })  # fmt: skip
    ids = {path: doc_id for doc_id, path in index.execute("SELECT doc_id, path FROM documents")}
    a, b, c = (ids[f"facts/{name}.md"] for name in "abc")
    assert list_opposed(index, [b]) == {(a, b)}
    assert list_opposed(index, [c]) == set()


def test_the_other_names_of_one_place_do_not_contradict_it():
    index = make_index({
        "entities/New York City.md": "---\nid: 01m\ntype: place\naliases: [NYC]\n---\n",
        "facts/a.md": fact("01a", "[[Maya]] lives_in [[NYC]]"),
        "facts/b.md": fact("01b", "[[Maya]] lives_in [[New York City]]"),
    })  # fmt: skip
    assert list_opposed(index, [row[0] for row in index.execute("SELECT doc_id FROM documents")]) == set()


def test_a_place_does_not_contradict_the_one_around_it():
    index = make_index({
        "entities/Porto.md": "---\nid: 01m\ntype: place\n---\n- located_in [[Portugal]]\n",
        "facts/a.md": fact("01a", "[[Maya]] lives_in [[Porto]]"),
        "facts/b.md": fact("01b", "[[Maya]] lives_in [[Portugal]]"),
        "facts/c.md": fact("01c", "[[Maya]] lives_in [[Ghent]]"),
    })  # fmt: skip
    ids = {path: doc_id for doc_id, path in index.execute("SELECT doc_id, path FROM documents")}
    a, b, c = (ids[f"facts/{name}.md"] for name in "abc")
    assert list_opposed(index, [a, b, c]) == {(a, c), (b, c)}


def test_what_the_scope_leaves_out_opposes_nothing():
    index = make_index({
        "facts/a.md": fact("01a", "[[Maya]] lives_in [[Porto]]"),
        "facts/b.md": fact("01b", "[[Maya]] lives_in [[Ghent]]", "superseded_by: '[[a]]'\n"),
    })  # fmt: skip
    everything = [row[0] for row in index.execute("SELECT doc_id FROM documents")]
    assert len(list_opposed(index, everything)) == 1
    assert list_opposed(index, everything, Scope().narrowed("d.superseded_by IS NULL")) == set()


def told(created: str | None, valid_from: str | None = None, note_id: str = "01a") -> SimpleNamespace:
    return SimpleNamespace(created=created, valid_from=valid_from, id=note_id)


@pytest.mark.parametrize(("earlier", "later"), [
    (told("2026-11-01T10:00:00Z", "2020-01-01"), told("2026-10-01T10:00:00Z", "2026-05-01")),
    (told("2026-04-01T10:00:00Z"), told("2026-11-01T10:00:00Z", "2026-05-01")),
    (told("2026-11-22T10:00:00Z"), told("2026-11-22T10:05:00Z", "2026-05-01")),
    (told("2026-06-01T10:00:00Z", "2026-05-01"), told("2026-11-01T10:00:00Z")),
    (told("2026-11-01T10:00:00Z"), told("2026-11-02T10:00:00Z")),
    (told("2026-11-01T10:00:00Z", "2015"), told("2026-11-01T10:00:00Z")),
    (told("2026-11-01T10:00:00Z", None, "01kagx3m7r9q2d5w8t0v7k3qdz"), told("2026-11-01T10:00:00Z", "2026-05-01", "01kagx3m7s9q2d5w8t0v7k3qda")),
])  # fmt: skip
def test_the_later_began_later_or_was_told_later(earlier, later):
    assert compare_times(later, earlier) == 1
    assert compare_times(earlier, later) == -1


@pytest.mark.parametrize(("one", "other"), [
    (told(None), told("2026-11-01T10:00:00Z")), (told("2026-11-01T10:00:00Z"), told("2026-11-01T10:00:00Z")),
    (told(None, "2026-05-01"), told(None, "2026-05-01")),
])  # fmt: skip
def test_of_what_has_no_time_nobody_knows_which_is_later(one, other):
    assert compare_times(one, other) == 0


@for_each(("one", "other", "is_one"), [
    ("1966-04-14", "14 April", True), ("1966-04-14", "14. April", True), ("1966-04-14", "April 14, 1966", True),
    ("1966-04-14", "1966", True), ("1966-04-14", "14.04.", True), ("1966-04-14", "4. April", False),
    ("1966-04-14", "14 May", False), ("1966-04-14", "14 April 1967", False), ("1966-04-14", "1966-04-04", False),
    ("1966-04-14", "Ghent", False),
])  # fmt: skip
def test_a_day_with_its_year_does_not_contradict_the_day_without(one, other, is_one):
    edges = {1: [("Ben", "born_on", one)], 2: [("Ben", "born_on", other)]}
    assert find_pairs(edges) == (set() if is_one else {(1, 2)})
