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

INVERSES = {
    # family and people
    "child_of": "parent_of",
    "son_of": "parent_of",
    "daughter_of": "parent_of",
    "has_parent": "parent_of",
    "has_mother": "parent_of",
    "has_father": "parent_of",
    "grandchild_of": "grandparent_of",
    "grandson_of": "grandparent_of",
    "granddaughter_of": "grandparent_of",
    "has_grandparent": "grandparent_of",
    "has_grandmother": "grandparent_of",
    "has_grandfather": "grandparent_of",
    "pet_of": "has_pet",
    "mentored_by": "mentors",
    "mentee_of": "mentors",
    "has_mentor": "mentors",
    "supported_by": "supports",
    "encouraged_by": "encouraged",
    "admired_by": "admires",
    "loved_by": "loves",
    "liked_by": "prefers",
    "preferred_by": "prefers",
    "nickname_of": "nicknamed",
    "short_for": "nicknamed",
    "alias_of": "nicknamed",
    # work and groups
    "employs": "works_at",
    "employer_of": "works_at",
    "has_employee": "works_at",
    "managed_by": "manages",
    "reports_to": "manages",
    "has_manager": "manages",
    "has_member": "member_of",
    "founded_by": "founded",
    "maintained_by": "maintains",
    "organized_by": "organizes",
    # things
    "owned_by": "owns",
    "used_by": "uses",
    "created_by": "created",
    "written_by": "wrote",
    "performed_by": "performed",
    "contained_in": "contains",
    "has_part": "part_of",
    "required_by": "requires",
    "dependency_of": "depends_on",
    # places and events
    "has_resident": "lives_in",
    "location_of": "located_in",
    "birthplace_of": "born_in",
    "attended_by": "attended",
    "visited_by": "visited",
    # causes
    "led_to": "caused_by",
    "leads_to": "caused_by",
    "caused": "caused_by",
    "causes": "caused_by",
    "cause_of": "caused_by",
    "resulted_in": "caused_by",
    "results_in": "caused_by",
    "inspired": "inspired_by",
    "inspires": "inspired_by",
    "motivated": "motivated_by",
    "motivates": "motivated_by",
}
"""`relation(A, B)` -> this relation with B first."""

SYNONYMS = {
    # family and people
    "mother_of": "parent_of",
    "father_of": "parent_of",
    "has_child": "parent_of",
    "has_son": "parent_of",
    "has_daughter": "parent_of",
    "grandmother_of": "grandparent_of",
    "grandfather_of": "grandparent_of",
    "has_grandchild": "grandparent_of",
    "married_to": "spouse_of",
    "husband_of": "spouse_of",
    "wife_of": "spouse_of",
    "has_spouse": "spouse_of",
    "has_husband": "spouse_of",
    "has_wife": "spouse_of",
    "boyfriend_of": "partner_of",
    "girlfriend_of": "partner_of",
    "has_partner": "partner_of",
    "brother_of": "sibling_of",
    "sister_of": "sibling_of",
    "siblings_of": "sibling_of",
    "has_sibling": "sibling_of",
    "has_brother": "sibling_of",
    "has_sister": "sibling_of",
    "has_cousin": "cousin_of",
    "friends_with": "friend_of",
    "has_friend": "friend_of",
    "best_friend_of": "friend_of",
    "close_friend_of": "friend_of",
    "neighbour_of": "neighbor_of",
    "has_neighbor": "neighbor_of",
    "has_neighbour": "neighbor_of",
    "coworker_of": "colleague_of",
    "co_worker_of": "colleague_of",
    "has_colleague": "colleague_of",
    "flatmate_of": "roommate_of",
    "acquainted_with": "knows",
    "acquaintance_of": "knows",
    "related_with": "related_to",
    "owns_pet": "has_pet",
    "pet_owner_of": "has_pet",
    "mentor_of": "mentors",
    "likes": "prefers",
    "like": "prefers",
    "prefer": "prefers",
    "enjoy": "enjoys",
    "love": "loves",
    "has_nickname": "nicknamed",
    "also_known_as": "nicknamed",
    "known_as": "nicknamed",
    "goes_by": "nicknamed",
    # work and groups
    "employed_by": "works_at",
    "employed_at": "works_at",
    "employee_of": "works_at",
    "works_for": "works_at",
    "manager_of": "manages",
    "boss_of": "manages",
    "founder_of": "founded",
    "maintainer_of": "maintains",
    "organizer_of": "organizes",
    "organises": "organizes",
    "student_at": "studies_at",
    # things
    "own": "owns",
    "owner_of": "owns",
    "use": "uses",
    "creator_of": "created",
    "author_of": "wrote",
    "instance_of": "is_a",
    "is_an": "is_a",
    # places and events
    "lives_at": "lives_in",
    "live_in": "lives_in",
    "living_in": "lives_in",
    "resides_in": "lives_in",
    "resides_at": "lives_in",
    "resident_of": "lives_in",
    "located_at": "located_in",
    # causes
    "because_of": "caused_by",
    "due_to": "caused_by",
    "result_of": "caused_by",
    "resulted_from": "caused_by",
    "results_from": "caused_by",
}
"""Another word for the same relation in the same direction."""

