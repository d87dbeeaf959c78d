"""The notes that the names in edges mean, existing or new, and when two names mean one thing.

Nothing is merged by likeness. Two names are one thing when they differ in case or in a leading article, when one is the
first name of exactly one person that is known, or when somebody has said that a person is called so too. The other name
becomes an alias of the note, which its owner can take away again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from quaid.capture import relations
from quaid.capture.entity_note import EntityNote, plan_entity
from quaid.model import Edge, Edit, name_key, note_name
from quaid.vault import frontmatter
from quaid.vault.layout import DEFAULT, Layout, entity_path

FindNote = Callable[[str], "EntityNote | None"]
"""The entity note of this file name."""

_ARTICLE = re.compile(r"\A(?:the|a|an|my|our|his|her|their)\s+(?=\S)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['\u2019]s\b|s['\u2019](?=\s)")
_PHRASE_WORDS = frozenset("in to with about for from on at by that who which made".split())  # noqa: SIM905 - words read best as words
_OWNER_KEYS = ("user", "the user", "i", "me")
_MAX_NAME_CHARS = 60
_MAX_WORDS = 5


@dataclass(slots=True)
class EntityNames:
    """The names a plan meets. `edits` are what must be written for them: new entity notes, and aliases of old ones."""

    find_note: FindNote
    now: datetime
    known: dict[str, str] = field(default_factory=dict)
    """Key of a name or alias -> name of its note."""
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

    @classmethod
    def of(
        cls,
        pairs: Iterable[tuple[str, str]],
        find_note: FindNote,
        now: datetime,
        *,
        speakers: Iterable[str] = (),
        owner: str = "",
        layout: Layout = DEFAULT,
    ) -> EntityNames:
        """`pairs` are (name or alias as written, name of its note) of all entity notes; `owner` is whom User means."""
        written = list(pairs)
        known: dict[str, str] = {}
        for name, note in written:
            known.setdefault(_key(name), note)
        people = tuple(dict.fromkeys(speaker for speaker in speakers if is_name(speaker)))
        return cls(find_note, now, known, speakers=people, owner=owner, written=written, layout=layout)

    def place(self, edge: Edge) -> Edge:
        """`edge` between the notes its ends mean, perhaps the same. Ends that are names and have no note get one."""
        subject_type, object_type = relations.entity_types(edge.relation)
        subject = self.resolve(edge.subject, subject_type)
        return Edge(subject, edge.relation, self.resolve(edge.object, object_type))

    def learn_nickname(self, edge: Edge) -> None:
        """Add the alias that `Melanie nicknamed Mel` states, unless the other name has a note of its own."""
        if edge.relation != relations.NICKNAMED or not (is_name(edge.subject) and is_name(edge.object)):
            return
        if _key(edge.object) not in self.known:
            self._add_alias(self.resolve(edge.subject, "person"), edge.object)

    def resolve(self, name: str, entity_type: str) -> str:
        """The name of the note that `name` means; of none, what it is called without its article."""
        if self.owner and name_key(name) in _OWNER_KEYS:
            name = self.owner
        if name in self.speakers or name == self.owner:
            entity_type = "person"
        found = self.known.get(_key(name)) or self._same_person(name, entity_type)
        if found:
            if self.created.get(found) == "concept":  # what it is, a later relation may tell
                self.created[found] = entity_type
            return found
        bare = _ARTICLE.sub("", name, count=1) if not is_name(name) else name
        return self._create(bare, entity_type) if is_name(bare) else name

    @property
    def edits(self) -> tuple[Edit, ...]:
        """In the order of their paths; the same for the same names."""
        edits: list[Edit] = []
        for name, kind in self.created.items():
            edit = plan_entity(name, kind, self.now, place=self.layout)
            edits.append(replace(edit, after=_add_aliases(edit.after or b"", self.aliases.get(name, ()))))
        for name, aliases in self.aliases.items():
            note = None if name in self.created else self.find_note(name)
            if note is None or note.is_own:
                continue
            # The owner repairs a broken head.
            with suppress(frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
                edits.append(Edit(note.rel_path, note.data, _add_aliases(note.data, aliases)))
        changed = [edit for edit in edits if edit.after != edit.before]
        return tuple(sorted(changed, key=lambda edit: edit.rel_path))

    def _create(self, name: str, entity_type: str) -> str:
        """A new note, unless there is one in the file that this name would have, or one of the owner's own."""
        file_name = note_name(entity_path(name))
        found = self.find_note(file_name)
        note = self.known.setdefault(_key(file_name), found.name if found else file_name)
        if note == file_name and found is None:
            self.created.setdefault(note, entity_type)
        if name_key(name) != name_key(note):
            self.aliases[note].append(name)
        self.known[_key(name)] = note
        self.written.append((name, note))
        return note

    def _same_person(self, name: str, entity_type: str) -> str | None:
        """The note of the one person whom a part of a name, or a longer name, can mean; it gets the alias."""
        if entity_type not in {"person", "concept"} or not is_name(name):
            return None
        if " " in name and entity_type != "person":  # `Melanie Pottery Studio` is not Melanie
            return None
        note = self._first_name(name)
        if note is None or not self._is_person(note):
            return None
        self._add_alias(note, name)
        return note

    def _add_alias(self, note: str, name: str) -> None:
        self.known[_key(name)] = note
        self.aliases[note].append(name)
        self.written.append((name, note))

    def _first_name(self, name: str) -> str | None:
        """`Maya` means `Maya Chen` where no other Maya is known; `Maya Chen` means `Maya` on the same terms."""
        first, *rest = _key(name).split()
        longer = {note for key, note in self.known.items() if key.startswith(f"{first} ")}
        if not rest:
            return longer.pop() if len(longer) == 1 else None
        return self.known.get(first) if not longer else None

    def _is_person(self, note: str) -> bool:
        if note in self.created:
            return self.created[note] == "person"
        found = self.find_note(note)
        if found is None:
            return False
        return frontmatter.parse(found.data.decode("utf-8", errors="replace")).fields.get("type") == "person"


