"""The YAML head of a note: read it leniently, change it by the byte.

Every scalar stays a string: `vault/notes.py` decides what `007`, `on` and `2026-11-20` mean where it knows the key, not
YAML's guesses. Writing never goes through a dumper: a change replaces the characters of one value and leaves all others
alone.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, NamedTuple

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

from quaid.errors import QuaidError

Value = str | int | float | bool | Sequence[str]

_BASE_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_FLAT_LINE = re.compile(r"[A-Za-z_][\w-]*:[ \t]+\S")
_ENTRY = re.compile(r"^(?=[^\s#\]}])(?!-\s)", re.MULTILINE)
_LINE = re.compile(r"([ \t]*(?:- +)*)((?:\w[^:\n]*|\"[^\"\n]*\"|'[^'\n]*'):(?!//))?(.*)")
_QUOTED = re.compile(r"^([\"'])((?:(?!\1).)*)\1?$")
_LINES = re.compile(r".*\n|.+")
_TABS = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)
_PLAIN_HEAD = re.compile(r"(?:[a-z_]\w*: [a-z0-9](?:[\w .,;/@()'+-]|:(?=\w))*(?<! )\n)+", re.ASCII | re.IGNORECASE)
"""Lines of a key and a text that YAML reads as they are."""
_PLAIN = re.compile(r"[A-Za-z0-9_/.][A-Za-z0-9_/. @+()',;!?&=%-]*(?::[A-Za-z0-9_/.-]+)*\Z")
_NOT_TEXT = re.compile(
    r"(?:true|false|yes|no|on|off|y|n|null|~|[-+]?\.?[\d_][\d_.:,]*(?:e[-+]?\d+)?|[-+]?\.(?:inf|nan)|0[xo][\da-f]+)\Z",
    re.IGNORECASE,
)
# What YAML takes for a line break, or refuses, where JSON does not.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_MAX_DEPTH = 100
"""Levels of nesting: far more of them would overflow the stack of the YAML library, which kills the process."""
_MAX_VALUES = 100_000
"""Values of one head, its aliases unfolded."""
_MAX_LINES = 2_000
"""Lines of a broken head that are read one by one."""
_MAX_PROBLEMS = 10
_MAX_ANCHORED_CHARS = 2_000
_REPEATED = "the key {!r} is in the frontmatter more than once"
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?\Z")


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


class KeyLines(NamedTuple):
    """A key of a head, what it says, and the lines that say it, comments and blank lines behind it among them."""

    name: str
    value: Any
    lines: str


class _NoteHandler(YAMLHandler):
    """Reads the head of a note: every scalar stays a string, and repeated keys are noticed."""

    repeated: Sequence[str] = ()

    def split(self, text: str) -> tuple[str, str]:
        place = _split(text)
        if place is None:
            raise ValueError("no frontmatter")
        return text[slice(*place[:2])], text[place[2] :]

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        if _PLAIN_HEAD.fullmatch(fm):  # a quarter of what it takes to index a note is to compose its YAML
            pairs = [(key, value) for key, _, value in (line.partition(": ") for line in fm.split("\n")[:-1])]
        else:
            pairs = _pairs(_compose(fm))
        self.repeated = sorted(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return dict(pairs)


def parse(text: str) -> Head:
    """Read a note's head. Never fails: a broken line is a problem and costs no other line. Its `key: value` is read as
    text; what is no property at all goes to the body.
    """
    opening, whole, place = _OPEN.match(text), text.removeprefix("\ufeff"), _split(text)
    if place is None:
        if opening and _FLAT_LINE.match(text, opening.end()):
            fields, _, _ = _read_entries(re.split(r"\n\s*\n", text[opening.end() : 4000], maxsplit=1)[0])
            return Head(fields, whole, ("the frontmatter is never closed with ---",))
        return Head(body=whole)
    handler = _NoteHandler()
    try:
        fields, body = frontmatter.parse(text, handler=handler)
    except yaml.YAMLError as error:
        fields, left_over, broken = _read_entries(text[slice(*place[:2])])
        problem = f"the frontmatter is not YAML: {_explain(error)}"
        return Head(fields, left_over + text[place[2] :], tuple(broken or [problem])[:_MAX_PROBLEMS])
    return Head(fields, body, tuple(map(_REPEATED.format, handler.repeated)))


def list_values(value: object) -> list[str]:
    """Return the items of a list, or a single text, as texts; nothing for any other value."""
    return [str(item) for item in value] if isinstance(value, list) else [value] if isinstance(value, str) else []


def read_items(value: object) -> Iterator[str | None]:
    """Yield the items of a list, or of a text with commas, as words; None for an item that is something else."""
    for item in value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ():
        match item:
            case str():
                yield item.strip()
            case [[str(name)]]:  # an unquoted [[Link]]
                yield f"[[{name}]]"
            case _:
                yield None


def body_start(text: str) -> int:
    """The offset at which the body begins (0 when there is no head)."""
    place = _split(text)
    return place[2] if place else 0


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
        place = _split(text)
        if place is None:
            raise FrontmatterBrokenError("the frontmatter is never closed with ---")
        start, end, _ = place
        head = text[start:end]
        node, before = _read_pairs(head)
        if node is not None and node.flow_style:
            raise FrontmatterBrokenError("the frontmatter is not a list of keys and values")
        changed = _change_head(head, node.value if node else [], key, value, _newline(text))
        # Whatever was planned, the new head has the new value and is otherwise as it was.
        expected = before if key in dict(before) else [*before, (key, None)]
        read: Any = value
        if isinstance(value, (bool, int, float)):
            read = _inline(value)
        elif value is not None and not isinstance(value, str):
            read = [str(item) for item in value]
        expected = [(name, read if name == key else old) for name, old in expected]
        after, error = _try_pairs(changed)
        if error or after != [pair for pair in expected if pair[0] != key or value is not None]:
            raise FrontmatterBrokenError(f"{key!r} cannot be changed without touching the text around it")
        text = text[:start] + changed + text[end:]
    return text


def split_keys(text: str) -> list[KeyLines]:
    """The keys of a note's head in their order; none where it has no head. Joined, their lines are the head.

    Raises:
        FrontmatterBrokenError: the head is not plain YAML, says a key twice, or cannot be cut between its lines.
    """
    place = _split(text)
    if place is None and _OPEN.match(text):
        raise FrontmatterBrokenError("the frontmatter is never closed with ---")
    head = text[slice(*place[:2])] if place else ""
    node, pairs = _read_pairs(head)
    marks = [key.start_mark for key, _ in node.value] if node is not None and not node.flow_style else []
    starts = [mark.index - mark.column for mark in marks]
    is_cut = all(not head[start : mark.index].strip() for start, mark in zip(starts, marks, strict=True))
    if not is_cut or len({*starts, *dict(pairs)}) != 2 * len(pairs) or bool(head.strip()) != bool(starts):
        raise FrontmatterBrokenError("the frontmatter is not a list of keys, each in lines of its own")
    cuts = [0, *starts[1:], len(head)]
    return [KeyLines(name, value, head[slice(*cuts[i : i + 2])]) for i, (name, value) in enumerate(pairs)]


def render(fields: Mapping[str, Value | None]) -> str:
    """A new head, `---` lines included; keys whose value is None are left out."""
    lines = [f"{key}: {_inline(value)}" for key, value in fields.items() if value is not None]
    return "\n".join(["---", *lines, "---", ""])


def _compose(head: str) -> Any:
    """The head's mapping node, None when it has no keys."""
    if head.startswith("\ufeff"):  # YAML would skip it, and then take the key behind it for an indented one
        raise yaml.YAMLError("a byte order mark is in front of it")
    try:
        if sum(map(head.count, ("[", "{", "- ", "? "))) > _MAX_DEPTH:
            depth = 0
            for event in yaml.parse(head, Loader=_BASE_LOADER):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if depth > _MAX_DEPTH:
                    raise yaml.YAMLError("it is nested too deeply")
        node = yaml.compose(head, Loader=_BASE_LOADER)
    except (UnicodeError, RecursionError) as error:
        raise yaml.YAMLError(_explain(error)) from error
    if node is not None and not isinstance(node, yaml.MappingNode):
        raise yaml.YAMLError("it is not a list of keys and values")
    return node


