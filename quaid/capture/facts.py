"""Facts and links to store -> edits. Each fact is stored once, linked, with its edges in normal form."""

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from quaid.capture import relations
from quaid.capture.entities import EntityNames, FindNote, NamedThing, plan_entity
from quaid.errors import BadInputError, FactTooShortError
from quaid.model import Edge, Edit, name_key, note_name
from quaid.text.dates import find_dates
from quaid.text.endings import HAPPENED
from quaid.text.invisible import without_unseen
from quaid.text.words import is_long_enough, is_whole_word
from quaid.vault import frontmatter, layout, markdown, notes
from quaid.vault.layout import Layout
from quaid.vault.notes import StoredNote

CONFIRMATION_BOOST = 0.1
"""Share of the remaining uncertainty that one confirmation removes."""
ASSISTANT_FACTOR = 0.9
"""Factor on the confidence of what an assistant inferred."""

_UNLINKABLE = re.compile(r"[\[\]|#^\n\\`]")
"""Characters that a name inside `[[…]]` cannot have."""
_CLOSED = re.compile(r"\[\[[^\[\]]*\]\]|!?\[[^\[\]]*\]\([^()]*\)|`[^`]*`|\b\w++://\S+|<[^<>]*>")


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact to store. Its fields from `id` to `document` are the frontmatter of its note, in this order.

    An `id` is given where the same fact must get the same id again, or where a model says that it is the fact with that
    id. `replaces` has the ids of the facts that it replaces, or texts of other new ones. `turns` and `document` are
    links to its sources; until the note of the source has a name, `turns` are the numbers of turns.
    """

    text: str
    id: str | None = None
    type: str = "fact"
    status: str = "active"
    owner: str = "default"
    confidence: float = 0.8
    extraction_confidence: float | None = None
    durability: str = "mutable"
    privacy: str = "private"
    speaker: str | None = None
    source: str = "user"
    session: str | None = None
    imported_from: str | None = None
    project: str | None = None
    technical: bool = False
    pinned: bool = False
    created: datetime | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    keywords: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    document: str | None = None
    edges: tuple[Edge, ...] = ()
    replaces: tuple[str, ...] = ()


_FIELDS = tuple(each.name for each in fields(NewFact) if each.name not in {"text", "edges", "replaces"})


Duplicate = StoredNote | int | None
"""The fact that makes the same claim as a new one: a note, the place of an earlier new one, or None."""


class StoredFact(NamedTuple):
    """A fact in the vault. `outcome` is created, confirmed, known: this source stated it before, or replaced."""

    id: str
    path: str
    text: str
    outcome: str


class FactsPlan(NamedTuple):
    """`edits` has one edit for each file; `entities` are the names of new entity notes."""

    edits: tuple[Edit, ...]
    stored: tuple[StoredFact, ...]
    entities: tuple[str, ...]
    edges: int

    def with_outcome(self, outcome: str) -> list[StoredFact]:
        return [fact for fact in self.stored if fact.outcome == outcome]

    @property
    def details(self) -> dict[str, Any]:
        """Facts, entities and edges as plain JSON, for `extraction.learned_fields`."""
        return {"facts": list(map(list, self.stored)), "entities": list(self.entities), "edges": self.edges}


def clean_statement(text: str) -> str:
    """Return a statement on one line, without invisible characters.

    Raises:
        FactTooShortError: fewer than three words.
    """
    statement = " ".join(without_unseen(text).split())
    if not is_long_enough(statement):
        raise FactTooShortError(statement)
    return statement


def check_period(fact: NewFact) -> None:
    """Raise BadInputError for a fact that is over before it begins."""
    since, until = fact.valid_from, fact.valid_until
    width = min(len(since or ""), len(until or ""), len("2026-11-01"))
    if since and until and until[:width] < since[:width]:
        raise BadInputError(
            f"It would be over on {until}, before it begins on {since}. Give valid_from before valid_until."
        )


def plan_fact(
    fact: NewFact, now: datetime, names: Iterable[tuple[str, str]] = (), place: Layout = layout.DEFAULT
) -> tuple[str, Edit]:
    """Return (id, the edit that writes the note). Known `names` (as written, name of their note) become links."""
    created = fact.created or now
    note_id = fact.id or layout.new_id(created)
    values = {name: getattr(fact, name) for name in _FIELDS} | {
        "id": note_id,
        "confidence": round(fact.confidence * (ASSISTANT_FACTOR if fact.source == "assistant" else 1.0), 3),
        "privacy": None if fact.privacy == "private" else fact.privacy,
        "created": notes.render_time(created),
        "keywords": list(fact.keywords),
        "turns": list(fact.turns),
    }
    head = {name: value for name, value in values.items() if value is not False and value != []}
    text = notes.render_fact(head, render_statement(fact.text, names), fact.edges)
    return note_id, Edit(place.place(layout.fact_path(fact.text, note_id, created)), None, text.encode())


def plan_confirmation(rel_path: str, data: bytes, turns: Sequence[str] = (), *, counts: bool = True) -> Edit:
    """Cite `turns` as well, and, if it `counts`, count one more confirmation and raise the confidence."""
    text = data.decode("utf-8")
    head = frontmatter.parse(text).fields
    changes: dict[str, frontmatter.Value | None] = {}
    if counts:
        confidence = read_number(head.get("confidence"), 0.8)
        changes["confidence"] = round(min(1.0, confidence + CONFIRMATION_BOOST * (1.0 - confidence)), 3)
        changes["confirmations"] = int(read_number(head.get("confirmations"), 0)) + 1
    cited = frontmatter.list_values(head.get("turns"))
    if not set(turns) <= set(cited):
        changes["turns"] = list(dict.fromkeys([*cited, *turns]))
    return Edit(rel_path, data, frontmatter.set_fields(text, changes).encode() if changes else data)


def begin_when_stated(fact: NewFact, now: datetime) -> NewFact:
    """Return a fact that replaces another, true since it was stated where nothing else is known. What happened once or
    cannot change is a correction, and a text with a date has its own days.
    """
    stated = fact.created or now
    has_days = fact.type in HAPPENED or fact.durability == "immutable" or fact.valid_from or fact.valid_until
    return fact if has_days or find_dates(fact.text, stated) else replace(fact, valid_from=f"{stated:%Y-%m-%d}")


def supersede(rel_path: str, data: bytes, winner_path: str, until: str | None) -> Edit:
    """Mark a fact as replaced by another, and as true until then if that is known and not before it began.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the note cannot be edited safely.
    """
    text = data.decode("utf-8")
    changes: dict[str, frontmatter.Value | None] = {"superseded_by": f"[[{note_name(winner_path)}]]"}
    head = frontmatter.parse(text).fields
    until = until and f"{until}-01-01"[:10]  # of a year or a month alone the first day
    if until and not head.get("valid_until") and str(head.get("valid_from") or "")[:10] <= until:
        changes["valid_until"] = until
    return Edit(rel_path, data, frontmatter.set_fields(text, changes).encode())


def render_statement(statement: str, names: Iterable[tuple[str, str]]) -> str:
    """Return a statement, which is plain text, as markdown. The first mention of each known name becomes a wikilink;
    longer names first, nothing linked twice or in a link, an address, code or a longer word.
    """
    statement = markdown.escape(statement)
    linked: set[str] = set()
    mentioned = [pair for pair in names if len(pair[0]) > 1 and pair[0] in statement]
    for name, note in sorted(mentioned, key=lambda pair: (-len(pair[0]), pair)):
        if name_key(note) in linked or name not in statement or _UNLINKABLE.search(name + note):
            continue
        closed = [found.span() for found in _CLOSED.finditer(statement)]
        mentions = (
            found.start()
            for found in re.finditer(rf"(?<!\w[-.@])(?<![\\!])(?<!(?<!\\)\[){re.escape(name)}(?![-.@]\w)", statement)
            if is_whole_word(statement, *found.span())
            and not any(start < found.end() and found.start() < end for start, end in closed)
        )
        if (place := next(mentions, None)) is not None:
            link = f"[[{name}]]" if name == note else f"[[{note}|{name}]]"
            statement = statement[:place] + link + statement[place + len(name) :]
            linked.add(name_key(note))
    return statement


def read_number(value: object, default: float) -> float:
    """Return a frontmatter value as a number, `default` where it is none."""
    try:
        number = float(str(value))
    except ValueError:
        return default
    return number if math.isfinite(number) else default


def plan_facts(
    new: Sequence[NewFact],
    same: Sequence[Duplicate],
    names: EntityNames,
    now: datetime,
    *,
    things: Sequence[NamedThing] = (),
    turns: Iterable[str] = (),
    known: Collection[str] | None = None,
    replaced: Sequence[tuple[StoredNote | int, int]] = (),
) -> FactsPlan:
    """Store each of `new`, or confirm the one of `same`, at the same place, that makes the same claim.

    A fact confirms another one only when a person states it, and not from a source that it rests on already: an
    assistant may repeat it from this very memory.

    Args:
        new: the facts.
        same: for each its duplicate.
        names: of the memory.
        now: the time of new notes.
        things: the names that the model gave.
        turns: the texts that it read.
        known: the names of the facts that this source stated before; None where their citations show that.
        replaced: facts that one of `new`, given by its place, replaces: notes, or the places of others of `new`.
    """
    replacing = {place for _, place in replaced}
    new = [begin_when_stated(fact, now) if place in replacing else fact for place, fact in enumerate(new)]
    stated = [[*map(relations.normalise_edge, fact.edges)] for fact in new]
    edges = [own if duplicate is None else [] for own, duplicate in zip(stated, same, strict=True)]
    nicknames = [edge for own in stated for edge in own if edge.relation == relations.NICKNAMED]
    statements = [fact.text for fact, duplicate in zip(new, same, strict=True) if duplicate is None]
    names.learn(list(dict.fromkeys([*nicknames, *itertools.chain(*edges)])), things, statements, turns)
    placed: list[tuple[Edge, ...]] = []
    for found in edges:
        normal: dict[Edge, None] = {}
        for edge in found:
            # Both ends can be the same thing: `Melanie nicknamed Mel`, which the alias states.
            with suppress(BadInputError):
                normal[relations.normalise_edge(names.place(edge))] = None
        placed.append(tuple(normal))
    drafts: dict[str, Edit] = {}
    stored: list[StoredFact] = []
    confirmed: set[str] = set()
    for fact, duplicate, own in zip(new, same, placed, strict=True):
        if isinstance(duplicate, StoredNote):
            counts = duplicate.id not in confirmed and _is_news(fact, duplicate, known)
            path, draft = duplicate.rel_path, drafts.get(duplicate.rel_path)
            data = draft.after if draft is not None and draft.after is not None else duplicate.data
            try:
                after = plan_confirmation(path, data, fact.turns, counts=counts).after
                drafts[path] = Edit(path, duplicate.data, after)
            except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
                counts = False  # its owner repairs a broken head
            confirmed |= {duplicate.id} if counts else set()
            stored.append(StoredFact(duplicate.id, path, fact.text, "confirmed" if counts else "known"))
        elif duplicate is not None:
            earlier = stored[duplicate]
            draft = drafts.get(earlier.path)
            if draft is not None and draft.after is not None:
                cited = plan_confirmation(earlier.path, draft.after, fact.turns, counts=False)
                drafts[earlier.path] = replace(draft, after=cited.after)
            stored.append(earlier._replace(outcome="known"))
        else:
            note_id, edit = plan_fact(replace(fact, edges=own), now, names.written, names.layout)
            drafts[edit.rel_path] = edit
            stored.append(StoredFact(note_id, edit.rel_path, fact.text, "created"))
    stored += end_replaced(new, replaced, stored, drafts, now)
    changed = [edit for edit in drafts.values() if edit.after != edit.before]
    return FactsPlan((*changed, *names.edits), tuple(stored), tuple(names.created), sum(map(len, placed)))


def end_replaced(
    new: Sequence[NewFact],
    replaced: Sequence[tuple[StoredNote | int, int]],
    stored: Sequence[StoredFact],
    drafts: dict[str, Edit],
    now: datetime,
) -> Iterator[StoredFact]:
    """Change in `drafts` what one of `new` replaces, and yield those notes. A state that the new one only follows later
    holds until then.
    """
    for old, place in replaced:
        fact, path = new[place], old.rel_path if isinstance(old, StoredNote) else stored[old].path
        data = drafts[path].after if path in drafts else old.data if isinstance(old, StoredNote) else None
        stated = notes.render_time(fact.created or now)[:10]
        began = (fact.valid_from or stated)[:10] if fact.type not in HAPPENED else stated
        with suppress(frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
            note = notes.parse_note(path, data or b"")
            dates = [found.start.isoformat() for found in find_dates(note.text, fact.created or now)]
            if began > stated >= max(note.valid_from or "", *dates, ""):
                after = frontmatter.set_fields((data or b"").decode(), {"valid_until": began}).encode()
            else:
                after = supersede(path, data or b"", stored[place].path, began).after or b""
            drafts[path] = replace(drafts.get(path) or Edit(path, data, None), after=after)
            if isinstance(old, StoredNote):
                yield StoredFact(old.id, path, note.text, "replaced")


def _is_news(fact: NewFact, duplicate: StoredNote, known: Collection[str] | None) -> bool:
    """Return True when a person repeats `duplicate` for the first time in this source."""
    if known is not None:
        is_repeated = note_name(duplicate.rel_path) in known
    else:
        head = duplicate.head.fields
        here = {turn.partition("#")[0] for turn in fact.turns}
        cited = frontmatter.list_values(head.get("turns"))
        is_repeated = str(head.get("session") or "") == (fact.session or "") or any(
            turn.partition("#")[0] in here for turn in cited
        )
    return fact.source != "assistant" and not is_repeated


def plan_link(
    edge: Edge, find_entity: FindNote, now: datetime, owner: str, place: Layout
) -> tuple[Edge, tuple[Edit, ...], tuple[str, ...]]:
    """Return an edge in normal form, the edits that write it, and the names of new notes.

    It goes into its subject's note, with notes for subject and object, typed by the relation; where its
    subject has a note of the owner's own, into a new fact of `owner`. Without edits the graph has it already.
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
        edits.append(plan_edge_fact(edge, NewFact("", owner=owner), now, place))
    elif not has_edge(subject.data, subject.name, edge):
        after = notes.append_edge(subject.data.decode("utf-8"), edge, own=True).encode()
        edits.append(Edit(subject.rel_path, subject.data, after))
    if target is None and name_key(edge.object) != name_key(edge.subject):
        edits.append(plan_entity(edge.object, types[1], now, place=place))
        created.append(edge.object)
    return edge, tuple(edits), tuple(created)


def plan_edge_fact(edge: Edge, fact: NewFact, now: datetime, place: Layout) -> Edit:
    """Return the edit that writes a fact which states `edge`, otherwise like `fact`."""
    text = f"{edge.subject} {edge.relation.replace('_', ' ')} {edge.object}."
    ends = [(name, name) for name in (edge.subject, edge.object)]
    return plan_fact(replace(fact, text=text, edges=(edge,)), now, ends, place)[1]


def has_edge(data: bytes, name: str, edge: Edge) -> bool:
    """Return True when the entity note `name` has this edge."""
    body = frontmatter.parse(data.decode("utf-8", errors="replace")).body
    wanted = (edge.relation, name_key(edge.object))
    return any((e.relation, name_key(e.object)) == wanted for e in markdown.edges(body, name))
