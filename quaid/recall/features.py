"""The features of candidates, and the relevance that they come to.

Turns, the facts that cite them and their sessions support each other: a fact lends its score to the turns that it
cites and a turn to its facts, a turn gains from the adjacent turns and from the session as a whole. A candidate without
such support, such as a separate note, counts alone. Some features count only in a talk among people. Each feature is a
number in [0, 1]; the weighted mean of those that apply is the relevance (weights: docs/explanation/recall.md).
"""

import math
import re
from collections.abc import Mapping
from datetime import timedelta

from quaid.index.documents import Document
from quaid.model import FIRST_PERSON, Kind, name_key
from quaid.recall.intent import Intent, asked_kind, asks_about_advice, asks_for_summary
from quaid.recall.query import Query
from quaid.recall.search import Features, Search
from quaid.text.language import ENGLISH, language
from quaid.text.words import count_spaced, fold

OF_OWNER, OF_OWNERS_OWN = 1.0, 0.3
"""The gain of a fact about the owner, where the question says `I` and where it says no more than `my`. Less where most
facts are about the owner, and the less the better the fact is: no two facts that differ become equal.
"""
BARE_NAME = 0.3
"""The part of its score that a note keeps which says nothing but its name, as that does not answer."""
AMONG_PEOPLE = frozenset({"length", "asks", "first_person"})
"""Features that tell something in a talk among people, and count as far as it is one."""
_RARE = frozenset({"graph", "dated", "phrase", "tells", "instruction"})
"""Features that most questions give no occasion for: they come on top of the mean."""
_OF_SUPPORT = ("beside", "session_best", "cited", "session_fact")
"""Features that are what a note says for itself where it cites nothing."""
_FULL_LENGTH = math.log(60)
"""A turn of sixty words or more says as much as one can."""
_MANY_PIECES = math.log(30)
_ASKS_BOTH = 0.5
"""What `speaker` is for the owner's turns where the question says `you` too, as the assistant may have answered, and
for the assistant's where it asks about earlier answers."""
_LESS_TELLING = 0.4
"""What `tells` is for a number or a name, of which most texts have one, where it is 1 for a time."""
_DAYS_AFTER, _FROM_THOSE_DAYS = timedelta(days=2), 0.6
"""On Monday people tell what they did on Sunday: how long after a day, and what `dated` is for what is from then."""
_TOKEN = re.compile(r"[^\W_]+", re.UNICODE)
_TELLS_WHEN = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|recently|since|just|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i['\u2019](?:m|ve|d|ll)|my|mine|me|myself|we|our|us)\b", re.IGNORECASE)
_ASSISTANT = frozenset({"you", "your", "yours"})
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|couple|dozen|several|few)\b", re.IGNORECASE
)
_NAME = re.compile(r"(?<=[^\W_,;:] )[A-Z][a-z]{2,}")
"""A word with a capital within a sentence."""


def normalise(weights: Mapping[str, float]) -> dict[str, float]:
    """Return what each feature adds to the relevance where it is 1 and nothing tells of people."""
    always = (weight for name, weight in weights.items() if name not in _RARE | AMONG_PEOPLE)
    total = sum(weight for weight in always if weight > 0) or 1.0
    return {name: weight / total for name, weight in weights.items() if weight}


def score_candidates(search: Search) -> None:
    """Set the features of the candidates, what each feature adds, and the relevance in [0, 1]: a little more where a
    rare feature comes on top.
    """
    scorer, query = _Scorer(search), search.query
    search.features, search.relevance = {}, {}
    shares = normalise(search.profile.weights)
    more = sum(share for name in AMONG_PEOPLE if (share := shares.get(name, 0.0)) > 0)
    for chunk_id, candidate in search.candidates.items():
        row = search.features[chunk_id] = scorer.features_of(candidate)
        if talk := search.talks.get(candidate.doc_id):
            # They count as far as the talk is one among people, and their mean is one of all that apply.
            applying = 1.0 + talk.among_people * more
            for name, value in row.items():
                row[name] = value * (talk.among_people if name in AMONG_PEOPLE else 1.0) / applying
        score = max(0.0, sum([shares.get(name, 0.0) * value for name, value in row.items()]))
        if chunk_id in scorer.about_owner:
            gain = (OF_OWNER if query.is_about_owner else OF_OWNERS_OWN) * scorer.unlike_others
            score *= 1.0 + gain * max(0.0, 1.0 - score)
        is_bare = candidate.text.casefold() == candidate.title.casefold()
        search.relevance[chunk_id] = score * BARE_NAME if is_bare else score


def contributions(features: Features, shares: Mapping[str, float]) -> dict[str, float]:
    """Return what each feature adds to the relevance."""
    return {name: round(shares[name] * value, 4) for name, value in features.items() if value and name in shares}