def _pairs(node: Any, left: Iterator[int] | None = None) -> list[tuple[str, Any]]:
    """Keys and values in their order; `left` counts how many more values may be read."""
    if node is None:
        return []
    left = left or iter(range(_MAX_VALUES))
    try:
        return [(_key_text(key), _plain_value(value, left)) for key, value in node.value]
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error


def _read_pairs(head: str) -> tuple[Any, list[tuple[str, Any]]]:
    """Return the head's mapping node and its pairs."""
    try:
        node = _compose(head)
        return node, _pairs(node)
    except yaml.YAMLError as error:
        raise FrontmatterBrokenError(f"the frontmatter is not YAML: {_explain(error)}") from error


def _key_text(node: Any) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise yaml.YAMLError("a key is not text")
    return str(node.value)


def _plain_value(node: Any, left: Iterator[int]) -> Any:
    # Aliases of aliases ("billion laughs") would unfold to more than the memory holds.
    if next(left, None) is None:
        raise yaml.YAMLError("its aliases unfold to too many values")
    if isinstance(node, yaml.SequenceNode):
        return [_plain_value(item, left) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {_key_text(key): _plain_value(value, left) for key, value in node.value}
    return "" if node.tag == "tag:yaml.org,2002:null" else node.value


def _split(text: str) -> tuple[int, int, int] | None:
    """Return the offsets of a head without its `---` lines, its end, and the start of the body behind it."""
    opening = _OPEN.match(text)
    closing = _CLOSE.search(text, opening.end()) if opening else None
    return (opening.end(), closing.start(), min(closing.end() + 1, len(text))) if opening and closing else None


def _read_entries(head: str) -> tuple[dict[str, Any], str, list[str]]:
    """Read a head that is not YAML key by key.

    Returns: the fields, the lines that belong to none of them, and a sentence for each key with a broken line.
    """
    fields: dict[str, Any] = {}
    problems: list[str] = []
    lines = _LINES.findall(dedent(head))
    unread, anchors, previous, number = "".join(lines[_MAX_LINES:]), "", "", 2
    left = iter(range(_MAX_VALUES))
    for entry in _ENTRY.split("".join(lines[:_MAX_LINES])):
        before = anchors if "*" in entry else ""
        pairs, error = _try_pairs(before + entry, left)
        if error is not None:
            problem = _explain(error, number - before.count("\n"), number + entry.count("\n") - 1)
            problems.append(f"the frontmatter is not YAML: {problem}")
            pairs, lost, previous = _mend_entry(entry, previous, left)
            unread += lost
        elif pairs:
            problems += [_REPEATED.format(pairs[-1][0])] if pairs[-1][0] in fields else []
            anchors += entry if "&" in entry and len(anchors) < _MAX_ANCHORED_CHARS else ""
            previous = entry
        fields.update(pairs)
        number += entry.count("\n")
    return fields, unread, problems


def _mend_entry(entry: str, previous: str, left: Iterator[int]) -> tuple[list[tuple[str, Any]], str, str]:
    """Return the pairs of a key whose lines are not YAML, the lines that are lost, and the text of the last list.

    Broken values are read as text. A line that is no `key: value` may interrupt a list, which goes on below it.
    """
    first, *rest = _LINES.findall(_TABS.sub("  ", entry))
    is_yaml = [_try_pairs(f"key:\n  {line.strip()}", left)[1] is None for line in (first, *rest)]
    mended = "".join(line if sound else _quote(line) for line, sound in zip((first, *rest), is_yaml, strict=True))
    pairs, error = _try_pairs(mended, left)
    if error is None:
        return pairs, "", entry
    pairs, error = _try_pairs(_quote(first), left)
    lost, below = "" if error is None else first, "".join(rest)
    whole, error = _try_pairs(previous + below, left)
    if error is None and whole and not isinstance(whole[-1][1], str):
        return [*whole, *pairs], lost, previous + below
    return pairs, lost + below, entry if pairs else previous


def _try_pairs(head: str, left: Iterator[int] | None = None) -> tuple[list[tuple[str, Any]], yaml.YAMLError | None]:
    try:
        return _pairs(_compose(head), left), None
    except yaml.YAMLError as error:
        return [], error


def _quote(line: str) -> str:
    """Return a line of a head with its value, or each item of the list in it, in quotes."""
    indent, key, rest = _LINE.fullmatch(line.rstrip()).groups("")  # type: ignore[union-attr]
    value = rest.split(" #", 1)[0].strip()
    listed = value[1:].removesuffix("]").split(",") if value.startswith("[") and not value.startswith("[[") else []
    items = [_scalar(_QUOTED.sub(r"\2", item.strip()), '"') for item in listed if item.strip()]
    quoted = f"[{', '.join(items)}]" if items else _scalar(_QUOTED.sub(r"\2", value), '"')
    return f"{indent}{key}{' ' if key else ''}{quoted}\n" if value.strip("[]{}") or key or indent else "\n"


def _explain(error: BaseException, first_line: int = 2, last_line: int | None = None) -> str:
    """Return what is wrong and in which line of the note; what ends too late is wrong where it begins."""
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or str(error) or type(error).__name__).splitlines()[0]
    line = first_line + mark.line if mark else first_line
    return f"{problem} (line {min(line, last_line or line)})" if mark or last_line else problem


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _change_head(head: str, pairs: Sequence[tuple[Any, Any]], key: str, value: Value | None, newline: str) -> str:
    found = [pair for pair in pairs if pair[0].value == key]
    if len(found) > 1:
        raise FrontmatterBrokenError(_REPEATED.format(key))
    if not found:
        indent = " " * pairs[0][0].start_mark.column if pairs else ""
        return head if value is None else f"{head}{indent}{key}: {_inline(value)}{newline}"
    key_node, node = found[0]
    start, end = node.start_mark.index, _end(head, node)
    if value is None:
        start = key_node.start_mark.index
        line_end = head.find("\n", max(start, end))
        return head[: head.rfind("\n", 0, start) + 1] + (head[line_end + 1 :] if line_end >= 0 else "")
    if isinstance(node, yaml.SequenceNode) and isinstance(value, (list, tuple)) and value and node.value:
        return _change_items(head, node, [str(item) for item in value], newline)
    is_block = not isinstance(node, yaml.ScalarNode) and not node.flow_style
    if start == end or is_block:  # nothing behind the colon, or only in the lines below
        colon = head.find(":", key_node.end_mark.index) + 1
        return f"{head[:colon]} {_inline(value)}{head[end if is_block else colon :]}"
    return head[:start] + _inline(value, getattr(node, "style", None)) + head[end:]


