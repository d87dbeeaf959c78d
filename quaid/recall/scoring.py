"""From relevance to score: what a memory's age, use, certainty and type add, and what its time takes away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from quaid.index.documents import Candidate
from quaid.model import Use
from quaid.recall.intent import PROFILES, Intent

HALF_LIFE_DAYS = 60.0
STRETCH_PER_ACCESS = 0.15
"""Each access makes the half-life this much of itself longer (the seeds' access_bonus_factor)."""
UNTOUCHED_DAYS = 30.0
"""A memory used or made within so many days has not begun to fade (the seeds' threshold_days)."""
RECENCY_DAYS = 90.0
"""The half-life of newness (the seeds' recencyDecayDays)."""
ENOUGH_ACCESSES = 10
UNSURE = 0.5
"""What the confidence of a note without one is taken for."""
NEVER_USED = Use()


@dataclass(frozen=True, slots=True)
class CompositeWeights:
    """Shares of the composite score; they add up to 1 (the seeds': 60, 20, 15 and 5 percent)."""

    relevance: float = 0.6
    recency: float = 0.2
    frequency: float = 0.15
    confidence: float = 0.05


def composite(
    relevance: float, candidate: Candidate, use: Use, now: datetime, weights: CompositeWeights = CompositeWeights()
) -> float:
    """Relevance, recency, frequency and confidence in one, in the range of the relevance."""
    age = days_since(candidate.said_at or candidate.created, now)
    recency = 0.0 if age is None else 2.0 ** (-age / RECENCY_DAYS)
    frequency = min(1.0, use.accesses / ENOUGH_ACCESSES)
    sure = confidence(candidate, use, now)
    rest = weights.recency * recency + weights.frequency * frequency + weights.confidence * sure
    return weights.relevance * relevance + rest * min(1.0, relevance)  # new and beside the point is beside the point


def confidence(candidate: Candidate, use: Use, now: datetime) -> float:
    """How sure a memory is by now: `confidence * 2 ** (-days / half_life)` (Ebbinghaus), days since it was last used.

    The half-life is stretched by every access and by storage strength; what is pinned or verified does not fade.
    """
    sure = UNSURE if candidate.confidence is None else candidate.confidence
    if candidate.pinned or candidate.verified:
        return sure
    idle = days_since(use.last_access or candidate.created, now)
    if idle is None or idle <= UNTOUCHED_DAYS:
        return sure
    half_life = HALF_LIFE_DAYS * (1.0 + STRETCH_PER_ACCESS * use.accesses) * (1.0 + max(0.0, use.strength))
    return float(sure * 2.0 ** (-(idle - UNTOUCHED_DAYS) / half_life))


def faded(score: float, candidate: Candidate, use: Use, now: datetime) -> float:
    """Decay as a function: a score keeps half of itself, the other half goes with the confidence that has faded."""
    sure = UNSURE if candidate.confidence is None else candidate.confidence
    return score if sure <= 0 else score * (0.5 + 0.5 * confidence(candidate, use, now) / sure)


def type_boost(candidate: Candidate, intent: Intent) -> float:
    """The factor that a question's intent puts on this type of note."""
    boosts: Mapping[str, float] = PROFILES[intent].type_boosts
    return boosts.get(candidate.type or "", 1.0)


def is_over(candidate: Candidate, today: str) -> bool:
    """Whether a fact has been replaced, or was true only until a day before `today` (YYYY-MM-DD)."""
    if candidate.superseded_by is not None:
        return True
    end = _end(candidate)
    return end is not None and end[:10] < today


def was_true(candidate: Candidate, day: str, ended: str | None) -> bool:
    """Whether a fact held on `day` (YYYY-MM-DD). `ended` is when what replaced it began, for one without an end."""
    began = candidate.valid_from
    if began is not None and began[:10] > day:
        return False
    own_end = _end(candidate)
    end = own_end or ended
    if end is not None:
        return day <= end[:10] if own_end else day < end[:10]
    return candidate.superseded_by is None


def _end(candidate: Candidate) -> str | None:
    """The last day on which a fact held. What is immutable happened until then, and stays so."""
    return None if candidate.durability == "immutable" else candidate.valid_until


def days_since(moment: str | None, now: datetime) -> float | None:
    """Days from an ISO date or time to `now`, never below 0; None for what is no date."""
    try:
        day = date.fromisoformat((moment or "")[:10])
    except ValueError:
        return None
    return float(max(0, (now.date() - day).days))
