"""The timeline: what was learned when, what was true when, the conversations, and what changed."""

import calendar
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from starlette.requests import Request

from quaid.errors import UsageError
from quaid.index import documents
from quaid.index import listing as days
from quaid.index.listing import DatedFact
from quaid.local import sessions
from quaid.memory import Memory
from quaid.model import Kind
from quaid.text import dates
from quaid.text.endings import tell_days
from quaid.text.zones import local_day, local_now
from quaid.vault.notes import format_day
from quaid.web.answer import Context, group_by, page_number, paginate
from quaid.web.changes import list_changes
from quaid.web.pages.sessions import session_path

TIMELINE = "/timeline"
LANES = {"learned": "Learned", "true": "True", "conversations": "Conversations", "changes": "Changes"}
ROWS = {"learned": 100, "true": 100, "conversations": 50, "changes": 50}
"""Of one page."""
MAX_CHANGES = 1_000
"""Commits that are read; `quaid log` has the rest."""
MAX_TURNS = 60
"""Of one page of a conversation."""
MAX_MONTHS = 36
"""A longer memory is shown by years."""
MAX_YEARS = 60
MOST = 0.9
"""If the last months have this part of a longer memory, they stay months, and only what is before them is years."""
_PERIOD = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")


class Period(NamedTuple):
    """A year, a month or a day, or all time, as in the address: `2026`, `2026-03`, `2026-03-14` or an empty string.
    `first` and `last` are its days, YYYY-MM-DD.
    """

    at: str
    first: str
    last: str


def show_timeline(memory: Memory, request: Request) -> Context:
    """Return one page of the lane in the address, and the columns that lead to other times."""
    given, timezone = request.query_params, memory.settings.timezone
    today = local_now(timezone).date().isoformat()
    lane = given.get("show", "") if given.get("show") in LANES else "learned"
    problem = ""
    try:
        period = read_period(given.get("at", "").strip())
    except UsageError as error:
        problem, period = str(error), read_period("")
    index = memory.index()
    shown: dict[str, Any] = {"days": [], "facts": [], "columns": [], "bars": {}, "undated": 0}
    if lane == "changes":
        wanted = min(ROWS[lane] * page_number(given.get("page", "")) + 1, MAX_CHANGES)
        entries = memory.timeline.log(wanted)
        part, pages = paginate(len(entries), request, ROWS[lane])
        nights = memory.timeline.views.nights(wanted)
        rows = list_changes(memory, entries[part], nights)
        shown["days"] = group_by((local_day(row["when"], timezone), row) for row in rows)
    else:
        dated = days.list_dated(index) if lane == "true" else []
        kind = Kind.EPISODE if lane == "conversations" else Kind.FACT
        learned = memory.cache.of(index, days.list_learned, kind, timezone)
        in_days = [(first[:10], first[:10], 1) for first, _ in learned]
        spans = _Spans([(each.first, each.last, 1) for each in dated] if lane == "true" else in_days, today)
        counts = [(each, spans.count(each)) for each in _list_columns(spans, period.at)]
        highest = max((count for _, count in counts), default=0) or 1
        shown["columns"] = [
            {
                "period": each,
                "name": _short_name(each.at)[: 3 if len(each.at) == len("2026-03") else None],
                "total": count,
                "height": 100 * count / highest,
                "is_shown": each.at == period.at,
            }
            for each, count in counts
        ]
        part, pages = paginate(spans.count(period), request, ROWS[lane])
        if lane == "true":
            dated = [each for each in dated if each.first <= period.last and each.last >= period.first][part]
            # Where a few of long ago are years, the bars begin with the months.
            months = [each.first for each, _ in counts if not period.at and len(each.at) == len("2026-03")]
            scale = (max(period.first, (*months, spans.first)[0]), min(period.last, spans.last))
            shown["facts"] = [each.fact for each in dated]
            shown["undated"] = days.count_undated(index)
            shown["bars"] = {each.fact.id: draw_bar(each, *scale) for each in dated}
        else:
            listed = [(day[:10], doc_id) for day, doc_id in learned if period.first <= day[:10] <= period.last][part]
            ids = [doc_id for _, doc_id in listed]
            found = days.list_talks(index, ids) if kind == Kind.EPISODE else documents.read_documents(index, ids)
            shown["days"] = group_by((day, found[doc_id]) for day, doc_id in listed)
    return {
        **shown,
        **pages,
        "lane": lane,
        "lanes": LANES,
        "max_changes": MAX_CHANGES,
        "period": period,
        "above": [
            ("", "All time"),
            *((at, _short_name(at)) for length in (4, 7, 10) if len(at := period.at[:length]) == length),
        ],
        "problem": problem,
        "tell_days": tell_days,
        "tell_period": describe_period,
    }


