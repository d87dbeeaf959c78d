"""One way to state each relation, so that `child_of(A, B)` and `parent_of(B, A)` are the same edge.

The tables, in relations.txt, hold only what follows from the words. Near-synonyms stay apart: who enjoyed a film need
not prefer it.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from quaid.errors import BadInputError
from quaid.model import Edge, Edit
from quaid.vault import files, frontmatter, layout
from quaid.vault.layout import Layout

NICKNAMED = "nicknamed"
"""`Melanie nicknamed Mel`: another name of the same one."""

INVERSES: dict[str, str] = {}
"""`relation(A, B)` -> this relation with B first."""
SYNONYMS: dict[str, str] = {}
"""Another word for the same relation in the same direction."""
TYPES: dict[str, tuple[str, str]] = {}
"""The entity types of (subject, object) that a canonical relation implies."""
ROLES: dict[str, tuple[str, str]] = {}
"""Relation between two people -> (the role of its subject for its object, the reverse)."""
_symmetric: set[str] = set()
for _line in Path(__file__).with_name("relations.txt").read_text("utf-8").splitlines()[1:]:
    _name, _types, _roles, _synonyms, _inverses = (f"{_line}||||").split("|")[:5]
    _relation = _name.strip().removeprefix("*")
    _symmetric |= {_relation} if _name.startswith("*") else set()
    for _table, _pair in ((TYPES, _types.split()), (ROLES, _roles.split())):
        if _pair:
            _table[_relation] = (_pair[0], _pair[1])
    SYNONYMS |= dict.fromkeys(_synonyms.split(), _relation)
    INVERSES |= dict.fromkeys(_inverses.split(), _relation)
SYMMETRIC = frozenset(_symmetric)
"""Relations that hold both ways: the alphabetically first name comes first."""
CANONICAL = frozenset((*TYPES, *SYMMETRIC, *INVERSES.values(), *SYNONYMS.values()))
"""All relations that the tables know, each in its one form."""
_WORDS_HEAD = "---\ntype: relations\n---\n# Words for relations\n\nWhat a question may call a relation.\n"
_UNKNOWN_TYPES = ("concept", "concept")
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[\W_]+")
_WIKILINK = re.compile(r"\[\[(?P<name>[^\[\]|#]*)(?:[|#][^\[\]]*)?\]\]")


def normalise_edge(edge: Edge) -> Edge:
    """`edge` in the one form its meaning has: names without brackets, canonical relation and direction. Idempotent."""
    subject, object_ = _plain_name(edge.subject), _plain_name(edge.object)
    relation, is_flipped = _canonical(edge.relation)
    shown = f"{edge.subject!r} {edge.relation!r} {edge.object!r}"
    if not subject or not object_:
        raise BadInputError(f"The edge {shown} lacks a name. Say who or what stands on both sides.")
    if not any(character.isalpha() for character in relation):
        raise BadInputError(f"The edge {shown} lacks a relation. Name it with a verb, such as works_at.")
    if subject.casefold() == object_.casefold():
        raise BadInputError(f"The edge {shown} joins a thing to itself. Name two different things.")
    is_unordered = relation in SYMMETRIC and (object_.casefold(), object_) < (subject.casefold(), subject)
    return Edge(object_, relation, subject) if is_flipped != is_unordered else Edge(subject, relation, object_)


def entity_types(relation: str) -> tuple[str, str]:
    """The entity types of (subject, object) that `relation`, in any spelling, implies; `concept` where it does not."""
    canonical, is_flipped = _canonical(relation)
    subject, object_ = TYPES.get(canonical, _UNKNOWN_TYPES)
    return (object_, subject) if is_flipped else (subject, object_)


def is_known(relation: str) -> bool:
    """Return True when the tables have this relation, in any spelling."""
    return _canonical(relation)[0] in CANONICAL


def plan_words(root: Path, place: Layout, words: Mapping[str, Sequence[str]]) -> Iterator[Edit]:
    """Yield the edit that adds to the list of the words that questions use for relations; none where nothing is new."""
    path = place.place(layout.RELATION_WORDS)
    before = files.read_note(root, path)
    with suppress(frontmatter.FrontmatterBrokenError, UnicodeDecodeError):  # its owner repairs a broken head
        text = (before or _WORDS_HEAD.encode()).decode("utf-8")
        listed = frontmatter.list_values(frontmatter.parse(text).fields.get("aliases"))
        known = {line.partition(":")[0] for line in listed}
        new = [f"{relation}: {' '.join(words[relation])}" for relation in sorted(words.keys() - known)]
        if new:
            yield Edit(path, before, frontmatter.set_fields(text, {"aliases": [*listed, *new]}).encode())


def _canonical(relation: str) -> tuple[str, bool]:
    """(canonical name, whether subject and object change places)."""
    humped = _CAMEL_HUMP.sub("_", _plain_name(relation))
    name = _NOT_WORD.sub("_", unicodedata.normalize("NFKC", humped).casefold()).strip("_")
    bare = name.removeprefix("is_").removeprefix("are_")
    if bare in INVERSES or bare in SYNONYMS or bare in SYMMETRIC or bare in TYPES:
        name = bare
    inverse = INVERSES.get(name)
    return (inverse, True) if inverse else (SYNONYMS.get(name, name), False)


def _plain_name(name: str) -> str:
    previous = None
    while previous != name:
        previous = name
        name = _WIKILINK.sub(lambda link: link["name"], name).replace("[[", "").replace("]]", "")
        name = " ".join(name.split())
    return name
