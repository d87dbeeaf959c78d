"""Characters that act on who reads them, or that nobody sees: left out for agents, shown as escapes to people.

Escape sequences of terminals, control characters but for tab and newline, bidirectional controls, zero width, tags,
lone surrogates. Scripts and emoji that need joiners, selectors or marks of direction keep theirs.
"""

import re
from typing import Any

# Patterns are compiled by the first text that needs them, not by the import: `re` keeps what it has compiled.

_ESCAPE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])"
_LINE_END = "\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
_CONTROL = "[\x00-\x08\x0e-\x1f\x7f-\x9f]"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_LONE_SELECTOR = f"(?<![0-9#*\x80-\u200b\u200e-\U0010ffff])[{_SELECTORS}]|(?<=[{_SELECTORS}])[{_SELECTORS}]"
_UNSEEN = (
    # The flags of England, Scotland and Wales are the one lawful use of tag characters.
    "(?P<flag>\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e|\U000e0073\U000e0063|\U000e0077\U000e006c)"
    "(?:\U000e0067|\U000e0074|\U000e0073)\U000e007f)"
    "|[\xad\u034f\u061c\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_JOINED = "[^\x00-\x7f\\s\u200c\u200d]"
_LONE_JOINER = f"(?<!{_JOINED})[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})"
_SURROGATE = "[\ud800-\udfff]"
_ASCII = "[\x00-\x08\x0b-\x1f\x7f]"
_ANY = f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]|{_SURROGATE}|{_UNSEEN}|{_LONE_SELECTOR}|{_LONE_JOINER}"
_MARKS = "\u061c\u200e\u200f"
"""Invisible letters of a direction: text from right to left is written with them, and they turn no other letter."""

_JSON_HALF = (
    r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>\\u(?:[dD][89a-fA-F][0-9a-fA-F]{2}|0000))"
)
"""A backslash, a whole pair of surrogates, or half of one or NUL."""

_RIGHT_TO_LEFT = "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_NEAR = 80


def whole(value: Any) -> Any:
    """Return a caller's value with U+FFFD for NUL and for half a character, which UTF-8, SQLite and git refuse, in its
    texts. Two halves that belong together become their character. Lists and sets become tuples and frozensets.
    """
    if type(value) in (list, tuple):
        return tuple(map(whole, value))
    if type(value) in (set, frozenset):
        return frozenset(map(whole, value))
    if type(value) is dict:
        return {key: whole(item) for key, item in value.items()}
    if not isinstance(value, str) or value.isprintable():  # half a character is not
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def whole_json(text: str) -> str:
    """Return the same for the strings of a JSON text. Some programs leave half a character where they cut a text."""
    if "\\u" not in text:
        return text
    return re.sub(_JSON_HALF, lambda found: "\\ufffd" if found["half"] else found[0], text)


def without_unseen(text: str) -> str:
    """Return `text` without what acts on its reader or is not seen; line ends become newlines."""
    if text.isascii() and text.isprintable():
        return text
    text = re.sub(_ESCAPE, "", text)
    text = re.sub(_CONTROL, "", re.sub(_LINE_END, "\n", text))
    text = re.sub(_UNSEEN, lambda match: match["flag"] or "", re.sub(_SURROGATE, "\ufffd", text))
    return re.sub(_LONE_JOINER, "", re.sub(_LONE_SELECTOR, "", text))


def escaped(text: str) -> str:
    r"""Return `text` with an escape for each such character: `\x1b`, `\u202e`; line ends become newlines."""
    return re.sub(_ASCII if text.isascii() else _ANY, _escape, text.replace("\r\n", "\n"))


def list_unseen(text: str) -> dict[str, list[int]]:
    """Return each such character with the numbers of the lines that have it, from 1. Ends of lines are none."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
        unseen = (match[0] for match in re.finditer(_ANY, line) if _escape(match) != match[0])
        for character in dict.fromkeys(unseen):
            found.setdefault(character, []).append(number)
    return found


def escaped_json(line: str) -> str:
    r"""Return the same for a line of JSON, which says the same as before: `\u001b`."""

    def escape(match: re.Match[str]) -> str:
        if match.lastgroup == "flag":
            return match[0]
        units = match[0].encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))

    return re.sub(_ASCII if line.isascii() else _ANY, escape, line)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if match.lastgroup == "flag":
        return character
    if character in _MARKS:  # something on the line, not far from it, may be written from right to left
        text, place = match.string, match.start()
        before, after = text[max(0, place - _NEAR) : place], text[place : place + _NEAR]
        if re.search(_RIGHT_TO_LEFT, before.rpartition("\n")[2] + after.partition("\n")[0]):
            return character
    return character.encode("unicode_escape").decode()
