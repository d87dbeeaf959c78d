"""New facts, and what the memory knows already -> the edits that store each once, linked, its edges in normal form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from quaid.capture import facts, relations
from quaid.capture.facts import FactDetails
from quaid.capture.naming import Names
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


Same = KnownFact | int | None
"""What says the same as a new fact: a note, an earlier one of the new facts by its place, or nothing."""


@dataclass(frozen=True, slots=True)
class StoredFact:
    """What became of one new fact. `outcome` is created, confirmed, or known: it was said here before."""

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


def plan_facts(
    new: Sequence[NewFact],
    same: Sequence[Same],
    names: Names,
    now: datetime,
    renamed: Mapping[str, tuple[str, bool]] | None = None,
) -> FactsPlan:
    """Store each of `new`, or confirm the one of `same`, at the same place, that says it already.

    `renamed` are relations that go by another name: relation -> (name, whether subject and object change places). A
    fact confirms another one only when a person said it, and not in a session that it rests on already: what an
    assistant repeats it may have from this very memory.
    """
    for fact in new:
        for edge in fact.details.edges:
            names.learn_nickname(relations.normalise_edge(edge))
    edges = [
        _place(fact.details.edges, names, renamed or {}) if twin is None else ()
        for fact, twin in zip(new, same, strict=True)
    ]
    drafts: dict[str, Edit] = {}
    stored: list[StoredFact] = []
    confirmed: set[str] = set()
    for fact, twin, placed in zip(new, same, edges, strict=True):
        if isinstance(twin, KnownFact):
            counts = twin.id not in confirmed and _is_new_word(fact, twin)
            stored.append(_confirm(fact, twin, drafts, counts=counts))
            confirmed |= {twin.id} if stored[-1].outcome == "confirmed" else set()
        elif twin is not None:
            earlier = stored[twin]
            _cite(fact, earlier, drafts)
            stored.append(replace(earlier, outcome="known"))
        else:
            details = replace(fact.details, edges=placed)
            note_id, edit = facts.plan_fact(fact.statement, details, now, names.written)
            drafts[edit.rel_path] = edit
            stored.append(StoredFact(note_id, edit.rel_path, fact.statement, "created"))
    changed = [edit for edit in drafts.values() if edit.after != edit.before]
    return FactsPlan((*changed, *names.edits), tuple(stored), tuple(names.created), sum(map(len, edges)))


def _place(edges: Sequence[Edge], names: Names, renamed: Mapping[str, tuple[str, bool]]) -> tuple[Edge, ...]:
    placed: dict[Edge, None] = {}
    for edge in edges:
        relation, is_flipped = renamed.get(edge.relation, (edge.relation, False))
        ends = (edge.object, edge.subject) if is_flipped else (edge.subject, edge.object)
        try:
            placed[relations.normalise_edge(names.place(Edge(ends[0], relation, ends[1])))] = None
        except BadInputError:  # both ends are the same thing: `Melanie nicknamed Mel`, which the alias says
            continue
    return tuple(placed)


def _is_new_word(fact: NewFact, twin: KnownFact) -> bool:
    """Whether somebody says again what `twin` says, who has not said it in this conversation before."""
    listed = frontmatter.parse(twin.data.decode("utf-8", errors="replace")).fields.get("turns")
    cited = listed if isinstance(listed, list) else [listed]
    here = {turn.partition("#")[0] for turn in fact.details.turns}
    has_heard = twin.session == fact.details.session or any(str(turn).partition("#")[0] in here for turn in cited)
    return fact.details.source != "assistant" and not has_heard


def _confirm(fact: NewFact, twin: KnownFact, drafts: dict[str, Edit], *, counts: bool) -> StoredFact:
    draft = drafts.get(twin.rel_path)
    data = draft.after if draft is not None and draft.after is not None else twin.data
    try:
        edit = facts.plan_confirmation(twin.rel_path, data, fact.details.turns, counts=counts)
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
        return StoredFact(twin.id, twin.rel_path, fact.statement, "known")
    drafts[twin.rel_path] = Edit(twin.rel_path, twin.data, edit.after)
    return StoredFact(twin.id, twin.rel_path, fact.statement, "confirmed" if counts else "known")


def _cite(fact: NewFact, earlier: StoredFact, drafts: dict[str, Edit]) -> None:
    """The turns of a fact that an earlier one of the same answer says already go to that one."""
    draft = drafts.get(earlier.path)
    if draft is not None and draft.after is not None:
        edit = facts.plan_confirmation(earlier.path, draft.after, fact.details.turns, counts=False)
        drafts[earlier.path] = replace(draft, after=edit.after)
