"""The kind of answer a question wants, and how much each channel should count for it.

Read from the words alone, in this order; the first that applies decides:

1. PROJECT, when the words are about code. A technical word counts 2, one that also lives outside of code counts 1; two
   points are enough. A question about somebody ("does Maya", "did she", "Maya's") needs three: what job, what project,
   which programming language she works with is about her, and PROJECT would bring technical notes before her own.
2. WHY, WHEN, WHERE by their question word: it says what is wanted, whatever else is mentioned.
3. PREFERENCE: favourites, likes and dislikes. `look like` and `feels like` are not among them.
4. RELATION: how two are related, who somebody's sister is.
5. WHO by its question word.
6. The noun asked for: `which city` is WHERE, `what year` is WHEN, `what made her` is WHY.
7. Questions in keywords: `maya birthday`, `maya's sister`.
8. WHAT after what and which and how many; GENERAL for the rest.

Words are looked up in sets and runs of words in the text between single spaces: compiling as many regular expressions
takes longer than the whole of a recall's ranking.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import pairwise, takewhile
from types import MappingProxyType
from typing import Literal, NamedTuple

from quaid.text.language import language
from quaid.text.stop_words import read_lists


class Intent(StrEnum):
    """The kind of answer that a question wants."""

    WHO = "who"
    WHEN = "when"
    WHERE = "where"
    WHAT = "what"
    PREFERENCE = "preference"
    RELATION = "relation"
    WHY = "why"
    PROJECT = "project"
    GENERAL = "general"


class IntentProfile(NamedTuple):
    """The share of the vector channel, the keyword channel having the rest, and factors on the score by `type`.

    A named tuple, as a dataclass takes half a millisecond of every start to make.
    """

    vector_weight: float
    type_boosts: Mapping[str, float] = MappingProxyType({})


INTENTS: Mapping[Intent, IntentProfile] = {
    # Names are matched as strings, meaning is of less help.
    Intent.WHO: IntentProfile(0.5, {"person": 1.3}),
    Intent.WHERE: IntentProfile(0.5, {"place": 1.3}),
    Intent.RELATION: IntentProfile(0.5),
    # Dates are strings too.
    Intent.WHEN: IntentProfile(0.4, {"event": 1.3, "decision": 1.3}),
    # The question is rarely worded as the fact is.
    Intent.PREFERENCE: IntentProfile(0.8, {"preference": 1.3}),
    Intent.WHY: IntentProfile(0.8, {"event": 1.2, "decision": 1.2}),
    Intent.PROJECT: IntentProfile(0.6),
    Intent.WHAT: IntentProfile(0.7),
    Intent.GENERAL: IntentProfile(0.7),
}
"""The weights and boosts of Quaid for OpenClaw under our types: its Event holds events and decisions."""

_LISTS = {name: frozenset(words.split()) for name, words in read_lists("intent_words.txt").items()}


def _by_intent(name: str) -> dict[str, Intent]:
    return {word: intent for intent in Intent for word in _LISTS.get(f"{name}_{intent.name.lower()}", ())}


_WORD = re.compile(r"[^\W_]+(?:['.&+/-][^\W_]+)*", re.UNICODE)
_MAX_KEYWORDS = 5
_TECHNICAL_ENOUGH = 2
_TECHNICAL_ENOUGH_OF_SOMEBODY = 3

_AUXILIARIES = _LISTS["auxiliaries"]
_PREPOSITIONS = frozenset("about at by for from in of on that to which who with".split())  # noqa: SIM905
_QUESTION_WORDS = frozenset({"who", "whom", "whose", "when", "where", "why", "what", "which", "how"})
_CONTRACTING = _QUESTION_WORDS | {"it", "that", "there", "here", "he", "she", "let"}
_NOT_SOMEBODY = _LISTS["not_somebody"]

CONTRACTIONS, REQUEST = _LISTS["contractions"], _LISTS["request"]
"""What is left of `I'm`, and words of a request, not of its subject: `Can you list, in order, what I mentioned …`"""
_LIKING = _LISTS["liking"]
_FARTHEST_VERB = 5
"""`does Jon and Gina both like` is a verb, `does he recommend for a room like` is not."""
_BEFORE_A_LIKENESS = _LISTS["before_a_likeness"]
_CAUSING = _LISTS["causing"]
_KIN = _LISTS["kin"]
_MEASURING = (" how many ", " how much ", " how old ")
_RELATIONSHIPS = (" relation between ", " relationship between ", " relationship with ", " relationship to ")
_RELATING = (" related ", " know each other ", " connection between ", " connected to ")

_NOUNS = _by_intent("nouns_of")
"""The nouns asked for by `which …` and `what is the …`."""
_KEYWORDS = _by_intent("keywords_of")

_TECHNICAL = _LISTS["technical"]
_ALSO_TECHNICAL = _LISTS["also_technical"]
_TECHNICAL_RUNS = (
    " base class ", " class hierarch", " command line ", " data layer ", " dead letter ", " environment variable",
    " failure mode", " feature flag", " landing page ", " load balancer ", " merge conflict", " merge request",
    " our stack ", " pull request", " source code ", " stack trace", " strict mode ", " tech stack ", " test suite",
    " type hint", " unit test",
)  # fmt: skip
"""Count 2 as a technical word does."""
_TECHNICAL_OF_OURS = (
    " our code ", " our server", " our tests ", " the branch ", " the bug ", " the build ", " the function ",
    " the module ", " the server ", " the tests ", " this bug ", " this code ", " this function ", " this project ",
    " which function ",
)  # fmt: skip
"""Count 1 more: the article says that there is one everybody here knows."""


_ASKING = _by_intent("asking")
"""Question words of German, French, Spanish and Portuguese."""
_ASKING_RUNS = (
    *((run, Intent.WHY) for run in ("为什么", "为何", "なぜ", "どうして")),
    *((run, Intent.WHEN) for run in ("什么时候", "何时", "几点", "哪天", "哪一天", "いつ", "何時", "何日")),
    *((run, Intent.WHERE) for run in ("哪里", "哪儿", "什么地方", "どこ")),
    *((run, Intent.WHO) for run in ("谁", "誰", "だれ")),
    *((run, Intent.WHAT) for run in ("什么", "哪", "何", "どの")),
)
"""Those of Chinese and Japanese, the longer before what they begin with."""


def classify(text: str) -> Intent:
    """Return the intent of a question or of a few keywords; any text has one. Case does not matter. Time is linear."""
    words = _words_of(text)
    if not words:
        return Intent.GENERAL
    spaced = f" {' '.join(words)} "
    if _is_technical(words, spaced):
        return Intent.PROJECT
    at = None  # where the question word is; `Did she like the place where …` asks for a yes or a no and has none
    if words[0] not in _AUXILIARIES or words[1:2] in (["you"], ["i"]):
        at = next((index for index, word in enumerate(words) if word in _QUESTION_WORDS), None)
    head, rest = ("", []) if at is None else (words[at], words[at + 1 :])
    return (
        _by_other_question_word(text, words)
        or _by_question_word(head, rest)
        or (Intent.PREFERENCE if _is_about_liking(words) else None)
        or (Intent.RELATION if _is_about_kin(words, spaced, head) else None)
        or (Intent.WHO if head in {"who", "whom", "whose"} else None)
        or _by_noun(head, rest)
        or _by_keywords(words, head)
        or (Intent.WHAT if head in {"what", "which"} or any(run in spaced for run in _MEASURING) else Intent.GENERAL)
    )


def is_technical(text: str) -> bool:
    """Return whether `text` is about how something is built rather than about somebody."""
    words = _words_of(text)
    return _is_technical(words, f" {' '.join(words)} ")


def _words_of(text: str) -> list[str]:
    """Return the words in lower case; a possessive's `'s` is a word of its own, a contracted `'s` is `is`."""
    words: list[str] = []
    for word in _WORD.findall(text.replace("’", "'").lower()):  # noqa: RUF001 - people type both apostrophes
        if word.endswith("'s"):
            stem = word[:-2]
            words += [stem, "is" if stem in _CONTRACTING else "'s"]
        else:
            words.append(word)
    return words


