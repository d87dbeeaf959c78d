"""The evidence for injecting one memory before a prompt, whatever else was found.

A score compares a memory with the others, and the best of irrelevant memories is irrelevant. So each is weighed alone,
by the share of the prompt's words that it has, rare words more, and by its similarity to the prompt. A question within
a longer prompt counts as if it were the prompt. In an order to write, fix or run something, the verb is no evidence,
and a single other word often matches by chance. A question that a turn asks is no evidence either.
"""

import re
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from quaid.index import fulltext
from quaid.model import Hit, Neighbour, Scale, name_key
from quaid.recall.retrieval import stem, stems
from quaid.text.language import language
from quaid.text.stop_words import read_lists
from quaid.text.words import find_words

ENOUGH = 0.5
"""Tuned, like the weight of the words, on the part `tuned` of `tests/benchmarks/injections.py`."""
FEWEST_ORDERED = 4
"""What is no question counts as at least so many words: without vectors, two of them must match."""
WEIGHT_OF_WORDS = 0.6
"""The weight of all words of a prompt, added to the similarity. Without vectors only the words count."""
WEIGHT_OF_ALIKE = 0.7
"""The weight of a word of which the memory has only one with a related meaning: `address` and `lives`."""
FARTHEST, NEVER_FAR = 0.25, 2
"""A memory whose weight is so much less than the best is left out, unless it is among the first in recall."""
ADVICE = 0.8
"""What the evidence for a turn of an assistant counts: advice has the words of many prompts."""
MAX_EXCERPT = 240
"""Characters of a long turn or passage."""
_LISTS = read_lists("names.txt")
_ORDERS, _BEFORE_AN_ORDER, _ASKING = (frozenset(_LISTS[name].split()) for name in ("orders", "before_order", "asking"))
"""Verbs that begin what English-speakers order an agent to do, words that may come before these, and words that begin
their questions.
"""
_ALIKE = tuple(stems(line.split()) for line in _LISTS["alike"].splitlines())
_MIN_QUESTION = 2
"""Words of a question within a prompt: `did we ever do that?` is no query alone."""
_MAX_SHORT = 80
"""A sentence that ends in a question mark may state something before it, if it is longer."""
_ASIDE = re.compile(r"\[[^\[\]]*\]")
"""What a program notes of a message, such as what a photo in it shows."""
_SENTENCE_END = re.compile(r"(?<=[.?!:])\s+|\n\s*|(?<=[？。！])")  # noqa: RUF001
_ASSISTANTS = frozenset({"assistant", "ai"})
_QUESTION_MARKS = ("?", "？")  # noqa: RUF001


class Evidence(NamedTuple):
    """`words` are the stems of the prompt's words that a memory has, `share` how many of them these are, `likeness` the
    cosine to the prompt, None where there is no vector.
    """

    words: frozenset[str]
    share: float
    likeness: float | None

    @property
    def weight(self) -> float:
        return self.share if self.likeness is None else self.likeness + WEIGHT_OF_WORDS * self.share

    @property
    def is_enough(self) -> bool:
        return self.weight >= ENOUGH

    def __str__(self) -> str:
        under = "" if self.is_enough else f", under {ENOUGH}"
        likeness = "" if self.likeness is None else f", likeness {self.likeness:.2f}"
        return f"{self.weight:.2f} (words {self.share:.2f}{likeness}){under}"


_weight = attrgetter("weight")
NONE = Evidence(frozenset(), 0.0, 0.0)


