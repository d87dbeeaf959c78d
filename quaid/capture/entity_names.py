"""The notes that the names in edges mean, existing or new, and when two names mean one thing.

Nothing is merged by likeness. Two names are one thing when they differ in case or in a leading article, when the model
or somebody has said that a thing is called so too, or when one is the first name of exactly one person that is known
and nothing speaks against it (entity_evidence.py). The other name becomes an alias of the note, which its owner can
take away again; a name that two are called by is the alias of neither. Who is called like somebody else gets a note of
a name that says who it is: `Anna (sibling of Maya)`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from quaid.capture import relations
from quaid.capture.entity_evidence import ROLES, Profile, are_named_apart, contradict, speaks_against, speaks_for
from quaid.capture.entity_note import EntityNote, plan_entity
from quaid.model import OWNER_LABELS, Edge, Edit, is_owner_label, name_key, note_name
from quaid.text.words import count_words
from quaid.vault import frontmatter
from quaid.vault.layout import DEFAULT, Layout, entity_path

FindNote = Callable[[str], "EntityNote | None"]
"""The entity note of this file name."""
FindEdges = Callable[[str], Iterable[Edge]]
"""The edges that the memory has of the note of this name."""

_ARTICLE = re.compile(r"\A(?:the|a|an|my|our|his|her|their)\s+(?=\S)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['\u2019]s\b|s['\u2019](?=\s)")
_PHRASE_WORDS = frozenset("in to with about for from on at by that who which made".split())  # noqa: SIM905 - words read best as words
_IN_BRACKETS = re.compile("[(\uff08][^()\uff08\uff09]+[)\uff09]\\Z")
"""Behind a name, what tells its owner from others of that name: `Anna (Maya's sister)`."""
_NATURES = {"person": "person", "pet": "pet", "place": "thing", "organization": "thing"}
"""Kinds that cannot be one; the others are guessed too often to tell things apart."""
_TOLD = frozenset({"person", "pet", "place", "organization", "project"})
"""Kinds of which a note is made for what a statement only mentions."""
_PRONOUNS = frozenset({"she", "he", "they", "it", "we", "you"})
_KIN_WORDS = frozenset(
    """mom mum mommy mummy mother dad daddy father grandma granny grandmother grandpa grandfather sis bro boss
    mama mami mutti mutter papa papi vati vater oma opa chef chefin maman mamie papy mamá papá abuela abuelo mamma
    babbo nonna nonno mãe pai avó avô мама папа бабушка дедушка 妈妈 爸爸 奶奶 爷爷 外婆 外公 お母さん お父さん ママ
    パパ 엄마 아빠 할머니 할아버지
    """.split()  # noqa: SIM905 - words read best as words
)
"""What people call a relative or a boss of theirs: nobody's name, since whom it means depends on who says it."""
_MAX_NAME_CHARS = 60
_MAX_WORDS = 5


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A name that a model has given, what kind of thing it means (None: not said), and what that is called besides."""

    name: str
    kind: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(slots=True)
class EntityNames:
    """The names a plan meets. `edits` are what must be written for them: new entity notes, and aliases of old ones."""

    find_note: FindNote
    now: datetime
    called: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Key of a name or alias -> names of the notes that are called so."""
    created: dict[str, str] = field(default_factory=dict)
    """Name of a new note -> its type."""
    aliases: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Name of a note -> names that were found to mean it too."""
    speakers: tuple[str, ...] = ()
    owner: str = ""
    """The name of the person that `User` means."""
    written: list[tuple[str, str]] = field(default_factory=list)
    """(as written, name of its note), for links in statements."""
    layout: Layout = DEFAULT
    find_edges: FindEdges = field(default=lambda _: ())
    meant: dict[str, str] = field(default_factory=dict)
    """Key of a name of this plan -> name of the note it means in all of it."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Key of a name -> its kind, as the model has said."""
    stated: frozenset[str] = frozenset()
    """Keys of the names that the model lists, each for a thing of its own."""
    texts: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()

    @classmethod
    def of(
        cls,
        pairs: Iterable[tuple[str, str]],
        find_note: FindNote,
        now: datetime,
        *,
        speakers: Iterable[str] = (),
        owner: str = "",
        find_edges: FindEdges = lambda _: (),
        layout: Layout = DEFAULT,
    ) -> EntityNames:
        """`pairs` are (name or alias as written, name of its note) of all entity notes; `owner` is whom User means;
        `find_edges` gives the edges that the memory has of a note.
        """
        names = cls(find_note, now, owner=owner, written=list(pairs), find_edges=find_edges, layout=layout)
        for name, note in names.written:
            names._call(name, note)
        names.speakers = tuple(dict.fromkeys(speaker for speaker in speakers if is_name(speaker)))
        return names

    def learn(
        self,
        edges: Sequence[Edge],
        things: Sequence[NamedThing] = (),
        statements: Sequence[str] = (),
        turns: Iterable[str] = (),
    ) -> None:
        """Take in all of a plan before any of it is placed, so that its order does not matter: `edges` in normal form,
        `things` as the model names them, the `statements` that are stored, and the `turns` they were drawn from.
        """
        self.texts = (*statements, *turns)
        self.edges = (*self.edges, *edges)
        things = [thing for thing in things if _is_stated_name(thing)]
        self.stated = frozenset(_key(thing.name) for thing in things)
        self.kinds |= {_key(thing.name): thing.kind for thing in things if thing.kind}
        for edge in edges:
            self.learn_nickname(edge)
        ends = {_key(end) for edge in edges for end in (edge.subject, edge.object)}
        aliases = [_key(alias) for thing in things for alias in {*thing.aliases} if _key(alias) != _key(thing.name)]
        for thing in sorted(things, key=lambda thing: _long_first(thing.name)):
            own = [
                alias for alias in thing.aliases if aliases.count(_key(alias)) == 1 and _key(alias) not in self.stated
            ]
            names = (thing.name, *own)
            is_told = thing.kind in _TOLD and any(_is_in(name, text) for name in names for text in statements)
            if is_told or not ends.isdisjoint(map(_key, names)):
                self._name_thing(thing, own)
        types: dict[str, str] = {}
        for edge in edges:
            for end, kind in zip((edge.subject, edge.object), relations.entity_types(edge.relation), strict=True):
                if types.get(end, "concept") in {"concept", "thing"}:
                    types[end] = kind
        # Full names first: a first name may then mean one of them, whichever comes first in the answer.
        for end in sorted(types, key=lambda end: types[end] != "person" or " " not in end):
            self.resolve(end, types[end])

    def place(self, edge: Edge) -> Edge:
        """`edge` between the notes its ends mean, perhaps the same. Ends that are names and have no note get one."""
        subject_type, object_type = relations.entity_types(edge.relation)
        subject = self.resolve(edge.subject, subject_type)
        return Edge(subject, edge.relation, self.resolve(edge.object, object_type))

    def learn_nickname(self, edge: Edge) -> None:
        """Add the alias that `Melanie nicknamed Mel` states, unless the other name has a note of its own."""
        if edge.relation != relations.NICKNAMED or not (is_name(edge.subject) and is_name(edge.object)):
            return
        if _key(edge.object) not in self.called:
            self._add_alias(self.resolve(edge.subject, "person"), edge.object)

    def resolve(self, name: str, entity_type: str) -> str:
        """The name of the note that `name` means; of none, what it is called without its article."""
        if self.owner and is_owner_label(name):
            name = self.owner
        entity_type = self.kinds.get(_key(name), entity_type)
        if name in self.speakers or name == self.owner:
            entity_type = "person"
        found = self.meant.get(_key(name)) or self._find(name, entity_type)
        if found:
            if self.created.get(found) == "concept":  # what it is, a later relation may tell
                self.created[found] = entity_type
            self._mean(name, found)
            return found
        bare = name if self._is_name(name) else _ARTICLE.sub("", name, count=1)
        if not self._is_name(bare) and name != self.owner:
            return name
        is_taken = bool(self.called.get(_key(bare)))
        note = self._create(self._tell_apart(bare, entity_type) if is_taken else bare, entity_type)
        self._mean(name, note)
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

    def _mean(self, name: str, note: str) -> None:
        """In all of this plan `name` means `note`, in links too, whoever else is called so."""
        self.meant[_key(name)] = note
        if any(other != note for other in self.called.get(_key(name), ())):
            self.written[:] = [pair for pair in self.written if _key(pair[0]) != _key(name)]
            self.written.append((name, note))

    def _call(self, name: str, note: str) -> None:
        notes = self.called[_key(name)]
        if note not in notes:
            notes.append(note)

    def _create(self, name: str, entity_type: str) -> str:
        """A new note, unless there is one in the file that this name would have, or one of the owner's own."""
        file_name = note_name(entity_path(name))
        found = self.find_note(file_name)
        note = (self.called.get(_key(file_name)) or [found.name if found else file_name])[0]
        if note == file_name and found is None:
            self.created.setdefault(note, entity_type)
        self._call(file_name, note)
        if name_key(name) != name_key(note):
            self.aliases[note].append(name)
        self._call(name, note)
        self.written.append((name, note))
        return note

    def _name_thing(self, thing: NamedThing, aliases: Sequence[str]) -> None:
        """Settle what a name of the model and its `aliases`, which mean nothing else here, mean."""
        kind = thing.kind or "concept"
        known = [note for alias in aliases for note in self.called.get(_key(alias), ())]
        if _key(thing.name) not in self.called and len(set(known)) == 1 and self._may_be(known[0], thing.name, kind):
            self.meant[_key(thing.name)] = known[0]
            self._add_alias(known[0], thing.name)
        note = self.resolve(thing.name, kind)
        for alias in aliases:
            if _key(alias) in {_key(thing.name), *OWNER_LABELS, *_KIN_WORDS} or not (
                is_name(alias) or has_no_capitals(alias)
            ):
                continue
            self.meant[_key(alias)] = note
            # Without capitals a word for what somebody is looks like a name. A name has something of the full one.
            is_lasting = not has_no_capitals(alias) or (len(alias) > 1 and not set(alias).isdisjoint(thing.name))
            if is_lasting and not self.called.get(_key(alias)) and set(self._relatives(alias)) <= {note}:
                self._add_alias(note, alias)

    def _find(self, name: str, entity_type: str) -> str | None:
        """The note that is called so, or that of the one person whom a part of a name, or a longer name, can mean; that
        one gets the alias.
        """
        exact = self.called.get(_key(name), [])
        may_be = [note for note in exact if self._may_be(note, name, entity_type)]
        is_person = entity_type == "person" or (entity_type == "concept" and " " not in name)
        # `Melanie Pottery Studio` is not Melanie.
        is_chosen = is_person and self._is_name(name) and not len(exact) == len(may_be) == 1
        if not is_chosen:
            return next(iter(may_be), None)
        relatives = [note for note in self._relatives(name) if note not in exact and self._is_person(note)]
        may_join = [note for note in relatives if self._may_join(note, name)]
        if exact or len(relatives) > 1:
            return self._choose(name, may_be, may_join)
        for note in may_join:
            self._add_alias(note, name)
        return next(iter(may_join), None)

    def _choose(self, name: str, called: Sequence[str], alike: Sequence[str]) -> str | None:
        """Of several who may be `name` the one that it has a tie in common with; else one of those `called` so."""
        ours = self._profile_of_name(name)
        bound = [note for note in (*called, *alike) if speaks_for(ours, self._profile(note, name))]
        if len(bound) == 1:
            return bound[0]
        is_left = len(alike) == 1 and not called and name_key(name) in self.called
        return called[0] if called else alike[0] if is_left else None

    def _add_alias(self, note: str, name: str) -> None:
        self._call(name, note)
        self.aliases[note].append(name)
        self.written.append((name, note))

    def _relatives(self, name: str) -> list[str]:
        """The notes of each `Maya Chen` for `Maya`; that of `Maya` for `Maya Chen` where nobody else can be meant."""
        first, *rest = _key(name).split() or [""]
        longer = {note for key, notes in self.called.items() if _is_longer(key, first) for note in notes}
        if not rest:
            return sorted(longer)
        here = {_key(end) for edge in self.edges for end in (edge.subject, edge.object)} | self.stated
        is_one_of_several = any(_is_longer(key, first) for key in here - {_key(name)})
        return [] if longer or is_one_of_several else list(self.called.get(first, ()))

    def _may_be(self, note: str, name: str, entity_type: str) -> bool:
        """Return True unless it is certain that `note`, which is called `name`, is something else this time."""
        # Of the kinds that a relation implies, a pet is the one that it cannot be mistaken in.
        kind = self.kinds.get(_key(name)) or ("pet" if entity_type == "pet" else None)
        natures = {_NATURES[one] for one in (kind, self._type_of(note)) if one in _NATURES}
        if len(natures) > 1:
            return False
        if (entity_type != "person" and kind is None) or name_key(name) in self._near:
            return True
        ours, theirs = self._profile_of_name(name), self._profile(note, name)
        # Whose note has this very name has to be somebody else to one of whom it is certain who that is.
        return not contradict(ours, theirs, self._near if name_key(name) == name_key(note) else None)

    def _may_join(self, note: str, name: str) -> bool:
        """Return True when nothing speaks against `name` meaning the person of `note`, who was called otherwise."""
        keys = {_key(note), *(key for key, notes in self.called.items() if note in notes)}
        if _key(name) in self.stated and any(key in self.stated for key in keys):
            return False
        others = [note, *(alias for alias in self.aliases.get(note, ()))]
        for other in others:
            short, long = sorted((name, other), key=len)
            if _is_longer(_key(long), _key(short)) and are_named_apart(short, long, self.texts, self.edges):
                return False
        ours, theirs = self._profile_of_name(name), self._profile(note, name)
        return not speaks_against(ours, theirs, self._near)

    def _profile_of_name(self, name: str) -> Profile:
        return Profile.of([_key(name)], self._said)

    def _profile(self, note: str, but: str) -> Profile:
        """What the memory and this plan have of `note`, by other names than `but`."""
        keys = [key for key, notes in self.called.items() if notes == [note] and key != _key(but)]
        known = Profile.of([_key(note), *keys], self.find_edges(note))
        here = Profile.of([key for key in (*keys, _key(note)) if key != _key(but)], self._said)
        return Profile(known.keys - {_key(but)} or known.keys, (*known.ties, *here.ties))

    @property
    def _said(self) -> list[Edge]:
        """The edges of this plan, the owner by name."""
        named = dict.fromkeys(OWNER_LABELS, self.owner) if self.owner else {}
        return [
            Edge(
                named.get(name_key(edge.subject), edge.subject),
                edge.relation,
                named.get(name_key(edge.object), edge.object),
            )
            for edge in self.edges
        ]

    @property
    def _near(self) -> tuple[str, ...]:
        return tuple(name_key(name) for name in (*self.speakers, self.owner or "user") if name)

    def _tell_apart(self, name: str, entity_type: str) -> str:
        """A name that says which of those called `name` is meant, by what it is to whom."""
        said = [edge for edge in self._said if _key(name) in {_key(edge.subject), _key(edge.object)}]
        labels = []
        for edge in sorted(
            said, key=lambda edge: (edge.relation not in ROLES, edge.relation, edge.subject, edge.object)
        ):
            is_subject = _key(edge.subject) == _key(name)
            if edge.relation in ROLES:
                labels.append(
                    f"{ROLES[edge.relation][not is_subject]} of {edge.object if is_subject else edge.subject}"
                )
            elif is_subject:
                labels.append(f"{edge.relation.replace('_', ' ')} {edge.object}")
        labels += [entity_type] * (entity_type not in {"person", "concept"}) + [str(number) for number in range(2, 100)]
        tellings = (f"{name} ({label})" for label in labels if len(label) <= _MAX_NAME_CHARS)
        return next(telling for telling in tellings if _key(telling) not in self.called)

    def _type_of(self, note: str) -> str:
        if note in self.created:
            return self.created[note]
        found = self.find_note(note)
        head = frontmatter.parse(found.data.decode("utf-8", errors="replace")).fields if found else {}
        return str(head.get("type") or "concept")

    def _is_person(self, note: str) -> bool:
        return self._type_of(note) == "person"


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
    if not _has_case(text[0]):
        return _OF.search(text) is None and count_words(text) <= _MAX_WORDS * 2
    is_title = all(not _has_case(word[0]) or word[0].isupper() for word in words if word.casefold() not in _LINKING)
    if is_title:
        return words[0][0].isupper() and len(words) <= _MAX_WORDS * 2
    return any(map(str.isupper, words[0])) and len(words) <= _MAX_WORDS and not _PHRASE_WORDS.intersection(words)


