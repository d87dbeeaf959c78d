"""The graph: people, places, projects and their relations, all of them or those around one, at any time or on a day."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from textwrap import shorten
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request

from quaid.errors import UsageError
from quaid.index.graph import Entity, Link, read_graph
from quaid.memory import Memory
from quaid.model import ENTITY_TYPES, name_key
from quaid.text.dates import parse_day
from quaid.text.endings import is_over, is_true_on, tell_days
from quaid.text.zones import local_now
from quaid.web.answer import Context, paginate
from quaid.web.templating import memory_path

GRAPH = "/graph"
MAX_DRAWN = 3_000
"""Entities of one picture; more could not be distinguished or moved."""
MAX_RELATIONS = 100
"""Relations of the focused entity in the list next to the picture."""
MAX_CHOICES = 20
"""Entities to choose from if several have the name."""
MAX_SUGGESTED = 1_000
"""Names that are offered while one is typed."""
MAX_EXPLAINED = 1_500
"""Edges of a picture that have the texts of their facts; with more edges the texts come with the focus."""
MAX_FACT = 200
"""Characters of the fact of an edge."""
MAX_ROW_RELATIONS = 6
"""Relations of an entity in a row of the table."""
ROWS = 50
HOPS = {"": 0, "1": 1, "2": 2}
OTHER = "other"
"""The type of an entity without a note, or whose note has no type."""


class Picture(NamedTuple):
    """The entities that are shown, the best connected first, and the links between them. `focus` is the place of one of
    them; `choices` are others with its name, `left_out` counts those that are too many to draw.
    """

    entities: list[Entity]
    links: list[Link]
    focus: int | None
    choices: list[Entity]
    left_out: int = 0


def show_graph(memory: Memory, request: Request) -> Context:
    """Return what is next to the picture, and the picture in words."""
    asked, today, problem = _read_fields(request), local_now(memory.settings.timezone).date().isoformat(), ""
    entities, links = memory.cache.of(memory.index(), read_graph)
    try:
        wanted = _read_filters(asked)
    except UsageError as error:
        problem, wanted = str(error), _read_filters({**asked, "hops": "", "on": ""})
    shown = select(entities, links, **wanted)
    relations = _list_relations(shown, today)
    counts = Counter(map(_type_of, entities))
    part, pages = paginate(len(shown.entities), request, ROWS)
    dated = [day for link in links for day in (link.note.valid_from, link.note.valid_until) if day]
    days = [today, *(f"{day[:10]}-01-01"[:10] for day in dated)]
    return {
        "asked": asked,
        "problem": problem,
        "is_empty": not entities,
        "shown": shown,
        "wanted": wanted,
        "focus": None if shown.focus is None else shown.entities[shown.focus],
        "relations": relations.get(shown.focus, []) if shown.focus is not None else [],
        "max_relations": MAX_RELATIONS,
        "names": [entity.name for entity in entities[:MAX_SUGGESTED]],
        "types": [(kind, counts[kind]) for kind in (*ENTITY_TYPES, OTHER) if counts[kind]],
        "all_relations": sorted({link.relation for link in links}),
        "days": (min(days), max(days)),
        "rows": [(each, relations.get(row, [])) for row, each in enumerate(shown.entities[part], part.start)],
        "max_beside": MAX_ROW_RELATIONS,
        **pages,
        "type_of": _type_of,
        "address_of": address_of,
        "called": _unique_name,
        "tell_days": tell_days,
    }


def read_picture(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the picture for the script that draws it: nodes, and edges with the places of their ends."""
    today = local_now(memory.settings.timezone).date().isoformat()
    shown = select(*memory.cache.of(memory.index(), read_graph), **_read_filters(_read_fields(request)))
    is_explained = len(shown.links) <= MAX_EXPLAINED
    nodes = [
        {
            "name": entity.name,
            "called": _unique_name(entity),
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
            "relation": link.relation.replace("_", " "),
            "since": (link.note.valid_from or "")[:10],
            "until": (link.note.valid_until or "")[:10],
            "days": ", ".join(tell_days(link.note)),
            "over": is_over(link.note, today),
            "text": shorten(link.note.text or link.note.title, MAX_FACT, placeholder="…") if is_explained else "",
            "page": memory_path(link.note.id) if is_explained else "",
        }
        for link in shown.links
    ]
    return {"nodes": nodes, "edges": edges, "focus": shown.focus, "left_out": shown.left_out}


