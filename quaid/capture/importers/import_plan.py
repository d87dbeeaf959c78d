"""The content of an import -> edits. Pure: the state of the vault is looked up before and given here.

The same source comes out the same each time: the id of an imported fact is made of where it comes from and what it
says, so that a second import finds what the first one wrote, also where its owner has rewritten it since.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from quaid.capture import entity_note, fact_note, relations
from quaid.capture.fact_note import FactDetails
from quaid.capture.importers.import_content import ImportContent, ImportedEntity, ImportedFact
from quaid.capture.stated_relations import add_stated
from quaid.errors import BadInputError, FactTooShortError
from quaid.model import Edge, Edit, name_key, note_name
from quaid.vault import frontmatter, notes
from quaid.vault.layout import DEFAULT, Layout

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_MAX_NAME_CHARS = 150
_EPOCH = datetime.fromtimestamp(0, UTC)
"""The time of plans that make no note."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class ImportCandidate:
    """A found fact, as it would be stored: `text_hash` tells it from others of its owner."""

    id: str
    text: str
    text_hash: str
    owner: str
    fact: ImportedFact


@dataclass(frozen=True, slots=True)
class VaultState:
    """The facts, notes and names of the vault that planning asks for.

    `ids` and `texts` (owner, text hash) are of facts that it has. `read` gives a file's bytes, None where there is
    none; `can_hold` says whether one could stand there; `find_entity` gives the note of what is called so. `names` are
    those of its entities, as written and as their note is called; `person` is its owner's name. `template` are core
    notes nobody has written in yet, by path; `layout` says where Quaid's notes lie.
    """

    ids: Collection[str] = ()
    texts: Collection[tuple[str, str]] = ()
    read: Callable[[str], bytes | None] = lambda _: None
    can_hold: Callable[[str], bool] = lambda _: True
    find_entity: entity_note.FindEntity = lambda _: None
    names: Sequence[tuple[str, str]] = ()
    template: Mapping[str, bytes] = field(default_factory=dict)
    layout: Layout = DEFAULT
    person: str = ""


@dataclass(slots=True)
class ImportPlan:
    """The edits, and what is said of them. `clashes` are paths that hold something else and were left as they are."""

    edits: list[Edit] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    known: int = 0
    clashes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


def list_candidates(found: ImportContent, format_name: str, owner: str) -> tuple[list[ImportCandidate], Counter[str]]:
    """The found facts, each statement of an owner once, and the number of other statements by reason."""
    candidates: dict[tuple[str, str], ImportCandidate] = {}
    left_out: Counter[str] = Counter()
    for fact in found.facts:
        try:
            text = fact_note.clean_statement(fact.text)
        except FactTooShortError:
            left_out["statements of fewer than three words"] += 1
            continue
        whose = fact.owner or owner
        said = notes.text_hash(text)
        if (whose, said) in candidates:
            left_out["statements made twice"] += 1
        else:
            fact_id = derive_id("fact", format_name, fact.place, whose, said)
            candidates[whose, said] = ImportCandidate(fact_id, text, said, whose, fact)
    return list(candidates.values()), left_out