def show_session(memory: Memory, request: Request) -> Context:
    """Return the turns of a conversation, each with the facts that were extracted from it."""
    document = memory.get(request.path_params["reference"]).document
    if document.kind != Kind.EPISODE:
        raise UsageError(f"{document.title!r} is not a conversation.")
    index = memory.index()
    numbers = days.list_turns(index, document.doc_id)
    part, pages = paginate(len(numbers), request, MAX_TURNS)
    turns = days.read_turns(index, document, numbers[part])
    drawn = days.list_extracted(index, document.path, document.session)
    facts = {number: [fact for _, fact in those] for number, those in groupby(drawn, itemgetter(0))}
    session = document.session or ""
    return {
        "document": document,
        "given": session_path(session) if session and sessions.read(memory.state, session) != sessions.Given() else "",
        "turns": [(turn, facts.get(turn.turn, [])) for turn in turns],
        "whole": facts.get(None, []) if pages["page"] == 1 else [],
        "drawn": len({fact.id for _, fact in drawn}),
        **pages,
    }


def read_period(at: str) -> Period:
    """Parse a period. UsageError: it is not one."""
    if not at:
        return Period("", "0001-01-01", "9999-12-31")
    last = dates.read_period(at, end=True) if _PERIOD.fullmatch(at) else None
    if last is None:
        raise UsageError(f"{at[:40]!r} is not a year, month or day. Write it as 2026, 2026-03 or 2026-03-14.")
    return Period(at, _first_day(at), last)


def describe_period(at: str) -> str:
    """Return a period in words: `14 March 2026`."""
    return format_day(at) or "all time"


def draw_bar(fact: DatedFact, first: str, last: str) -> tuple[float, float] | None:
    """Return start and width of a fact's bar on a scale between two days, in percent; None for impossible days."""
    try:
        begin, end, start, stop = (
            date.fromisoformat(_first_day(day)).toordinal() for day in (first, last, fact.first, fact.last)
        )
    except ValueError:
        return None
    whole = max(1, end - begin + 1)
    left, right = max(begin, start), min(end, stop) + 1
    return 100 * (left - begin) / whole, max(0.6, 100 * (right - left) / whole)


def _first_day(period: str) -> str:
    return f"{period}-01-01"[: len("2026-03-14")]


class _Spans:
    """The days of a lane: spans from a first to a last day, each so many times, which count in every period that they
    touch.
    """

    def __init__(self, spans: Sequence[tuple[str, str, int]], today: str) -> None:
        self._firsts = sorted(first for first, _, times in spans for _ in range(times))
        self._lasts = sorted(last for _, last, times in spans for _ in range(times))
        known = [today, *(day for first, last, _ in spans for day in (first, last) if day < "9999-12-31")]
        self.first, self.last = min(known), max(known)

    def count(self, period: Period) -> int:
        return bisect_right(self._firsts, period.last) - bisect_left(self._lasts, period.first)

    def has_begun(self, period: Period) -> bool:
        """Return whether a span begins in the period."""
        return bisect_right(self._firsts, period.last) > bisect_left(self._firsts, period.first)


def _short_name(at: str) -> str:
    """Return the name of a period within the next longer one: `2026`, `March`, `14`."""
    return str(int(at[8:])) if at[8:] else calendar.month_name[int(at[5:7])] if at[5:7] else at


def _list_columns(spans: _Spans, at: str) -> list[Period]:
    """Return the days of a month, the months of a year, or of all time the months or the years."""
    if len(at) >= len("2026-03"):
        month = at[:7]
        number_of_days = int(read_period(month).last[8:])
        return [read_period(f"{month}-{day:02}") for day in range(1, number_of_days + 1)]
    if at:
        return [read_period(f"{at}-{month:02}") for month in range(1, 13)]
    try:
        first, last = (12 * int(day[:4]) + int(day[5:7]) - 1 for day in (spans.first, spans.last))
    except ValueError:
        return []
    if last - first < MAX_MONTHS:
        return [read_period(f"{month // 12:04}-{month % 12 + 1:02}") for month in range(first, last + 1)]
    years = [read_period(f"{year:04}") for year in range(max(1, first // 12), last // 12 + 1)]
    january = 12 * ((last - MAX_MONTHS) // 12 + 1)
    recent = [read_period(f"{month // 12:04}-{month % 12 + 1:02}") for month in range(january, last + 1)]
    if spans.count(Period("", recent[0].first, spans.last)) > MOST * spans.count(read_period("")):
        # A few of long ago are years, so that they do not squeeze the months of all others.
        before = [year for year in years if year.last < recent[0].first and spans.has_begun(year)]
        begin = next((place for place, month in enumerate(recent) if spans.count(month)), 0)
        return [*before[-MAX_YEARS:], *recent[begin:]]
    filled = years if len(years) <= MAX_YEARS else [year for year in years if spans.count(year)]
    return filled[-MAX_YEARS:]
