"""An edge -> the edits that put it into the graph, entity notes made on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from quaid.capture import fact_note, relations
from quaid.capture.fact_note import FactDetails
from quaid.model import Edge, Edit, name_key, note_name
from quaid.vault import frontmatter, layout, markdown, notes
from quaid.vault.layout import Layout

FindEntity = Callable[[str], "EntityNote | None"]


@dataclass(frozen=True, slots=True)
class EntityNote:
    """The note of what is called so, as it is on disk; `name` is its file name, which links use. `is_own` says that it
    is not an entity note of Quaid's but its owner's own note, which is never edited.
    """

    name: str
    rel_path: str
    data: bytes
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """The edge in its normal form and what must be written; no edits when the graph knows it already."""

    edge: Edge
    edits: tuple[Edit, ...]
    created: tuple[str, ...]


def plan_link(
    edge: Edge, find_entity: FindEntity, now: datetime, details: FactDetails | None = None,
    place: Layout = layout.DEFAULT,
) -> LinkPlan:  # fmt: skip
    """Write `edge` into its subject's note, with notes for subject and object, typed by the relation; where its subject
    has a note of the owner's own, into a new fact with `details`.

    Raises:
        BadInputError: an end or the relation is empty, or both ends are the same.
    """
    edge = relations.normalise_edge(edge)
    types = relations.entity_types(edge.relation)
    subject, target = find_entity(edge.subject), find_entity(edge.object)
    edge = Edge(subject.name if subject else edge.subject, edge.relation, target.name if target else edge.object)
    edits: list[Edit] = []
    created: list[str] = []
    if subject is None:
        edits.append(plan_entity(edge.subject, types[0], now, (edge,), place))
        created.append(edge.subject)
    elif subject.is_own:
        edits.append(plan_edge_fact(edge, details or FactDetails(), now, place)[1])
    elif not _has_edge(subject, edge):
        text = notes.append_line(_body_ready(subject.data.decode("utf-8")), notes.edge_line(edge, own=True))
        edits.append(Edit(subject.rel_path, subject.data, text.encode()))
    if target is None and name_key(edge.object) != name_key(edge.subject):
        edits.append(plan_entity(edge.object, types[1], now, place=place))
        created.append(edge.object)
    return LinkPlan(edge, tuple(edits), tuple(created))


def plan_edge_fact(edge: Edge, details: FactDetails, now: datetime, place: Layout = layout.DEFAULT) -> tuple[str, Edit]:
    """(id, a new fact that says `edge`)."""
    ends = [(name, name) for name in (edge.subject, edge.object)]
    said = f"{edge.subject} {edge.relation.replace('_', ' ')} {edge.object}."
    return fact_note.plan_fact(said, replace(details, edges=(edge,)), now, ends, place)


def plan_entity(
    name: str, entity_type: str, now: datetime, edges: tuple[Edge, ...] = (), place: Layout = layout.DEFAULT
) -> Edit:
    """A new entity note. A name that no file may have is kept as an alias."""
    rel_path = layout.entity_path(name)
    file_name = note_name(rel_path)
    fields: dict[str, frontmatter.Value | None] = {
        "id": layout.new_id(now),
        "type": entity_type,
        "created": notes.render_time(now),
        "aliases": [name] if file_name != name else None,
    }
    return Edit(place.place(rel_path), None, notes.render_entity(fields, edges).encode())


def _has_edge(note: EntityNote, edge: Edge) -> bool:
    body = frontmatter.parse(note.data.decode("utf-8", errors="replace")).body
    wanted = (edge.relation, name_key(edge.object))
    return any((e.relation, name_key(e.object)) == wanted for e in markdown.edges(body, note.name))


def _body_ready(text: str) -> str:
    """A list item directly below a paragraph would become part of it: set it off, unless a list ends the note."""
    newline = notes.newline_of(text)
    lines = text.rstrip().splitlines()
    if not lines or lines[-1].startswith(("- ", "* ", "+ ", "---")):
        return text
    return text.rstrip("\r\n") + newline * 2
