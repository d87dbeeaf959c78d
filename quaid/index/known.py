"""An entity -> its relations, and the facts about it, that are true on a day: the answer to `who is Maya Chen?`."""

import json
from typing import NamedTuple

from quaid.index import documents, fulltext, graph
from quaid.index.documents import IDS, Document
from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING, Scope
from quaid.model import Edge, Kind, name_key, note_name
from quaid.text.endings import is_true_on

MAX_FACTS = 30


class Known(NamedTuple):
    """What is known of an entity: its `edges`, and its `facts`, newest first, with their texts."""

    edges: tuple[Edge, ...] = ()
    facts: tuple[Document, ...] = ()


def find_entities(connection: IndexConnection, name: str, scope: Scope = EVERYTHING) -> list[Document]:
    """Return the entities that are called `name`, else the one of whose name it is a part."""
    name = name.encode("utf-8", "replace").decode()  # half a character of a shell's argument is in no name
    found = documents.find_by_name(connection, name, scope)
    if not found:
        keys = graph.find_similar_names(connection, [name_key(name)], scope)
        longer = {each.doc_id: each for key in keys for each in documents.find_by_name(connection, key, scope)}
        found = list(longer.values()) if len(longer) == 1 else []
    return [each for each in found if each.kind == Kind.ENTITY]


def read_known(connection: IndexConnection, path: str, day: str, scope: Scope = EVERYTHING) -> Known:
    """Return what documents in `scope` know of the entity whose note is at `path`, as true on `day` (YYYY-MM-DD)."""
    keys, about = list_about(connection, path, MAX_FACTS * 10, scope)
    facts = {each.doc_id: each for each in about if each.kind == Kind.FACT and is_true_on(each, day)}
    ids = facts.keys() | {each.doc_id for each in about if each.kind == Kind.ENTITY}
    edges = dict.fromkeys(Edge(*step[1:4]) for step in graph.neighbours(connection, keys, scope) if step.doc_id in ids)
    return Known(tuple(edges), tuple(sorted(facts.values(), key=lambda each: each.id, reverse=True)[:MAX_FACTS]))


def list_about(connection: IndexConnection, path: str, limit: int, scope: Scope) -> tuple[set[str], list[Document]]:
    """Return the keys of the entity whose note is at `path`, and documents in `scope` about it, with their texts."""
    own = name_key(note_name(path))
    same = graph.find_entities(connection, {own}, scope).get(own, {own})
    alike = graph.find_entities(connection, same, scope)
    keys = {key for key in same if key == own or alike.get(key, same) <= same}  # of no other entity
    about = json.dumps(graph.documents_about(connection, keys, scope, limit))
    read = documents.find_documents(connection, f"d.doc_id IN {IDS}", (about,), with_text=True)
    if " " in own and "(" not in own:  # a first name alone may be another one's
        named = fulltext.search(connection, fulltext.match_any([fulltext.as_phrase(own)]), limit)
        read += documents.fetch_candidates(connection, [chunk_id for chunk_id, _ in named], scope).values()
    return keys, list({each.doc_id: each for each in read}.values())
