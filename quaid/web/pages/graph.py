"""The graph: people, places, projects and their relations, all of them or those around one, at any time or on a day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from quaid.errors import UsageError
from quaid.index.entity_graph import Entity, EntityGraph, Link, read_graph
from quaid.index.graph import StatedEdge
from quaid.index.kept import KeptAnswers
from quaid.model import ENTITY_TYPES, name_key
from quaid.text.dates import parse_day
from quaid.text.endings import is_true_on, tell_days
from quaid.web.templating import memory_path, to_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory

GRAPH = "/graph"
MAX_DRAWN = 3_000
"""Entities of one picture; more could be neither told apart nor moved."""
MAX_RELATIONS = 100
"""Of the focused entity, listed beside the picture."""
MAX_CHOICES = 20
"""Entities to choose from where several are called so."""
MAX_SUGGESTED = 1_000
"""Names that are offered while one is typed."""
MAX_TOLD = 1_500
"""Edges of a picture that have their facts with them; of more they come with the focus."""
MAX_FACT = 200
"""Characters of a fact that stands on an edge."""
MAX_BESIDE = 6
"""Relations of an entity in a row of the table."""
ROWS = 50
HOPS = {"": 0, "1": 1, "2": 2}
OTHER = "other"
"""The type of what has no note, or none that says its type."""
_kept: WeakKeyDictionary[Memory, KeptAnswers] = WeakKeyDictionary()


class Wanted(NamedTuple):
    """What is shown of the graph; empty fields stand for everything. `on` is YYYY-MM-DD."""

    focus: str
    hops: int
    relation: str
    types: frozenset[str]
    on: str


class Picture(NamedTuple):
    """The entities that are shown, those with most edges first, and the links between them. `focus` is one of them;
    `choices` are those that may be meant instead, `left_out` are too many to be drawn.
    """

    entities: list[Entity]
    links: list[Link]
    focus: int | None
    choices: list[Entity]
    left_out: int = 0


class Relation(NamedTuple):
    """A relation of an entity to the `other` end of an edge, or from it."""

    other: Entity
    relation: str
    is_outgoing: bool
    edge: StatedEdge
    is_over: bool


def show_graph(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return what is beside the picture, and the same in words for those who see none."""
    asked, now = _read_fields(request), datetime.now(UTC)
    today, problem = now.date().isoformat(), ""
    graph = _read(memory)
    try:
        wanted = _read_wanted(asked, now)
    except UsageError as error:
        problem, wanted = str(error), _read_wanted({**asked, "hops": "", "on": ""}, now)
    shown = select(graph, wanted)
    relations = _relate(shown, today)
    counts = Counter(map(_type_of, graph.entities))
    page = max(1, int(asked["page"])) if asked["page"].isdecimal() else 1
    rows = range(ROWS * (page - 1), min(ROWS * page, len(shown.entities)))
    return {
        "asked": asked,
        "problem": problem,
        "is_empty": not graph.entities,
        "shown": shown,
        "wanted": wanted,
        "focus": None if shown.focus is None else shown.entities[shown.focus],
        "relations": relations.get(shown.focus, []) if shown.focus is not None else [],
        "max_relations": MAX_RELATIONS,
        "names": [entity.name for entity in graph.entities[:MAX_SUGGESTED]],
        "types": [(kind, counts[kind]) for kind in (*ENTITY_TYPES, OTHER) if counts[kind]],
        "all_relations": sorted({link.edge.relation for link in graph.links}),
        "days": _list_bounds(graph, today),
        "rows": [(shown.entities[row], relations.get(row, [])) for row in rows],
        "max_beside": MAX_BESIDE,
        "page": page,
        "pages": -(-len(shown.entities) // ROWS),
        "here": lambda **changed: _address(asked, changed),
        "type_of": _type_of,
        "address_of": address_of,
        "called": _called,
        "tell_days": tell_days,
    }


def make_graph(memory: Memory, request: Request) -> bytes:
    """Return the picture for the script that draws it: nodes, and edges with their places among them.

    Raises:
        UsageError: the address asks for something that there is not.
    """
    now = datetime.now(UTC)
    shown = select(_read(memory), _read_wanted(_read_fields(request), now))
    is_told = len(shown.links) <= MAX_TOLD
    nodes = [
        {
            "name": entity.name,
            "called": _called(entity),
            "type": _type_of(entity),
            "facts": entity.facts,
            "page": address_of(entity),
            "path": entity.path,
        }
        for entity in shown.entities
    ]
    edges = [
        {
            "from": link.subject,
            "to": link.object,
            "relation": link.edge.relation.replace("_", " "),
            "since": (link.edge.valid_from or "")[:10],
            "until": (link.edge.valid_until or "")[:10],
            "days": ", ".join(tell_days(link.edge)),
            "over": _is_over(link.edge, now.date().isoformat()),
            "text": shorten(link.edge.text, MAX_FACT, placeholder="…") if is_told else "",
            "page": memory_path(link.edge.id) if is_told else "",
        }
        for link in shown.links
    ]
    return to_json({"nodes": nodes, "edges": edges, "focus": shown.focus, "left_out": shown.left_out})


def select(graph: EntityGraph, wanted: Wanted) -> Picture:
    """Return what is shown of `graph`. Filters of edges leave only what still has one."""
    focus, choices = _find(graph.entities, wanted.focus)
    kept = {
        place
        for place, entity in enumerate(graph.entities)
        if not wanted.types or _type_of(entity) in wanted.types or place == focus
    }
    links = [
        link
        for link in graph.links
        if link.subject in kept
        and link.object in kept
        and (not wanted.relation or link.edge.relation == wanted.relation)
        and (not wanted.on or is_true_on(link.edge, wanted.on, is_replaced=link.edge.is_replaced))
    ]
    if wanted.relation or wanted.on:
        related = {place for link in links for place in (link.subject, link.object)}
        kept = {place for place in kept if place in related or place == focus}
    if focus is not None and wanted.hops:
        kept &= _walk(focus, links, wanted.hops)
    drawn = sorted(kept, key=lambda place: (place != focus, place))[:MAX_DRAWN]
    places = {place: new for new, place in enumerate(sorted(drawn))}
    return Picture(
        [graph.entities[place] for place in places],
        [
            Link(places[link.subject], places[link.object], link.edge)
            for link in links
            if link.subject in places and link.object in places
        ],
        None if focus is None else places[focus],
        [graph.entities[place] for place in choices],
        len(kept) - len(drawn),
    )


def address_of(entity: Entity) -> str:
    """Return the address of an entity's page: its note, or what is said of it where it has none."""
    return memory_path(entity.path) if entity.path else f"/?{urlencode({'q': entity.name})}"


def _read(memory: Memory) -> EntityGraph:
    """Return the graph, which is put together again only when the index has changed."""
    index = memory.index()
    return _kept.setdefault(memory, KeptAnswers()).of(index, "graph", lambda: read_graph(index))


def _called(entity: Entity) -> str:
    """Return what means just this entity: its name, or its note's path where another one goes by that name."""
    return entity.name if entity.path is None or name_key(entity.name) in entity.keys else entity.path


def _find(entities: list[Entity], name: str) -> tuple[int | None, list[int]]:
    """Return the place of the entity that is called `name`, or else of the only one with these letters in its name;
    of several their places.
    """
    key = name_key(name)
    if not key:
        return None, []
    called = [place for place, entity in enumerate(entities) if key in entity.keys or entity.path == name]
    called = called or [place for place, entity in enumerate(entities) if any(key in each for each in entity.keys)]
    return (called[0], []) if len(called) == 1 else (None, called[:MAX_CHOICES])


def _walk(start: int, links: Iterable[Link], hops: int) -> set[int]:
    beside: dict[int, set[int]] = defaultdict(set)
    for link in links:
        beside[link.subject].add(link.object)
        beside[link.object].add(link.subject)
    reached = {start}
    for _ in range(hops):
        reached |= {other for place in reached for other in beside[place]}
    return reached


def _relate(shown: Picture, today: str) -> dict[int, list[Relation]]:
    """Return the relations of each entity, by its place; those that hold first."""
    found: dict[int, list[Relation]] = defaultdict(list)
    for link in shown.links:
        is_over = _is_over(link.edge, today)
        subject, thing = shown.entities[link.subject], shown.entities[link.object]
        found[link.subject].append(Relation(thing, link.edge.relation, True, link.edge, is_over))
        if link.subject != link.object:
            found[link.object].append(Relation(subject, link.edge.relation, False, link.edge, is_over))
    for relations in found.values():
        relations.sort(key=lambda each: (each.is_over, not each.is_outgoing, each.relation, each.other.name))
    return found


def _is_over(edge: StatedEdge, today: str) -> bool:
    return not is_true_on(edge._replace(valid_from=None), today, is_replaced=edge.is_replaced)


def _list_bounds(graph: EntityGraph, today: str) -> tuple[str, str]:
    """Return the first and the last day on which something begins or ends."""
    given = (day for link in graph.links for day in (link.edge.valid_from, link.edge.valid_until) if day)
    days = [today, *(day[:10] for day in given)]
    return min(days), max(days)


def _type_of(entity: Entity) -> str:
    return entity.type if entity.type in ENTITY_TYPES else OTHER


def _read_fields(request: Request) -> dict[str, Any]:
    given = request.query_params
    names = ("focus", "hops", "relation", "on", "page")
    return {**{name: given.get(name, "").strip() for name in names}, "type": given.getlist("type")}


def _read_wanted(asked: Mapping[str, Any], now: datetime) -> Wanted:
    """Return what the address asks for.

    Raises:
        UsageError: something that is not a number of steps, or not a date.
    """
    if asked["hops"] not in HOPS:
        raise UsageError(f"{asked['hops']!r} is not a number of steps; there are 1 and 2.")
    on = asked["on"] and parse_day(asked["on"], now, end=True)
    return Wanted(
        asked["focus"],
        HOPS[asked["hops"]],
        asked["relation"],
        frozenset(asked["type"]) & {*ENTITY_TYPES, OTHER},
        on.isoformat() if isinstance(on, date) else "",
    )


def _address(asked: Mapping[str, Any], changed: Mapping[str, str]) -> str:
    """Return the address of this page with other values for some fields; another picture begins at its first page."""
    fields = {**asked, "page": "", **changed}
    return f"{GRAPH}?{urlencode({name: value for name, value in fields.items() if value}, doseq=True)}"