class _Scorer:
    """The features of the candidates of one search, and the best of each episode."""

    def __init__(self, search: Search) -> None:
        self._search = search
        query, candidates = search.query, search.candidates
        self._is_for_summary = asks_for_summary(query.text)
        self._asked_kind = asked_kind(query.text)
        self._best_own = max((search.own(chunk_id) for chunk_id in candidates), default=0.0) or 1.0
        self.about_owner = {key for key, each in candidates.items() if tells_of_owner(each, query)}
        facts = sum(each.kind == Kind.FACT for each in candidates.values())
        self.unlike_others = 1.0 - len(self.about_owner) / facts if facts else 1.0
        """The share of facts that are not about the owner: in a vault of one owner, being about the owner and when it
        was tell little."""
        self._named, self._speaker_weight = find_speaker(search)
        self._windows: list[tuple[str, str, str]] = []
        """The first and last day of each date of the question, and until when people tell of it."""
        for each in query.dates:
            soon = each.end + (_DAYS_AFTER if each.end - each.start <= _DAYS_AFTER else timedelta())
            self._windows.append((f"{each.start}", f"{each.end}", f"{soon}"))
        self._best_turn: dict[int, float] = {}
        """The best turn of each episode, by its doc_id; a long turn is several chunks and counts as its best."""
        self._best_fact: dict[int, float] = {}
        """The best fact that cites a turn of an episode, by its doc_id."""
        self._lent: dict[int, tuple[float, float]] = {}
        """By turn: the best of the facts that cite it, and how near the graph brings them."""
        for chunk_id, candidate in candidates.items():
            own = search.own(chunk_id)
            if candidate.turn is not None:
                self._best_turn[candidate.doc_id] = max(self._best_turn.get(candidate.doc_id, 0.0), own)
            for cited in search.cites.get(chunk_id, ()):
                turn = candidates.get(cited)
                if turn is not None:
                    self._best_fact[turn.doc_id] = max(self._best_fact.get(turn.doc_id, 0.0), own)
        for chunk_id, cited_turns in search.cites.items():
            own, near = search.own(chunk_id), search.graph.get(candidates[chunk_id].doc_id, 0.0)
            for cited in cited_turns:
                score, nearness = self._lent.get(cited, (0.0, 0.0))
                self._lent[cited] = max(score, own), max(nearness, near)

    def features_of(self, candidate: Document) -> Features:
        """Return all features of a candidate that are not 0."""
        search, query, text = self._search, self._search.query, candidate.text
        features = {"own": search.own(candidate.chunk_id)}
        if telling := self._tells(candidate):
            features["tells"] = telling * features["own"] / self._best_own
        if candidate.chunk_id in search.instructions:
            features["instruction"] = 1.0
        if nearness := search.graph.get(candidate.doc_id):
            features["graph"] = nearness
        if query.dates and (dated := self._dated(candidate)):
            features["dated"] = dated
        folded = fold(text).casefold() if query.phrases else ""
        if any(fold(phrase).casefold() in folded for phrase in query.phrases):
            features["phrase"] = 1.0
        if candidate.turn is None:
            # A note, or a fact, by itself, and by the turns it cites where those say more.
            features.update(dict.fromkeys(_OF_SUPPORT, features["own"]))
            cited = [chunk for chunk in search.cites.get(candidate.chunk_id, ()) if chunk in search.candidates]
            if cited:
                episode = search.candidates[cited[0]].doc_id
                features["beside"] = max(map(search.own, cited))
                features["session_best"] = self._best_turn.get(episode, features["own"])
                features["session_fact"] = self._best_fact.get(episode, features["own"])
        else:
            self._score_turn(features, candidate, candidate.turn)
        if self._speaker_weight and (self._named or query.owner_keys) and self._is_by_or_about(candidate):
            features["speaker"] = self._speaker_weight
        return features

    def _tells(self, candidate: Document) -> float:
        """Return in [0, 1] how much a candidate has what the question asks for: a time, a number or a name."""
        query, text = self._search.query, candidate.text
        if query.intent is Intent.WHEN:
            return self.unlike_others if candidate.valid_from or _TELLS_WHEN.search(text) else 0.0
        if self._asked_kind == "number":
            return _LESS_TELLING if _NUMBER.search(text) else 0.0
        known = {candidate.turn_speaker, candidate.speaker}
        names = _NAME.findall(text) if self._asked_kind == "name" else []
        return _LESS_TELLING if any(name not in query.text and name not in known for name in names) else 0.0

    def _dated(self, candidate: Document) -> float:
        """Return 1 where a candidate is true or speaks of the time that the question names, less where it is from that
        time or soon after.
        """
        stated, windows = (candidate.said_at or candidate.created or "")[:10], self._windows
        if first := candidate.valid_from:
            # A year alone, or a month, lasts to its end.
            last = candidate.valid_until or f"{first}-99-99"
            return float(any(first[:10] <= end and last[:10] >= start for start, end, _ in windows))
        spoken = [window.split("/") for window in candidate.days.split()]
        if any(first >= start and last <= end for first, last in spoken for start, end, _ in windows):
            return 1.0
        return _FROM_THOSE_DAYS if any(start <= stated <= soon for start, _, soon in windows) else 0.0

    def _is_by_or_about(self, candidate: Document) -> bool:
        """Return whether a candidate is by or about the person whom the question names, the owner where it says
        `my`.
        """
        if candidate.chunk_id in self.about_owner:
            return True
        if speaker := candidate.turn_speaker or candidate.speaker:
            return name_key(speaker) in self._named
        about = candidate.text.casefold() if candidate.kind == Kind.FACT else ""
        return any(name.split()[0] in about for name in self._named)

    def _score_turn(self, features: Features, candidate: Document, number: int) -> None:
        """Score a turn by the adjacent turns, its session and the facts that cite it."""
        search, text = self._search, candidate.text
        features["length"] = min(1.0, math.log1p(count_spaced(text)) / _FULL_LENGTH)
        features["session_best"] = self._best_turn[candidate.doc_id]
        features["session_fact"] = self._best_fact.get(candidate.doc_id, 0.0)
        if text.rstrip().endswith("?"):
            features["asks"] = 1.0
        if _FIRST_PERSON.search(text):
            features["first_person"] = 1.0
        if candidate.chunk_id in self._lent:
            features["cited"], near = self._lent[candidate.chunk_id]
            if near:
                features["graph"] = max(near, features.get("graph", 0.0))
        talk = search.talks.get(candidate.doc_id)
        if talk is None or number not in talk.places:
            return
        before, after = talk.adjacent_turns(number)
        # An adjacent turn of the same speaker does not count.
        others = [turn for turn in (before, after) if turn and turn.speaker != candidate.turn_speaker]
        nearest = max((search.own(chunk_id) for turn in others for chunk_id in turn.chunks), default=0.0)
        features["beside"] = nearest * (1 + talk.among_people) / 2
        pieces = len(talk.turns[talk.places[number]].chunks)
        if pieces > 1 and not self._is_for_summary:  # long messages are what a summary is made of
            features["pieces"] = min(1.0, math.log(pieces) / _MANY_PIECES)