def derive_id(*parts: str) -> str:
    """An id that the same parts always have: 128 bits, written as ids are."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:16])
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def plan_import(
    found: ImportContent, candidates: Sequence[ImportCandidate], details: FactDetails, vault: VaultState, now: datetime
) -> ImportPlan:
    """Everything that `found` brings and the vault does not have. `details` hold for each fact; its `imported_from` is
    the format.
    """
    planner = _Planner(found, details, vault, now, ImportPlan(left_out=Counter(found.left_out)))
    new_names = planner.plan_entities()
    planner.plan_facts(candidates, [*vault.names, *new_names])
    planner.plan_files()
    return planner.plan


@dataclass(frozen=True, slots=True)
class _Planner:
    found: ImportContent
    details: FactDetails
    vault: VaultState
    now: datetime
    plan: ImportPlan

    def plan_entities(self) -> list[tuple[str, str]]:
        """Plan notes for what was found by name and for the ends of edges; return the names that this makes known."""
        entities = _Entities(self.found.entities.values(), self.vault.find_entity)
        edges: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in dict.fromkeys(self.found.edges):
            normal = entities.place(edge)
            if normal is None:
                self.plan.left_out["relations without two names"] += 1
            elif normal not in edges[normal.subject]:
                edges[normal.subject].append(normal)
        known: list[tuple[str, str]] = []
        taken: set[str] = set()
        for name, (entity, note) in entities.notes.items():
            if note is not None:
                self._plan_known_entity(note, entity, edges[name])
                continue
            edit = self._plan_new_entity(entity, edges[name])
            is_free = edit.rel_path not in taken and self.vault.can_hold(edit.rel_path)
            if not is_free or self.vault.read(edit.rel_path) is not None:
                self.plan.clashes.append(edit.rel_path)
                continue
            taken.add(edit.rel_path)
            self.plan.edits.append(edit)
            self.plan.counts["entities"] += 1
            self.plan.counts["edges"] += len(edges[name])
            known += [(called, note_name(edit.rel_path)) for called in (entity.name, *entity.aliases)]
        return known

    def _plan_new_entity(self, entity: ImportedEntity, edges: Sequence[Edge]) -> Edit:
        edit = entity_note.plan_entity(
            entity.name, entity.type, entity.created or self.now, tuple(edges), self.vault.layout
        )
        file_name = note_name(edit.rel_path)
        aliases = [name for name in dict.fromkeys((entity.name, *entity.aliases)) if name != file_name]
        text = frontmatter.set_fields(
            (edit.after or b"").decode(),
            {
                "id": derive_id("entity", edit.rel_path),
                "aliases": aliases or None,
                "imported_from": f"{self.details.imported_from} {entity.place or ''}".strip(),
            },
        )
        head, listed = notes.split_body(text)
        body = "\n\n".join(filter(None, (entity.prose, listed.strip("\n"))))
        return replace(edit, after=f"{head}{body}\n".encode() if body else head.encode())

    def _plan_known_entity(self, note: entity_note.EntityNote, entity: ImportedEntity, edges: Sequence[Edge]) -> None:
        """Add the edges that its note does not have. Its words are its owner's."""
        if note.is_own:
            self._plan_edge_facts(edges)
            return
        data = note.data
        for edge in edges:
            own = entity_note.EntityNote(note.name, note.rel_path, data)

            def find(name: str, own: entity_note.EntityNote = own) -> entity_note.EntityNote:
                return own if name == own.name else entity_note.EntityNote(name, "", b"")

            try:
                planned = entity_note.plan_link(edge, find, _EPOCH).edits
            except UnicodeDecodeError:
                self.plan.left_out["relations of a note that is not UTF-8"] += len(edges)
                return
            data = next((edit.after for edit in planned if edit.after), data)
            self.plan.counts["edges"] += len(planned)
        if data != note.data:
            self.plan.edits.append(Edit(note.rel_path, note.data, data))
        if entity.prose and entity.prose.encode() not in data:
            self.plan.left_out["texts on what has a note in the vault already"] += 1

    def _plan_edge_facts(self, edges: Sequence[Edge]) -> None:
        """The edges of what has a note of the owner's own, as facts."""
        for edge in edges:
            details = replace(self.details, id=derive_id("edge", edge.subject, edge.relation, edge.object))
            edit = entity_note.plan_edge_fact(edge, details, self.now, self.vault.layout)[1]
            if self.vault.read(edit.rel_path) is None:
                self.plan.edits.append(edit)
                self.plan.counts["edges"] += 1

    def plan_facts(self, candidates: Iterable[ImportCandidate], names: Sequence[tuple[str, str]]) -> None:
        taken: set[str] = set()
        matcher, notes_by_name = _NameMatcher(names), {name_key(name): note for name, note in reversed(names)}

        def note_of(name: str) -> str:
            return notes_by_name.get(name_key(name), name)

        for candidate in candidates:
            if candidate.id in self.vault.ids or (candidate.owner, candidate.text_hash) in self.vault.texts:
                self.plan.known += 1
                continue
            fact = candidate.fact
            known = replace(
                self.details,
                id=candidate.id,
                type=fact.type,
                owner=candidate.owner,
                imported_from=f"{self.details.imported_from} {fact.place}".strip(),
                valid_from=fact.valid_from,
                valid_until=fact.valid_until,
                keywords=fact.keywords,
            )
            linked = matcher.names_in(candidate.text)
            known = self._add_stated(candidate.text, known, fact.created, note_of)
            self.plan.counts["edges"] += len(known.edges)
            edit = fact_note.plan_fact(candidate.text, known, fact.created or self.now, linked, self.vault.layout)[1]
            self.plan.edits.append(_with_free_path(edit, candidate.id, taken, self.vault.read))
            self.plan.counts["facts"] += 1
            self.plan.examples.append(candidate.text)

    def _add_stated(
        self, text: str, details: FactDetails, created: datetime | None, note_of: Callable[[str], str]
    ) -> FactDetails:
        """The edges that a fact states. `last month` of a source without dates is any month."""
        stated = add_stated(text, details, created or self.now, self.vault.person, note_of)
        return stated if created else replace(stated, valid_from=details.valid_from)

    def plan_files(self) -> None:
        planned: dict[str, bytes] = {}
        for file in self.found.files:
            if not self.vault.can_hold(file.rel_path):
                self.plan.left_out["files whose name is too long, or is that of something else in the vault"] += 1
                continue
            there = planned.get(file.rel_path)
            if there is None:
                there = self.vault.read(file.rel_path)
            if there == file.data:
                self.plan.known += 1
            elif there is None or there == self.vault.template.get(file.rel_path):
                planned[file.rel_path] = file.data
                self.plan.edits.append(Edit(file.rel_path, there, file.data))
                self.plan.counts["notes"] += 1
                self.plan.examples.append(file.rel_path)
            else:
                self.plan.clashes.append(file.rel_path)


