"""Ask: the hits of a question, why each is there, and what was left out; without a question the newest memories."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from quaid.errors import GitError, QuaidError, UsageError
from quaid.index.listing import list_values
from quaid.index.views import view_note
from quaid.model import PRIVACIES, Recall
from quaid.recall.options import KINDS
from quaid.recall.trace import group_left_out, list_degraded
from quaid.text.dates import parse_day
from quaid.text.quoting import describe, relate_rivals, short_id
from quaid.web.explanation import explain, share_scores, tell_channels
from quaid.web.templating import memory_path

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.index.port import IndexConnection
    from quaid.memory import Memory

NEWEST = 12
"""Memories that are shown where nothing is asked."""
MAX_LEFT_OUT = 8
"""Named for each reason."""
MAX_CHOICES = 200
"""Owners and projects to choose from."""
FIELDS = ("q", "kind", "owner", "project", "privacy", "from", "to", "at", "as_of", "superseded")


class History(NamedTuple):
    """The days that the slider goes through, as numbers from the `first`; the last is now."""

    first: str
    days: int
    chosen: int


def show_ask(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the answer to the question in the address. Nothing is recorded: looking does not count as use."""
    now = datetime.now(UTC)
    asked = {name: request.query_params.get(name, "").strip() for name in FIELDS}
    index = memory.index()
    shown: dict[str, Any] = {
        "asked": asked,
        "kinds": KINDS,
        "privacies": PRIVACIES,
        "owners": list_values(index, "owner")[:MAX_CHOICES],
        "projects": list_values(index, "project")[:MAX_CHOICES],
        "history": _read_history(memory, asked["as_of"], now.date()),
        "present": f"/?{urlencode({name: value for name, value in asked.items() if value and name != 'as_of'})}",
        "found": None,
        "problem": "",
    }
    try:
        options = _read_options(asked, now)
        limit, as_of = None if asked["q"] else NEWEST, asked["as_of"] or None
        # As fast as it is typed: no model is asked for each letter.
        found = memory.recall(
            asked["q"], limit, as_of=as_of, keep=False, recent=not asked["q"], depth="fast", **options
        )
    except QuaidError as error:
        return {**shown, "problem": str(error)}
    return {**shown, **_tell_answer(memory, index, found)}


def _tell_answer(memory: Memory, index: IndexConnection, found: Recall) -> Mapping[str, Any]:
    trace: Mapping[str, Any] = found.trace
    settings = memory.settings.recall
    slowest = max((stage["took_ms"] for stage in trace.get("stages", ())), default=0.0)
    numbers = {hit.id: f"answer {number}" for number, hit in enumerate(found.hits, 1)}
    rivals = {
        hit.id: [f"{word} {numbers.get(other, short_id(other))}" for other, word in relate_rivals(hit).items()]
        for hit in found.hits
    }
    return {
        "found": found,
        "hits": [
            (hit, describe(hit), rivals[hit.id], shares, tell_channels(hit, trace))
            for hit, shares in zip(found.hits, share_scores(found.hits), strict=True)
        ],
        "origins": {  # of each turn the address and the name of its conversation
            hit.id: (f"{memory_path(hit.path)}#b-t{hit.turn}", hit.heading or hit.path)
            for hit in found.hits
            if hit.turn is not None
        },
        "explained": explain(found, settings.gate, settings.cut_share),
        "degraded": list_degraded(found.degraded, trace),
        "then": trace.get("as_of"),
        "stages": [(stage, 100 * stage["took_ms"] / slowest if slowest else 0) for stage in trace.get("stages", ())],
        "left_out": {
            why: [(hit_id, score, _name(index, hit_id)) for hit_id, score in [*scores.items()][:MAX_LEFT_OUT]]
            for why, scores in group_left_out(trace).items()
        },
    }


def _name(index: IndexConnection, hit_id: str) -> str:
    """Return what a memory that was left out says, empty where the memory of now does not have it."""
    try:
        return view_note(index, hit_id).text.strip()
    except QuaidError:
        return ""


def _read_history(memory: Memory, as_of: str, today: date) -> History | None:
    """Return the days that can be asked for; None where there is no history to go back in."""
    try:
        first = memory.pasts.first_day()
    except GitError:
        return None
    if first is None or first >= today:
        return None
    try:
        chosen = date.fromisoformat(as_of)
    except ValueError:
        chosen = today
    days = (today - first).days
    return History(first.isoformat(), days, min(days, max(0, (chosen - first).days)))


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
        "of_owners": frozenset({asked["owner"]} - {""}),
        "projects": frozenset({asked["project"]} - {""}),
        "first": day("from", end=False),
        "last": day("to", end=True),
        "at": day("at", end=True),
        "superseded": bool(asked["superseded"]),
    }
