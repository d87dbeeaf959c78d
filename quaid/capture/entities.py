"""The entities that names refer to: their notes, existing or new, and whether two names belong to one person.

Nothing is merged by likeness. Two names are one thing when they differ in case or in a leading article, when the model
or somebody states that a thing has that name too, or when one is the first name of exactly one known person and nothing
contradicts that. The other name becomes an alias of the note, which its owner can take away again; a name that two
share is the alias of neither. A namesake gets a note whose name tells them apart: `Anna (sibling of Maya)`.

A relation gives the role of one person for another: nobody is both the sister and the colleague of one person, as far
as a name alone can show.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from quaid.capture import relations
from quaid.capture.relations import ROLES
from quaid.model import OWNER_LABELS, Edge, Edit, is_owner_label, name_key, note_name
from quaid.text.stop_words import read_lists
from quaid.text.words import count_words
from quaid.vault import frontmatter, layout, notes
from quaid.vault.layout import DEFAULT, Layout, entity_path
from quaid.vault.notes import StoredNote

FindNote = Callable[[str], "StoredNote | None"]
"""name -> the entity note of this name."""
FindEdges = Callable[[str], Iterable[Edge]]
"""name of a note -> its edges in the memory."""

_ARTICLE = re.compile(r"\A(?:the|a|an|my|our|his|her|their)\s+(?=\S)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['\u2019]s\b|s['\u2019](?=\s)")
_WORDS = read_lists("names.txt")
_PHRASE_WORDS = frozenset(_WORDS["phrase"].split())
_IN_BRACKETS = re.compile("[(\uff08][^()\uff08\uff09]+[)\uff09]\\Z")
"""Text that tells namesakes apart: `Anna (Maya's sister)`."""
_NATURES = {"person": "person", "pet": "pet", "place": "thing", "organization": "thing"}
"""Kinds that exclude each other; the others are guessed too often to tell things apart."""
_MENTIONED = frozenset({"person", "pet", "place", "organization", "project"})
"""Kinds that get a note where a statement only mentions them."""
_PRONOUNS = frozenset({"she", "he", "they", "it", "we", "you"})
_KIN_WORDS = frozenset(_WORDS["kin"].split())
"""Words for one's own relative or boss. They are nobody's name: the person depends on the speaker."""
_MAX_NAME_CHARS = 60
_MAX_WORDS = 5
_NO_FIRST_WORDS = frozenset(_WORDS["not_first"].split())
_OF = re.compile("[的の]")
"""Possessive letters, which make a phrase as `'s` does."""
_LINKING = frozenset(_WORDS["linking"].split())

_KIN_ROLES = frozenset(role for pair in ROLES.values() for role in pair) - {
    *("partner", "colleague", "classmate", "neighbor", "manager", "report"),
}
_SAME_SURNAME = frozenset({"parent", "child", "sibling"})
_AT_WORK = frozenset({"works_at", "colleague_of", "manages"})
_UNIQUE = frozenset({"spouse_of", "born_in"})
_UNIQUE_FOR_NOW = frozenset({"lives_in"})
_NO_KINDS = dict.fromkeys(("homes", "venues", "ways"), frozenset({"person", "pet", "project"})) | {
    "works": frozenset({"person", "pet", "place"}),
    "titles": frozenset({"pet", "place", "organization", "project"}),
}
"""By the sort of thing that a word states, the kinds that such a thing cannot be."""
_KIND_WORDS = {word: sort for sort in _NO_KINDS for word in _WORDS[sort].split()}
"""Words before or after a name that only say what sort of thing it is: `Haus Birkenhain`."""
_TIES_OF_TOWNS = frozenset(f"{relation} by" for relation in ("born_in", "located_in", "traveled_to", "moved_from"))
_TIES_OF_HOMES = frozenset({"lives_in by", "moved_to by", "visited by"})
_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f]+")


def plan_entity(
    name: str, entity_type: str, now: datetime, edges: tuple[Edge, ...] = (), place: Layout = DEFAULT
) -> Edit:
    """Return the edit that creates an entity note. A name that no file can have becomes an alias."""
    rel_path = entity_path(name)
    file_name = note_name(rel_path)
    fields: dict[str, frontmatter.Value | None] = {
        "id": layout.new_id(now),
        "type": entity_type,
        "created": notes.render_time(now),
        "aliases": [name] if file_name != name else None,
    }
    return Edit(place.place(rel_path), None, notes.render_entity(fields, edges).encode())


def add_aliases(data: bytes, aliases: Iterable[str]) -> bytes:
    """Return an entity note with more aliases."""
    text = data.decode("utf-8")
    listed = frontmatter.list_values(frontmatter.parse(text).fields.get("aliases"))
    known = {name_key(alias) for alias in listed}
    new = [alias for alias in dict.fromkeys(aliases) if name_key(alias) not in known]
    return frontmatter.set_fields(text, {"aliases": [*listed, *new]}).encode() if new else data


class NamedThing(NamedTuple):
    """A name from a model, its kind (None: not stated), and its other names."""

    name: str
    kind: str | None = None
    aliases: tuple[str, ...] = ()


class Profile(NamedTuple):
    """What is known of a person under one name or one note: the keys of its names, and its ties.

    A tie is (relation, role, key of the other name); between people the role is a word such as `sibling`.
    """

    keys: frozenset[str]
    ties: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, keys: Iterable[str], edges: Iterable[Edge]) -> "Profile":
        """Return the profile of `keys`; `edges` without one of them are left out."""
        own = frozenset(keys)
        ties: dict[tuple[str, str, str], None] = {}
        for edge in edges:
            subject, object_ = name_key(edge.subject), name_key(edge.object)
            roles = ROLES.get(edge.relation, (edge.relation, f"{edge.relation} by"))
            if subject in own:
                ties[edge.relation, roles[0], object_] = None
            if object_ in own:
                ties[edge.relation, roles[1], subject] = None
        return cls(own, tuple(ties))


def contradict(one: Profile, other: Profile, anchors: Sequence[str] | None = None) -> bool:
    """Return True when two profiles cannot be of one person. With `anchors` only ties to these keys count: people whose
    identity is certain.
    """
    for mine, theirs in itertools.product(one.ties, other.ties):
        if anchors is not None and (mine[2] != theirs[2] or mine[2] not in anchors):
            continue
        if _differ(mine, theirs, _UNIQUE):
            return True
        are_roles = mine[0] in ROLES and theirs[0] in ROLES and mine[1] != theirs[1]
        # Friends, partners and flatmates may work together; family members are named by their kinship.
        is_kin = mine[1] in _KIN_ROLES or theirs[1] in _KIN_ROLES
        if are_roles and is_kin and _may_be_same(mine[2], theirs[2]):
            return True
    return False


def speaks_against(one: Profile, other: Profile, near: Sequence[str]) -> bool:
    """Return True when anything contradicts that two names belong to one person. `near` are keys of the owner and of
    the speakers, whose kin go by first names.
    """
    if contradict(one, other):
        return True
    if speaks_for(one, other):
        return False
    live_apart = any(_differ(mine, theirs, _UNIQUE_FOR_NOW) for mine in one.ties for theirs in other.ties)
    return live_apart or _is_stranger(one, other, near) or _is_stranger(other, one, near)


def speaks_for(one: Profile, other: Profile) -> bool:
    """Return True when both have a tie in common."""
    return any(mine[1] == theirs[1] and _may_be_same(mine[2], theirs[2]) for mine in one.ties for theirs in other.ties)


def are_named_apart(short: str, long: str, texts: Iterable[str], edges: Iterable[Edge]) -> bool:
    """Return True when a text names both in one sentence, or an edge joins them: `short` is the beginning of `long`."""
    pair = {name_key(short), name_key(long)}
    if any(
        {name_key(edge.subject), name_key(edge.object)} == pair and edge.relation != relations.NICKNAMED
        for edge in edges
    ):
        return True
    whole = re.compile(rf"(?<!\w){re.escape(long)}(?!\w)", re.IGNORECASE)
    alone = re.compile(rf"(?<!\w){re.escape(short)}(?!\w)", re.IGNORECASE)
    sentences = (
        sentence for text in texts if long.casefold() in text.casefold() for sentence in _SENTENCE_END.split(text)
    )
    return any(whole.search(sentence) and alone.search(whole.sub("", sentence)) for sentence in sentences)


def _differ(mine: tuple[str, str, str], theirs: tuple[str, str, str], unique: frozenset[str]) -> bool:
    return mine[:2] == theirs[:2] and mine[0] in unique and not _may_be_same(mine[2], theirs[2])


def _is_stranger(kin: Profile, other: Profile, near: Sequence[str]) -> bool:
    """Return True when `kin` is a relative of somebody whose surname `other` does not share, or of a speaker who knows
    `other` from work.
    """
    for _, role, person in kin.ties:
        if role not in _KIN_ROLES:
            continue
        if person in near and any(relation in _AT_WORK for relation, _, _ in other.ties):
            return True
        surnames = {key.split()[-1] for key in other.keys if " " in key and "(" not in key}
        if role in _SAME_SURNAME and " " in person and surnames and person.split()[-1] not in surnames:
            return True
    return False


def _may_be_same(one: str, other: str) -> bool:
    """Return True where one name is the beginning of the other: `maya` and `maya chen`."""
    return one == other or one.startswith(f"{other} ") or other.startswith(f"{one} ")


class EntityNames:
    """The names in one plan. `edits` writes new entity notes and aliases of existing ones."""

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]],
        find_note: FindNote,
        now: datetime,
        *,
        speakers: Iterable[str] = (),
        owner: str = "",
        find_edges: FindEdges = lambda _: (),
        layout: Layout = DEFAULT,
        other_names: Iterable[tuple[str, str]] = (),
    ) -> None:
        """`pairs` are (name or alias as written, name of its note) of all entity notes; `owner` is whom `User` is;
        `other_names` are (speaker, another name that they are called by).
        """
        self.find_note = find_note
        self.find_edges = find_edges
        self.now = now
        self.owner = owner
        self.layout = layout
        self.speakers = tuple(dict.fromkeys(speaker for speaker in speakers if is_name(speaker)))
        self.called: defaultdict[str, list[str]] = defaultdict(list)
        """Key of a name or alias -> names of the notes that have it."""
        self.by_bare: defaultdict[str, set[str]] = defaultdict(set)
        """Key of a name without a word of kind -> keys in `called`."""
        self.created: dict[str, str] = {}
        """Name of a new note -> its type."""
        self.aliases: defaultdict[str, list[str]] = defaultdict(list)
        """Name of a note -> its new aliases."""
        self.written = list(pairs)
        """(as written, name of its note), for links in statements."""
        self.resolved: dict[str, str] = {}
        """Key of a name -> name of its note, in all of this plan."""
        self.kinds: dict[str, str] = {}
        """Key of a name -> its kind, as the model states it."""
        self.stated: frozenset[str] = frozenset()
        """Keys of the names that the model lists, each for a separate thing."""
        self.texts: tuple[str, ...] = ()
        self.edges: tuple[Edge, ...] = ()
        self.other_names = tuple(other_names)
        for name, note in self.written:
            self._call(name, note)

    def learn(
        self,
        edges: Sequence[Edge],
        things: Sequence[NamedThing] = (),
        statements: Sequence[str] = (),
        turns: Iterable[str] = (),
    ) -> None:
        """Read all of a plan before any of it is placed, so that its order does not matter: `edges` in normal form,
        `things` as the model names them, the `statements` that are stored, and the `turns` they were drawn from.
        """
        self.texts = (*statements, *turns)
        self.edges = (*self.edges, *edges)
        things = [thing for thing in things if _is_stated_name(thing)]
        self.stated = frozenset(_key(thing.name) for thing in things)
        self.kinds |= {_key(thing.name): thing.kind for thing in things if thing.kind}
        for edge in edges:
            # `Melanie nicknamed Mel` is an alias, unless the other name has a note of its own.
            is_alias = edge.relation == relations.NICKNAMED and is_name(edge.subject) and is_name(edge.object)
            if is_alias and _key(edge.object) not in self.called:
                self._add_alias(self.resolve(edge.subject, "person"), edge.object)
        for speaker, name in self.other_names:
            self._learn_other_name(speaker, name)
        ends = {_key(end) for edge in edges for end in (edge.subject, edge.object)}
        aliases = [_key(alias) for thing in things for alias in {*thing.aliases} if _key(alias) != _key(thing.name)]
        for thing in sorted(things, key=lambda thing: (-len(thing.name.split()), thing.name)):
            own = [
                alias for alias in thing.aliases if aliases.count(_key(alias)) == 1 and _key(alias) not in self.stated
            ]
            names = (thing.name, *own)
            mention = "|".join(
                re.escape(name) if has_no_capitals(name) else rf"(?<!\w){re.escape(name)}(?!\w)"
                for name in names
                if name
            )
            is_mentioned = thing.kind in _MENTIONED and any(re.search(mention, text) for text in statements)
            if is_mentioned or not ends.isdisjoint(map(_key, names)):
                self._name_thing(thing, own)
        types: dict[str, str] = {}
        for edge in edges:
            for end, kind in zip((edge.subject, edge.object), relations.entity_types(edge.relation), strict=True):
                if types.get(end, "concept") in {"concept", "thing"}:
                    types[end] = kind
        # Full names first: a first name can then refer to one of them, whichever comes first in the answer.
        for end in sorted(types, key=lambda end: types[end] != "person" or " " not in end):
            self.resolve(end, types[end])

    def place(self, edge: Edge) -> Edge:
        """Return `edge` between the notes of its ends, perhaps the same. Names without a note get one."""
        subject_type, object_type = relations.entity_types(edge.relation)
        subject = self.resolve(edge.subject, subject_type)
        return Edge(subject, edge.relation, self.resolve(edge.object, object_type))

    def resolve(self, name: str, entity_type: str) -> str:
        """Return the name of the note that `name` refers to; without one, the name without its article."""
        if self.owner and is_owner_label(name):
            name = self.owner
        entity_type = self.kinds.get(_key(name), entity_type)
        if name in self.speakers or name == self.owner:
            entity_type = "person"
        note = self.resolved.get(_key(name)) or self._find(name, entity_type)
        if note:
            if self.created.get(note) == "concept":  # a later relation may show its type
                self.created[note] = entity_type
        else:
            bare = name if self._is_name(name) else _ARTICLE.sub("", name, count=1)
            if not self._is_name(bare) and name != self.owner:
                return name
            new = self._disambiguate(bare, entity_type)
            # A note, perhaps the owner's own, may have the file that this name would have.
            file_name = note_name(entity_path(new))
            found = self.find_note(file_name)
            note = (self.called.get(_key(file_name)) or [found.name if found else file_name])[0]
            if note == file_name and found is None:
                self.created.setdefault(note, entity_type)
            self._call(file_name, note)
            if name_key(new) != name_key(note):
                self.aliases[note].append(new)
            self._call(new, note)
            self.written.append((new, note))
        # `name` refers to this note in all of this plan, in links too, whatever else has that name.
        self.resolved[_key(name)] = note
        if any(other != note for other in self.called.get(_key(name), ())):
            self.written[:] = [pair for pair in self.written if _key(pair[0]) != _key(name)]
            self.written.append((name, note))
        return note

    def _is_name(self, text: str) -> bool:
        """Return True for a name; in a script without capitals for one that the model lists, where it lists any."""
        return _key(text) in self.stated or (is_name(text) and not (self.stated and has_no_capitals(text)))

    @property
    def edits(self) -> tuple[Edit, ...]:
        """In the order of their paths; the same for the same names."""
        edits: list[Edit] = []
        for name, kind in self.created.items():
            edit = plan_entity(name, kind, self.now, place=self.layout)
            edits.append(replace(edit, after=add_aliases(edit.after or b"", self.aliases.get(name, ()))))
        for name, aliases in self.aliases.items():
            note = None if name in self.created else self.find_note(name)
            if note is None or note.is_own:
                continue
            # The owner repairs a broken head.
            with suppress(frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
                edits.append(Edit(note.rel_path, note.data, add_aliases(note.data, aliases)))
        changed = [edit for edit in edits if edit.after != edit.before]
        return tuple(sorted(changed, key=lambda edit: edit.rel_path))

    def _call(self, name: str, note: str) -> None:
        self.by_bare[split_kind_word(name)[0]].add(_key(name))
        if note not in self.called[_key(name)]:
            self.called[_key(name)].append(note)

    def _name_thing(self, thing: NamedThing, aliases: Sequence[str]) -> None:
        """Decide what a name of the model and its `aliases`, which refer to nothing else here, refer to."""
        kind = thing.kind or "concept"
        known = [note for alias in aliases for note in self.called.get(_key(alias), ())]
        if _key(thing.name) not in self.called and len(set(known)) == 1 and self._may_be(known[0], thing.name, kind):
            self.resolved[_key(thing.name)] = known[0]
            self._add_alias(known[0], thing.name)
        note = self.resolve(thing.name, kind)
        for alias in aliases:
            if _key(alias) in {_key(thing.name), *OWNER_LABELS, *_KIN_WORDS} or not (
                is_name(alias) or has_no_capitals(alias)
            ):
                continue
            self.resolved[_key(alias)] = note
            # Without capitals a description looks like a name. A name shares something with the full one.
            is_lasting = not has_no_capitals(alias) or (len(alias) > 1 and not set(alias).isdisjoint(thing.name))
            if is_lasting and not self.called.get(_key(alias)) and set(self._relatives(alias)) <= {note}:
                self._add_alias(note, alias)

    def _learn_other_name(self, speaker: str, name: str) -> None:
        """Give the note of a speaker, perhaps a new one, an alias, unless somebody else has that name."""
        if self.called.get(_key(name)) or not is_name(speaker) or not is_name(name):
            return
        note = self._find(speaker, "person")
        own = {_key(speaker), *(key for key, notes in self.called.items() if note in notes)}
        has_full_name = " " in name and any(" " in key and "(" not in key for key in own)
        if has_full_name or not {*self._relatives(name)} <= {note} or (note and not self._may_join(note, name)):
            return
        if not are_named_apart(name, speaker, self.texts, self.edges):
            self._add_alias(note or self.resolve(speaker, "person"), name)

    def _find(self, name: str, entity_type: str) -> str | None:
        """Return the note of this name, or that of the one person to whom a part of a name, or a longer name, can
        refer; that one gets the alias.
        """
        exact = self.called.get(_key(name), [])
        if not exact and (note := self._find_by_kind_word(name, entity_type)):
            self._add_alias(note, name)
            return note
        may_be = [note for note in exact if self._may_be(note, name, entity_type)]
        is_person = entity_type == "person" or (entity_type == "concept" and " " not in name)
        # `Melanie Pottery Studio` is not Melanie.
        is_candidate = is_person and self._is_name(name) and not len(exact) == len(may_be) == 1
        if not is_candidate:
            return next(iter(may_be), None)
        relatives = [note for note in self._relatives(name) if note not in exact and self._type_of(note) == "person"]
        may_join = [note for note in relatives if self._may_join(note, name)]
        if not exact and len(relatives) <= 1:
            for note in may_join:
                self._add_alias(note, name)
            return next(iter(may_join), None)
        # Of several candidates the one that has a tie in common with the name, else one with this exact name.
        ours = self._profile_of_name(name)
        bound = [note for note in (*may_be, *may_join) if speaks_for(ours, self._profile(note, name))]
        is_left = len(may_join) == 1 and not may_be and name_key(name) in self.called
        return bound[0] if len(bound) == 1 else next(iter(may_be), may_join[0] if is_left else None)

    def _find_by_kind_word(self, name: str, entity_type: str) -> str | None:
        """Return the note of `Birkenhain` for `Haus Birkenhain`, or the reverse, where it is the only one and nothing
        speaks against it.
        """
        bare = split_kind_word(name)[0]
        alike = sorted(self.by_bare.get(bare, ()))
        words = {word for _, word in map(split_kind_word, (*alike, name)) if word}
        candidates = {note for key in alike for note in self.called[key]}
        if len(candidates) != 1 or len(words) != 1:
            return None
        (note,), sort = candidates, _KIND_WORDS[words.pop()]
        kinds = {self.kinds.get(_key(name)) or entity_type, self._type_of(note)}
        ties = {role for one in (self._profile_of_name(name), self._profile(note, name)) for _, role, _ in one.ties}
        is_other = ties & _TIES_OF_TOWNS or (sort != "homes" and ties & _TIES_OF_HOMES) or kinds & _NO_KINDS[sort]
        longer = [key for key in (*alike, _key(name)) if key != bare]
        is_apart = any(are_named_apart(bare, key, self.texts, self.edges) for key in longer)
        return None if is_other or is_apart or not self._may_join(note, name) else note

    def _add_alias(self, note: str, name: str) -> None:
        self._call(name, note)
        self.aliases[note].append(name)
        self.written.append((name, note))

    def _relatives(self, name: str) -> list[str]:
        """Return the notes of each `Maya Chen` for `Maya`; that of `Maya` for `Maya Chen` where it is the only one."""
        first, *rest = _key(name).split() or [""]
        longer = {note for key, notes in self.called.items() if _is_longer(key, first) for note in notes}
        if not rest:
            return sorted(longer)
        here = {_key(end) for edge in self.edges for end in (edge.subject, edge.object)} | self.stated
        is_one_of_several = any(_is_longer(key, first) for key in here - {_key(name)})
        return [] if longer or is_one_of_several else list(self.called.get(first, ()))

    def _may_be(self, note: str, name: str, entity_type: str) -> bool:
        """Return True unless it is certain that `note`, which has this name, is something else this time."""
        # Of the kinds that a relation implies, only a pet cannot be mistaken.
        kind = self.kinds.get(_key(name)) or ("pet" if entity_type == "pet" else None)
        natures = {_NATURES[one] for one in (kind, self._type_of(note)) if one in _NATURES}
        if len(natures) > 1:
            return False
        if (entity_type != "person" and kind is None) or name_key(name) in self._near:
            return True
        ours, theirs = self._profile_of_name(name), self._profile(note, name)
        # A note with exactly this name has to differ in a tie to somebody whose identity is certain.
        return not contradict(ours, theirs, self._near if name_key(name) == name_key(note) else None)

    def _may_join(self, note: str, name: str) -> bool:
        """Return True when nothing contradicts that `name` is the person of `note`, who had another name so far."""
        keys = {_key(note), *(key for key, notes in self.called.items() if note in notes)}
        if _key(name) in self.stated and any(key in self.stated for key in keys):
            return False
        for other in (note, *self.aliases.get(note, ())):
            short, long = sorted((name, other), key=len)
            if _is_longer(_key(long), _key(short)) and are_named_apart(short, long, self.texts, self.edges):
                return False
        return not speaks_against(self._profile_of_name(name), self._profile(note, name), self._near)

    def _profile_of_name(self, name: str) -> Profile:
        return Profile.of([_key(name)], self._named_edges)

    def _profile(self, note: str, but: str) -> Profile:
        """Return what the memory and this plan have of `note`, by other names than `but`."""
        keys = [key for key, notes in self.called.items() if notes == [note] and key != _key(but)]
        known = Profile.of([_key(note), *keys], self.find_edges(note))
        here = Profile.of([key for key in (*keys, _key(note)) if key != _key(but)], self._named_edges)
        return Profile(known.keys - {_key(but)} or known.keys, (*known.ties, *here.ties))

    @property
    def _named_edges(self) -> list[Edge]:
        """The edges of this plan, the owner by name."""
        named = dict.fromkeys(OWNER_LABELS, self.owner) if self.owner else {}
        ends = [(edge, name_key(edge.subject), name_key(edge.object)) for edge in self.edges]
        return [
            Edge(named.get(subject, edge.subject), edge.relation, named.get(object_, edge.object))
            for edge, subject, object_ in ends
        ]

    @property
    def _near(self) -> tuple[str, ...]:
        return tuple(name_key(name) for name in (*self.speakers, self.owner or "user") if name)

    def _disambiguate(self, name: str, entity_type: str) -> str:
        """Return the name of a new note: `name` itself, unless it is taken."""
        if not self.called.get(_key(name)):
            return name
        labels = []
        for edge in sorted(
            (edge for edge in self._named_edges if _key(name) in {_key(edge.subject), _key(edge.object)}),
            key=lambda edge: (edge.relation not in ROLES, edge.relation, edge.subject, edge.object),
        ):
            is_subject = _key(edge.subject) == _key(name)
            if edge.relation in ROLES:
                other = edge.object if is_subject else edge.subject
                labels.append(f"{ROLES[edge.relation][not is_subject]} of {other}")
            elif is_subject:
                labels.append(f"{edge.relation.replace('_', ' ')} {edge.object}")
        labels += [entity_type] * (entity_type not in {"person", "concept"}) + [str(number) for number in range(2, 100)]
        candidates = (f"{name} ({label})" for label in labels if len(label) <= _MAX_NAME_CHARS)
        return next(candidate for candidate in candidates if _key(candidate) not in self.called)

    def _type_of(self, note: str) -> str:
        if note in self.created:
            return self.created[note]
        found = self.find_note(note)
        return str((found and found.head.fields.get("type")) or "concept")


def is_name(text: str) -> bool:
    """Return True for a name, `LGBTQ support group`, `Maya Chen`, `王小明`; False for a phrase, `Maya's trip to Rome`.

    Only names get notes. A phrase stays an end of its edge: it can be found, and a note can be made for it by hand.
    """
    text = _IN_BRACKETS.sub("", text).rstrip()
    words = text.split()
    if not words or len(text) > _MAX_NAME_CHARS or _POSSESSIVE.search(text) or not text[0].isalpha():
        return False
    if words[0].casefold() in _NO_FIRST_WORDS or text.casefold() in {"assistant", *_KIN_WORDS}:
        return False
    if has_no_capitals(text):
        return _OF.search(text) is None and count_words(text) <= _MAX_WORDS * 2
    is_title = all(not word[0].islower() for word in words if word.casefold() not in _LINKING)
    if is_title:
        return words[0][0].isupper() and len(words) <= _MAX_WORDS * 2
    return any(map(str.isupper, words[0])) and len(words) <= _MAX_WORDS and not _PHRASE_WORDS.intersection(words)


def split_kind_word(name: str) -> tuple[str, str]:
    """Return (the key of a name without the word that says what sort of thing it is, that word or nothing)."""
    words = _key(name).split()
    if len(words) > 1 and (word := words[0].rstrip(".")) in _KIND_WORDS:
        return " ".join(words[1:]), word
    if len(words) > 1 and _KIND_WORDS.get(word := words[-1].rstrip("."), "titles") != "titles":
        return " ".join(words[:-1]), word
    return " ".join(words), ""


def has_no_capitals(text: str) -> bool:
    """Return True for a text in a script without capitals, where names do not show by their writing."""
    return text[0].isalpha() and not (text[0].isupper() or text[0].islower())


def _is_stated_name(thing: NamedThing) -> bool:
    """Return True for a name that a model may give; in a script without capitals too."""
    text = " ".join(thing.name.split())
    if not text or len(text) > _MAX_NAME_CHARS or name_key(text) in (*OWNER_LABELS, *_KIN_WORDS, "assistant"):
        return False
    is_proper = thing.kind in _MENTIONED and text[0].isalpha() and " " not in text
    return is_name(text) or has_no_capitals(text) or (is_proper and text.casefold() not in _NO_FIRST_WORDS | _PRONOUNS)


def _is_longer(key: str, first: str) -> bool:
    """Return True where `key` begins with the whole name `first`, followed by more words or brackets."""
    return key.startswith((f"{first} ", f"{first}("))


def _key(name: str) -> str:
    return name_key(_ARTICLE.sub("", name, count=1))
