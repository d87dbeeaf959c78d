"""The edges that an English statement has by its form alone: where somebody lives and works, their spouse.

For facts that are stored without a model. No edge is better than a wrong one: the subject begins the sentence, the verb
follows it, the other end is a name, and the rest of the sentence changes neither. All else is for a model.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta

from quaid.capture import relations
from quaid.capture.facts import NewFact
from quaid.errors import BadInputError
from quaid.model import Edge, is_owner_label
from quaid.recall.intent import is_technical
from quaid.text.dates import find_dates
from quaid.text.relative_dates import in_digits
from quaid.text.stop_words import read_lists

UNNAMED_OWNER = "User"
"""The owner where their name is not known."""


_WORDS = {name: frozenset(words.split()) for name, words in read_lists("names.txt").items()}

# Patterns are compiled by the first statement that needs them, not by the import: most state none of this.
_ADVERB = r"(?:(?:now|currently|recently|just|still) )?"
_RELATION_VERBS = (
    # (relation, verb, whether it states a beginning)
    ("lives_in", rf"{_ADVERB}(?:lives?|resides?) {_ADVERB}in", False),
    ("lives_in", rf"(?:am|is|'m|are) {_ADVERB}(?:living|based) in", False),
    ("lives_in", r"(?:has|have|'ve) lived in(?=.*\bsince\b)", False),
    ("moved_to", rf"(?:(?:has|have|'ve) )?{_ADVERB}moved (?:from (?:[^\W\d_][\w'-]* ){{1,4}})?(?:back )?to", True),
    ("works_at", rf"{_ADVERB}works? {_ADVERB}(?:at|for)", False),
    ("works_at", rf"(?:am|is|'m) {_ADVERB}(?:working (?:at|for)|employed (?:at|by))", False),
    ("works_at", r"(?:has|have|'ve) worked (?:at|for)(?=.*\bsince\b)", False),
    ("works_at", rf"{_ADVERB}(?:joined|started (?:work(?:ing)? )?at)(?=.* as (?:an?|the|its|their) )", True),
    ("joined", rf"(?:(?:has|have|'ve) )?{_ADVERB}joined", True),
    ("left", rf"(?:(?:has|have|'ve) )?{_ADVERB}left", True),
    ("born_in", r"(?:was )?born in", False),
    ("married_to", rf"(?:am|is|'m) {_ADVERB}married to", False),
    ("married_to", r"(?:got married to|married)", True),
)
_SIGNS = _WORDS["signs"] | _WORDS["relatives"] | {"mom", "mum", "dad", "boss"}
"""One of these is in every statement that states an edge; without any, no pattern is even compiled."""
_BORN_ON = r"(?i)(?:was born on|(?:'s )?birthday is(?: on)?|was born(?= \d)) (?=\S)"
_NAMED = r"(?i)my (?:full )?name is |i am called |i'm called "
_SOLE = {
    "mom": "mother", "mum": "mother", "mother": "mother", "dad": "father", "father": "father", "wife": "wife",
    "husband": "husband", "partner": "partner", "spouse": "spouse", "boyfriend": "boyfriend",
    "girlfriend": "girlfriend",
}  # fmt: skip
"""Relatives of whom one has only one, so that two statements about `my mother` are about the same person."""
SOLE_RELATIVES = frozenset(_SOLE.values())
_PETS = _WORDS["pets"] | {"guinea pig"}
_NO_PERSON = ("peoples", "kin", "no_nicknames", "technologies", "labels", "no_subject")
"""The lists of words of which none is a person's name."""
_KIN, _PET = ("|".join(sorted(words)) for words in (_WORDS["relatives"] | _SOLE.keys(), _PETS))
_WHICH = r"(?:(?:new|older|younger|elder|eldest|oldest|youngest|little|big|baby|twin|best|close|good|dear|only) )?"
_WHOSE = r"(?:(?P<own>my|our)|(?:the )?(?P<user>user)'s|(?P<of>\S.*?)'s)"
_CALLED = rf"(?i){_WHOSE} {_WHICH}(?P<who>{_KIN}|{_PET})(?:'s name is| is called| is named) "
_IS_KIN = rf"(?i){_WHOSE} {_WHICH}(?P<who>{_KIN})(?: is|'s) "
_KIN_OF = (
    rf"(?i)(?:is|am|'m|'s) (?:{_WHOSE} {_WHICH}(?P<who>{_KIN})(?=[.,;!]|$)|"
    rf"(?:the|an?) {_WHICH}(?P<kin>{_KIN})(?P<of_name> of ))"
)
_HAS_CALLED = (
    rf"(?i)(?:has|have|'ve got|own|owns|adopted) an? (?:\w+ ){{0,2}}?(?:(?P<animal>{_PET})(?: called| named) |"
    rf"(?P<kin>{_KIN})(?: called| named|,) )"
)
_SPEAKER = r"I(?= |'m |'ve )"
_OWNER = r"(?:The )?[Uu]ser(?= )"
_SOLE_OWN = rf"(?i)(?:my|(?P<of>\S.*?)['’]s) (?P<kin>{'|'.join(_SOLE)})(?= |'s )"  # noqa: RUF001
_LOOSE = (
    r"(?i)\b(?:until|till|anymore|any more|no longer|no more|only|sometimes|part[- ]time|temporar\w+|hypothetical\w*|"
    r"(?:on|at) weekends|during|in (?:a|his|her|my|the) (?:dream|game|novel|story|book)|"
    r"for (?:an?|the|two|three|some|\d+|now)\b)"
)
"""A state under a condition, or one that has ended."""
_SENTENCE = r"(?<=[.!?;])\s+"
_MAX_NAME_WORDS = 5