def find_speaker(search: Search) -> tuple[frozenset[str], float]:
    """Return the keys of the one speaker whom the question names, by each part of the name, and how much it counts
    that a turn is by that one; nobody when it names several. Where it names none and says `my`, the owner, who may
    go by several names.
    """
    query, candidates = search.query, search.candidates.values()
    asked = {name_key(token) for token in _TOKEN.findall(query.text)}
    speakers = {name_key(speaker) for each in candidates if (speaker := each.turn_speaker or each.speaker)}
    if asks_about_advice(query.text) and (assistant := speakers & {"assistant", "ai"}):
        return frozenset(assistant), _ASKS_BOTH
    called = search.called(speakers)
    named = {
        speaker
        for speaker, keys in called.items()
        if any(key in query.name_keys for key in keys) or not asked.isdisjoint(speaker.split())
    }
    if len({called[speaker] for speaker in named}) > 1:
        return frozenset(), 1.0
    named = named or speakers.intersection(query.owner_keys)
    if named.isdisjoint(query.owner_keys):
        return frozenset(named), 1.0
    # A summary draws on both speakers. The assistant's turns may answer as well if the question says `you`.
    share = 1.0 if _ASSISTANT.isdisjoint(asked) else _ASKS_BOTH
    return frozenset(named), 0.0 if asks_for_summary(query.text) else share


def tells_of_owner(candidate: Document, query: Query) -> bool:
    """Return whether the question says `my` and a fact is about the owner: `User works at …`, or the owner's own `I
    work at …`.
    """
    if not query.owner_keys or candidate.kind != Kind.FACT:
        return False
    text = f"{name_key(candidate.text)} "
    names = (key for key in query.owner_keys if key not in FIRST_PERSON)  # anybody says `I`
    if any(text.startswith((f"{key} ", f"{key}'s ", f"{key}\u2019s ")) for key in names):
        return True
    is_own = candidate.source in {None, "user"}
    is_own &= not candidate.speaker or name_key(candidate.speaker) in query.owner_keys
    return is_own and _FIRST_PERSON.search(text) is not None and language(candidate.text) in ENGLISH
