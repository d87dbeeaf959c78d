"""How fresh a document is, in words: the same for people and for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quaid.docs.staleness import Freshness


def describe(freshness: Freshness) -> str:
    """How true a document is, in a few words; empty where there is nothing to say."""
    if freshness.is_stale and freshness.since:
        changed = _count_sources(len(freshness.significant))
        when = f"{freshness.since.id[:10]} of {freshness.since.when[:10]}"
        return f"stale since {when}: {changed}, {freshness.since.subject}"
    if freshness.edited:
        return f"{_count_sources(len(freshness.edited))} edited and not committed"
    if freshness.problems and (freshness.status != "fresh" or not freshness.sources):
        return freshness.problems[0]
    if freshness.status == "fresh" and freshness.true_at:
        return f"true at {freshness.true_at.id[:10]}, {_count_sources(len(freshness.sources))}"
    return "names no sources" if freshness.status == "no sources" else "its sources are in no repository"


def _count_sources(number: int) -> str:
    return f"{number:,} {'source' if number == 1 else 'sources'}"
