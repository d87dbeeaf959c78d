"""The evidence for injecting one memory before a prompt, whatever else was found.

A score compares a memory with the others, and the best of irrelevant memories is irrelevant. So each is weighed alone,
by the share of the prompt's words that it has and by its similarity to the prompt. A question within a longer prompt
counts as if it were the prompt. In an order to write, fix or run something, the verb is no evidence, and a single other
word often matches by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quaid.index import fulltext
from quaid.model import Hit
from quaid.recall.retrieval import stems
from quaid.text.language import language
from quaid.text.stop_words import read_lists
from quaid.text.words import find_words

ENOUGH = 0.5
"""Tuned, like the weight of the words, on half of the prompts of `tests/benchmarks/injections.py`."""
FEWEST_ORDERED = 4
"""An order counts as at least so many words: without vectors, two of them must match."""
WEIGHT_OF_WORDS = 0.6
"""The weight of all words of a prompt, added to the similarity. Without vectors only the words count."""
_ORDERS, _BEFORE_AN_ORDER = (frozenset(read_lists("names.txt")[name].split()) for name in ("orders", "before_order"))
"""Verbs that begin what English-speakers order an agent to do, and words that may come before these."""
_MIN_QUESTION = 2
"""Words of a question within a prompt: `did we ever do that?` is no query alone."""
_SENTENCE_END = re.compile(r"(?<=[.?!:\n])\s+|(?<=[？。！])")  # noqa: RUF001


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


class AskedWords:
    """The words of a prompt, and of each question in it: their stems, and the number of which they are a share."""

    def __init__(self, prompt: str) -> None:
        questions = (part for part in _SENTENCE_END.split(prompt) if part.rstrip().endswith(("?", "？")))  # noqa: RUF001
        self._asked: list[tuple[frozenset[str], int]] = []
        for text in (prompt, *questions):
            words = stems(fulltext.terms(text, language(text)))
            fewest = 1
            verb = next((word for word in find_words(text) if word not in _BEFORE_AN_ORDER), "")
            if verb in _ORDERS:
                words, fewest = words - stems({verb, *_BEFORE_AN_ORDER}) or words, FEWEST_ORDERED
            if not words and not self._asked:  # then no question of the prompt has any
                return
            if not self._asked or len(words) >= _MIN_QUESTION:
                self._asked.append((words, max(len(words), fewest)))

    def weigh(self, hit: Hit) -> Evidence:
        """Return the evidence for `hit` alone."""
        words = stems(find_words(f"{hit.heading} {hit.speaker or ''} {hit.text}"))
        share = max((len(asked & words) / of for asked, of in self._asked), default=0.0)
        found = frozenset[str]().union(*(asked & words for asked, _ in self._asked))
        vector = hit.channels.get("vector")
        return Evidence(found, share, None if vector is None else vector.score)


def without_weaker(new: Iterable[Hit], given: Iterable[Hit], evidence: Mapping[str, Evidence]) -> list[Hit]:
    """Return the hits of `new` that are better than all `given` ones or match another word of the prompt: a repeated
    question does not get the remaining hits.
    """
    known = [evidence[hit.id] for hit in given]
    best = max((each.weight for each in known), default=-1.0)
    words = frozenset[str]().union(*(each.words for each in known))
    return [hit for hit in new if evidence[hit.id].weight > best or not evidence[hit.id].words <= words]
