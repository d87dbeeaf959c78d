"""Find the JSON in a model's text, whatever is written around it and however carelessly.

Small mistakes are mended: raw line breaks and quotes in a string, a comma too many, Python's words for null, true and
false. Of an answer that was cut off, the complete part is read.
"""

import json
import re
from typing import Any, NoReturn

Found = dict[str, Any] | list[Any] | None
_THOUGHT_END = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_START = re.compile(r"\{|\[(?=\s*\{)")
_OBJECT_START = re.compile(r"\[?\s*\{\s*\"[^\"\n]{0,80}\"\s*:")
_STRING_END = r"\s*(?:[:}\]]|,\s*(?:[\"{\[\]}\d-]|(?i:null|none|true|false)\b|\Z)|\Z)"
"""What follows the quotation mark that ends a string; any other is the text's own."""
_TOKEN = re.compile(
    rf"\"(?P<string>(?:\\.|[^\"\\]|\"(?!{_STRING_END}))*+)\"(?={_STRING_END})"
    r"|(?P<open>[{\[])|,?\s*(?P<close>[}\]])|(?P<comma>,)|(?P<word>\w+)|[^\"]",
    re.DOTALL,
)
_BARE_QUOTE = re.compile(r"(\\.)|\"", re.DOTALL)
_WORDS = {"None": "null", "True": "true", "False": "false"}
_WHOLE_WITHIN = (["{"], ["{", "["], ["["])
"""The open brackets between which an item is complete: those of the answer and its lists."""
_MAX_TRIES = 200
"""Few braces do not begin an object; a text of nothing else must not take forever."""
_MAX_MENDED = 5
_MAX_DEPTH = 50


def find_answer(text: str) -> tuple[Found, bool]:
    """Return the first JSON object, or list of objects, in `text`, and whether it is cut off: then it has only what is
    complete. None where there is none. What the model thought aloud before it is skipped.
    """
    # Some chat templates open the thought themselves: only its end is in the text.
    thought = None if text.lstrip().startswith(("{", "[")) else _THOUGHT_END.search(text)
    answered = _first_value(text[thought.end() :]) if thought else (None, False)
    return answered if answered[0] is not None else _first_value(text)


def _first_value(text: str) -> tuple[Found, bool]:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    mended = place = 0
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
            fixed, is_cut = _mend(text[start.start() :])
            try:
                value = json.loads(fixed, strict=False, parse_constant=_refuse) if fixed else None
            except (ValueError, RecursionError):
                continue
            if value or is_cut:  # what is inside of it is not the answer
                return value, is_cut
    return None, False


def _mend(text: str) -> tuple[str, bool]:
    """Return the JSON that begins `text` without small mistakes, and whether it is cut off: then it is all up to the
    last item of a list in the outermost object that is complete, and empty where none is.
    """
    out: list[str] = []
    opened: list[str] = []
    whole = ""
    place = rest = 0
    while token := _TOKEN.match(text, place):
        kind, place = token.lastgroup, token.end()
        if kind == "close":
            out.append(token["close"])
            if len(opened) < 2:
                return "".join(out), False
            opened.pop()
        if kind in {"close", "comma"} and opened in _WHOLE_WITHIN:
            whole = "".join([*out, *("}" if sign == "{" else "]" for sign in reversed(opened))])
            rest = place if kind == "close" else token.start()
        if kind == "string":
            escaped = _BARE_QUOTE.sub(lambda quote: quote[1] or '\\"', token["string"])
            out.append(f'"{escaped}"')
        elif kind != "close":
            out.append(_WORDS.get(token[0], token[0]))
        if kind == "open":
            opened.append(token[0])
            if len(opened) > _MAX_DEPTH:
                return "", False
    # Where only the last brackets are missing, nothing is.
    return whole, not whole or bool(text[rest:].strip())


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
