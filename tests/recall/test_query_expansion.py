"""In doubt the question is asked once more, more broadly: slips of words, parts of names."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recall_index import NOTES, NOW, ByWords, ask, embed, everything, ids, make_index

from quaid.index.scope import EVERYTHING
from quaid.recall.query import expand, parse


def second_pass(answer):
    """What the second pass looked for, None when there was none."""
    return next((stage for stage in answer.trace["stages"] if stage["stage"] == "second_pass"), None)


@pytest.mark.parametrize(("question", "found"), [
    ("plumbr", "s1#t2"), ("plumberr", "s1#t2"), ("boilre", "01d"), ("repared", "01d"), ("repairng", "01d"),
    ("coffe", "01a"), ("cofee", "01a"), ("coffeee", "01a"), ("heatnig", "s1#t1"),
])  # fmt: skip
def test_a_slip_finds_its_word(index, question, found):
    answer = ask(index, question)
    assert found in ids(answer)
    assert second_pass(answer)["words"]
    hit = next(hit for hit in answer.hits if hit.id == found)
    assert "second_pass" in hit.channels


def test_a_part_of_a_name_finds_the_entity(index, monkeypatch):
    monkeypatch.setattr("quaid.recall.scoring.THRESHOLD", 5.0)
    answer = ask(index, "tell me about Chen", profile=everything())
    assert "01m" in ids(answer)
    assert second_pass(answer)["names"] == ["maya chen"]


def test_a_slip_of_a_name_finds_the_entity_too(index):
    assert {"01m"} <= ids(ask(index, "Where does Maay Chenn work?", profile=everything()))


@pytest.mark.parametrize(("threshold", "is_low"), [(0.0, False), (5.0, True)])
def test_the_threshold_decides(index, monkeypatch, threshold, is_low):
    monkeypatch.setattr("quaid.recall.scoring.THRESHOLD", threshold)
    embed(index, ByWords())
    answer = ask(index, "Maya Chen takes oat milk", ByWords(), everything())
    assert (answer.doubt is not None) is is_low
    assert (second_pass(answer) is not None) is is_low


def test_search_never_asks_again(index):
    assert second_pass(ask(index, "plumbr", keyword_only=True)) is None


def test_words_that_are_known_or_short_or_no_words_are_no_slips(index):
    for question in ("milk", "oat", "mlk", "x7", "2026", "ämter", "zzzzzz"):
        assert expand(index, parse(question, NOW), (), EVERYTHING)[0] == ()


def test_an_entity_that_is_known_already_is_not_named_again(index):
    query = parse("where is Chen", NOW)
    assert expand(index, query, (), EVERYTHING)[1] == {"maya chen"}
    assert expand(index, query, ("maya chen",), EVERYTHING)[1] == frozenset()


def test_what_was_found_at_first_stays_found(index, monkeypatch):
    monkeypatch.setattr("quaid.recall.scoring.THRESHOLD", 0.0)
    at_first = ids(ask(index, "fjord plumbr", profile=everything()))
    assert at_first == {"own/Trip.md"}
    monkeypatch.setattr("quaid.recall.scoring.THRESHOLD", 5.0)
    assert ids(ask(index, "fjord plumbr", profile=everything())) >= at_first | {"s1#t2"}


_SHARED = []


@settings(max_examples=80, deadline=None)
@example(["aacm"])
@given(st.lists(st.sampled_from(" ".join(NOTES.values()).split()) | st.text("abcdeilmnor'\"-", max_size=9), max_size=4))
def test_a_slip_is_near_a_word_of_the_vault(words):
    if not _SHARED:
        _SHARED.append(make_index(NOTES))
    query = parse(" ".join(words), NOW)
    broader = expand(_SHARED[0], query, (), EVERYTHING)
    assert not set(broader[0]) & set(query.words)
    rows = _SHARED[0].execute("SELECT text || ' ' || context || ' ' || keywords FROM chunks")
    written = " ".join(row[0] for row in rows).lower()  # words as they stand there, not their stems
    assert all(word in written for word in broader[0])
