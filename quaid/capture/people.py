"""Who the speakers of conversations are, as the user's own settings state it: `capture.people`.

`mchen, openclaw:User = Maya Chen; tom87 = Tom Reed (tom)`: a speaker, perhaps only in the conversations of one program,
or with `*` whoever speaks to it, is a person, and what they state belongs to an owner, where one is named.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from quaid.model import Conversation, name_key

_RULE = r"(?P<speakers>[^=]+)=(?P<name>[^=()]+)(?:\((?P<owner>[^()]+)\))?"


class Person(NamedTuple):
    """The name of a person's note, and the owner of what they state; empty where it is whoever runs Quaid."""

    name: str
    owner: str = ""


def read_people(setting: str) -> dict[str, Person]:
    """Return key of a speaker, or of `program:speaker`, -> person. What is no rule is left out."""
    rules = (re.fullmatch(_RULE, rule.strip()) for rule in setting.split(";"))
    return {
        name_key(speaker): Person(" ".join(rule["name"].split()), (rule["owner"] or "").strip())
        for rule in rules
        if rule
        for speaker in rule["speakers"].split(",")
    }


def name_speakers(conversation: Conversation, people: Mapping[str, Person]) -> Conversation:
    """Return the conversation with the names of the people in place of what its program calls them."""
    if not people:
        return conversation
    turns = []
    for turn in conversation.turns:
        found = None
        if name_key(turn.speaker) != "assistant":
            asked = (f"{conversation.source}:{turn.speaker}", turn.speaker, f"{conversation.source}:*")
            found = next((people[key] for key in map(name_key, asked) if key in people), None)
        turns.append(replace(turn, speaker=found.name) if found else turn)
    return replace(conversation, turns=tuple(turns))


def owner_of(speaker: str | None, people: Mapping[str, Person], default: str) -> str:
    """Return the owner of what a person with this name states."""
    owners = {name_key(person.name): person.owner for person in people.values()}
    return owners.get(name_key(speaker or "")) or default
