"""Not the same thing twice: folding, sessions taken apart, marginal relevance."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples
from recall_index import candidate, turn

from quaid.recall import scoring
from quaid.recall.scoring import fold, reorder


def test_folding_keeps_the_order_and_counts_what_each_stands_for():
    said = ["Maya likes tea", "Tom likes milk", "Maya likes tea.", "Maya likes tea", "Zoe likes rum"]
    folded = fold([candidate(n, text) for n, text in enumerate(said)], 10)
    assert [(c.chunk_id, count) for c, count in folded] == [(0, 3), (1, 1), (4, 1)]


def test_further_chunks_of_a_note_are_no_second_voice_but_other_turns_are():
    chunks = [
        candidate(1, "one thing", doc_id=9), candidate(2, "another thing", doc_id=9), turn(3, 1, "hi you"),
        turn(4, 2, "oh well"), turn(5, 2, "the rest of a long turn"),
    ]  # fmt: skip
    assert [(c.chunk_id, count) for c, count in fold(chunks, 10)] == [(1, 1), (3, 1), (4, 1)]


@given(
    st.lists(st.sampled_from(["Maya likes tea", "maya likes tea", "Tom likes tea", "Tea", ""]), max_size=12),
    st.integers(1, 5),
)
def test_folding_counts_every_note_once(texts, limit):
    folded = fold([candidate(n, text) for n, text in enumerate(texts)], limit)
    assert len(folded) <= limit
    assert sum(count for _, count in folded) <= len(texts)
    if len(folded) < limit:
        assert sum(count for _, count in folded) == len(texts)


def _of_sessions(sessions: list[int], scores: list[float]):
    """Turns (session 0: facts) with falling scores."""
    made = [
        turn(n, n + 1, doc_id=session) if session else candidate(n, doc_id=100 + n)
        for n, session in enumerate(sessions)
    ]
    return made, dict(enumerate(sorted(scores, reverse=True)))


def test_the_nth_turn_of_a_session_loses_by_the_root_of_n():
    ranked, scores = _of_sessions([1, 1, 2, 1], [1.0, 0.9, 0.8, 0.7])
    spreaded = reorder(ranked, scores, 0.2)
    assert [c.chunk_id for c, _ in spreaded] == [0, 2, 1, 3]
    assert [value for _, value in spreaded] == pytest.approx([1.0, 0.8, 0.9 - 0.2, 0.7 - 0.2 * math.sqrt(2)])


def test_a_long_turn_counts_once_however_many_chunks_it_has():
    pieces = [turn(n, 1, doc_id=1) for n in range(4)]
    ranked = [*pieces, turn(4, 2, doc_id=1), turn(5, 1, doc_id=2)]
    spreaded = reorder(ranked, dict(enumerate([1.0, 0.98, 0.97, 0.96, 0.9, 0.72])), 0.1)
    assert [c.turn for c, _ in spreaded if c.doc_id == 1][-1] == 2
    assert {c.chunk_id: value for c, value in spreaded}[4] == pytest.approx(0.8)


_sessions = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), max_size=90)


@settings(max_examples=examples(60))
@given(_sessions, st.floats(0, 0.3))
def test_taken_apart_nothing_is_lost_no_score_grows_and_scores_fall(drawn, strength):
    ranked, scores = _of_sessions([session for session, _ in drawn], [score for _, score in drawn])
    spreaded = reorder(ranked, scores, strength)
    assert {c.chunk_id for c, _ in spreaded} == scores.keys()
    assert all(value <= scores[c.chunk_id] + 1e-9 for c, value in spreaded)
    values = [value for _, value in spreaded]
    assert values == sorted(values, reverse=True)
    assert [c for c, _ in reorder(ranked, scores, 0.0)] == ranked
    for one, other in combinations([c for c, _ in spreaded[: scoring.MAX_REORDERED]], 2):
        if one.doc_id == other.doc_id:  # within a session nothing changes places
            assert scores[one.chunk_id] >= scores[other.chunk_id]


def _by_the_definition(scores, likeness, share):
    """Carbonell and Goldstein's formula, as it is written."""
    left, chosen = sorted(scores), []

    def value(n):
        near = max((likeness[min(n, c), max(n, c)] for c in chosen), default=0.0)
        return share * scores[n] - (1 - share) * near

    while left:
        best = max(left, key=lambda n: (value(n), -n))
        chosen.append(best)
        left.remove(best)
    return chosen


@settings(max_examples=examples(80))
@given(st.data(), st.integers(0, 9), st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_marginal_relevance_is_what_its_definition_says(data, count, share):
    numbers = st.integers(0, 64).map(lambda n: n / 64)  # exact in binary: ties are ties in both
    scores = {n: data.draw(numbers) for n in range(count)}
    likeness = {pair: data.draw(numbers) for pair in combinations(range(count), 2)}
    share = round(share * 64) / 64
    # The first of equals wins, so give them in the order of their numbers.
    found = reorder([candidate(n) for n in range(count)], scores, likeness=likeness, share=share)
    assert [c.chunk_id for c, _ in found] == _by_the_definition(scores, likeness, share)
