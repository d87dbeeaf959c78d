"""The YAML head of a note: read it leniently, change it by the byte.

Reading goes through python-frontmatter with a loader that leaves every scalar a string: what `007`, `on` and
`2026-11-20` mean is decided where a key is known, not by YAML's guesses. Writing never goes through a dumper: a
change replaces the characters of one value and leaves all others alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

from quaid.errors import QuaidError

Value = str | int | float | bool | Sequence[str]

_BASE_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_FLAT_LINE = re.compile(r"^([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*\r?$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z0-9_/.][A-Za-z0-9_/. @+()',;!?&=%-]*(?::[A-Za-z0-9_/.-]+)*\Z")
_NOT_TEXT = re.compile(
    r"(?:true|false|yes|no|on|off|y|n|null|~|[-+]?\.?[\d_][\d_.:,]*(?:e[-+]?\d+)?|[-+]?\.(?:inf|nan)|0[xo][\da-f]+)\Z",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?\Z")


class FrontmatterBrokenError(QuaidError):
    """The head cannot be edited without guessing. `problem` says what is wrong with it."""

    code = "frontmatter_broken"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Head:
    """A parsed head: `fields` as strings, lists and (where an owner nested them) maps; `body` without the head."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""
    problems: tuple[str, ...] = ()


class _NoteHandler(YAMLHandler):
    """python-frontmatter's YAML handler, but scalars stay strings and repeated keys are noticed."""

    def __init__(self) -> None:
        super().__init__()
        self.repeated: list[str] = []

    def split(self, text: str) -> tuple[str, str]:
        head, body = _split(text)
        return text[head[0] : head[1]], text[body:]

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        node = yaml.compose(fm, Loader=_BASE_LOADER)
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise yaml.YAMLError("it is not a list of keys and values")
        keys = [str(key.value) for key, _ in node.value]
        self.repeated = sorted({key for key in keys if keys.count(key) > 1}) if len(set(keys)) < len(keys) else []
        return {str(key.value): _plain_value(value) for key, value in node.value}


def parse(text: str) -> Head:
    """Read a note's head. Never fails: a broken head leaves its flat `key: value` lines and a problem."""
    if not _OPEN.match(text):
        return Head(body=text.removeprefix("\ufeff"))
    if _close(text) is None:
        looks_like_yaml = _FLAT_LINE.match(text, _OPEN.match(text).end())  # type: ignore[union-attr]
        if not looks_like_yaml:
            return Head(body=text.removeprefix("\ufeff"))
        return Head(_salvage(text), text.removeprefix("\ufeff"), ("the frontmatter is never closed with ---",))
    handler = _NoteHandler()
    try:
        fields, body = frontmatter.parse(text, handler=handler)
    except (yaml.YAMLError, RecursionError) as error:
        return Head(_salvage(text), text.removeprefix("\ufeff"), (f"the frontmatter is not YAML: {_say(error)}",))
    problems = tuple(f"the key {key!r} stands in the frontmatter more than once" for key in handler.repeated)
    return Head(fields, body, problems)


def body_start(text: str) -> int:
    """The offset at which the body begins (0 when there is no head)."""
    return _split(text)[1] if _OPEN.match(text) and _close(text) else 0


def set_fields(text: str, changes: Mapping[str, Value | None]) -> str:
    """`text` with the given keys set (None removes one); every other character stays.

    A changed scalar keeps its quotes and the comment behind it, an item added to a list keeps the list's style, a
    new key goes to the end of the head in the note's own newline style.

    Raises:
        FrontmatterBrokenError: the head is not plain YAML, so a change could lose something.
    """
    if not _OPEN.match(text):
        bom = "\ufeff" if text.startswith("\ufeff") else ""
        newline = _newline(text)
        text = f"{bom}---{newline}---{newline}{text.removeprefix(bom)}"
    for key, value in changes.items():
        text = _set_field(text, key, value)
    return text


def render(fields: Mapping[str, Value | None]) -> str:
    """A new head, `---` lines included; keys whose value is None are left out."""
    lines = [f"{key}: {_inline(value)}" for key, value in fields.items() if value is not None]
    return "\n".join(["---", *lines, "---", ""])


def _plain_value(node: Any) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain_value(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain_value(value) for key, value in node.value}
    return "" if node.tag == "tag:yaml.org,2002:null" else node.value


def _close(text: str) -> re.Match[str] | None:
    opening = _OPEN.match(text)
    return _CLOSE.search(text, opening.end()) if opening else None


def _split(text: str) -> tuple[tuple[int, int], int]:
    opening, closing = _OPEN.match(text), _close(text)
    if opening is None or closing is None:
        raise ValueError("no frontmatter")
    after = closing.end() + 1
    return (opening.end(), closing.start()), min(after, len(text))


