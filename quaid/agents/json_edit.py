"""Editing one value in JSON of any dialect: every other byte stays, and what is added looks like what is there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quaid.agents.jsonc import Node, parse, read_plain, tokens

Step = str | int
"""A key of an object, or a position in a list."""


def read(text: str) -> Any:
    """The values of the text in Python, `{}` for an empty text.

    Raises:
        JsonError: it is not JSON.
    """
    plain = read_plain(text)
    if plain is not None:
        return plain
    root = parse(text)
    return {} if root is None else root.plain


def put(text: str, path: Sequence[str | int], value: Any) -> str:
    """Set the value at `path`; missing objects on the way are made. Of a key that is there twice, the last counts.

    Raises:
        JsonError: the text is not JSON.
        TypeError: something else than an object is on the way.
    """
    root = parse(text)
    if root is None:  # nothing but comments
        newline = "\r\n" if "\r\n" in text else "\n"
        before = text if not text.strip("\ufeff") or text.endswith("\n") else text + newline
        return before + _Style(newline, "  ").render(_nest(path, value), "") + newline
    found = _descend(root, path)
    node, rest = found[-1], path[len(found) - 1 :]
    if rest and node.plain is None:  # null is replaced
        value, rest = _nest(rest, value), ()
    if rest and not isinstance(node.plain, dict):
        raise TypeError(f"only an object can hold {rest[0]!r}")
    if rest:
        return _insert(text, root, node, str(rest[0]), _nest(rest[1:], value))
    if is_same(node.plain, value):
        return text
    style = _Style.of(text, root)
    shown = style.render(value, _indent_of_line(text, node.start)) if _has_lines(text, root) else _inline(value)
    return text[: node.start] + shown + text[node.end :]


def append(text: str, path: Sequence[Step], value: Any) -> str:
    """Append to the list at `path`, which is made where it is missing."""
    root = parse(text)
    found = _descend(root, path) if root is not None else []
    if root is None or len(found) <= len(path) or found[-1].plain is None:
        return put(text, path, [value])
    return _insert(text, root, found[-1], None, value)


def drop(text: str, path: Sequence[Step]) -> str:
    """Remove the value at `path`, however often its key is there."""
    root = parse(text)
    found = _descend(root, path) if root is not None else []
    if len(found) <= len(path):
        return text
    node = found[-2]
    after = _cut(text, node, _last(node, path[-1]))
    is_twice = sum(item.key == path[-1] for item in node.items) > 1
    return drop(after, path) if is_twice else after


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; 1 is not true, and the order of keys does not count."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _descend(root: Node, path: Sequence[Step]) -> list[Node]:
    """The values along `path`, the root first, as far as there are any."""
    nodes = [root]
    for step in path:
        position = _last(nodes[-1], step)
        if position < 0:
            break
        nodes.append(nodes[-1].items[position].value)
    return nodes


def _last(node: Node, step: Step) -> int:
    """The position to which the step leads in a container, -1 for none."""
    if isinstance(step, int):
        return step if isinstance(node.plain, list) and step < len(node.items) else -1
    return next((i for i in reversed(range(len(node.items))) if node.items[i].key == step), -1)


def _nest(path: Sequence[Step], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value}
    return value


@dataclass(frozen=True, slots=True)
class _Style:
    """The layout of the text: `newline`, and `unit`, one level of indentation."""

    newline: str
    unit: str

    @classmethod
    def of(cls, text: str, root: Node) -> _Style:
        newline = "\r\n" if re.search(r"\r?\n", text + "\n")[0] == "\r\n" else "\n"  # type: ignore[index]
        first = _indent_before(text, root.items[0].start) if root.items else None
        return cls(newline, first or "  ")

    def render(self, value: Any, indent: str) -> str:
        """The value, its second and further lines after `indent`; lists of simple values stay on one line."""
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


def _has_lines(text: str, node: Node) -> bool:
    return "\n" in text[node.start : node.end]


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _insert(text: str, root: Node, node: Node, key: str | None, value: Any) -> str:
    """Add a member at the end of a container."""
    name = "" if key is None else f"{_inline(key)}: "
    if not node.items:
        return _insert_first(text, root, node, name, value)
    style = _Style.of(text, root)
    last = node.items[-1]
    stop = last.value.end if last.comma is None else last.comma + 1
    comma, trailing = ("," if last.comma is None else ""), ("" if last.comma is None else ",")
    if "\n" not in text[node.start : last.start]:
        return f"{text[:stop]}{comma} {name}{_inline(value)}{trailing}{text[stop:]}"
    indent = _indent_before(text, last.start)
    if indent is None:
        indent = _indent_of_line(text, node.start) + style.unit
    at = _end_of_line(text, stop, node.end - 1)
    added = f"{style.newline}{indent}{name}{style.render(value, indent)}{trailing}"
    return text[:stop] + comma + text[stop:at] + added + text[at:]


def _insert_first(text: str, root: Node, node: Node, name: str, value: Any) -> str:
    inside = text[node.start + 1 : node.end - 1]
    comments = list(tokens(inside))
    start = node.start + 1 + (comments[-1].end if comments else 0)
    if root.items and not _has_lines(text, root):
        return f"{text[:start]}{name}{_inline(value)}{text[start:]}"
    style, outer = _Style.of(text, root), _indent_of_line(text, node.start)
    indent = outer + style.unit
    added = f"{style.newline}{indent}{name}{style.render(value, indent)}{style.newline}{outer}"
    return text[:start] + added + text[node.end - 1 :]


def _cut(text: str, node: Node, position: int) -> str:
    """Remove a member of a container, with its line where it had one to itself."""
    item = node.items[position]
    end = item.value.end if item.comma is None else item.comma + 1
    start = _start_of_line(text, node.start, item.start, end)
    if len(node.items) == 1:
        left, right = text[node.start + 1 : start], text[end : node.end - 1]
        inside = left + right if (left + right).strip() else ""
        return text[: node.start + 1] + inside + text[node.end - 1 :]
    if item.comma is not None and start < item.start:
        return text[:start] + text[end:]
    if item.comma is not None:  # on a line with others: the space on its one side goes with it
        ends_line = item is node.items[-1] or re.match(r"[ \t]*\r?\n", text[end:])
        return text[:start].rstrip(" \t") + text[end:] if ends_line else text[:start] + text[end:].lstrip(" \t")
    comma = node.items[position - 1].comma
    assert comma is not None
    gap = text[comma + 1 : start]
    return text[:comma] + (gap if "\n" in gap or start < item.start else gap.rstrip(" \t")) + text[end:]


def _start_of_line(text: str, container: int, start: int, end: int) -> int:
    """Return the line break before `start` if the lines of `start` to `end` hold nothing else, else `start`."""
    indent = _indent_before(text, start)
    if indent is None:
        return start
    at = start - len(indent) - 1
    at -= text[at - 1 : at] == "\r"
    if re.match(r"[ \t]*(?:\r?\n|\Z)", text[end:]):
        return at
    # What closes the container stands on this line; a comment without the break would swallow it.
    before = list(tokens(text[container:at]))[-1]
    return at if re.match(r"[ \t]*[}\]]", text[end:]) and not before.text.startswith("//") else start


def _indent_before(text: str, position: int) -> str | None:
    """The space before what begins its line at `position`; None where it does not begin it."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line if not line.strip(" \t") and "\n" in text[:position] else None


def _indent_of_line(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _end_of_line(text: str, position: int, limit: int) -> int:
    """The position behind the comments that share a line with what ends at `position`, before `limit`."""
    piece = next(tokens(text[position:limit]), None)
    if piece is None or piece.kind != "comment" or "\n" in text[position : position + piece.start]:
        return position
    return _end_of_line(text, position + piece.end, limit)
