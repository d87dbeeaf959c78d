"""One way to say each relation, so that `child_of(A, B)` and `parent_of(B, A)` are the same edge.

The tables hold only what follows from the words. Near-synonyms stay apart: who enjoyed a film need not prefer it.
"""

from __future__ import annotations

import re
import unicodedata

from quaid.errors import BadInputError
from quaid.model import Edge

NICKNAMED = "nicknamed"
"""`Melanie nicknamed Mel`: another name of the same one."""

_INVERSE_WORDS = {
    # family and people
    "parent_of": "child_of son_of daughter_of has_parent has_mother has_father",
    "grandparent_of": "grandchild_of grandson_of granddaughter_of has_grandparent has_grandmother has_grandfather",
    "has_pet": "pet_of",
    "mentors": "mentored_by mentee_of has_mentor",
    "supports": "supported_by",
    "encouraged": "encouraged_by",
    "admires": "admired_by",
    "loves": "loved_by",
    "prefers": "liked_by preferred_by",
    NICKNAMED: "nickname_of short_for alias_of",
    # work and groups
    "works_at": "employs employer_of has_employee",
    "manages": "managed_by reports_to has_manager",
    "member_of": "has_member",
    "founded": "founded_by",
    "maintains": "maintained_by",
    "organizes": "organized_by",
    # things
    "owns": "owned_by",
    "uses": "used_by",
    "created": "created_by",
    "wrote": "written_by",
    "performed": "performed_by",
    "contains": "contained_in",
    "part_of": "has_part",
    "requires": "required_by",
    "depends_on": "dependency_of",
    # places and events
    "lives_in": "has_resident",
    "located_in": "location_of",
    "born_in": "birthplace_of",
    "attended": "attended_by",
    "visited": "visited_by",
    # causes
    "caused_by": "led_to leads_to caused causes cause_of resulted_in results_in",
    "inspired_by": "inspired inspires",
    "motivated_by": "motivated motivates",
}
INVERSES = {word: relation for relation, words in _INVERSE_WORDS.items() for word in words.split()}
"""`relation(A, B)` -> this relation with B first."""

_SYNONYM_WORDS = {
    # family and people
    "parent_of": "mother_of father_of has_child has_son has_daughter",
    "grandparent_of": "grandmother_of grandfather_of has_grandchild",
    "spouse_of": "married_to husband_of wife_of has_spouse has_husband has_wife",
    "partner_of": "boyfriend_of girlfriend_of has_partner",
    "sibling_of": "brother_of sister_of siblings_of has_sibling has_brother has_sister",
    "cousin_of": "has_cousin",
    "friend_of": "friends_with has_friend best_friend_of close_friend_of",
    "neighbor_of": "neighbour_of has_neighbor has_neighbour",
    "colleague_of": "coworker_of co_worker_of has_colleague",
    "roommate_of": "flatmate_of",
    "knows": "acquainted_with acquaintance_of",
    "related_to": "related_with",
    "has_pet": "owns_pet pet_owner_of",
    "mentors": "mentor_of",
    "prefers": "likes like prefer",
    "enjoys": "enjoy",
    "loves": "love",
    NICKNAMED: "has_nickname also_known_as known_as goes_by",
    # work and groups
    "works_at": "employed_by employed_at employee_of works_for",
    "manages": "manager_of boss_of",
    "founded": "founder_of",
    "maintains": "maintainer_of",
    "organizes": "organizer_of organises",
    "studies_at": "student_at",
    # things
    "owns": "own owner_of",
    "uses": "use",
    "created": "creator_of",
    "wrote": "author_of",
    "is_a": "instance_of is_an",
    # places and events
    "lives_in": "lives_at live_in living_in resides_in resides_at resident_of",
    "located_in": "located_at",
    "born_on": "has_birthday birthday_on birthday_is date_of_birth",
    # causes
    "caused_by": "because_of due_to result_of resulted_from results_from",
}
SYNONYMS = {word: relation for relation, words in _SYNONYM_WORDS.items() for word in words.split()}
"""Another word for the same relation in the same direction."""

SYMMETRIC = frozenset(
    """
    spouse_of partner_of engaged_to sibling_of twin_of cousin_of friend_of neighbor_of colleague_of
    classmate_of teammate_of roommate_of lives_with related_to knows
    """.split()  # noqa: SIM905 - a word list reads best as words
)
"""Relations that hold both ways: the alphabetically first name comes first."""

TYPES = {
    **dict.fromkeys(SYMMETRIC - {"related_to"}, ("person", "person")),
    **dict.fromkeys(("parent_of", "grandparent_of", "mentors", "admires", NICKNAMED), ("person", "person")),
    **dict.fromkeys(("lives_in", "born_in", "visited", "visits", "moved_to", "moved_from"), ("person", "place")),
    **dict.fromkeys(("works_at", "studies_at", "volunteered_at", "member_of", "founded"), ("person", "organization")),
    **dict.fromkeys(("attended", "participated_in", "organizes", "spoke_at", "performed_at"), ("person", "event")),
    **dict.fromkeys(("works_on", "maintains", "contributes_to"), ("person", "project")),
    **dict.fromkeys(("owns", "bought", "created", "wrote", "treasures"), ("person", "thing")),
    **dict.fromkeys(
        ("prefers", "enjoys", "enjoyed", "dislikes", "loves", "believes_in", "values", "allergic_to", "interested_in"),
        ("person", "concept"),
    ),
    **dict.fromkeys(("feels", "felt", "plans", "plans_to", "wants_to", "dreams_of"), ("person", "concept")),
    **dict.fromkeys(("manages", "encouraged", "supports", "experienced"), ("person", "concept")),
    "has_pet": ("person", "pet"),
    "from_country": ("person", "place"),
    **dict.fromkeys(("born_on", "died_on", "diagnosed_on"), ("person", "concept")),
    "located_in": ("concept", "place"),
    **dict.fromkeys(("held_at", "happened_in"), ("event", "place")),
    "depends_on": ("project", "concept"),
}
"""The entity types of (subject, object) that a canonical relation implies."""

CANONICAL = frozenset((*TYPES, *SYMMETRIC, *INVERSES.values(), *SYNONYMS.values()))
"""All relations that the tables know, each in its one form."""
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
    is_unordered = relation in SYMMETRIC and _order(object_) < _order(subject)
    return Edge(object_, relation, subject) if is_flipped != is_unordered else Edge(subject, relation, object_)


def entity_types(relation: str) -> tuple[str, str]:
    """The entity types of (subject, object) that `relation`, in any spelling, implies; `concept` where it does not."""
    canonical, is_flipped = _canonical(relation)
    subject, object_ = TYPES.get(canonical, _UNKNOWN_TYPES)
    return (object_, subject) if is_flipped else (subject, object_)


def is_known(relation: str) -> bool:
    """Return True when the tables have this relation, in any spelling."""
    return _canonical(relation)[0] in CANONICAL


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


def _order(name: str) -> tuple[str, str]:
    return (name.casefold(), name)