def _is_technical(words: Sequence[str], spaced: str) -> bool:
    points = sum(2 for word in words if word in _TECHNICAL) + sum(1 for word in words if word in _ALSO_TECHNICAL)
    points += sum(2 for run in _TECHNICAL_RUNS if run in spaced) + sum(1 for run in _TECHNICAL_OF_OURS if run in spaced)
    if points < _TECHNICAL_ENOUGH or points >= _TECHNICAL_ENOUGH_OF_SOMEBODY:
        return points >= _TECHNICAL_ENOUGH
    # `does Maya`, `did she`, `Maya's` are about somebody; not `does the build`, `how do we`, `does Redis`.
    nobody = _TECHNICAL | _ALSO_TECHNICAL | _NOT_SOMEBODY
    return not any(
        (word in _AUXILIARIES and following not in nobody | _AUXILIARIES) or (following == "'s" and word not in nobody)
        for word, following in pairwise(words)
    )


def _by_other_question_word(text: str, words: Sequence[str]) -> Intent | None:
    """Return what a question in another language asks for: its first word, or the second (`mit wem`), says so."""
    if (spoken_in := language(text)) in {"zh", "ja"}:
        return next((intent for run, intent in _ASKING_RUNS if run in text), None)
    if spoken_in in {"de", "fr", "es", "pt"}:
        return next((_ASKING[word] for word in words[:2] if word in _ASKING), None)
    return None


