"""Edit JSON with comments in its text: all other bytes stay, and what is added looks like what is there.

The parser accepts comments, trailing commas, bare keys and plain strings in single quotes; `check` refuses what a host
would refuse. No maintained library edits such text in place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Dialect = Literal["json", "comments", "json5"]
"""The syntax that a host reads: plain JSON, JSON with comments, or JSON5."""
_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+)|(?P<comment>//[^\n\r]*|/\*.*?\*/)|(?P<mark>[{}\[\]:,])
    |(?P<string>"(?:[^"\\\n\r]|\\.)*"|'[^'"\\\n\r]*')|(?P<word>(?:[^\s{}\[\]:,"'/])+)""",
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"(?:[^\W\d]|\$)(?:\w|\$)*")
_MAX_DEPTH = 100


class JsonError(ValueError):
    """The text is not valid; the message contains the place."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        line = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        super().__init__(f"line {line}, column {column}: {problem}")


@dataclass(frozen=True, slots=True)
class Node:
    """A value in the text, from `start` to before `end`, and in Python. A container has `items`.

    The `key` of a member begins at `start`, its value at `value_start`; `comma` is the place of the comma after it.
    """

    start: int
    value_start: int
    end: int
    plain: Any
    key: str | None = None
    comma: int | None = None
    items: tuple[Node, ...] = ()

    @property
    def stop(self) -> int:
        """The end of a member with its comma."""
        return self.end if self.comma is None else self.comma + 1


# -- reading ---------------------------------------------------------------------------------------------------------


def read(text: str) -> Any:
    """Return the value of the text, `{}` for an empty text.

    Raises:
        JsonError: it is not JSON.
    """
    try:
        return json.loads(text.removeprefix("\ufeff"))  # a hundred times as fast as the parser
    except (ValueError, RecursionError):
        root = _parse(text)
        return {} if root is None else root.plain


def check(text: str, dialect: Dialect) -> None:
    """Check that a host can read the text.

    Raises:
        JsonError: it cannot.
    """
    if dialect == "json5" or _parse(text) is None:
        return
    comments = [piece for piece in tokens(text) if piece.lastgroup == "comment"]
    if comments and dialect == "json":
        raise JsonError(text, comments[0].start(), "a comment, and this program reads plain JSON only")
    bare = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    for piece in comments:
        bare = bare[: piece.start()] + " " * len(piece[0]) + bare[piece.end() :]
    try:
        json.loads(bare)
    except ValueError as error:
        position = getattr(error, "pos", 0)
        raise JsonError(text, position, "this program reads plain JSON only, and this is not plain JSON") from error


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of the text, comments included.

    Raises:
        JsonError: a string or a comment does not end, or there is a stray character.
    """
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            problem = "a string or a comment does not end here" if text[position] in "\"'/" else "unexpected character"
            raise JsonError(text, position, problem)
        if match.lastgroup != "space":
            yield match
        position = match.end()


def _parse(text: str) -> Node | None:
    parser = _Parser(text)
    if parser.text == "":
        return None
    root = parser.read_value(0)
    if parser.token is not None:
        raise parser.error("something is left after the end")
    return root