class AskedWords:
    """The words of a prompt, and of each question in it: their stems, and the number of which they are a share. With
    the `scale` of the answer, a word counts by how rare it is in the vault.
    """

    def __init__(self, prompt: str, scale: Scale | None = None) -> None:
        self._has_vectors = scale is not None and bool(scale.embedder)
        # By words alone half of them are enough, however common they are.
        self._rarity = {stem(word): rarity for word, rarity in scale.rarity.items()} if scale and scale.embedder else {}
        questions = (part for part in _SENTENCE_END.split(prompt) if part.rstrip().endswith(_QUESTION_MARKS))
        self._asked: list[tuple[frozenset[str], int]] = []
        for text in (prompt, *questions):
            words = stems(fulltext.terms(text, language(text)))
            fewest = 1 if text.rstrip().endswith(_QUESTION_MARKS) or _begins_to_ask(text) else FEWEST_ORDERED
            verb = next((word for word in find_words(text) if word not in _BEFORE_AN_ORDER), "")
            if verb in _ORDERS:
                words, fewest = words - stems({verb, *_BEFORE_AN_ORDER}) or words, FEWEST_ORDERED
            if not words and not self._asked:  # then no question of the prompt has any
                return
            if not self._asked or len(words) >= _MIN_QUESTION:
                self._asked.append((words, max(len(words), fewest)))

    def weigh(self, hit: Hit) -> Evidence:
        """Return the evidence for `hit` alone, for a turn with the question that it answers."""
        statement = hit.text if hit.turn is None else drop_questions(_ASIDE.sub(" ", hit.text)).strip()
        if not statement:
            return NONE
        before = find_asked(hit)
        words = stems(find_words(f"{hit.heading} {hit.speaker or ''} {statement} {before.text if before else ''}"))
        share = max((self._share(asked, of, words) for asked, of in self._asked), default=0.0)
        found = frozenset[str]().union(*(asked & words for asked, _ in self._asked))
        vector = hit.channels.get("vector")
        likeness = 0.0 if self._has_vectors else None  # a vector that is not among the nearest is far
        if vector is not None:
            likeness = vector.score * len(statement) / len(hit.text)
        if name_key(hit.speaker or "") in _ASSISTANTS:
            share, likeness = share * ADVICE, None if likeness is None else likeness * ADVICE
        return Evidence(found, share, likeness)

    def _share(self, asked: frozenset[str], count: int, words: frozenset[str]) -> float:
        """Return the share of the words `asked`, counted as `count`, that a memory with `words` has."""
        total = sum(self._rarity.get(word, 1.0) for word in asked)
        alike = [word for word in asked - words if any(word in row and row & words for row in _ALIKE)]
        found = sum(self._rarity.get(word, 1.0) for word in asked & words)
        found += WEIGHT_OF_ALIKE * sum(self._rarity.get(word, 1.0) for word in alike)
        return found / total * len(asked) / count if total else 0.0

    def excerpt(self, text: str) -> str:
        """Return the sentences of a long text that have most of the words, marked where others are left out."""
        if len(text) <= MAX_EXCERPT:
            return text
        sentences = [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
        asked = self._asked[0][0] if self._asked else frozenset()
        shares = [self._share(asked, 1, stems(find_words(each))) / (len(each) + MAX_EXCERPT) for each in sentences]
        first = last = max(range(len(sentences)), key=shares.__getitem__)
        for place in (last + 1, first - 1):
            start, end = min(first, place), max(last, place)
            if start >= 0 and end < len(sentences) and len(" ".join(sentences[start : end + 1])) <= MAX_EXCERPT:
                first, last = start, end
        shown = " ".join(sentences[first : last + 1])
        return f"{'… ' * (first > 0)}{shown}{' …' * (last + 1 < len(sentences))}"


def drop_questions(text: str) -> str:
    """Return what a turn states: `text` without the sentences that only ask."""
    stated = []
    for part in filter(None, _SENTENCE_END.split(text)):
        sentence = part.strip()
        if not (sentence.endswith(_QUESTION_MARKS) and (_begins_to_ask(sentence) or len(sentence) <= _MAX_SHORT)):
            stated.append(part)
    return " ".join(stated)


def _begins_to_ask(text: str) -> bool:
    return next((word for word in find_words(text) if word not in _BEFORE_AN_ORDER - _ASKING), "") in _ASKING


def find_asked(hit: Hit) -> Neighbour | None:
    """Return the turn of another speaker directly before a turn, if it asks."""
    before = (each for each in hit.beside if each.ordinal == hit.ordinal - 1 and each.speaker != hit.speaker)
    return next(
        (each for each in before if hit.turn is not None and each.text.rstrip().endswith(_QUESTION_MARKS)), None
    )


def put_facts_first(hits: Iterable[Hit], evidence: dict[str, Evidence]) -> list[Hit]:
    """Return `hits` with each fact in the place of the turn that it cites, which lends it its evidence, unless the turn
    has much more of it.
    """
    hits = list(hits)
    turns = {hit.id for hit in hits if hit.turn is not None}
    dropped = set[str]()
    for fact in hits:
        for turn in turns.intersection(each.id for each in fact.beside if each.cited):
            if evidence[fact.id].weight + FARTHEST >= evidence[turn].weight:
                evidence[fact.id] = max(evidence[fact.id], evidence[turn], key=_weight)
                dropped.add(turn)
            else:
                dropped.add(fact.id)
    return [hit for hit in hits if hit.id not in dropped]


def without_far(hits: Iterable[Hit], evidence: Mapping[str, Evidence]) -> list[Hit]:
    """Return the hits with enough evidence that are not far behind the best, and the first of them anyway: recall knows
    of a conversation what one turn does not show.
    """
    enough = [hit for hit in hits if evidence[hit.id].is_enough]
    best = max((evidence[hit.id].weight for hit in enough), default=0.0)
    return [hit for hit in enough if hit in enough[:NEVER_FAR] or evidence[hit.id].weight >= best - FARTHEST]


def without_weaker(new: Iterable[Hit], given: Iterable[Hit], evidence: Mapping[str, Evidence]) -> list[Hit]:
    """Return the hits of `new` that are better than all `given` ones or match another word of the prompt: a repeated
    question does not get the remaining hits.
    """
    known = [evidence[hit.id] for hit in given]
    best = max((each.weight for each in known), default=-1.0)
    words = frozenset[str]().union(*(each.words for each in known))
    return [hit for hit in new if evidence[hit.id].weight > best or not evidence[hit.id].words <= words]
