"""Parsing JSON, JSON with comments and JSON5 into values with their positions, so that they can be edited in the text.

One grammar for all three, the widest: `check` says what a host would refuse. No library does it: jsonc-edit starts node
and downloads a package, json-five was last released in 2024 and depends on two more parsers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Dialect = Literal["json", "comments", "json5"]
"""The syntax that a host can read: plain JSON, JSON with comments, or all of JSON5."""

_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+)|(?P<comment>//[^\n\r\u2028\u2029]*|/\*.*?\*/)|(?P<mark>[{}\[\]:,])
    |(?P<string>"(?:[^"\\\n\r]|\\(?:\r\n|.))*"|'(?:[^'\\\n\r]|\\(?:\r\n|.))*')|(?P<word>(?:[^\s{}\[\]:,"'/])+)""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d++(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)")
_NAME = re.compile(r"(?:[^\W\d]|[$_\\])(?:\w|[$\\\u200c\u200d])*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_LINE_ENDS = ("\n", "\r", "\r\n", "\u2028", "\u2029")
_LITERALS = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 100
_CLOSING = {"{": "}", "[": "]"}


class JsonError(ValueError):
    """The text is not valid; the message says where."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        line = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        super().__init__(f"line {line}, column {column}: {problem}")


@dataclass(frozen=True, slots=True)
class JsonItem:
    """A member of an object or list. `start` is where its key begins, in a list its value; `comma` is where the comma
    behind it is.
    """

    start: int
    key: str | None
    value: Node
    comma: int | None


@dataclass(frozen=True, slots=True)
class Node:
    """A value, from `start` to before `end`. `plain` is the value in Python."""

    start: int
    end: int
    plain: Any
    items: tuple[JsonItem, ...] = ()


class Token(NamedTuple):
    """A piece of the text that is not white space; comments are pieces too."""

    kind: str
    text: str
    start: int
    end: int


def parse(text: str) -> Node | None:
    """Parse the text; None where it holds only space and comments.

    Raises:
        JsonError: it is neither JSON nor JSON5.
    """
    reader = _Reader(text)
    if reader.token is None:
        return None
    root = reader.value(0)
    if reader.token is not None:
        raise reader.error("something is left after the end")
    return root


def read_plain(text: str) -> Any:
    """The value of plain JSON, a hundred times as fast as `parse`; None for anything else, and for `null`."""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def tokens(text: str) -> Iterator[Token]:
    """The pieces of the text without white space.

    Raises:
        JsonError: a string or a comment does not end, or there is a stray character.
    """
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            problem = "a string or a comment does not end here" if text[position] in "\"'/" else "unexpected character"
            raise JsonError(text, position, problem)
        kind = match.lastgroup or ""
        if kind != "space":
            yield Token(kind, match[0], position, match.end())
        position = match.end()


def check(text: str, dialect: Dialect) -> None:
    """Check that a host can read the text.

    Raises:
        JsonError: it cannot.
    """
    if dialect == "json5" or read_plain(text) is not None or parse(text) is None:
        return
    pieces = list(tokens(text))
    comment = next((piece for piece in pieces if piece.kind == "comment"), None)
    if comment is not None and dialect == "json":
        raise JsonError(text, comment.start, "a comment, and this program reads plain JSON only")
    bare = list(text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text)
    for piece in pieces:
        if piece.kind == "comment":
            bare[piece.start : piece.end] = " " * (piece.end - piece.start)
    try:
        json.loads("".join(bare))
    except ValueError as error:
        position = getattr(error, "pos", 0)
        raise JsonError(text, position, "this program reads plain JSON only, and this is not plain JSON") from error


class _Reader:
    """A recursive descent parser. It skips comments: an edit finds them between the values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces = (piece for piece in tokens(text) if piece.kind != "comment")
        self.token = next(self._pieces, None)

    def value(self, depth: int) -> Node:
        piece = self.take()
        if piece.text in _CLOSING:
            if depth >= _MAX_DEPTH:
                raise JsonError(self.text, piece.start, "nested too deep")
            return self.container(piece, depth)
        if piece.kind == "string":
            return Node(piece.start, piece.end, _unescape(piece.text[1:-1]))
        if piece.text in _LITERALS:
            return Node(piece.start, piece.end, _LITERALS[piece.text])
        if piece.kind == "word" and _NUMBER.fullmatch(piece.text):
            digits = piece.text.lstrip("+-")
            is_whole = digits.isdecimal() and len(digits) < 1000
            number = int(digits, 16) if digits[:2] in {"0x", "0X"} else int(digits) if is_whole else float(digits)
            return Node(piece.start, piece.end, -number if piece.text.startswith("-") else number)
        raise JsonError(self.text, piece.start, f"a value is missing before {piece.text[:20]}")

    def container(self, opening: Token, depth: int) -> Node:
        closing = _CLOSING[opening.text]
        items: list[JsonItem] = []
        while not self.sees(closing):
            if items and items[-1].comma is None:
                raise self.error("a comma is missing" if self.token else "the end is missing")
            items.append(self.item(depth, has_key=opening.text == "{"))
        end = self.take().end
        values = [item.value.plain for item in items]
        plain = dict(zip((item.key for item in items), values, strict=True)) if closing == "}" else values
        return Node(opening.start, end, plain, tuple(items))

    def item(self, depth: int, *, has_key: bool) -> JsonItem:
        start = self.token.start if self.token else len(self.text)
        key = self.key() if has_key else None
        value = self.value(depth + 1)
        return JsonItem(start, key, value, self.take().start if self.sees(",") else None)

    def key(self) -> str:
        piece = self.take()
        if piece.kind != "string" and not (piece.kind == "word" and _NAME.fullmatch(piece.text)):
            raise JsonError(self.text, piece.start, "a name is missing")
        if not self.sees(":"):
            raise self.error("a colon is missing")
        self.take()
        return _unescape(piece.text[1:-1] if piece.kind == "string" else piece.text)

    def sees(self, text: str) -> bool:
        return self.token is not None and self.token.text == text

    def take(self) -> Token:
        if self.token is None:
            raise self.error("the end is missing")
        piece, self.token = self.token, next(self._pieces, None)
        return piece

    def error(self, problem: str) -> JsonError:
        return JsonError(self.text, self.token.start if self.token else len(self.text), problem)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    unescaped = _ESCAPE.sub(_unescape_one, text)
    # Two escapes of one character beyond the sixteenth bit become that character; a half alone stays as it is.
    return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unescape_one(match: re.Match[str]) -> str:
    if code := match[1] or match[2]:
        return chr(int(code, 16))
    return "" if match[3] in _LINE_ENDS else _ESCAPED.get(match[3], match[3])
