"""Find the JSON in a model's text, whatever is written around it and however carelessly.

Small mistakes are mended: raw line breaks and quotes in a string, a comma too many, Python's words for null, true and
false. Of an answer that was cut off, the complete part is read.
"""

from __future__ import annotations

import json
import re
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


def find_answer(text: str) -> tuple[dict[str, Any] | list[Any] | None, bool]:
    """Return the first JSON object, or list of objects, in `text`, and whether it is cut off: then it has only what is
    complete. None where there is none. What the model thought aloud before it is skipped.
    """
    # Some chat templates open the thought themselves: only its end is in the text.
    thought = None if text.lstrip().startswith(("{", "[")) else _THOUGHT_END.search(text)
    answered = _first_value(text[thought.end() :]) if thought else (None, False)
    return answered if answered[0] is not None else _first_value(text)


def _first_value(text: str) -> tuple[dict[str, Any] | list[Any] | None, bool]:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    mended = 0
    place = 0
    for _ in range(_MAX_TRIES):
        start = _START.search(text, place)
        if start is None:
            break
        place = start.end()
        try:
            return decoder.raw_decode(text, start.start())[0], False
        except (ValueError, RecursionError):
            pass
        if mended < _MAX_MENDED and _OBJECT_START.match(text, start.start()):
            mended += 1
            mending = _Mending(text[start.start() :])
            value = mending.load()
            if value or mending.is_cut:  # what is inside of it is not the answer
                return value, mending.is_cut
    return None, False


class _Mending:
    """Reads JSON with small mistakes. `whole` is the last place up to which everything is complete, at least an item of
    a list in the outermost object, with the brackets that are open there.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.out: list[str] = []
        self.opened: list[str] = []
        self.whole: tuple[int, str] | None = None
        self.is_cut = False

    def load(self) -> dict[str, Any] | list[Any] | None:
        mended = self.run()
        try:
            return json.loads(mended, strict=False, parse_constant=_refuse) if mended is not None else None
        except (ValueError, RecursionError):
            self.is_cut = False
            return None

    def run(self) -> str | None:
        """Return the mended JSON; None where nothing is complete."""
        place = 0
        while place < len(self.text):
            sign = self.text[place]
            if sign == '"':
                end = self._read_string(place)
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
                self._mark_whole()
            self.out.append(_WORDS.get(token[0], token[0]))
        if self.whole is None:
            self.is_cut = True
            return None
        length, still_open = self.whole
        # Where only the last brackets are missing, nothing is.
        self.is_cut = bool("".join(self.out[length:]).strip()) or place < len(self.text)
        return "".join(self.out[:length]) + "".join("}" if sign == "{" else "]" for sign in reversed(still_open))

    def _read_string(self, start: int) -> int | None:
        """Read the string that begins at `start` and return its end; None where it has none."""
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
        self._mark_whole()

    def _mark_whole(self) -> None:
        if 1 <= len(self.opened) <= 2 and self.opened in (["{"], ["{", "["], ["["]):
            self.whole = (len(self.out), "".join(self.opened))


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
