"""How a memory grew, which facts fade or contradict each other, and which questions had no answer.

All of it is of what its owner may see: what others keep private is neither shown nor counted.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import date, datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from quaid.capture.writer import WriteResult
from quaid.errors import BadInputError
from quaid.history.vault_history import last_written
from quaid.index import documents, graph
from quaid.index.scope import EVERYTHING
from quaid.janitor.tasks.decay import FLOOR, list_fading
from quaid.local.recall_log import Gap
from quaid.memory import Memory
from quaid.recall.contradictions import compare_times, list_opposed
from quaid.recall.records import RecallRecords
from quaid.report.stats import list_gaps
from quaid.text.endings import is_true_on
from quaid.text.zones import local_now

MAX_POINTS = 60
"""Days that a growth has; over a longer time each covers several."""
MAX_NEXT = 12
"""Facts that are named as the next to fade."""
MAX_PAIRS = 50
MAX_GAPS = 50
FALLS = (("within a week", 7), ("within a month", 30), ("within three months", 91), ("within a year", 365))
"""Spans of days, as they are called, until a fact is below the floor."""


class Growth(NamedTuple):
    """The notes that are there today, by the days (ISO, oldest first) until which they had been made: a number for each
    day and kind, the most frequent kind first. `undated` say of no day that they were made on it.
    """

    days: tuple[str, ...]
    kinds: Mapping[str, tuple[int, ...]]
    undated: int


class NextToFade(NamedTuple):
    """A fact that is above the floor until `falls`, if nobody needs it. `confidence` is what is left of `sure`."""

    id: str
    text: str
    falls: date
    sure: float
    confidence: float


class Fading(NamedTuple):
    """Facts by the time until they are below the floor: `below` are already, `lasting` fade never (pinned, verified,
    immutable), `spans` are numbers by the names of `FALLS` and `later`. `left` counts facts by tenths of confidence.
    """

    facts: int
    below: int
    lasting: int
    spans: Mapping[str, int]
    left: tuple[int, ...]
    following: tuple[NextToFade, ...]


class Claim(NamedTuple):
    """One of two facts that cannot both be true; `since` is the day from which it holds, or on which it was stated.
    `is_later` where it is known to be the later one.
    """

    id: str
    text: str
    since: str | None
    is_later: bool


# -- growth -----------------------------------------------------------------------------------------------------------


def measure_growth(memory: Memory, today: date | None = None) -> Growth:
    """Return how the memory grew, until `today` (UTC)."""
    rows = memory.index().execute("SELECT kind, substr(created, 1, 10), count(*) FROM documents GROUP BY 1, 2")
    today = today or local_now(memory.settings.timezone).date()
    made: dict[str, Counter[date]] = {}
    undated = 0
    for kind, day, count in rows:
        if (when := parse_day(day)) is None:
            undated += count
        else:
            made.setdefault(kind, Counter())[min(when, today)] += count
    if not made:
        return Growth((), {}, undated)
    every = sorted(day for counts in made.values() for day in counts.elements())
    # A few notes of long ago are one point, so that they leave the others enough of them.
    first, begin = every[0], every[len(every) // 20]
    begin = begin - timedelta(days=1) if begin - first > today - begin else first
    length = (today - begin).days + 1
    days = [today - timedelta(days=back) for back in range(0, length, -(-length // (MAX_POINTS - 1)))][::-1]
    days = days if begin == first else [first, *days]
    kinds: dict[str, tuple[int, ...]] = {}
    for kind, counts in made.items():
        in_time = sorted(counts)
        totals = [0, *accumulate(counts[day] for day in in_time)]
        kinds[kind] = tuple(totals[bisect_right(in_time, day)] for day in days)
    ordered = dict(sorted(kinds.items(), key=lambda item: (-item[1][-1], item[0])))
    return Growth(tuple(day.isoformat() for day in days), ordered, undated)


# -- fading -----------------------------------------------------------------------------------------------------------


def measure_fading(memory: Memory, now: datetime | None = None) -> Fading:
    """Return how the confidence of facts fades, by the janitor's formula, which reads the whole history.

    Raises:
        GitError: the history cannot be read.
        LockedError, VaultReadOnlyError, DiskFullError, StateDamagedError: local.db cannot be opened.
    """
    now = now or local_now(memory.settings.timezone)
    index = memory.index()
    fading = list_fading(
        index,
        memory.answers.records,
        last_written(memory.git.log_changes()),
        now,
        (now + timedelta(days=1)).date().isoformat(),
    )
    above = []
    for one in fading:
        if one.confidence >= FLOOR:
            begun = parse_day(one.last)
            falls = date.max if begun is None else begun + timedelta(days=int(one.falls_in_days) + 1)
            above.append((falls, one))
    above.sort(key=lambda pair: (pair[0], pair[1].document.path))
    following = [
        NextToFade(
            one.document.id,
            documents.text_of(index, one.document.doc_id),
            falls,
            one.sure,
            round(one.confidence, 2),
        )
        for falls, one in above[:MAX_NEXT]
    ]
    ends = [now.date() + timedelta(days=days) for _, days in FALLS]
    spans = Counter(bisect_right(ends, falls - timedelta(days=1)) for falls, _ in above)
    names = [*(name for name, _ in FALLS), "later"]
    (living,) = index.execute(
        "SELECT count(*) FROM documents WHERE kind = 'fact' AND superseded_by IS NULL AND created IS NOT NULL"
    ).fetchone() or (0,)
    tenths = Counter(min(9, int(10 * one.confidence)) for one in fading)
    return Fading(
        facts=int(living),
        below=len(fading) - len(above),
        lasting=int(living) - len(fading),
        spans={name: spans[place] for place, name in enumerate(names)},
        left=tuple(tenths[tenth] for tenth in range(10)),
        following=tuple(following),
    )


# -- contradictions ---------------------------------------------------------------------------------------------------


def list_contradictions(memory: Memory, today: date | None = None) -> list[tuple[Claim, Claim]]:
    """Return the pairs of facts that hold and cannot both be true, the newest first, `MAX_PAIRS` at most: those that
    give a subject two objects of a relation that has one, and those that an open question is about. The later one of
    a pair is the first, where that is known.
    """
    index = memory.index()
    day = (today or local_now(memory.settings.timezone).date()).isoformat()
    living = "d.kind = 'fact' AND d.superseded_by IS NULL"
    known = documents.find_documents(index, living, with_text=True)
    facts = {each.doc_id for each in known if is_true_on(each, day)}
    opposed = list_opposed(index, facts, EVERYTHING.narrowed(living)) | graph.list_disputed(index)
    newest = sorted((pair for pair in opposed if facts.issuperset(pair)), key=max, reverse=True)[:MAX_PAIRS]
    found = {each.doc_id: each for each in known}
    pairs = []
    for one, other in newest:
        order = compare_times(found[one], found[other])
        first, second = (
            Claim(
                each.id,
                documents.text_of(index, each.doc_id),
                (each.valid_from or each.created or "")[:10] or None,
                is_later,
            )
            for each, is_later in (
                (found[other if order < 0 else one], bool(order)),
                (found[one if order < 0 else other], False),
            )
        )
        pairs.append((first, second))
    return pairs


# -- gaps -------------------------------------------------------------------------------------------------------------


def find_gap(memory: Memory, key: str) -> Gap:
    """Return one gap. Raises as `stats.list_gaps`.

    Raises:
        BadInputError: the question is not among those that are listed.
    """
    gap = next((gap for gap in list_gaps(memory, MAX_GAPS)[0] if gap.key == key), None)
    if gap is None:
        raise BadInputError("This question is not open any more: it was answered, or left out, meanwhile.")
    return gap


def answer_gap(memory: Memory, gap: Gap, answer: str) -> tuple[WriteResult, bool | None]:
    """Remember `answer` as a fact, in its owner's name, and close the gap.

    Returns:
        The fact, and whether the question finds it now, None if the words of the question are not known.

    Raises:
        FactTooShortError: it has fewer than three words; the gap stays.
    """
    written = memory.remember(answer, by_owner=True)
    close_gap(memory, gap.key)
    if not gap.text:
        return written, None
    found = memory.recall(gap.text, keep=False, depth="fast")
    return written, any(hit.id == written.id for hit in found.hits)


def close_gap(memory: Memory, key: str) -> None:
    """Leave a question out of the gaps; asked again in vain, it comes back. Raises as `stats.list_gaps`."""
    with closing(RecallRecords(memory.root, memory.settings)) as records:
        records.close_gap(key)


def parse_day(moment: str | None) -> date | None:
    """Return the day of a moment (ISO 8601), of a month or a year alone the first; None where it is none."""
    with suppress(ValueError):
        return date.fromisoformat(f"{(moment or '')[:10]}-01-01"[:10])
    return None
