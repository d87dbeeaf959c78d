"""Ask: the hits of a question, why each is there, and what was left out; without a question the newest memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import QuaidError, UsageError
from quaid.model import PRIVACIES, Hit
from quaid.recall.options import KINDS
from quaid.recall.trace import MIN_SHOWN, group_left_out, list_degraded, split_score
from quaid.text.dates import parse_day
from quaid.text.quoting import describe, describe_rivals

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory

NEWEST = 12
"""Memories that are shown where nothing is asked."""
MAX_COLOURS = 4
"""Kinds of evidence with a colour of their own."""
MAX_LEFT_OUT = 20
"""Named for each reason."""
FIELDS = ("q", "kind", "project", "privacy", "from", "to", "at", "as_of", "superseded")


class Share(NamedTuple):
    """A part of a score: `start` and `width` in percent of the best score, `colour` from 1, 0 for what has none."""

    name: str
    value: float
    start: float
    width: float
    colour: int


def show_ask(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the answer to the question in the address. Nothing is recorded: looking does not count as use."""
    asked = {name: request.query_params.get(name, "").strip() for name in FIELDS}
    shown: dict[str, Any] = {"asked": asked, "kinds": KINDS, "privacies": PRIVACIES, "found": None, "problem": ""}
    try:
        options = _read_options(asked, datetime.now(UTC))
        limit, as_of = (None, asked["as_of"] or None) if asked["q"] else (NEWEST, None)
        # As fast as it is typed: no model is asked for each letter.
        found = memory.recall(
            asked["q"], limit, as_of=as_of, keep=False, recent=not asked["q"], depth="fast", **options
        )
    except QuaidError as error:
        return {**shown, "problem": str(error)}
    best = max((1.0, *(hit.score for hit in found.hits)))
    trace: Mapping[str, Any] = found.trace
    slowest = max((stage["took_ms"] for stage in trace.get("stages", ())), default=0.0)
    return {
        **shown,
        "found": found,
        "hits": [(hit, describe(hit), describe_rivals(hit), list(share_score(hit, best))) for hit in found.hits],
        "degraded": list_degraded(found.degraded, trace),
        "then": trace.get("as_of"),
        "stages": [(stage, 100 * stage["took_ms"] / slowest if slowest else 0) for stage in trace.get("stages", ())],
        "left_out": {why: list(scores.items())[:MAX_LEFT_OUT] for why, scores in group_left_out(trace).items()},
    }


def share_score(hit: Hit, best: float) -> Iterator[Share]:
    """Yield what the score of a hit is made of, as stretches of one bar; what speaks against it has no width."""
    parts = {name: value for name, value in split_score(hit).items() if abs(value) >= MIN_SHOWN}
    total = sum(value for value in parts.values() if value > 0)
    start = 0.0
    for place, (name, value) in enumerate(parts.items(), 1):
        width = 100 * hit.score / best * value / total if value > 0 else 0.0
        yield Share(name.replace("_", " "), value, start, width, place if place <= MAX_COLOURS and value > 0 else 0)
        start += width


def _read_options(asked: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return the fields of `RecallOptions`.

    Raises:
        UsageError: an unknown name, or something that is not a date.
    """
    for name, known in (("kind", KINDS), ("privacy", PRIVACIES)):
        if asked[name] and asked[name] not in known:
            raise UsageError(f"There is no {name} {asked[name]!r}; there are {', '.join(known)}.")

    def day(name: str, *, end: bool) -> date | None:
        return parse_day(asked[name], now, end=end) if asked[name] else None

    return {
        "kinds": frozenset({asked["kind"]} - {""}),
        "privacies": frozenset({asked["privacy"]} - {""}),
        "projects": frozenset({asked["project"]} - {""}),
        "first": day("from", end=False),
        "last": day("to", end=True),
        "at": day("at", end=True),
        "superseded": bool(asked["superseded"]),
    }