def _has_case(char: str) -> bool:
    return char.lower() != char.upper()


_NO_FIRST_WORDS = frozenset(
    "the a an i my our his her their user 我 我们 他 她 私 僕 나 나는 저 मैं मेरा मेरी मेरे أنا".split()  # noqa: SIM905 - as above
)
_OF = re.compile("[的の]")
"""Letters that make a phrase of what belongs to somebody, as `'s` does."""
_LINKING = frozenset("of the and de von van der la le di da al & in".split())  # noqa: SIM905 - as above


def _is_stated_name(thing: NamedThing) -> bool:
    """Return True for what a model may name: a name, in a script that has no capitals as well."""
    text = " ".join(thing.name.split())
    if not text or len(text) > _MAX_NAME_CHARS or name_key(text) in (*OWNER_LABELS, *_KIN_WORDS, "assistant"):
        return False
    is_proper = thing.kind in _TOLD and text[0].isalpha() and " " not in text
    return is_name(text) or has_no_capitals(text) or (is_proper and text.casefold() not in _NO_FIRST_WORDS | _PRONOUNS)


def _is_in(name: str, text: str) -> bool:
    if name not in text:
        return False
    return has_no_capitals(name) or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def has_no_capitals(text: str) -> bool:
    """Return True for a text in a script without capitals, whose names do not show by how they are written."""
    return text[0].isalpha() and not (text[0].isupper() or text[0].islower())


def _is_longer(key: str, first: str) -> bool:
    """Return True where `key` begins with the whole name `first`, with more words or with brackets behind it."""
    return key.startswith((f"{first} ", f"{first}("))


def _long_first(name: str) -> tuple[int, str]:
    return (-len(name.split()), name)


def _key(name: str) -> str:
    return name_key(_ARTICLE.sub("", name, count=1))


def add_aliases(data: bytes, aliases: Iterable[str]) -> bytes:
    text = data.decode("utf-8")
    aliases_there = frontmatter.parse(text).fields.get("aliases")
    if isinstance(aliases_there, str):
        aliases_there = [aliases_there]
    listed = [str(alias) for alias in aliases_there] if isinstance(aliases_there, list) else []
    have = {name_key(alias) for alias in listed}
    new = [alias for alias in dict.fromkeys(aliases) if name_key(alias) not in have]
    return frontmatter.set_fields(text, {"aliases": [*listed, *new]}).encode() if new else data