def read_relations(
    statement: str, now: datetime, owner: str, speaker: str | None
) -> tuple[tuple[Edge, ...], str | None]:
    """Return the edges that `statement` states, and when they began (ISO 8601), if it states that.

    `speaker` is the referent of `I`, None where it is not known; a sentence without a subject is about them, else about
    the `owner`, the referent of `the user`. A technical text states nothing: `moved to Postgres` is not an address.
    """
    lowered = statement.lower()
    if not any(sign in lowered for sign in _SIGNS) or is_technical(statement) or statement.rstrip().endswith("?"):
        return (), None
    edges: dict[Edge, None] = {}
    since: str | None = None
    for sentence in re.split(_SENTENCE, statement.replace("’", "'")):  # noqa: RUF001
        plain = sentence.strip()
        for edge, begun, rest in (*_read_called(plain, owner, speaker), *_read_sentence(plain, owner, speaker)):
            dates = find_dates(re.sub(r"\bsince\b", "in", rest), now) if begun else ()
            day = dates[0].start if dates and dates[0].start != date.min else None
            if day is not None and day > now.date():
                continue
            try:
                edges[relations.normalise_edge(edge)] = None
            except BadInputError:
                continue
            if since is None and day is not None:  # or the year or the month
                since = in_digits(day, min(dates[0].end, date.max - timedelta(days=1))).partition(" to ")[0]
    return tuple(edges), since if len(edges) == 1 else None


def add_stated(fact: NewFact, now: datetime, owner: str) -> NewFact:
    """Return `fact` with the edges that its form alone states, unless it has edges or is technical.

    `owner` is the name of the vault's owner, empty where it is not known.
    """
    if fact.edges or fact.technical:
        return fact
    person = (owner or UNNAMED_OWNER) if fact.owner == "default" else fact.owner
    speaker = fact.speaker or (person if fact.source == "user" else None)
    if speaker is not None and is_owner_label(speaker):
        speaker = person
    edges, since = read_relations(fact.text, now, person, speaker)
    return replace(fact, edges=edges, valid_from=fact.valid_from or since)


def _read_called(sentence: str, owner: str, speaker: str | None) -> Iterator[tuple[Edge, bool, str]]:
    """Yield the edge of `my name is …`, `my dog is called …` or `Maya's sister is …`, and the words after it."""
    named, called = re.match(_NAMED, sentence), re.match(_CALLED, sentence)
    found = named or called or re.match(_IS_KIN, sentence)
    if found is None:
        return
    name, rest = take_name(sentence[found.end() :])
    if found not in (named, called):
        # `Tom in the play` is no brother, and `German` no name.
        is_whole = not rest or rest.startswith("and ") or sentence.removesuffix(rest).rstrip()[-1] in ",;"
        name = name if is_whole and _is_person(name) else ""
    if not named:
        yield from _kin_edge(_whose(found, owner, speaker), found["who"], name, rest)
    elif name and speaker:
        yield Edge(speaker, "named", name), False, rest


def _whose(found: re.Match[str], owner: str, speaker: str | None) -> str | None:
    """Return of whom somebody is a relative: None where that is not plain."""
    if found["own"]:
        return speaker
    return owner if found["user"] else _whole_name(found["of"])


def _is_person(name: str) -> bool:
    """Return True where no word of `name` says what somebody is, as in `my boss is Head of Sales`."""
    words = name.lower().split()
    return not name.isupper() and all(_WORDS[each].isdisjoint(words) for each in _NO_PERSON)


