"""A model's answer -> what of it fits the schema of its prompt: what can only be meant one way is read so.

Read so are numbers and truth values in strings, numbers where a string is wanted, one thing where a list is wanted,
names in another case, null for nothing, half characters. Properties that the schema does not name are dropped, also
optional ones and parts of inner lists that cannot be used; a `default` of the schema stands for what is required. The
items of the answer's own lists are looked at one by one: one that does not fit does not spoil the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quaid.llm.schema import item_lists, kinds_of, violations

_NOTHING = frozenset({"null", "none"})
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15}|,\d{1,2})?\s*%?")
_NOT_WORD = re.compile(r"[\W_]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ReadItem:
    """An item of a list in an answer, what is wrong with it, and whether it fits the schema all the same."""

    value: Any
    problems: tuple[str, ...] = ()
    fits: bool = True


@dataclass(frozen=True, slots=True)
class Fitted:
    """An answer in the form of its schema: `items` are its lists of items, by name, `rest` its other properties.

    `problems` are what is wrong with it as a whole; then it cannot be used.
    """

    rest: Mapping[str, Any]
    items: Mapping[str, tuple[ReadItem, ...]]
    problems: tuple[str, ...] = ()


def fit(found: object, schema: Mapping[str, Any]) -> Fitted:
    """Return `found`, an object or a list of the items of the one list that there is, in the form of `schema`."""
    lists = item_lists(schema)
    if isinstance(found, list) and len(lists) == 1:
        found = {next(iter(lists)): found}
    if not isinstance(found, dict):
        return Fitted({}, {}, ("it holds no JSON object",))
    named = _named(found, schema)
    items: dict[str, tuple[ReadItem, ...]] = {}
    for name, part in lists.items():
        given = _as_list(named.get(name), part) if name in named else None
        if isinstance(given, list):
            said = [value for value in given if value not in (None, {}, "")]
            most = schema["properties"][name].get("maxItems")
            items[name] = tuple(_read_item(value, part) for value in said[:most])
            named[name] = []
    rest = coerce(named, schema)
    # What a list must hold at least is for the caller's check: an item that is missing can be asked for.
    problems = violations({name: value for name, value in rest.items() if name not in items}, _without(schema, items))
    return Fitted({name: value for name, value in rest.items() if name not in items}, items, tuple(problems))


def coerce(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return `value` as near to `schema` as what is meant is certain; what is not stays as it is."""
    kinds = kinds_of(schema)
    if value is None and "null" in kinds:
        return None
    if "object" in kinds:
        return _as_object(value, schema)
    if "array" in kinds:
        given = _as_list(value, schema["items"])
        if not isinstance(given, list):
            return given
        has_places = "null" in kinds_of(schema["items"])  # one that is missing must not move the others
        parts = [coerce(part, schema["items"]) for part in given if has_places or part is not None]
        return [part for part in parts if not violations(part, schema["items"])][: schema.get("maxItems")]
    read = _as_scalar(value, kinds, schema)
    return schema["default"] if "default" in schema and violations(read, schema) else read


def _read_item(value: Any, schema: Mapping[str, Any]) -> ReadItem:
    read = coerce(value, schema)
    problems = tuple(violations(read, schema, "it"))
    return ReadItem(value if problems else read, problems, fits=not problems)


def _without(schema: Mapping[str, Any], names: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = {name: part for name, part in schema["properties"].items() if name not in names}
    return {**schema, "properties": properties, "required": [name for name in schema["required"] if name not in names]}


def _named(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of `value` that `schema` names, in any case or way of joining words."""
    spelled = {_loose(name): name for name in schema["properties"]}
    named = {name: part for key, part in value.items() if (name := spelled.get(_loose(str(key))))}
    return named | {name: value[name] for name in schema["properties"] if name in value}


def _as_object(value: Any, schema: Mapping[str, Any]) -> Any:
    value = _decoded(value, dict)
    needed = [name for name in schema["required"] if "default" not in schema["properties"][name]]
    if isinstance(value, str | int | float) and len(needed) == 1:
        value = {needed[0]: value}
    if not isinstance(value, dict):
        return value
    named = _named(value, schema)
    read: dict[str, Any] = {}
    for name, part in schema["properties"].items():
        is_required = name in schema["required"]
        if named.get(name) is None and "null" not in kinds_of(part):
            if is_required and "default" in part:
                read[name] = part["default"]
            elif is_required and name in named:
                read[name] = [] if "array" in kinds_of(part) else None
            continue
        if name in named:
            meant = coerce(named[name], part)
            if is_required or not violations(meant, part):
                read[name] = meant
    return read


def _as_list(value: Any, item: Mapping[str, Any]) -> Any:
    value = _decoded(value, list)
    if value is None:
        return []
    is_one = isinstance(value, dict) if "object" in kinds_of(item) else isinstance(value, str | int | float)
    return [value] if is_one else value


def _as_scalar(value: Any, kinds: set[str], schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return value
    if "string" in kinds:
        return _as_string(value, kinds, schema)
    if isinstance(value, str):
        text = value.strip()
        if "null" in kinds and text.casefold() in _NOTHING:
            return None
        if "boolean" in kinds:
            return _TRUTH.get(text.casefold(), value)
        value = _as_number(text) if kinds & {"number", "integer"} and _NUMBER.fullmatch(text) else value
    return int(value) if "integer" in kinds and isinstance(value, float) and value.is_integer() else value


def _as_string(value: Any, kinds: set[str], schema: Mapping[str, Any]) -> Any:
    if isinstance(value, int | float):
        value = str(int(value) if value == int(value) else value) if abs(value) < 1e15 else value
    if not isinstance(value, str):
        return value
    if "null" in kinds and value.strip().casefold() in _NOTHING:
        return None
    if "enum" in schema and value not in schema["enum"]:
        named = {_loose(str(one)): one for one in schema["enum"]}
        loose = _loose(value)
        return named.get(loose, named.get(loose.removesuffix("s"), value))
    return _SURROGATE.sub("\ufffd", value)


def _as_number(text: str) -> float:
    number = float(text.rstrip(" %").replace(",", "."))
    return number / 100 if text.endswith("%") else number


def _decoded(value: Any, kind: type) -> Any:
    """An object or a list that was given as a string of JSON."""
    if not (isinstance(value, str) and value.lstrip().startswith("{" if kind is dict else "[")):
        return value
    try:
        found = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, kind) else value


def _loose(text: str) -> str:
    return _NOT_WORD.sub("_", text.casefold()).strip("_")
