"""Facts that cannot both be true are shown together, with their dates: which one holds is not for recall to say."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from functools import cmp_to_key
from itertools import combinations, product
from typing import TYPE_CHECKING, Protocol

from quaid.index import documents, graph
from quaid.index.scope import EVERYTHING, Scope
from quaid.model import Kind, name_key
from quaid.recall.scoring import holding
from quaid.recall.search import Chosen, Search

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

SINGLE_VALUED = frozenset(
    """born_in born_on died_on diagnosed_on engaged_to has_age has_birthday lives_in located_in named nationality
    partner_of reports_to spouse_of works_at
    """.split()  # noqa: SIM905
)
"""Relations of which a subject has one object at a time."""
_SAME_STATE = {
    **dict.fromkeys(("moved_to", "relocated_to", "lives_at", "resides_in"), "lives_in"),
    "married_to": "spouse_of",
    "employed_at": "works_at",
}
"""Other relations that say the same of their subject: who moved to a place lives there since."""
_ASKED = SINGLE_VALUED | _SAME_STATE.keys()
_HELD_BY_BOTH = frozenset({"engaged_to", "partner_of", "spouse_of"})
"""Symmetric relations: subject and object are interchangeable."""

_AROUND = frozenset({"located_in", "part_of"})
"""Who lives in Porto lives in Portugal."""

MAX_OPPOSED = 50
"""Pairs of one subject and relation, the newest notes first: fifty employers are a mistake in the edges."""
MAX_PAIRED = 5
"""The maximum of facts that are added to those that were found."""

_MAX_DAY = 31
_ID, _STAMP = 26, 10
"""Characters of an id, and of the millisecond that it begins with."""

Edge = tuple[str, str, str]


class DatedStatement(Protocol):
    """A fact with the days (ISO 8601) on which it became true and was stated. The first characters of an id that Quaid
    has made are the millisecond in which the note was made.
    """

    @property
    def id(self) -> str: ...

    @property
    def valid_from(self) -> str | None: ...

    @property
    def created(self) -> str | None: ...


def show_together(search: Search, chosen: Sequence[Chosen]) -> tuple[list[Chosen], dict[int, set[int]]]:
    """Return `chosen` with each fact followed by those that contradict it, found so far or not: one alone would pass
    for the truth. And which documents contradict each other, shown or not.
    """
    with search.trace.stage("contradictions") as noted:
        connection, scope = search.connection, search.scope
        facts = {candidate.doc_id for candidate, _, _ in chosen if candidate.kind == Kind.FACT}
        disputed = search.sources.cache.of(connection, graph.list_disputed)
        asked = {pair for pair in disputed if not facts.isdisjoint(pair)}
        opposed: dict[int, set[int]] = {}
        for pair in list_opposed(connection, facts, scope) | asked:
            for one, other in (pair, pair[::-1]):
                opposed.setdefault(one, set()).add(other)
        noted["pairs"] = sum(map(len, opposed.values())) // 2
        if not opposed:
            return list(chosen), {}
        by_document = {candidate.doc_id: (candidate, score, count) for candidate, score, count in reversed(chosen)}
        missing = documents.first_chunks(connection, opposed.keys() - by_document.keys())
        fetched = documents.fetch_candidates(connection, missing, scope)
        rivals = {candidate.doc_id: candidate for candidate in holding(search, fetched.values())}
        shown = by_document.keys() | rivals.keys()
        visible = {doc_id: others & shown for doc_id, others in opposed.items() if doc_id in shown}
    added = 0
    paired: dict[int, Chosen] = {}
    for candidate, score, count in chosen:
        paired.setdefault(candidate.chunk_id, (candidate, score, count))
        for doc_id in sorted(opposed.get(candidate.doc_id, ())):
            if doc_id in rivals and doc_id not in by_document and added < MAX_PAIRED:
                added += 1
                by_document[doc_id] = (rivals[doc_id], score, 1)
            if (found := by_document.get(doc_id)) is not None:
                paired.setdefault(found[0].chunk_id, found)
    return _later_first(paired, opposed), visible


def _later_first(waiting: dict[int, Chosen], opposed: Mapping[int, set[int]]) -> list[Chosen]:
    """Return what is `waiting`, by chunk, with the latest of facts about one state before the earlier ones, in the
    place of the first.
    """
    by_time = cmp_to_key(compare_times)
    result: list[Chosen] = []
    while waiting:
        first = next(iter(waiting.values()))
        rivals = opposed.get(first[0].doc_id, set())
        others = (other for other in waiting.values() if other[0].doc_id in rivals)
        later = [other for other in others if compare_times(other[0], first[0]) == 1]
        later.sort(key=lambda other: by_time(other[0]), reverse=True)
        for candidate, score, count in [*later, first]:
            del waiting[candidate.chunk_id]
            result.append((candidate, max(score, first[1]), count))
    return result


def list_opposed(
    connection: IndexConnection, doc_ids: Collection[int], scope: Scope = EVERYTHING
) -> set[tuple[int, int]]:
    """Return the pairs of facts (doc_ids, the lower first), one of them at least in `doc_ids`, the other anywhere in
    `scope`, that give one subject two objects of a relation that has one: whatever their words have in common.

    Names and aliases of one entity are one subject, and one object. Replaced and ended facts are among them unless
    `scope` leaves them out; which of a pair is the later, `compare_times` tells.
    """
    keys = {
        key
        for subject, relation, target in graph.list_edges_of(connection, doc_ids, _ASKED)
        for key in ((subject, target) if _state(relation) in _HELD_BY_BOTH else (subject,))
    }
    if not keys:
        return set()
    keys = keys.union(*graph.find_entities(connection, keys, scope).values())
    edges = graph.fetch_edges_about(connection, keys, _ASKED, scope)
    ends = {name_key(end) for listed in edges.values() for subject, _, target in listed for end in (subject, target)}
    same = {key: min(names) for key, names in graph.find_entities(connection, ends, scope).items()}
    around = {
        frozenset(same.get(key, key) for key in (walked.from_key, walked.to_key))
        for walked in graph.neighbours(connection, ends, scope)
        if walked.relation in _AROUND
    }
    wanted = set(doc_ids)
    return {pair for pair in find_pairs(edges, same, around) if not wanted.isdisjoint(pair)}


def find_pairs(
    edges: Mapping[int, Sequence[Edge]],
    same: Mapping[str, str] | None = None,
    around: Collection[frozenset[str]] = (),
) -> set[tuple[int, int]]:
    """Return the newest pairs of documents, the lower doc_id first, that give one subject two objects of a
    single-valued relation. A document that gives both contradicts nothing. `same` maps the key of a name to the one it
    is known by; of two names in `around` one is a part of the other.
    """
    same = same or {}
    states: dict[tuple[str, str], dict[str, set[int]]] = {}
    for doc_id, listed in edges.items():
        for subject, relation, target in listed:
            state = _state(relation)
            if state not in SINGLE_VALUED:
                continue
            ends = [same.get(key, key) for key in (name_key(subject), name_key(target))]
            for one, other in (ends, ends[::-1]) if state in _HELD_BY_BOTH else (ends,):
                states.setdefault((one, state), {}).setdefault(other, set()).add(doc_id)
    found: set[tuple[int, int]] = set()
    for objects in states.values():
        pairs = {
            (min(pair), max(pair))
            for (one, left), (other, right) in combinations(objects.items(), 2)
            if frozenset((one, other)) not in around
            # One name may say less of the same: `porto` of `porto, portugal`, `acme` of `acme gmbh`.
            and not any(
                (whole.startswith(part) and not whole[len(part) :][:1].isalnum()) or _may_be_one_day(part, whole)
                for part, whole in ((one, other), (other, one))
            )
            for pair in product(left - right, right - left)
        }
        found.update(sorted(pairs)[-MAX_OPPOSED:])
    return found


def _may_be_one_day(day: str, other: str) -> bool:
    """Return whether `other`, a date in words or without a year, may be `day` (YYYY-MM-DD)."""
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        return False
    numbers = [int(number) for number in re.findall(r"\d+", other)]
    if not numbers or not {number for number in numbers if number > _MAX_DAY} <= {wanted.year}:
        return False
    from quaid.text.dates import find_dates

    months = {mention.start.month for mention in find_dates(other.title(), datetime(wanted.year, 12, 31))}  # noqa: DTZ001
    small = {number for number in numbers if number <= _MAX_DAY}
    return months <= {wanted.month} and (not small or wanted.day in small) and small <= {wanted.day, wanted.month}


def compare_times(one: DatedStatement, other: DatedStatement) -> int:
    """Return 1 if `one` is the later of two facts about one state, -1 if `other` is, 0 if nobody can tell.

    The fact that began later is the later one. If only one has a beginning, the other was true when it was stated: it
    is the earlier one if it was stated before that beginning. If both were stated after it, the last statement is the
    later one.
    """
    begun = [(fact.valid_from or "")[:10] for fact in (one, other)]
    stated = [fact.created or "" for fact in (one, other)]
    if all(begun) and begun[0] != begun[1]:
        return 1 if begun[0] > begun[1] else -1
    moments = [
        (at, fact.id[:_STAMP] if len(fact.id) == _ID else "") for at, fact in zip(stated, (one, other), strict=True)
    ]
    if moments[0] != moments[1] and all(stated):
        return 1 if moments[0] > moments[1] else -1
    days = [since or at[:10] for since, at in zip(begun, stated, strict=True)]
    return (days[0] > days[1]) - (days[0] < days[1]) if all(days) else 0


def _state(relation: str) -> str:
    return _SAME_STATE.get(relation, relation)
