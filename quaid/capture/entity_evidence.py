"""What speaks against two names meaning one person, and what for it: their relations, and how a conversation uses them.

A relation says what somebody is to somebody else: nobody is both the sister and the colleague of one person, as far as
a name alone may tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from quaid.capture import relations
from quaid.model import Edge, name_key

_KIN = {
    "parent_of": ("parent", "child"),
    "grandparent_of": ("grandparent", "grandchild"),
    "sibling_of": ("sibling", "sibling"),
    "twin_of": ("sibling", "sibling"),
    "cousin_of": ("cousin", "cousin"),
    "aunt_of": ("aunt", "niece"),
    "uncle_of": ("uncle", "nephew"),
    "niece_of": ("niece", "aunt"),
    "nephew_of": ("nephew", "uncle"),
}
_PARTNER = dict.fromkeys(("spouse_of", "partner_of", "engaged_to"), ("partner", "partner"))
_ACQUAINTANCE = {
    "colleague_of": ("colleague", "colleague"),
    "classmate_of": ("classmate", "classmate"),
    "neighbor_of": ("neighbor", "neighbor"),
    "manages": ("manager", "report"),
}
ROLES = {**_KIN, **_PARTNER, **_ACQUAINTANCE}
"""Relation between two people -> what its subject is to its object, and its object to its subject."""
_KIN_ROLES = frozenset(role for pair in _KIN.values() for role in pair)
_SAME_SURNAME = frozenset({"parent", "child", "sibling"})
_AT_WORK = frozenset({"works_at", "colleague_of", "manages"})
_SINGLE = frozenset({"spouse_of", "born_in"})
_SINGLE_FOR_NOW = frozenset({"lives_in"})
_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f]+")


@dataclass(frozen=True, slots=True)
class Tie:
    """What somebody is to something else: `role` in words for people, else the relation; `other` is a name's key."""

    relation: str
    role: str
    other: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a person by one name or by one note: the keys of its names, its ties."""

    keys: frozenset[str]
    ties: tuple[Tie, ...]

    @classmethod
    def of(cls, keys: Iterable[str], edges: Iterable[Edge]) -> Profile:
        """`edges` that touch none of `keys` are left out."""
        own = frozenset(keys)
        return cls(own, tuple(dict.fromkeys(tie for edge in edges for tie in _ties(edge, own))))


def contradict(one: Profile, other: Profile, anchors: Sequence[str] | None = None) -> bool:
    """Return True when ties of two names cannot both be those of one person; with `anchors` only ties to these count,
    keys of people of whom it is certain who they are.
    """
    return any(
        _clash(mine, theirs)
        for mine in one.ties
        for theirs in other.ties
        if anchors is None or (mine.other == theirs.other and mine.other in anchors)
    )


def speaks_against(one: Profile, other: Profile, near: Sequence[str]) -> bool:
    """Return True when anything keeps two names from meaning one person. `near` are keys of the owner and of who
    speaks, whose kin are called by first names.
    """
    if contradict(one, other):
        return True
    if speaks_for(one, other):
        return False
    live_apart = any(_differ(mine, theirs, _SINGLE_FOR_NOW) for mine in one.ties for theirs in other.ties)
    return live_apart or _is_stranger(one, other, near) or _is_stranger(other, one, near)


def speaks_for(one: Profile, other: Profile) -> bool:
    """Return True when both have a tie in common."""
    return any(
        mine.role == theirs.role and _may_be_same(mine.other, theirs.other)
        for mine in one.ties
        for theirs in other.ties
    )


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


def _ties(edge: Edge, keys: frozenset[str]) -> Iterator[Tie]:
    subject, object_ = name_key(edge.subject), name_key(edge.object)
    roles = ROLES.get(edge.relation, (edge.relation, f"{edge.relation} by"))
    if subject in keys:
        yield Tie(edge.relation, roles[0], object_)
    if object_ in keys:
        yield Tie(edge.relation, roles[1], subject)


def _clash(mine: Tie, theirs: Tie) -> bool:
    if _differ(mine, theirs, _SINGLE):
        return True
    if not _may_be_same(mine.other, theirs.other) or mine.role == theirs.role:
        return False
    is_kin = (mine.role in _KIN_ROLES, theirs.role in _KIN_ROLES)
    # Friends, partners and flatmates may work together; who is of the family is named by that.
    return any(is_kin) and mine.relation in ROLES and theirs.relation in ROLES


def _differ(mine: Tie, theirs: Tie, single: frozenset[str]) -> bool:
    is_about_one = mine.relation == theirs.relation and mine.role == theirs.role and mine.relation in single
    return is_about_one and not _may_be_same(mine.other, theirs.other)


def _is_stranger(kin: Profile, other: Profile, near: Sequence[str]) -> bool:
    """Return True when `kin` is of the family of somebody whose name `other` does not share, or of who speaks while
    `other` is known from work.
    """
    for tie in kin.ties:
        if tie.role not in _KIN_ROLES:
            continue
        if tie.other in near and any(theirs.relation in _AT_WORK for theirs in other.ties):
            return True
        surnames = {key.split()[-1] for key in other.keys if " " in key and "(" not in key}
        if tie.role in _SAME_SURNAME and " " in tie.other and surnames and tie.other.split()[-1] not in surnames:
            return True
    return False


def _may_be_same(one: str, other: str) -> bool:
    """Return True where one name is the beginning of the other: `maya` and `maya chen`."""
    return one == other or one.startswith(f"{other} ") or other.startswith(f"{one} ")
