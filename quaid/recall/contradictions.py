"""Facts that give two values for one attribute are shown together, the one that is true now first, and dated."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from functools import cmp_to_key, partial
from itertools import combinations, product

from quaid.claims import has_other_value
from quaid.index import documents, graph
from quaid.index.documents import REPLACING, Document
from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING, Scope
from quaid.model import Kind, name_key
from quaid.recall.intent import Intent
from quaid.recall.query import Query
from quaid.recall.scoring import holding
from quaid.recall.search import Chosen, Search
from quaid.recall.successors import REPLACED_BY, REPLACES, Related, relate_successors
from quaid.text import endings
from quaid.text.endings import HAPPENED, is_true_on
from quaid.text.words import find_words
from quaid.text.zones import order_key

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
    "manages": "reports_to",
}
"""Other relations that say the same of their subject: who moved to a place lives there since."""
_INVERTED = frozenset({"manages"})
"""Those that say it of their object: a person has one manager, who manages several."""
_ASKED = SINGLE_VALUED | _SAME_STATE.keys()
_HELD_BY_BOTH = frozenset({"engaged_to", "partner_of", "spouse_of"})
"""Symmetric relations: subject and object are interchangeable."""

_AROUND = frozenset({"located_in", "part_of"})
"""Who lives in Porto lives in Portugal."""

MAX_OPPOSED = 50
"""Pairs of one subject and relation, the newest notes first: fifty employers are a mistake in the edges."""
MAX_COMPARED = 60
"""The best facts that are compared with each other: that takes the square of their number."""
MAX_PAIRED = 5
"""The maximum of facts that are added to those that were found."""

LATER, EARLIER, CONTRADICTS = "later than", "earlier than", "contradicts"
RIVALS = frozenset({LATER, EARLIER, CONTRADICTS})
BEHIND, BEFORE = "behind", "before"
"""What begins after the day of the question, and what holds on it."""
STATED_BEFORE = "stated before"
CLOSE = 0.8
"""Two values match a question about as well if the later has at least this part of the score of the earlier."""
SUCCESSIONS = frozenset({REPLACED_BY, REPLACING})
AHEAD = SUCCESSIONS | {EARLIER, STATED_BEFORE, BEHIND}
"""How a memory is related to those that are shown before it."""
SILENT = frozenset({BEHIND, BEFORE, REPLACES})
"""What no reader needs words for."""

_MAX_DAY = 31
_ID, _STAMP = 26, 10
"""Characters of an id that Quaid has made, and of the millisecond that it begins with."""

Edge = tuple[str, str, str]


def show_together(search: Search, chosen: Sequence[Chosen]) -> tuple[list[Chosen], Related]:
    """Return `chosen` with each memory behind what replaces it and next to what contradicts it, found so far or not:
    one alone would pass for the truth. Also return how they are related.

    Of two values of one attribute, the one that is true on the day of the question comes first, then the later. What is
    replaced is left out where there is no room for its successor.
    """
    candidates, related = [candidate for candidate, _, _ in chosen], Related()
    with search.trace.stage("contradictions") as noted:
        rivals = relate_rivals(search, candidates, related)
        noted["pairs"] = sum(word in RIVALS for others in related.values() for word, _ in others.values()) // 2
        relate_successors(search, [*candidates, *rivals], related)
        relate_values(search, candidates, related)
    if not related:
        return list(chosen), related
    found = {item[0].chunk_id: item for item in reversed(chosen)}
    most, wanted = len(found) + MAX_PAIRED, [*dict.fromkeys(candidate.chunk_id for candidate in candidates)]
    for chunk_id in wanted:  # it grows with what is added
        for key, (word, other) in related.get(chunk_id, {}).items():
            if other is not None and word in AHEAD | RIVALS and key not in found and len(found) < most:
                found[key] = other, found[chunk_id][1], 1
                wanted.append(key)
    by_time = cmp_to_key(partial(compare_on, search.options.day))
    ahead: dict[int, list[Document]] = {}
    near: dict[int, list[int]] = {}
    for chunk_id, others in related.items():
        known = [(word, other) for word, other in others.values() if other is not None and other.chunk_id in found]
        ahead[chunk_id] = sorted((other for word, other in known if word in AHEAD), key=by_time, reverse=True)
        if chunk_id in found and found[chunk_id][0].turn is not None:  # what replaces its parts is about several things
            ahead[chunk_id].sort(key=lambda other: search.scores.get(other.chunk_id, 0.0), reverse=True)
        near[chunk_id] = [other.chunk_id for word, other in known if word in RIVALS]
        if any(word in SUCCESSIONS and key not in found for key, (word, _) in others.items()):
            found.pop(chunk_id, None)
    result: list[Chosen] = []
    for chunk_id in wanted:
        for key in (chunk_id, *near.get(chunk_id, ())):
            _place(found, ahead, key, result, 0.0)
    return result, related


def _place(
    found: dict[int, Chosen], ahead: Mapping[int, list[Document]], chunk_id: int, result: list[Chosen], least: float
) -> None:
    """Move a memory from `found` to `result`, behind all that comes ahead of it, which has at least its score."""
    if chunk_id in found:
        candidate, score, count = found.pop(chunk_id)
        for other in ahead.get(chunk_id, ()):
            _place(found, ahead, other.chunk_id, result, max(score, least))
        result.append((candidate, max(score, least), count))


def relate_values(search: Search, candidates: Sequence[Document], related: Related) -> None:
    """Add to `related` the latest value of an attribute of which one of `candidates`, or a fact that rests on it, gives
    an earlier one, though neither fact names the other. The question must not tell them apart: both match it about as
    well, and it has no word of the earlier alone.
    """
    day, scores = search.options.day, search.scores
    shown = {each.chunk_id: each for each in candidates}
    citing = {fact: turns for fact, turns in search.cites.items() if not shown.keys().isdisjoint(turns)}
    facts = [search.candidates[each] for each in {**shown, **citing} if each in search.candidates]
    states = []
    for each in holding(search, [each for each in facts if each.kind == Kind.FACT and each.type not in HAPPENED]):
        # What was stated again is as late as its last statement.
        turns = (search.candidates.get(turn) for turn in search.cites.get(each.chunk_id, ()))
        stated_at = max((turn.said_at or "" for turn in turns if turn), default="")
        states.append(each._replace(created=max(each.created or "", stated_at)))
    later: dict[int, list[Document]] = {}
    for one, other in combinations(states[:MAX_COMPARED], 2):
        if has_other_value(one.text, other.text) and (order := compare_on(day, one, other)):
            old, new = (one, other) if order < 0 else (other, one)
            is_close = scores.get(new.chunk_id, 0.0) >= CLOSE * scores.get(old.chunk_id, 0.0)
            if is_close and not _names(search.query, old, new):
                later.setdefault(old.chunk_id, []).append(new)
    for each in states:
        if each.chunk_id in later:
            latest = max(later[each.chunk_id], key=cmp_to_key(partial(compare_on, day)))
            rests_on_both = {*search.cites.get(latest.chunk_id, ())}
            behind, ahead = (BEHIND, BEFORE) if endings.is_coming(each, day) else (STATED_BEFORE, REPLACES)
            for chunk_id in {each.chunk_id, *citing.get(each.chunk_id, ())} & shown.keys() - rests_on_both:
                related.setdefault(chunk_id, {}).setdefault(latest.chunk_id, (behind, latest))
                related.setdefault(latest.chunk_id, {}).setdefault(chunk_id, (ahead, shown[chunk_id]))


def _names(query: Query, wanted: Document, other: Document) -> bool:
    """Return whether the question has a word of `wanted` that `other` has not."""
    return not {*find_words(wanted.text)}.difference(find_words(other.text)).isdisjoint(query.words)


def compare_on(day: str, one: Document, other: Document) -> int:
    """Return 1 if `one` comes first on `day`: what is true then, else what is later; 0 if nobody can tell."""
    return is_true_on(one, day) - is_true_on(other, day) or compare_times(one, other)


def relate_rivals(search: Search, candidates: Sequence[Document], related: Related) -> list[Document]:
    """Add to `related` the facts that give another value for an attribute of one of `candidates`; return those that
    were not found.
    """
    connection, scope, day = search.connection, search.scope, search.options.day
    facts: dict[int, Document] = {}
    for candidate in candidates:
        if candidate.kind == Kind.FACT:
            facts.setdefault(candidate.doc_id, candidate)
    disputed = search.sources.cache.of(connection, graph.list_disputed)
    stating = {each for each in facts if any(end[1] in _ASKED for end in search.reader.ends.get(each, ()))}
    pairs = list_opposed(connection, stating, scope) | {pair for pair in disputed if not facts.keys().isdisjoint(pair)}
    missing = documents.first_chunks(connection, {doc_id for pair in pairs for doc_id in pair} - facts.keys())
    fetched = search.reader.fetch(missing)
    rivals = {each.doc_id: each for each in holding(search, fetched.values())}
    known = rivals | facts
    for pair in sorted(pairs):
        if not known.keys() >= set(pair):
            continue
        one, other = known[pair[0]], known[pair[1]]
        order = compare_on(day, one, other)
        old, new = (other, one) if order > 0 else (one, other)
        words = (EARLIER, LATER) if order else (CONTRADICTS, CONTRADICTS)
        if order and any(endings.is_coming(each, day) for each in (old, new)):
            if search.query.intent is Intent.WHEN and _names(search.query, old, new):
                continue  # when it begins is the question
            words = BEHIND, BEFORE
        related.setdefault(old.chunk_id, {})[new.chunk_id] = words[0], new
        related.setdefault(new.chunk_id, {})[old.chunk_id] = words[1], old
    return [*rivals.values()]


def list_opposed(
    connection: IndexConnection, doc_ids: Collection[int], scope: Scope = EVERYTHING
) -> set[tuple[int, int]]:
    """Return the pairs of facts (doc_ids, the lower first), one of them at least in `doc_ids`, the other anywhere in
    `scope`, that give one subject two objects of a relation that has one: whatever their words have in common.

    Names and aliases of one entity are one subject, and one object. Replaced and ended facts are among them unless
    `scope` leaves them out; which of a pair is the later, `compare_times` tells.
    """
    if not doc_ids:
        return set()
    keys = {
        key
        for listed in documents.fetch_edges(connection, doc_ids).values()
        for subject, relation, target in listed
        if relation in _ASKED
        for key, _ in _directions(relation, name_key(subject), name_key(target))
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
    edges: Mapping[int, Sequence[Edge]], same: Mapping[str, str] = {}, around: Collection[frozenset[str]] = ()
) -> set[tuple[int, int]]:
    """Return the newest pairs of documents, the lower doc_id first, that give one subject two objects of a
    single-valued relation. A document that gives both contradicts nothing. `same` maps the key of a name to the one it
    is known by; of two names in `around` one is a part of the other.
    """
    states: dict[tuple[str, str], dict[str, set[int]]] = {}
    for doc_id, listed in edges.items():
        for subject, relation, target in listed:
            state = _state(relation)
            if state not in SINGLE_VALUED:
                continue
            ends = [same.get(key, key) for key in (name_key(subject), name_key(target))]
            for one, other in _directions(relation, *ends):
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


def compare_times(one: Document, other: Document) -> int:
    """Return 1 if `one` is the later of two facts about one state, -1 if `other` is, 0 if nobody can tell.

    The fact that began later is the later one. If only one has a beginning, the other was true when it was stated: it
    is the earlier one if it was stated before that beginning. If both were stated after it, the last statement is the
    later one.
    """
    pair = one, other
    begun = [(fact.valid_from or "")[:10] for fact in pair]
    stamps = [fact.id[:_STAMP] if len(fact.id) == _ID else "" for fact in pair]
    stated = [fact.created and f"{order_key(fact.created)}\0{at}" for fact, at in zip(pair, stamps, strict=True)]
    days = [since or (fact.created or "")[:10] for since, fact in zip(begun, pair, strict=True)]
    for first, second in (begun, stated, days):
        if first and second and first != second:
            return 1 if first > second else -1
    return 0


def _directions(relation: str, subject: str, target: str) -> Sequence[tuple[str, str]]:
    """Return (holder, value) of the state that an edge gives, both ways where it holds both ways."""
    if relation in _INVERTED:
        return ((target, subject),)
    both = ((subject, target), (target, subject))
    return both if _state(relation) in _HELD_BY_BOTH else both[:1]


def _state(relation: str) -> str:
    return _SAME_STATE.get(relation, relation)
