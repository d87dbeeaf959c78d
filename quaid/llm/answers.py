"""Finds the JSON object in what a model wrote, whatever it has written around it."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_MAX_TRIES = 200
"""Few braces do not begin an object; a text of nothing else must not take forever."""


def find_object(text: str) -> dict[str, Any] | None:
    """Return the first whole JSON object in `text`, after what the model thought aloud and inside any fence."""
    # Some chat templates open the thought themselves: only its end is in the text.
    thought = None if text.lstrip().startswith("{") else _THOUGHT_END.search(text)
    answered = _first_object(text[thought.end() :]) if thought else None
    return answered if answered is not None else _first_object(text)


def _first_object(text: str) -> dict[str, Any] | None:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    start = text.find("{")
    for _ in range(_MAX_TRIES):
        if start < 0:
            break
        try:
            found: dict[str, Any] = decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
        else:
            return found
    return None


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