def _salvage(text: str) -> dict[str, Any]:
    closing = _close(text)
    head = text[: closing.start()] if closing else text[:4000].split("\n\n", 1)[0]
    fields: dict[str, Any] = {}
    for match in _FLAT_LINE.finditer(head):
        value = match[2].split(" #", 1)[0].strip().strip("\"'")
        fields.setdefault(match[1], value)
    return fields


def _say(error: BaseException) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error) or type(error).__name__
    return f"{problem} (line {mark.line + 2})" if mark else str(problem).splitlines()[0]


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _set_field(text: str, key: str, value: Value | None) -> str:
    (start, end), _ = _checked_split(text)
    head = text[start:end]
    pair = _find(head, key)
    if pair is None:
        if value is None:
            return text
        return f"{text[:end]}{key}: {_inline(value)}{_newline(text)}{text[end:]}"
    key_node, value_node = pair
    if value is None:
        head = _without_lines(head, key_node.start_mark.index, value_node.end_mark.index)
    else:
        head = _with_value(head, key_node, value_node, value, _newline(text))
    return text[:start] + head + text[end:]


def _checked_split(text: str) -> tuple[tuple[int, int], int]:
    if _close(text) is None:
        raise FrontmatterBrokenError("the frontmatter is never closed with ---")
    return _split(text)


def _find(head: str, key: str) -> tuple[Any, Any] | None:
    try:
        node = yaml.compose(head, Loader=_BASE_LOADER)
    except yaml.YAMLError as error:
        raise FrontmatterBrokenError(f"the frontmatter is not YAML: {_say(error)}") from error
    if node is None:
        return None
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        raise FrontmatterBrokenError("the frontmatter is not a list of keys and values")
    pairs = [pair for pair in node.value if pair[0].value == key]
    if len(pairs) > 1:
        raise FrontmatterBrokenError(f"the key {key!r} stands in the frontmatter more than once")
    return pairs[0] if pairs else None


def _without_lines(head: str, start: int, end: int) -> str:
    line_start = head.rfind("\n", 0, start) + 1
    end = max(start, len(head[:end].rstrip()))
    line_end = head.find("\n", end)
    return head[:line_start] + (head[line_end + 1 :] if line_end >= 0 else "")


def _with_value(head: str, key_node: Any, node: Any, value: Value, newline: str) -> str:
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.SequenceNode) and isinstance(value, (list, tuple)):
        return _with_items(head, node, [str(item) for item in value], newline)
    if start == end:  # an empty value: `key:` with nothing behind the colon
        colon = head.index(":", key_node.end_mark.index) + 1
        return f"{head[:colon]} {_inline(value)}{head[colon:]}"
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        end = len(head[:end].rstrip("\r\n"))
    elif not isinstance(node, yaml.ScalarNode):
        end = len(head[:end].rstrip())
    return head[:start] + _inline(value, getattr(node, "style", None)) + head[end:]


def _with_items(head: str, node: Any, items: list[str], newline: str) -> str:
    old = [str(_plain_value(item)) for item in node.value]
    added = items[len(old) :] if items[: len(old)] == old else None
    if added is not None and not added:
        return head
    if added and old and node.flow_style:
        last = node.value[-1].end_mark.index
        return head[:last] + "".join(f", {_inline(item)}" for item in added) + head[last:]
    if added and old:
        first, last = node.value[0].start_mark, node.value[-1]
        indent = head[head.rfind("\n", 0, first.index) + 1 : first.index]
        end = head.find("\n", last.end_mark.index)
        end = len(head) if end < 0 else end + 1
        return head[:end] + "".join(f"{indent}{_inline(item)}{newline}" for item in added) + head[end:]
    start, end = node.start_mark.index, len(head[: node.end_mark.index].rstrip())
    if node.flow_style:
        return head[:start] + _inline(items) + head[end:]
    colon = head.rfind(":", 0, start)
    return f"{head[: colon + 1]} {_inline(items)}{head[end:]}"


def _inline(value: Value, style: str | None = None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, str):
        return _scalar(value, style)
    return f"[{', '.join(_scalar(item, None, in_list=True) for item in value)}]"


def _scalar(text: str, style: str | None, *, in_list: bool = False) -> str:
    if style == "'":
        return "'" + text.replace("'", "''") + "'" if "\n" not in text else json.dumps(text, ensure_ascii=False)
    plain = _DATE.match(text) or (_PLAIN.match(text) and not _NOT_TEXT.match(text) and text == text.strip())
    if plain and style != '"' and not (in_list and "," in text):
        return text
    return json.dumps(text, ensure_ascii=False)