def select(
    entities: Sequence[Entity],
    links: Sequence[Link],
    focus: str = "",
    hops: int = 0,
    relation: str = "",
    types: Collection[str] = (),
    on: str = "",
) -> Picture:
    """Return a part of the graph; empty filters select everything. Filters of edges leave only connected entities.

    `focus` is the name of an entity or a part of the name, `hops` the greatest distance from it, `on` a day on which
    edges are true.
    """
    key = name_key(focus)
    found = [place for place, each in enumerate(entities) if key and (key in each.keys or each.path == focus)]
    # Or the only one whose name contains it.
    found = found or [place for place, each in enumerate(entities) if key and any(key in one for one in each.keys)]
    place, choices = (found[0], []) if len(found) == 1 else (None, found[:MAX_CHOICES])
    selected = {
        number for number, entity in enumerate(entities) if not types or _type_of(entity) in types or number == place
    }
    links = [
        link
        for link in links
        if selected.issuperset(link[:2])
        and (not relation or link.relation == relation)
        and (not on or is_true_on(link.note, on, link.note.valid_until))
    ]
    if relation or on:
        selected &= {end for link in links for end in link[:2]} | ({place} if place is not None else set())
    if place is not None and hops:
        reached, ends = {place}, [{link.subject, link.object} for link in links]
        for _ in range(hops):
            reached = reached.union(*(pair for pair in ends if not pair.isdisjoint(reached)))
        selected &= reached
    drawn = sorted(selected, key=lambda number: (number != place, number))[:MAX_DRAWN]
    places = {old: new for new, old in enumerate(sorted(drawn))}
    return Picture(
        [entities[number] for number in places],
        [
            link._replace(subject=places[link.subject], object=places[link.object])
            for link in links
            if places.keys() >= {*link[:2]}
        ],
        None if place is None else places[place],
        [entities[number] for number in choices],
        len(selected) - len(drawn),
    )


def address_of(entity: Entity) -> str:
    """Return the address of an entity's page: its note, or a question about it if it has none."""
    return memory_path(entity.path) if entity.path else f"/ask?{urlencode({'q': entity.name})}"


def _unique_name(entity: Entity) -> str:
    """Return the name of an entity, or its note's path if the name is another entity's."""
    return entity.name if entity.path is None or name_key(entity.name) in entity.keys else entity.path


def _list_relations(shown: Picture, today: str) -> dict[int, list[dict[str, Any]]]:
    """Return the relations of each entity by its place, those that hold first."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for link in shown.links:
        relation = {
            "edge": link[:3],
            "relation": link.relation,
            "note": link.note,
            "is_over": is_over(link.note, today),
        }
        found[link.subject].append({**relation, "other": shown.entities[link.object], "is_outgoing": True})
        if link.subject != link.object:
            found[link.object].append({**relation, "other": shown.entities[link.subject], "is_outgoing": False})
    for relations in found.values():
        relations.sort(key=lambda each: (each["is_over"], -each["is_outgoing"], each["relation"], each["other"].name))
    return found


def _type_of(entity: Entity) -> str:
    return entity.type if entity.type in ENTITY_TYPES else OTHER


def _read_fields(request: Request) -> dict[str, Any]:
    given = request.query_params
    names = ("focus", "hops", "relation", "on", "page")
    return {**{name: given.get(name, "").strip() for name in names}, "type": given.getlist("type")}


def _read_filters(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `select`. UsageError: not a number of steps, or not a date."""
    if asked["hops"] not in HOPS:
        raise UsageError(f"{asked['hops']!r} is not a number of steps; there are 1 and 2.")
    return {
        "focus": asked["focus"],
        "hops": HOPS[asked["hops"]],
        "relation": asked["relation"],
        "types": frozenset(asked["type"]) & {*ENTITY_TYPES, OTHER},
        "on": parse_day(asked["on"], local_now(), end=True).isoformat() if asked["on"] else "",
    }
