"""The number of hits: a ceiling by the size of the memory, a cut where relevance ends, and a budget of tokens."""

import json
import math
from collections.abc import Iterable
from typing import Any

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


def fit_shapes(shapes: Iterable[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Return the first of the JSON objects `shapes` that are at most `budget` tokens together, with their neighbours as
    far as these fit too. The first is always among them, if need be with the beginning of its text.
    """
    fitted: list[dict[str, Any]] = []
    beside = []
    for shape in shapes:
        bare = {name: [] if name == "beside" else value for name, value in shape.items()}
        over = _size(bare) - budget
        if over > 0 and fitted:
            break
        if over > 0:
            bare["text"] = trim(bare["text"], max(_MIN_TRIMMED, tokens(bare["text"]) - over))
        fitted.append(bare)
        beside.append(shape.get("beside") or [])
        budget -= _size(bare)
    for bare, neighbours in zip(fitted, beside, strict=True):
        if neighbours and (used := _size({"beside": neighbours})) <= budget:
            bare["beside"] = neighbours
            budget -= used
    return fitted


def _size(shape: object) -> int:
    return tokens(f"{json.dumps(shape, ensure_ascii=False)}, ")
