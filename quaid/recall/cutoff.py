"""The number of hits: a ceiling by the size of the memory, a cut where relevance ends, and a budget of tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

CHARACTERS_PER_TOKEN = 4
"""Characters of English text per token with the tokenisers in use, near enough for a budget."""
_MIN_TRIMMED = 12
"""Fewer tokens of a text tell nothing."""


def dynamic_k(count: int, least: int, most: int) -> int:
    """Return `round(11.5 ln N - 61.7)` hits for N chunks, from `least` to `most`."""
    return max(least, min(most, round(11.5 * math.log(count) - 61.7))) if count > 0 else least


def tokens(text: str) -> int:
    """Return about how many tokens a text is."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def fit(texts: Sequence[str], budget: int, longer: Callable[[int], str]) -> list[str]:
    """Return as many of `texts`, best first, as fit into `budget` tokens, the last one trimmed; what room is left goes
    into `longer` versions of them, best first.
    """
    fitted: list[str] = []
    room = budget
    for text in texts:
        need = tokens(text)
        if need > room:
            trimmed = trim(text, room)
            if trimmed:
                fitted.append(trimmed)
                room = 0
            break
        fitted.append(text)
        room -= need
    for index in range(len(fitted)):
        if room <= 0:
            break
        text = longer(index)
        extra = tokens(text) - tokens(fitted[index])
        if 0 < extra <= room:
            fitted[index] = text
            room -= extra
    return fitted


def trim(text: str, most: int) -> str:
    """Return the beginning of `text` in at most `most` tokens, cut at a word and marked; empty if too short."""
    if tokens(text) <= most:
        return text
    if most < _MIN_TRIMMED:
        return ""
    kept = text[: most * CHARACTERS_PER_TOKEN - 2]
    return f"{kept[: kept.rfind(' ')] if ' ' in kept else kept} …"