def is_name(text: str) -> bool:
    """Return True for a name, `LGBTQ support group` or `Maya Chen`; False for a phrase, `Maya's trip to Rome`.

    Only names get notes. A phrase stays an end of its edge: it can be found, and a note can be made for it by hand.
    """
    words = text.split()
    if not words or len(text) > _MAX_NAME_CHARS or _POSSESSIVE.search(text) or not text[0].isalpha():
        return False
    if words[0].casefold() in _NO_FIRST_WORDS or text.casefold() == "assistant":
        return False
    is_title = all(word[0].isupper() or not word[0].isalpha() for word in words if word.casefold() not in _LINKING)
    if is_title:
        return words[0][0].isupper() and len(words) <= _MAX_WORDS * 2
    return any(map(str.isupper, words[0])) and len(words) <= _MAX_WORDS and not _PHRASE_WORDS.intersection(words)


_NO_FIRST_WORDS = frozenset("the a an i my our his her their user".split())  # noqa: SIM905 - as above
_LINKING = frozenset("of the and de von van der la le di da al & in".split())  # noqa: SIM905 - as above


def _key(name: str) -> str:
    return name_key(_ARTICLE.sub("", name, count=1))


def _add_aliases(data: bytes, aliases: Iterable[str]) -> bytes:
    text = data.decode("utf-8")
    aliases_there = frontmatter.parse(text).fields.get("aliases")
    if isinstance(aliases_there, str):
        aliases_there = [aliases_there]
    listed = [str(alias) for alias in aliases_there] if isinstance(aliases_there, list) else []
    have = {name_key(alias) for alias in listed}
    new = [alias for alias in dict.fromkeys(aliases) if name_key(alias) not in have]
    return frontmatter.set_fields(text, {"aliases": [*listed, *new]}).encode() if new else data