SYMMETRIC = frozenset(
    {
        "spouse_of",
        "partner_of",
        "engaged_to",
        "sibling_of",
        "twin_of",
        "cousin_of",
        "friend_of",
        "neighbor_of",
        "colleague_of",
        "classmate_of",
        "teammate_of",
        "roommate_of",
        "lives_with",
        "related_to",
        "knows",
    }
)
"""Relations that hold both ways: the alphabetically first name stands first."""

TYPES = {
    **dict.fromkeys(SYMMETRIC - {"related_to"}, ("person", "person")),
    **dict.fromkeys(("parent_of", "grandparent_of", "mentors", "admires"), ("person", "person")),
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
    NICKNAMED: ("person", "person"),
    "has_pet": ("person", "pet"),
    "from_country": ("person", "place"),
    "located_in": ("concept", "place"),
    "held_at": ("event", "place"),
    "happened_in": ("event", "place"),
    "depends_on": ("project", "concept"),
}
"""What a canonical relation says of its subject and its object."""

CANONICAL = frozenset((*TYPES, *SYMMETRIC, *INVERSES.values(), *SYNONYMS.values()))
"""All relations that the tables know, each in its one form."""
_UNKNOWN_TYPES = ("concept", "concept")
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[\W_]+")
_WIKILINK = re.compile(r"\[\[(?P<name>[^\[\]|#]*)(?:[|#][^\[\]]*)?\]\]")


def normalise_edge(edge: Edge) -> Edge:
    """`edge` in the one form its meaning has: names without brackets, canonical relation and direction. Idempotent.

    Raises:
        BadInputError: a name is empty, the relation has no letters, or both ends are the same.
    """
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
    """Whether the tables say how this relation, in any spelling, is written."""
    return _canonical(relation)[0] in CANONICAL


def _canonical(relation: str) -> tuple[str, bool]:
    """(canonical name, whether subject and object change places)."""
    name = _snake_case(relation)
    bare = name.removeprefix("is_").removeprefix("are_")
    if bare in INVERSES or bare in SYNONYMS or bare in SYMMETRIC or bare in TYPES:
        name = bare
    inverse = INVERSES.get(name)
    return (inverse, True) if inverse else (SYNONYMS.get(name, name), False)


def _snake_case(relation: str) -> str:
    humped = _CAMEL_HUMP.sub("_", _plain_name(relation))
    folded = unicodedata.normalize("NFKC", humped).casefold()
    return _NOT_WORD.sub("_", folded).strip("_")


def _plain_name(name: str) -> str:
    previous = None
    while previous != name:
        previous = name
        name = _WIKILINK.sub(lambda link: link["name"], name).replace("[[", "").replace("]]", "")
        name = " ".join(name.split())
    return name


def _order(name: str) -> tuple[str, str]:
    return (name.casefold(), name)