class _Parser:
    """A recursive descent parser that skips comments."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = (token for token in tokens(source) if token.lastgroup != "comment")
        self.token = next(self._tokens, None)

    @property
    def text(self) -> str:
        return self.token[0] if self.token else ""

    def read_value(self, depth: int, start: int | None = None, key: str | None = None) -> Node:
        token = self.take()
        begin = token.start()
        items: list[Node] = []
        if token[0] in ("{", "["):
            if depth >= _MAX_DEPTH:
                raise JsonError(self._source, begin, "nested too deep")
            closing = "}" if token[0] == "{" else "]"
            while self.text != closing:
                if items and items[-1].comma is None:
                    raise self.error("a comma is missing" if self.token else "the end is missing")
                items.append(self._read_member(depth, has_key=closing == "}"))
            end = self.take().end()
            plain: Any = {item.key: item.plain for item in items} if closing == "}" else [i.plain for i in items]
        else:
            end, plain = token.end(), self._read_scalar(token)
        comma = None
        if depth and self.text == ",":
            comma = self.take().start()
        return Node(begin if start is None else start, begin, end, plain, key, comma, tuple(items))

    def _read_member(self, depth: int, *, has_key: bool) -> Node:
        if not has_key:
            return self.read_value(depth + 1)
        token = self.take()
        if token.lastgroup != "string" and not (token.lastgroup == "word" and _NAME.fullmatch(token[0])):
            raise JsonError(self._source, token.start(), "a name is missing")
        if self.text != ":":
            raise self.error("a colon is missing")
        self.take()
        key = str(self._read_scalar(token)) if token.lastgroup == "string" else token[0]
        return self.read_value(depth + 1, token.start(), key)

    def _read_scalar(self, token: re.Match[str]) -> Any:
        if token[0].startswith("'"):
            return token[0][1:-1]
        try:
            return json.loads(token[0], strict=False)
        except ValueError as error:
            problem = f"a value is missing before {token[0][:20]}"
            raise JsonError(self._source, token.start(), problem) from error

    def take(self) -> re.Match[str]:
        if self.token is None:
            raise self.error("the end is missing")
        token, self.token = self.token, next(self._tokens, None)
        return token

    def error(self, problem: str) -> JsonError:
        return JsonError(self._source, self.token.start() if self.token else len(self._source), problem)


# -- editing ---------------------------------------------------------------------------------------------------------


def update(text: str, value: Any) -> str:
    """Return the text with `value` instead of its own. What is equal in both stays, byte by byte.

    Raises:
        JsonError: the text is not JSON.
    """
    root = _parse(text)
    if root is None and not value:
        return text
    if root is None:  # nothing but comments
        newline = "\r\n" if "\r\n" in text else "\n"
        before = text if not text.strip("\ufeff") or text.endswith("\n") else text + newline
        return before + _Style(newline, "  ").render(value, "") + newline
    after = _edit_once(text, root, root, value)
    return text if after == text else update(after, value)


def _edit_once(text: str, root: Node, node: Node, value: Any) -> str:
    """Return the text with the first difference between `node` and `value` removed."""
    if is_same(node.plain, value):
        return text
    if isinstance(node.plain, dict) and isinstance(value, dict):
        return _edit_object(text, root, node, value)
    if isinstance(node.plain, list) and isinstance(value, list):
        return _edit_list(text, root, node, value)
    indent = _line_indent(text, node.value_start)
    shown = _Style.of(text, root).render(value, indent) if "\n" in text[root.start : root.end] else _inline(value)
    return text[: node.value_start] + shown + text[node.end :]


def _edit_object(text: str, root: Node, node: Node, value: dict[str, Any]) -> str:
    gone = next((position for position, item in enumerate(node.items) if item.key not in value), None)
    if gone is not None:
        return _cut(text, node, gone)
    members = {item.key: item for item in node.items}  # of a key that is there twice, the last counts
    key = next(key for key, new in value.items() if key not in members or not is_same(members[key].plain, new))
    if key in members:
        return _edit_once(text, root, members[key], value[key])
    return _insert(text, root, node, f"{_inline(key)}: ", value[key])


def _edit_list(text: str, root: Node, node: Node, value: list[Any]) -> str:
    pairs = zip(node.items, value, strict=False)
    place = next((n for n, (item, new) in enumerate(pairs) if not is_same(item.plain, new)), None)
    if len(node.items) > len(value):
        return _cut(text, node, len(value) if place is None else place)
    if place is None:
        return _insert(text, root, node, "", value[len(node.items)])
    return _edit_once(text, root, node.items[place], value[place])


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; 1 is not true, and the order of keys does not count."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@dataclass(frozen=True, slots=True)
class _Style:
    """The layout of the text: `newline`, and `unit`, one level of indentation."""

    newline: str
    unit: str

    @classmethod
    def of(cls, text: str, root: Node) -> _Style:
        newline = "\r\n" if re.search(r"\r?\n", text + "\n")[0] == "\r\n" else "\n"  # type: ignore[index]
        first = _own_indent(text, root.items[0].start) if root.items else None
        return cls(newline, first or "  ")

    def render(self, value: Any, indent: str) -> str:
        """Return the value, its second and further lines after `indent`; a list of scalars is one line."""
        if not isinstance(value, dict | list) or not value:
            return _inline(value)
        if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
            return _inline(value)
        inner = indent + self.unit
        if isinstance(value, dict):
            lines = [f"{_inline(key)}: {self.render(item, inner)}" for key, item in value.items()]
        else:
            lines = [self.render(item, inner) for item in value]
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        body = f",{self.newline}{inner}".join(lines)
        return f"{opening}{self.newline}{inner}{body}{self.newline}{indent}{closing}"


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _insert(text: str, root: Node, node: Node, name: str, value: Any) -> str:
    """Add a member at the end of a container. `name` is its key with a colon."""
    style = _Style.of(text, root)
    if not node.items:
        comments = list(tokens(text[node.value_start + 1 : node.end - 1]))
        start = node.value_start + 1 + (comments[-1].end() if comments else 0)
        if root.items and "\n" not in text[root.start : root.end]:
            return f"{text[:start]}{name}{_inline(value)}{text[start:]}"
        outer = _line_indent(text, node.value_start)
        indent = outer + style.unit
        added = f"{style.newline}{indent}{name}{style.render(value, indent)}{style.newline}{outer}"
        return text[:start] + added + text[node.end - 1 :]
    last = node.items[-1]
    comma, trailing = ("," if last.comma is None else ""), ("" if last.comma is None else ",")
    if "\n" not in text[node.value_start : last.start]:
        return f"{text[: last.stop]}{comma} {name}{_inline(value)}{trailing}{text[last.stop :]}"
    indent = _own_indent(text, last.start)  # type: ignore[assignment]
    if indent is None:
        indent = _line_indent(text, node.value_start) + style.unit
    at = _skip_comments(text, last.stop, node.end - 1)
    added = f"{style.newline}{indent}{name}{style.render(value, indent)}{trailing}"
    return text[: last.stop] + comma + text[last.stop : at] + added + text[at:]


def _cut(text: str, node: Node, position: int) -> str:
    """Remove a member of a container, with its line if it is alone on it."""
    item, end = node.items[position], node.items[position].stop
    start = _line_start(text, node.value_start, item.start, end)
    if len(node.items) == 1:
        left, right = text[node.value_start + 1 : start], text[end : node.end - 1]
        inside = left + right if (left + right).strip() else ""
        return text[: node.value_start + 1] + inside + text[node.end - 1 :]
    if item.comma is None:  # the last member: the comma before it goes
        comma = node.items[position - 1].stop - 1
        gap = text[comma + 1 : start]
        return text[:comma] + (gap if "\n" in gap or start < item.start else gap.rstrip(" \t")) + text[end:]
    if start < item.start:
        return text[:start] + text[end:]
    # On a line with others, the space on one side goes with it.
    ends_line = item is node.items[-1] or re.match(r"[ \t]*\r?\n", text[end:])
    return text[:start].rstrip(" \t") + text[end:] if ends_line else text[:start] + text[end:].lstrip(" \t")


def _line_start(text: str, container: int, start: int, end: int) -> int:
    """Return the line break before `start` if the lines from `start` to `end` hold nothing else, else `start`."""
    indent = _own_indent(text, start)
    if indent is None:
        return start
    at = start - len(indent) - 1
    at -= text[at - 1 : at] == "\r"
    if re.match(r"[ \t]*(?:\r?\n|\Z)", text[end:]):
        return at
    # What closes the container is on this line; a comment without the break would swallow it.
    before = list(tokens(text[container:at]))[-1]
    return at if re.match(r"[ \t]*[}\]]", text[end:]) and not before[0].startswith("//") else start


def _own_indent(text: str, position: int) -> str | None:
    """Return the space before what begins its line at `position`; None if something else begins it."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line if not line.strip(" \t") and "\n" in text[:position] else None


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip_comments(text: str, position: int, limit: int) -> int:
    """Return the end of the comments on the line of `position`, before `limit`."""
    token = next(tokens(text[position:limit]), None)
    if token is None or token.lastgroup != "comment" or "\n" in text[position : position + token.start()]:
        return position
    return _skip_comments(text, position + token.end(), limit)
