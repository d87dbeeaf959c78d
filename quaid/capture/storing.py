"""New facts, and what the memory knows already -> the edits that store each once, linked, its edges in normal form."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from quaid.capture import fact_note, relations
from quaid.capture.entity_names import EntityNames, NamedThing
from quaid.capture.fact_note import FactDetails
from quaid.errors import BadInputError
from quaid.model import Edge, Edit
from quaid.vault import frontmatter


@dataclass(frozen=True, slots=True)
class NewFact:
    """A claim and what is known of it besides its words."""

    statement: str
    details: FactDetails


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact note that says the same, as it is on disk."""

    id: str
    rel_path: str
    data: bytes
    session: str | None = None


Duplicate = KnownFact | int | None
"""The fact that says the same as a new one: a note, the place of an earlier new one, or None."""


@dataclass(frozen=True, slots=True)
class StoredFact:
    """One new fact in the vault. `outcome` is created, confirmed, or known: it was said here before."""

    id: str
    path: str
    text: str
    outcome: str


@dataclass(frozen=True, slots=True)
class FactsPlan:
    """`edits` has one edit for each file; `entities` are the names of new entity notes."""

    edits: tuple[Edit, ...]
    stored: tuple[StoredFact, ...]
    entities: tuple[str, ...]
    edges: int

    def with_outcome(self, outcome: str) -> list[StoredFact]:
        return [fact for fact in self.stored if fact.outcome == outcome]

    @property
    def details(self) -> dict[str, Any]:
        """Facts, entities and edges as plain JSON, which `stored_fields` reads."""
        facts = [[fact.id, fact.path, fact.text, fact.outcome] for fact in self.stored]
        return {"facts": facts, "entities": list(self.entities), "edges": self.edges}


def stored_fields(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts, entities and edges of `FactsPlan.details`, as fields of a result."""
    return {
        "facts": tuple(StoredFact(*fact) for fact in details.get("facts", ())),
        "entities": tuple(details.get("entities", ())),
        "edges": details.get("edges", 0),
    }


def plan_facts(
    new: Sequence[NewFact],
    same: Sequence[Duplicate],
    names: EntityNames,
    now: datetime,
    renamed: Mapping[str, tuple[str, bool]] | None = None,
    *,
    things: Sequence[NamedThing] = (),
    turns: Iterable[str] = (),
) -> FactsPlan:
    """Store each of `new`, or confirm the one of `same`, at the same place, that says it already.

    `renamed` are relations that go by another name: relation -> (name, whether subject and object change places). A
    fact confirms another one only when a person said it, and not in a session that it rests on already: what an
    assistant repeats it may have from this very memory. `things` are the names that the model gave, `turns` the texts
    that it read.
    """
    said = [
        _rename(fact.details.edges, renamed or {}) if duplicate is None else ()
        for fact, duplicate in zip(new, same, strict=True)
    ]
    nicknames = [
        edge for fact in new for edge in _rename(fact.details.edges, {}) if edge.relation == relations.NICKNAMED
    ]
    statements = [fact.statement for fact, duplicate in zip(new, same, strict=True) if duplicate is None]
    names.learn(list(dict.fromkeys([*nicknames, *itertools.chain(*said)])), things, statements, turns)
    edges = [_place_edges(own, names) for own in said]
    drafts: dict[str, Edit] = {}
    stored: list[StoredFact] = []
    confirmed: set[str] = set()
    for fact, duplicate, placed in zip(new, same, edges, strict=True):
        if isinstance(duplicate, KnownFact):
            counts = duplicate.id not in confirmed and _is_new_word(fact, duplicate)
            stored.append(_confirm(fact, duplicate, drafts, counts=counts))
            confirmed |= {duplicate.id} if stored[-1].outcome == "confirmed" else set()
        elif duplicate is not None:
            earlier = stored[duplicate]
            draft = drafts.get(earlier.path)
            if draft is not None and draft.after is not None:
                cited = fact_note.plan_confirmation(earlier.path, draft.after, fact.details.turns, counts=False)
                drafts[earlier.path] = replace(draft, after=cited.after)
            stored.append(replace(earlier, outcome="known"))
        else:
            details = replace(fact.details, edges=placed)
            note_id, edit = fact_note.plan_fact(fact.statement, details, now, names.written, names.layout)
            drafts[edit.rel_path] = edit
            stored.append(StoredFact(note_id, edit.rel_path, fact.statement, "created"))
    changed = [edit for edit in drafts.values() if edit.after != edit.before]
    return FactsPlan((*changed, *names.edits), tuple(stored), tuple(names.created), sum(map(len, edges)))


def _rename(edges: Sequence[Edge], renamed: Mapping[str, tuple[str, bool]]) -> list[Edge]:
    found: list[Edge] = []
    for edge in edges:
        relation, is_flipped = renamed.get(edge.relation, (edge.relation, False))
        ends = (edge.object, edge.subject) if is_flipped else (edge.subject, edge.object)
        found.append(relations.normalise_edge(Edge(ends[0], relation, ends[1])))
    return found


def _place_edges(edges: Sequence[Edge], names: EntityNames) -> tuple[Edge, ...]:
    placed: dict[Edge, None] = {}
    for edge in edges:
        # Both ends can be the same thing: `Melanie nicknamed Mel`, which the alias says.
        with suppress(BadInputError):
            placed[relations.normalise_edge(names.place(edge))] = None
    return tuple(placed)


def _is_new_word(fact: NewFact, duplicate: KnownFact) -> bool:
    """Return True when a person says again what `duplicate` says, for the first time in this conversation."""
    listed = frontmatter.parse(duplicate.data.decode("utf-8", errors="replace")).fields.get("turns")
    cited = listed if isinstance(listed, list) else [listed]
    here = {turn.partition("#")[0] for turn in fact.details.turns}
    has_heard = duplicate.session == fact.details.session or any(str(turn).partition("#")[0] in here for turn in cited)
    return fact.details.source != "assistant" and not has_heard


def _confirm(fact: NewFact, duplicate: KnownFact, drafts: dict[str, Edit], *, counts: bool) -> StoredFact:
    draft = drafts.get(duplicate.rel_path)
    data = draft.after if draft is not None and draft.after is not None else duplicate.data
    try:
        edit = fact_note.plan_confirmation(duplicate.rel_path, data, fact.details.turns, counts=counts)
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
        return StoredFact(duplicate.id, duplicate.rel_path, fact.statement, "known")
    drafts[duplicate.rel_path] = Edit(duplicate.rel_path, duplicate.data, edit.after)
    return StoredFact(duplicate.id, duplicate.rel_path, fact.statement, "confirmed" if counts else "known")
