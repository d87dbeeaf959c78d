"""Finds the JSON in what a model wrote, whatever it has written around it and however carelessly.

What is only careless is read as it was meant: raw line breaks and quotes in a string, a comma too many, Python's words
for null, true and false. Of an answer that was cut off, what is whole is read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_START = re.compile(r"\{|\[(?=\s*\{)")
_OBJECT_START = re.compile(r"\[?\s*\{\s*\"[^\"\n]{0,80}\"\s*:")
_TOKEN = re.compile(r"[A-Za-z]+|[^A-Za-z]")
_STRING_END = re.compile(r"\s*(?:[:}\]]|,\s*(?:[\"{\[\]}\d-]|(?i:null|none|true|false)\b|\Z)|\Z)")
"""What follows the quotation mark that ends a string; any other is the text's own."""
_WORDS = {"None": "null", "True": "true", "False": "false"}
_MAX_TRIES = 200
"""Few braces do not begin an object; a text of nothing else must not take forever."""
_MAX_MENDED = 5
_MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """The JSON of an answer: an object, or a list of objects; None where there is none. `is_cut` says that it ends
    before its end: then it has only what is whole.
    """

    value: dict[str, Any] | list[Any] | None
    is_cut: bool = False


def find_answer(text: str) -> FoundAnswer:
    """Return the first JSON object, or list of objects, in `text`, after what the model thought aloud and inside any
    fence.
    """
    # Some chat templates open the thought themselves: only its end is in the text.
    thought = None if text.lstrip().startswith(("{", "[")) else _THOUGHT_END.search(text)
    answered = _first_value(text[thought.end() :]) if thought else FoundAnswer(None)
    return answered if answered.value is not None else _first_value(text)


def _first_value(text: str) -> FoundAnswer:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    mended = 0
    place = 0
    for _ in range(_MAX_TRIES):
        start = _START.search(text, place)
        if start is None:
            break
        place = start.end()
        try:
            return FoundAnswer(decoder.raw_decode(text, start.start())[0])
        except (ValueError, RecursionError):
            pass
        if mended < _MAX_MENDED and _OBJECT_START.match(text, start.start()):
            mended += 1
            found = _read_careless(text[start.start() :])
            if found.value or found.is_cut:  # what stands inside of it is not the answer
                return found
    return FoundAnswer(None)


def _read_careless(text: str) -> FoundAnswer:
    mending = _Mending(text)
    mended = mending.run()
    if mended is None:
        return FoundAnswer(None, mending.is_cut)
    try:
        return FoundAnswer(json.loads(mended, strict=False, parse_constant=_refuse), mending.is_cut)
    except (ValueError, RecursionError):
        return FoundAnswer(None)


@dataclass(slots=True)
class _Mending:
    """Walks over JSON as it was meant. `whole` is the last place up to which all is whole, an item of a list in the
    outermost object at the least, with what is open there.
    """

    text: str
    out: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    whole: tuple[int, str] | None = None
    is_cut: bool = False

    def run(self) -> str | None:
        """Return the mended JSON; None where nothing is whole."""
        place = 0
        while place < len(self.text):
            sign = self.text[place]
            if sign == '"':
                end = self._take_string(place)
                if end is None:
                    break
                place = end
                continue
            token = _TOKEN.match(self.text, place)
            assert token is not None
            place = token.end()
            if sign in "{[":
                self.opened.append(sign)
                if len(self.opened) > _MAX_DEPTH:
                    return None
            elif sign in "}]":
                self._close(sign)
                if not self.opened:
                    return "".join(self.out)
                continue
            elif sign == ",":
                self._note_whole()
            self.out.append(_WORDS.get(token[0], token[0]))
        if self.whole is None:
            self.is_cut = True
            return None
        length, still_open = self.whole
        # Where only the last brackets are missing, nothing is.
        self.is_cut = bool("".join(self.out[length:]).strip()) or place < len(self.text)
        return "".join(self.out[:length]) + "".join("}" if sign == "{" else "]" for sign in reversed(still_open))

    def _take_string(self, start: int) -> int | None:
        """Take the string that begins at `start`; its end, None where it has none."""
        place = start + 1
        parts = ['"']
        while place < len(self.text):
            sign = self.text[place]
            if sign == "\\":
                parts.append(self.text[place : place + 2])
                place += 2
                continue
            if sign == '"':
                if _STRING_END.match(self.text, place + 1):
                    self.out.append("".join(parts) + '"')
                    return place + 1
                parts.append("\\")
            parts.append(sign)
            place += 1
        return None

    def _close(self, sign: str) -> None:
        while self.out and not self.out[-1].strip():
            self.out.pop()
        if self.out and self.out[-1] == ",":
            self.out.pop()
        self.opened.pop()
        self.out.append(sign)
        self._note_whole()

    def _note_whole(self) -> None:
        if 1 <= len(self.opened) <= 2 and self.opened in (["{"], ["{", "["], ["["]):
            self.whole = (len(self.out), "".join(self.opened))


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