def _kin_edge(of: str | None, who: str, name: str, rest: str = "") -> Iterator[tuple[Edge, bool, str]]:
    """Yield the edge between somebody and their relative or pet, none where no relation is known for it."""
    kin = _SOLE.get(who.lower(), who.lower())
    relation = "has_pet" if kin in _PETS else "has_manager" if kin == "boss" else f"has_{kin}"
    if of and name and relations.is_known(relation):
        yield Edge(of, relation, name), False, rest


def _read_sentence(sentence: str, owner: str, speaker: str | None) -> Iterator[tuple[Edge, bool, str]]:
    """Yield each edge of a sentence, whether it states a beginning, and the words after it."""
    subject, predicate = _split_subject(sentence, owner, speaker)
    if subject is None:
        return
    if found := re.match(_BORN_ON, predicate):
        rest = predicate[found.end() :]
        # Two clocks: a day on which they disagree has no year, and is written as it is.
        dates = [find_dates(rest, datetime(year, 12, 31)) for year in (2000, 2001)]  # noqa: DTZ001 - a day alone
        if all(dates) and dates[0][0].span[0] <= len("on the "):
            one, other = dates[0][0], dates[1][0]
            if one.start == one.end:
                day = one.start.isoformat() if one.start == other.start else f"{one.start:%-d %B}"
                yield Edge(subject, "born_on", day), False, ""
        return
    if found := re.match(_HAS_CALLED, predicate):
        name, rest = take_name(predicate[found.end() :])
        yield from _kin_edge(subject, found["animal"] or found["kin"], name, rest)
    elif (found := re.match(_KIN_OF, predicate)) and _is_person(subject):
        of = take_name(predicate[found.end() :])[0] if found["of_name"] else _whose(found, owner, speaker)
        yield from _kin_edge(of, found["who"] or found["kin"], subject)
    else:
        yield from _read_verb(subject, predicate)


def _read_verb(subject: str, predicate: str) -> Iterator[tuple[Edge, bool, str]]:
    for relation, verb, begun in _RELATION_VERBS:
        if found := re.match(rf"{verb} (?:the )?(?=\S)", predicate, re.IGNORECASE):
            name, rest = take_name(predicate[found.end() :])
            is_address = relation != "moved_to" or _WORDS["technologies"].isdisjoint(name.lower().split())
            if name and is_address and not re.search(_LOOSE, rest):
                yield Edge(subject, relation, name), begun or rest.lstrip(" ,").startswith("since "), rest
            return


def _split_subject(sentence: str, owner: str, speaker: str | None) -> tuple[str | None, str]:
    """Return (the subject of a sentence, None where it is not plain, the rest of the sentence)."""
    for pattern, who in ((_SPEAKER, speaker), (_OWNER, owner)):
        if found := re.match(pattern, sentence):
            return who, sentence[found.end() :].lstrip()
    if found := re.match(_SOLE_OWN, sentence):
        of = speaker if found["of"] is None else _whole_name(found["of"])
        return (f"{of}'s {_SOLE[found['kin'].lower()]}" if of else None), sentence[found.end() :].lstrip()
    if any(re.match(rf"{verb} ", sentence, re.IGNORECASE) for _, verb, _ in _RELATION_VERBS):
        return speaker or owner, sentence
    words = sentence.split()
    count = 0
    while count < min(len(words), _MAX_NAME_WORDS) and words[count][0].isupper() and words[count][-1] not in ",;:.":
        count += 1
    return _whole_name(" ".join(words[:count])), " ".join(words[count:])


def _whole_name(text: str) -> str | None:
    words = text.split()
    is_name = words and words[0].lower() not in _WORDS["no_subject"] and all(word[0].isupper() for word in words)
    return text if is_name and "'" not in text else None


def take_name(text: str) -> tuple[str, str]:
    """Return (the name that `text` begins with, empty where it is not a plain one, the rest)."""
    words, taken = text.split(), list[str]()
    for place, word in enumerate(words):
        bare = word.rstrip(".,;:!?)")
        follows_name = bare.lower() in _WORDS["particles"] and taken
        is_linking = follows_name and place + 1 < len(words) and words[place + 1][0].isupper()
        if not bare or "'" in bare or not (bare[0].isupper() or is_linking):
            break
        taken.append(bare)
        if bare != word:
            return (" ".join(taken) if len(taken) <= _MAX_NAME_WORDS else ""), " ".join(words[place + 1 :])
    rest = words[len(taken) :]
    follows = rest[0].strip("(.,;:!").lower() if rest else ""
    is_one_of_several = follows in {"and", "or"} and rest[1:] and rest[1][0].isupper()
    is_ended = not rest or follows in _WORDS["after_name"]
    is_plain = taken and len(taken) <= _MAX_NAME_WORDS and is_ended and not is_one_of_several
    return (" ".join(taken) if is_plain else ""), " ".join(rest)
