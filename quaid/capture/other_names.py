"""Who the speakers of conversations are, and their other names.

The user's own setting `capture.people` has rules: `mchen, openclaw:User = Maya Chen; tom87 = Tom Reed (tom)`. A
speaker, perhaps only in the conversations of one program, or with `*` anybody who speaks to it, is a person, and what
they state belongs to an owner, where one is named. What people call each other teaches their other names.

`Hey Mel!` means the other one of two who talk; of several the one whose name it is a form of. `Call me Mel` means who
says it. The assistant greets nobody: what it writes may be a letter. A name that two have, or that the two speak of as
of somebody else, is nobody's other name.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple
from unicodedata import combining, normalize

from quaid.capture.entities import has_no_capitals
from quaid.capture.stated_relations import take_name
from quaid.model import Conversation, is_owner_label, name_key
from quaid.text.dates import find_dates
from quaid.text.stop_words import read_lists

_LISTS = read_lists("names.txt")
_NEVER = frozenset(" ".join(map(_LISTS.__getitem__, ("no_nicknames", "peoples", "kin", "linking"))).split())
"""Words that greet anybody, or that say what somebody is."""
_FORMS = _LISTS["short_forms"].split()
_SHORT_FORMS = frozenset(zip(_FORMS[::2], _FORMS[1::2], strict=True))
"""Those that are no beginning of the name: (short, long)."""
CERTAIN = 2
"""How often somebody is called by a name that does not resemble the known one, until it is theirs."""
_MAX_OWN = 300
"""Characters of a turn to the assistant: a longer one may be pasted, and its `I` somebody else."""
_RULE = r"(?P<speakers>[^=]+)=(?P<name>[^=()]+)(?:\((?P<owner>[^()]+)\))?"


def _any_of(name: str) -> str:
    return "|".join(re.escape(words.strip()) for words in _LISTS[name].split("|") if words.strip())


# Compiled by the first conversation, not by the import. People type both apostrophes, and a turn is read with one.
_HAILS = "|".join([*_LISTS["hails"].split(), "thank you", "good (?:morning|evening|night)"])
_HAIL = rf"(?<!\w)(?i:{_HAILS}),? ([^\W\d_][\w'-]*)(?=\s*(?:[!?,.;:…\n]|\Z))"
_CALL_ME, _I_AM = (rf"(?i)\b(?:{_any_of(name)}) " for name in ("call_me", "i_am"))
_I_AM_CALLED = r"(?:我叫|叫我|我的名字是|私は|名前は)([^\W\d_]{1,8}?)(?:です|[^\w\s]|$)"
_DENIED = rf"(?i)\b(?:{_any_of('denied')})\b|[\"“”„«]|别|不"
_SENTENCE = "(?<=[.!?;\n\u3002\uff01\uff1f])"
_OF_SOMEBODY = (
    rf"(?i)(?<!\w)(?:(?:{_any_of('before_somebody')}) {{0}}(?!\w)|{{0}}(?:'s\b|,? (?:{_any_of('after_somebody')})\b))"
)


def list_other_names(turns: Iterable[tuple[str, str]], owner: str) -> list[tuple[str, str]]:
    """Return (speaker, another name of theirs) for the turns (speaker, text) of a conversation. A speaker called User
    is the `owner`.
    """
    said = [
        (owner if owner and is_owner_label(speaker) else speaker, text.replace("’", "'"))  # noqa: RUF001
        for speaker, text in turns
    ]
    people = [speaker for speaker in dict.fromkeys(speaker for speaker, _ in said) if name_key(speaker) != "assistant"]
    known = {part for person in people for part in _parts(person)}
    found: Counter[tuple[str, str]] = Counter()
    for speaker, text in (turn for turn in said if turn[0] in people):
        for hailed in re.finditer(_HAIL, text):
            alike = [person for person in people if is_form_of(hailed[1], person)]
            named = alike or [person for person in people if person != speaker]
            if len(named) == 1 and named[0] != speaker and (alike or len(people) == 2):
                found[named[0], hailed[1]] += CERTAIN if alike else 1
        if len(people) > 1 or len(text) <= _MAX_OWN:
            found.update(dict.fromkeys(((speaker, name) for name in _list_own_names(speaker, text)), CERTAIN))
    sure = [pair for pair, times in found.items() if times >= CERTAIN and _may_be_name(pair[1])]
    times = Counter(name_key(name) for _, name in sure)
    return [
        (who, name)
        for who, name in sure
        if times[name_key(name)] == 1
        and name_key(name) not in known
        and not re.search(r"\d", who)  # `Speaker 1` is another one in each recording
        and not (len(people) == 2 and any(re.search(_OF_SOMEBODY.format(re.escape(name)), text) for _, text in said))
    ]


def is_form_of(one: str, other: str) -> bool:
    """Return True when one of two names is a short form of the other, or the first name of it."""
    short, long = sorted(((_parts(name) or [""])[0] for name in (one, other)), key=len)
    stem = re.sub(r"(.)\1$", r"\1", re.sub(r"(?:ie|ey|[aeiosy])$", "", short))
    is_beginning = len(short) > 1 and long.startswith(short)
    return is_beginning or (len(stem) > 2 and long.startswith(stem)) or (short, long) in _SHORT_FORMS


def _list_own_names(speaker: str, text: str) -> Iterator[str]:
    """Yield the names by which a speaker introduces themselves; `I am Bob` must be like the name that is known."""
    for sentence in re.split(_SENTENCE, text):
        for pattern in (_CALL_ME, _I_AM, _I_AM_CALLED):
            for found in re.finditer(pattern, sentence):
                name = found[1] if pattern is _I_AM_CALLED else take_name(sentence[found.end() :])[0]
                is_theirs = pattern is not _I_AM or is_form_of(name, speaker)
                if is_theirs and not re.search(_DENIED, sentence[: found.start()]):
                    yield name


def _may_be_name(name: str) -> bool:
    """Return True for a name, which is neither an endearment nor a day."""
    is_common = not _NEVER.isdisjoint(name.lower().split()) or find_dates(f"on {name}", datetime.now(UTC))
    return bool(name) and (name[0].isupper() or has_no_capitals(name)) and not is_common


def _parts(name: str) -> list[str]:
    """Return the words of a name as they are compared, without accents."""
    return "".join(letter for letter in normalize("NFKD", name_key(name)) if not combining(letter)).split()


class Person(NamedTuple):
    """The name of a person's note, and the owner of what they state; empty where it is the user of Quaid."""

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
