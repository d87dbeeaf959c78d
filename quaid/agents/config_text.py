"""Edit one value in the text of a config: JSON, JSON with comments, or TOML. All other bytes stay.

Comments and trailing commas become spaces before the standard library parses JSON, so each value keeps its place.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

Syntax = Literal["json", "comments", "jsonc", "toml", "file"]
"""What a host reads: plain JSON, JSON with comments, these and trailing commas, TOML, or a text that is all ours."""

_COMMENT = r"//[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+\*/"
_EXTRAS = re.compile(
    rf'"(?:[^"\\\n]|\\.)*"|(?P<comment>{_COMMENT})|(?P<comma>,)(?=(?:\s|{_COMMENT})*+[}}\]])'
    r"|/\*[\s\S]*+"  # a comment that nothing closes is looked at once
)
_COMMA = re.compile(rf"(?:\s|{_COMMENT})*,")
_REST_OF_LINE = re.compile(rf"(?:[ \t]|{_COMMENT})*")
_SPACE = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


_Member = tuple[str | int, int, int, int]
"""A member of an object or a list: its key, and where it, its value and the text after it begin."""


class ConfigTextError(ValueError):
    """The config cannot be read or edited; the message says why, without the file's name."""


def read(text: str, syntax: Syntax) -> Any:
    """Return the values of a config, `{}` for an empty one.

    Raises:
        ConfigTextError: it is broken; the message contains the place.
    """
    if syntax == "file":
        return text
    bare = text.removeprefix("\ufeff") if syntax == "toml" else _without_extras(text, syntax)
    try:
        return tomllib.loads(bare) if syntax == "toml" else json.loads(bare) if bare.strip() else {}
    except RecursionError as error:
        raise ConfigTextError("it is nested too deep") from error
    except ValueError as error:
        problem = str(error).partition(" (char")[0]
        if syntax in {"json", "comments"}:
            problem = f"this program reads plain JSON only, and this is not plain JSON: {problem}"
        raise ConfigTextError(problem) from error


def edit(text: str, syntax: Syntax, path: Sequence[str | int], value: object) -> str:
    """Return the text with `value` at `path`, or without what is there where `value` is None.

    Missing objects are made; a list grows by the index after its last.

    Raises:
        ConfigTextError: the text is written so that it cannot be changed safely.
    """
    return _edit_toml(text, path, value) if syntax == "toml" else _edit_json(text, syntax, path, value)


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; 1 is not true, and the order of keys does not count."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _without_extras(text: str, syntax: Syntax) -> str:
    """Return the text with spaces for what `syntax` allows beyond JSON."""
    extras = {"comments": {"comment"}, "jsonc": {"comment", "comma"}}.get(syntax, set())
    bare = _EXTRAS.sub(lambda it: re.sub(r"[^\n\r]", " ", it[0]) if it.lastgroup in extras else it[0], text)
    return f" {bare[1:]}" if bare.startswith("\ufeff") else bare


def _list_members(bare: str, at: int) -> list[_Member]:
    """Return the members of the object or list that begins at `at`."""
    found: list[_Member] = []
    while bare[start := _skip(bare, found[-1][3] if found else at + 1)] not in "}]":
        key: str | int = len(found)
        value = start
        if bare[at] == "{":
            key, value = _DECODER.raw_decode(bare, start)
            value = _skip(bare, bare.index(":", value) + 1)
        found.append((key, start, value, _end(bare, value)))
    return found


def _skip(bare: str, position: int) -> int:
    found = _SPACE.match(bare, position)
    return found.end() if found else position


def _end(bare: str, start: int) -> int:
    return _DECODER.raw_decode(bare, start)[1]


def _edit_json(text: str, syntax: Syntax, path: Sequence[str | int], value: object) -> str:
    bare = _without_extras(text, syntax)
    if not bare.strip():  # nothing but comments
        if value is None:
            return text
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = newline if text.strip("\ufeff") and not text.endswith("\n") else ""
        return text + gap + _edit_json(f"{{{newline}}}", syntax, path, value) + newline
    at = _skip(bare, 0)
    for depth, step in enumerate(path):
        members = _list_members(bare, at) if bare[at] in "{[" else []
        # Of a key that is there twice, the last counts.
        found = next((member for member in reversed(members) if member[0] == step), None)
        is_last = depth == len(path) - 1
        if value is None and (found is None or is_last):
            if found is None:
                return text
            after = _cut(text, at, _end(bare, at) - 1, members, members.index(found))
            return _edit_json(after, syntax, path, None) if isinstance(step, str) else after
        if found is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            if bare[at] in "{[":
                return _insert(text, bare, at, members, step, value)
            value = {step: value}  # in the place of null
            break
        at = found[2]
    return text[:at] + _render(text, bare, value, _line_indent(text, at)) + text[_end(bare, at) :]