def _change_items(head: str, node: Any, items: list[str], newline: str) -> str:
    old = [item.value for item in node.value]
    unchanged = len(old) if items[: len(old)] == old else 0
    first, end = node.value[0].start_mark.index, _end(head, node.value[-1])
    if node.flow_style:
        if not unchanged:
            return head[: node.start_mark.index] + _inline(items) + head[node.end_mark.index :]
        return head[:end] + "".join(f", {_scalar(item, None, in_list=True)}" for item in items[unchanged:]) + head[end:]
    line_start = head.rfind("\n", 0, first) + 1
    lines = [f"{head[line_start:first]}{_inline(item)}" for item in items[unchanged:]]
    if not unchanged:
        return head[:line_start] + newline.join(lines) + head[end:]
    line_end = head.find("\n", end) + 1
    return head[:line_end] + "".join(f"{line}{newline}" for line in lines) + head[line_end:]


def _end(head: str, node: Any) -> int:
    """Return the offset behind a value's own text. YAML's mark of a block is where the next thing begins, comments
    included.
    """
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    if isinstance(node, yaml.ScalarNode):
        return max(start, len(head[:end].rstrip())) if node.style in {"|", ">"} else end
    if node.flow_style:
        return end
    children = node.value if isinstance(node, yaml.SequenceNode) else [value for _, value in node.value]
    return max([start, *(_end(head, child) for child in children)])


def _inline(value: Value, style: str | None = None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _scalar(value, style)
    return f"[{', '.join(_scalar(str(item), None, in_list=True) for item in value)}]"


def _scalar(text: str, style: str | None, *, in_list: bool = False) -> str:
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    plain = _DATE.match(text) or (_PLAIN.match(text) and not _NOT_TEXT.match(text) and text == text.strip())
    if plain and style not in {'"', "'"} and not (in_list and "," in text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
