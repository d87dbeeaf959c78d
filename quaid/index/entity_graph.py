"""The graph as a whole: each entity once, whatever names it goes by, and every edge with the note that states it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from quaid.index import graph
from quaid.index.graph import StatedEdge

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection


class Entity(NamedTuple):
    """A thing that has a note or stands at an end of an edge. `path` is that of its note, `facts` how many mention it,
    `degree` how many edges it has.
    """

    name: str
    keys: frozenset[str]
    type: str
    path: str | None
    facts: int
    degree: int


class Link(NamedTuple):
    """An edge between two entities, by their places among the entities."""

    subject: int
    object: int
    edge: StatedEdge


class EntityGraph(NamedTuple):
    """Entities, those with most edges first, and the links between them."""

    entities: list[Entity]
    links: list[Link]


def read_graph(connection: IndexConnection) -> EntityGraph:
    """Return the graph of all that `connection` may see. A name that several notes have is that of the first file which
    is called so, else of the first note with that alias.
    """
    edges = graph.list_stated(connection)
    owners: dict[str, str] = {}  # a key -> what it names: the path of a note, else the key itself
    notes: dict[str, tuple[str, str]] = {}
    keys: dict[str, set[str]] = defaultdict(set)
    for called in graph.list_called(connection):
        notes[called.path] = (called.name, called.type or "")
        keys[owners.setdefault(called.name_key, called.path)].add(called.name_key)
    written: dict[str, str] = {}
    for edge in edges:
        for key, name in ((edge.subject_key, edge.subject), (edge.object_key, edge.object)):
            keys[owners.setdefault(key, key)].add(key)
            written.setdefault(key, name)
    mentioned: dict[str, set[int]] = defaultdict(set)
    for key, doc_id in graph.list_mentions(connection):
        if key in owners:
            mentioned[owners[key]].add(doc_id)
    degrees = Counter(owner for edge in edges for owner in {owners[edge.subject_key], owners[edge.object_key]})
    entities = {}
    for owner in {**notes, **dict.fromkeys(owners.values())}:
        name, kind = notes.get(owner) or (written[owner], "")
        path = owner if owner in notes else None
        entities[owner] = Entity(name, frozenset(keys[owner]), kind, path, len(mentioned[owner]), degrees[owner])
    ordered = sorted(entities, key=lambda owner: (-degrees[owner], -len(mentioned[owner]), owner))
    places = {owner: place for place, owner in enumerate(ordered)}
    links = [Link(places[owners[edge.subject_key]], places[owners[edge.object_key]], edge) for edge in edges]
    return EntityGraph([entities[owner] for owner in ordered], links)