def _with_free_path(edit: Edit, note_id: str, taken: set[str], read: Callable[[str], bytes | None]) -> Edit:
    """Of ten thousand facts whose words make no slug, two may share a file name: one gets a longer tail."""
    path = edit.rel_path
    for length in (8, 12, 26):
        if path not in taken and read(path) is None:
            break
        path = f"{edit.rel_path.removesuffix(f'{note_id[-5:]}.md')}{note_id[-length:]}.md"
    taken.add(path)
    return replace(edit, rel_path=path)


class _NameMatcher:
    """Finds names in texts by their first words: trying each name on each text takes too long."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._by_word: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, target in dict.fromkeys(names):
            if words := _words(name):
                self._by_word[words[0]].append((name, target))

    def names_in(self, text: str) -> list[tuple[str, str]]:
        words = dict.fromkeys(_words(text))
        return [pair for word in words for pair in self._by_word.get(word, ()) if pair[0] in text]


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text).split()


class _Entities:
    """The entities of an import, each once: `notes` by the name that links use."""

    def __init__(self, entities: Iterable[ImportedEntity], find_entity: entity_note.FindEntity) -> None:
        self._find = find_entity
        self._names: dict[str, str] = {}
        self.notes: dict[str, tuple[ImportedEntity, entity_note.EntityNote | None]] = {}
        listed = [entity for entity in entities if _is_name(entity.name)]
        for entity in listed:
            self._add(entity)
        for entity in listed:
            for alias in entity.aliases:
                self._names.setdefault(name_key(alias), self._names[name_key(entity.name)])

    def place(self, edge: Edge) -> Edge | None:
        """The edge in its normal form between entities, which are added where they are new; None without two
        names.
        """
        try:
            normal = relations.normalise_edge(edge)
            if not (_is_name(normal.subject) and _is_name(normal.object)):
                return None
            kinds = relations.entity_types(normal.relation)
            ends = [self._name(name, kind) for name, kind in zip((normal.subject, normal.object), kinds, strict=True)]
            return relations.normalise_edge(Edge(ends[0], normal.relation, ends[1]))
        except BadInputError:
            return None

    def _name(self, name: str, kind: str) -> str:
        key = name_key(name)
        return self._names[key] if key in self._names else self._add(ImportedEntity(name, kind))

    def _add(self, entity: ImportedEntity) -> str:
        note = self._find(entity.name)
        name = note.name if note else entity.name
        self._names.setdefault(name_key(entity.name), name)
        self.notes.setdefault(name, (entity, note))
        return name


def _is_name(name: str) -> bool:
    return 0 < len(name.strip()) <= _MAX_NAME_CHARS