def _render(text: str, bare: str, value: object, indent: str) -> str:
    """Return the value as JSON in the style of the text, its second and further lines after `indent`."""
    shown = json.dumps(value, ensure_ascii=False)
    unit = _unit(text, bare)
    if unit is None or not isinstance(value, dict | list):
        return shown
    newline = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _unit(text: str, bare: str) -> str | None:
    """Return one level of the text's indentation, None where all of it is one line."""
    root = _skip(bare, 0)
    first = next(iter(_list_members(bare, root)), None)
    if first is not None and "\n" not in bare[root : _end(bare, root)]:
        return None
    return (first and _own_indent(text, first[1])) or "  "


def _insert(text: str, bare: str, at: int, members: Sequence[_Member], key: str | int, value: object) -> str:
    """Add a member at the end of the container that begins at `at`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit, outer, close = _unit(text, bare), _line_indent(text, at), _end(bare, at) - 1
    name = "" if bare[at] == "[" else f"{json.dumps(key, ensure_ascii=False)}: "
    inner = outer + (unit or "")
    if not members:
        added = name + _render(text, bare, value, inner)
        if unit is None:
            return text[:close] + added + text[close:]
        return f"{text[:close].rstrip()}{newline}{inner}{added}{newline}{outer}{text[close:]}"
    _, start, _, end = members[-1]
    found = _COMMA.match(text, end, close)
    stop, comma, trailing = (found.end(), "", ",") if found else (end, ",", "")
    if "\n" not in text[at:start]:
        return f"{text[:stop]}{comma} {name}{json.dumps(value, ensure_ascii=False)}{trailing}{text[stop:]}"
    inner = _own_indent(text, start) or inner
    rest = _REST_OF_LINE.match(text, stop, close)
    here = rest.end() if rest and rest[0].strip() else stop
    added = f"{newline}{inner}{name}{_render(text, bare, value, inner)}{trailing}"
    return text[:stop] + comma + text[stop:here] + added + text[here:]


def _cut(text: str, at: int, close: int, members: Sequence[_Member], place: int) -> str:
    """Remove a member of the container from `at` to `close`, with its line if it is alone on it."""
    _, start, _, stop = members[place]
    comma = _COMMA.match(text, stop, close)
    stop = comma.end() if comma else stop
    if len(members) == 1 and not (text[at + 1 : start] + text[stop:close]).strip():
        return text[: at + 1] + text[close:]
    line = text.rfind("\n", at, start)
    # What closes the container on this line must not come after a comment that ends with its line.
    is_comment = "//" in text[text.rfind("\n", 0, line) + 1 : line]
    rest = re.match(r"[ \t]*(?:\r?\n|([}\]]))", text[stop:])
    if line >= 0 and not text[line:start].strip() and rest and not (is_comment and rest[1]):
        start = line - (text[line - 1] == "\r")
    elif comma and place < len(members) - 1:
        stop += len(text[stop:]) - len(text[stop:].lstrip(" \t"))
    else:
        start = len(text[:start].rstrip(" \t"))
    text = text[:start] + text[stop:]
    before = _COMMA.match(text, members[place - 1][3]) if place and not comma else None
    return text[: before.end() - 1] + text[before.end() :] if before else text


def _own_indent(text: str, position: int) -> str | None:
    """Return the space before what begins its line at `position`; None if something else begins it."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line if not line.strip(" \t") and "\n" in text[:position] else None


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _edit_toml(text: str, path: Sequence[str | int], value: object) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    bare = text.removeprefix("\ufeff")
    newline = "\r\n" if "\r\n" in bare else "\n"
    with suppress(TOMLKitError, ValueError, KeyError, TypeError):
        wanted: Any = tomllib.loads(bare)
        document: Any = tomlkit.parse(bare if not bare or bare.endswith("\n") else f"{bare}\n")
        nested: Any = value
        for key in reversed(path):
            nested = {key: nested}
        for table, new_table in ((wanted, dict), (document, partial(tomlkit.table, is_super_table=True))):
            for key in path[:-1]:
                if key not in table:
                    table[key] = new_table()
                table = table[key]  # noqa: PLW2901 - one level down
            if value is None:
                table.pop(path[-1], None)
            else:
                table[path[-1]] = value
        gap = "\n" * (2 - bare.endswith("\n")) if bare.strip() else ""
        # A new table comes behind all others: what is there stays as it is, to the last byte.
        for after in (bare if value is None else f"{bare}{gap}{tomlkit.dumps(nested)}", tomlkit.dumps(document)):
            with suppress(tomllib.TOMLDecodeError):
                if is_same(tomllib.loads(after), wanted):
                    return text[: len(text) - len(bare)] + after.replace("\r\n", "\n").replace("\n", newline)
    raise ConfigTextError("the table is written in a way that cannot be edited without touching the rest")