def _by_question_word(head: str, rest: Sequence[str]) -> Intent | None:
    following = rest[0] if rest else ""
    if head == "how":
        return {"long": Intent.WHEN, "recently": Intent.WHEN, "soon": Intent.WHEN, "come": Intent.WHY}.get(following)
    if head == "what" and following in _CAUSING and not set(rest[1:2]) & _AUXILIARIES:
        return Intent.WHY
    return {"why": Intent.WHY, "when": Intent.WHEN, "where": Intent.WHERE}.get(head)


def _is_about_liking(words: Sequence[str]) -> bool:
    if not _LIKING.isdisjoint(words):
        return True
    if words[-1] == "into" and not {"is", "are", "was", "were"}.isdisjoint(words):
        return True
    return any(
        word in {"like", "love"}
        and words[index - 1] not in _BEFORE_A_LIKENESS
        and not _AUXILIARIES.isdisjoint(words[max(0, index - _FARTHEST_VERB) : index])
        for index, word in enumerate(words)
    )


def _is_about_kin(words: Sequence[str], spaced: str, head: str) -> bool:
    runs = _RELATIONSHIPS if head in {"what", "which"} else _RELATIONSHIPS + _RELATING
    if any(run in spaced for run in runs):
        return True
    if head == "how" and any(run in spaced for run in (" how did ", " how do ", " how does ")):
        knows = spaced.rpartition(" know ")[2]
        return (" meet " in spaced and " and " in spaced) or (knows != spaced and knows.count(" ") == 1)
    if not head:
        return len(words) <= _MAX_KEYWORDS and words[-1] in _KIN and words[0] not in _AUXILIARIES
    if _KIN.isdisjoint(words):
        return False
    if head == "who":
        at = words.index("who")
        return words[at + 1 : at + 2] in (["is"], ["are"], ["was"], ["were"]) and (
            words[-1] in _KIN or any(f" {word} of " in spaced for word in set(words) & _KIN)
        )
    return words[-1] in _KIN and (" name of " in spaced or " names of " in spaced)


def _by_noun(head: str, rest: Sequence[str]) -> Intent | None:
    """Return what the noun before the verb asks for: `which US state was`, `what is Maya's address`, `which friend
    helped her`.
    """
    if head not in {"what", "which"}:
        return None
    rest = rest[:7]
    has_verb = rest[:1] in (["is"], ["are"], ["was"], ["were"])
    rest = rest[1:] if has_verb else rest
    phrase = list(takewhile(lambda word: word not in _AUXILIARIES and word not in _PREPOSITIONS, rest))
    if not phrase:
        return None
    if phrase[0] == "the" and phrase[1:] and phrase[1] in _NOUNS:
        return _NOUNS[phrase[1]]
    is_without_end = len(phrase) == len(rest) and not has_verb
    return _NOUNS.get(phrase[0] if is_without_end else phrase[-1])


def _by_keywords(words: Sequence[str], head: str) -> Intent | None:
    if head or words[0] in _AUXILIARIES:
        return None
    if len(words) > _MAX_KEYWORDS and words[:3] != ["tell", "me", "about"]:
        return None
    return next((_KEYWORDS[word] for word in words if word in _KEYWORDS), None)


