"""What age, use, certainty and type do to a score: the formulas, by values computed by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each
from recall_index import candidate

from quaid.model import Use
from quaid.recall import scoring

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NEVER = Use()


def ago(days: int) -> str:
    return (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


@for_each(("relevance", "days", "accesses", "confidence", "expected"), [
    (1.0, 0, 10, 1.0, 1.0), (1.0, 0, 0, 1.0, 0.6 + 0.2 + 0.05), (1.0, 0, 5, 1.0, 0.6 + 0.2 + 0.075 + 0.05),
    (1.0, 0, 40, 1.0, 1.0),  # more than enough is no more
    (1.0, 90, 0, 0.0, 0.6 + 0.1),  # half as new after 90 days
    (1.0, 180, 0, 0.0, 0.6 + 0.05), (0.0, 0, 10, 1.0, 0.0),  # what is beside the point is no better for being new
    (0.5, 0, 10, 1.0, 0.5),
])  # fmt: skip
def test_relevance_recency_frequency_and_confidence_in_one(relevance, days, accesses, confidence, expected):
    one = candidate(1, created=ago(days), confidence=confidence, pinned=True)
    assert scoring.composite(relevance, one, Use(accesses), NOW) == pytest.approx(expected)


def test_a_turn_is_as_new_as_when_it_was_said_and_a_note_without_a_date_is_not_new():
    old_episode = candidate(1, created=ago(180), said_at=ago(0), confidence=0.0)
    undated = candidate(2, confidence=0.0)
    assert scoring.composite(1.0, old_episode, NEVER, NOW) == pytest.approx(0.8)
    assert scoring.composite(1.0, undated, NEVER, NOW) == pytest.approx(0.6)


@for_each(("days", "use", "expected"), [
    (0, NEVER, 0.8), (30, NEVER, 0.8),  # has not begun to fade
    (90, NEVER, 0.4),  # one half-life of 60 days after that
    (150, NEVER, 0.2), (30 + 150, Use(accesses=10), 0.4),  # 60 * (1 + 10 * .15)
    (30 + 120, Use(strength=1.0), 0.4),  # 60 * (1 + 1)
    (30 + 300, Use(accesses=10, strength=1.0), 0.4),
    (90, Use(strength=-5.0), 0.4),  # weakened is not quicker than never used
])  # fmt: skip
def test_confidence_halves_with_a_half_life_that_use_stretches(days, use, expected):
    assert scoring.confidence(candidate(1, confidence=0.8, created=ago(days)), use, NOW) == pytest.approx(expected)


def test_idle_is_counted_from_the_last_access():
    old = candidate(1, confidence=0.8, created=ago(900))
    assert scoring.confidence(old, Use(0, ago(10)), NOW) == 0.8
    assert scoring.confidence(old, Use(0, ago(90)), NOW) == pytest.approx(0.4)


@pytest.mark.parametrize("mark", ["pinned", "verified"])
def test_what_is_pinned_or_verified_does_not_fade(mark):
    old = candidate(1, confidence=0.8, created=ago(9000), **{mark: True})
    assert scoring.confidence(old, NEVER, NOW) == 0.8
    assert scoring.faded(0.7, old, NEVER, NOW) == pytest.approx(0.7)


def test_a_faded_memory_keeps_half_of_its_score_at_least():
    assert scoring.faded(0.8, candidate(1, confidence=0.8, created=ago(90)), NEVER, NOW) == pytest.approx(0.6)
    assert scoring.faded(0.8, candidate(1, confidence=0.8, created=ago(90_000)), NEVER, NOW) == pytest.approx(0.4)
    assert scoring.faded(0.8, candidate(1, confidence=0.0, created=ago(90)), NEVER, NOW) == 0.8
    assert scoring.faded(0.8, candidate(1), NEVER, NOW) == pytest.approx(0.8)  # nobody knows how old it is


_days = st.integers(0, 4000)
_uses = st.builds(Use, st.integers(0, 200), st.none(), st.floats(-2, 5))
_sure = st.floats(0, 1) | st.none()


@given(_days, st.integers(1, 400), _sure, _uses)
def test_the_longer_untouched_the_less_sure_and_never_more_than_at_first(days, more, sure, use):
    newer, older = (candidate(1, confidence=sure, created=ago(age)) for age in (days, days + more))
    first = scoring.UNSURE if sure is None else sure
    assert 0 <= scoring.confidence(older, use, NOW) <= scoring.confidence(newer, use, NOW) <= first


@given(_days, st.integers(0, 50), st.floats(0, 3), _sure)
def test_use_and_strength_keep_a_memory(days, accesses, strength, sure):
    one = candidate(1, confidence=sure, created=ago(days))
    least = scoring.confidence(one, Use(accesses, None, strength), NOW)
    assert least <= scoring.confidence(one, Use(accesses + 1, None, strength), NOW) + 1e-12
    assert least <= scoring.confidence(one, Use(accesses, None, strength + 0.1), NOW) + 1e-12


@given(st.floats(0, 1), st.floats(0, 1), _days, _sure, _uses)
def test_composite_and_decay_keep_the_order_of_equals_in_all_else(one, other, days, sure, use):
    less, more = sorted((one, other))
    memory = candidate(1, confidence=sure, created=ago(days))
    assert scoring.composite(less, memory, use, NOW) <= scoring.composite(more, memory, use, NOW) + 1e-12
    assert scoring.faded(less, memory, use, NOW) <= scoring.faded(more, memory, use, NOW) + 1e-12
    assert 0 <= scoring.composite(more, memory, use, NOW) <= 1 + 1e-9
