"""The number of hits: a ceiling by the size of the memory, a cut where relevance ends, and a budget of tokens."""

from __future__ import annotations

import math

MIN_HITS, MAX_HITS = 10, 50
MAX_IN_BUDGET = 100
"""Hits that are packed into a budget of tokens at most, where no limit is asked for."""
CHARACTERS_PER_TOKEN = 4
"""Characters of English text per token with the tokenisers in use, near enough for a budget."""
_FIRST_WIDE = "\u2e80"
"""Chinese, Japanese and Korean letters come after it, and emoji."""
_MIN_TRIMMED = 12
"""Fewer tokens of a text tell nothing."""


def dynamic_k(count: int) -> int:
    """Return how many hits are shown of `count` chunks: `round(11.5 ln N - 61.7)`, from 10 to 50."""
    return max(MIN_HITS, min(MAX_HITS, round(11.5 * math.log(count) - 61.7))) if count > 0 else MIN_HITS


def tokens(text: str) -> int:
    """Return about how many tokens a text is."""
    return math.ceil(weight(text) / CHARACTERS_PER_TOKEN)


def weight(text: str) -> int:
    """Return how many characters of English make as many tokens as `text`: letters of scripts that write words without
    spaces between are about a token each.
    """
    wide = 0 if text.isascii() else sum(letter >= _FIRST_WIDE for letter in text)
    return len(text) + (CHARACTERS_PER_TOKEN - 1) * wide


def trim(text: str, most: int) -> str:
    """Return the beginning of `text` in at most `most` tokens, cut at a word and marked; empty if too short."""
    if tokens(text) <= most:
        return text
    if most < _MIN_TRIMMED:
        return ""
    trimmed = text[: most * CHARACTERS_PER_TOKEN - 2]
    while tokens(f"{trimmed} …") > most:
        trimmed = trimmed[: len(trimmed) * 3 // 4]
    return f"{trimmed[: trimmed.rfind(' ')] if ' ' in trimmed else trimmed} …"