_LISTING = (
    r"(?i)\b(?:which|how many|how often|list|(?:the|what) order|in (?:what|which) ways"
    r"|name (?:all|every|the|some|two|three|four|five)"
    r"|all (?:the|of the|my|our|his|her|their)|every|each of)\b"
    r"|\bwhat (?:all )?(?:are|were|have|kinds? of|sorts? of|types? of)\b|\b(?:what|where|who) (?:has|have) (?!happened)"
    r"|\bwhat (?:\S+ ){0,3}(?!(?:does|has|is|was|this|his|its)\b)\w+[^\Ws]s"
    r" (?:has|have|had|do|does|did|are|were|can|could|should|would|will|might)\b"
)


def asks_for_list(question: str) -> bool:
    """Return whether a question wants several things or their number: `which`, `how many`, `what books has she read`.

    A question for one thing may pass: it gets its answer in lines that are no worse.
    """
    return re.search(_LISTING, question) is not None


def is_statement(text: str) -> bool:
    """Return whether somebody tells something, and asks at most about that: no question and no words to search for."""
    words, first = _words_of(text), re.split(r"(?<=[.!?\uff1f\u3002])", text.strip(), maxsplit=1)[0]
    starts = _QUESTION_WORDS | _AUXILIARIES | {"describe", "explain", "find", "give", "list", "name", "show", "tell"}
    return len(words) > _MAX_KEYWORDS and words[0] not in starts and first[-1] not in "?\uff1f"


_COURSE = (
    r"(?i)\bin (?:what|which) order\b|\bthe order in which\b|\bover time\b|\b(?:chronolog|evol[uv]|timeline)"
    r"|\bhow (?:has|have|did|does) .{1,80}\b(?:changed?|developed?|progress(?:ed)?)\b|reihenfolge|im laufe der zeit"
    r"|en qu[eé] orden|dans quel ordre|em que ordem|什么顺序|どんな順"
)


def asks_for_course(question: str) -> bool:
    """Return whether the answer is a course of events: `in what order`, `how did it evolve`, `over time`."""
    return re.search(_COURSE, question) is not None


_NAMED = (
    r"(?i)\b(?:where|who|which)\b|\bwhat (?:\w+ ){0,2}(?:artist|author|band|book|brand|breed|cit(?:y|ies)|company|"
    r"countr(?:y|ies)|film|game|kind|language|movie|name|place|restaurant|school|show|song|sport|state|team|town|type|"
    r"university)s?\b"
)


def asked_kind(question: str) -> Literal["number", "name"] | None:
    """Return whether the answer is a number (`how many`, `how old`), or likely a name of somebody or something."""
    if re.search(r"(?i)\bhow (?:many|much|old|long|often|far|big|tall)\b", question):
        return "number"
    return "name" if re.search(_NAMED, question) else None


_OWN_PAST = (
    r"(?i)\b(?:did|had|have|has|was|were|am) (?:i|we|my)\b|summar(?:y|i[sz]e)"
    r"|\bi(?:['\u2019]ve| have)? (?:asked|brought|declined|discussed|mentioned|planned|reported|said|told)\b"
)


def asks_of_own_past(question: str) -> bool:
    """Return whether somebody asks about what they did, and not what to do: `when did I`, `a summary of`."""
    return re.search(_OWN_PAST, question) is not None


_ADVICE = (
    r"(?i)\b(?:did|had|have) you\b|\byou(?:['\u2019](?:ve|d)| have| had)?(?: \w+ly)? (?:advised|answered|came up"
    r"|described|drafted|explained|gave|given|helped|listed|mentioned|outlined|proposed|provided|recommended|said"
    r"|shared|showed|shown|suggested|told|written|wrote)\b"
)


def asks_about_advice(question: str) -> bool:
    """Return whether a question is about earlier answers: `what did you suggest`, `the films you mentioned`."""
    return re.search(_ADVICE, question) is not None


_SUMMING = ("summar", "recap", "overview", "zusammenfass", "resumen", "resumo", "总结", "概括", "まとめ", "要約")


def asks_for_summary(question: str) -> bool:
    """Return whether a question asks for a summary: `summarise`, `a recap of`."""
    asked = question.casefold()
    return any(part in asked for part in _SUMMING)
