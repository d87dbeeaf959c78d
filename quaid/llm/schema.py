"""The part of JSON Schema that prompts use: checked when a prompt is read, and applied when a model has answered.

Objects allow no other properties than they name. Those that are not required may be missing or null; in requests they
are required and may be null, as the providers' strict structured output demands. `default` replaces a value that is
required and missing, or that cannot be used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_SCALARS = {"string", "integer", "number", "boolean", "null"}
_LIMITS = {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
_STRUCTURE = {"type", "properties", "required", "additionalProperties", "items", "enum"}
_NOTES = {"title", "description", "default"}
_MAX_VIOLATIONS = 5
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOTHING = frozenset({"null", "none"})
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15}|,\d{1,2})?\s*%?")
_NOT_WORD = re.compile(r"[\W_]+")
_MIN_STEM, _MAX_ENDING = 4, 3


def schema_problem(schema: object) -> str:
    """Return why a prompt cannot use `schema`; empty where it can."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "the answer must be an object"
    return next(_problems(schema, "answer"), "")


def violations(value: object, schema: Mapping[str, Any], where: str = "answer") -> list[str]:
    """Return what does not fit `schema` in `value`, which messages call `where`: a sentence each, the first five."""
    return list(islice(_violations(value, schema, where), _MAX_VIOLATIONS))


def kinds_of(schema: Mapping[str, Any]) -> set[str]:
    """Return the types that `schema` allows."""
    kind = schema.get("type")
    return set(map(str, kind)) if isinstance(kind, list) else {str(kind)}


def item_lists(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the lists of objects in an answer, which are read, dropped and repaired item by item: name of the property
    -> schema of an item.
    """
    return {
        name: part["items"]
        for name, part in schema["properties"].items()
        if "array" in kinds_of(part) and "object" in kinds_of(part["items"])
    }


def without_limits(schema: Any, *, is_strict: bool = True) -> Any:
    """Return `schema` without limits and defaults, which some providers' structured output refuses; they are seen to
    when the answer is read. With `is_strict` all properties are required, and null replaces a missing one.
    """
    if not isinstance(schema, dict):
        return schema
    bare = {key: value for key, value in schema.items() if key not in _LIMITS and key != "default"}
    if "properties" in bare:
        parts = {name: without_limits(part, is_strict=is_strict) for name, part in bare["properties"].items()}
        optional = parts.keys() - set(bare.get("required", ())) if is_strict else set()
        bare["properties"] = {name: _nullable(part) if name in optional else part for name, part in parts.items()}
        bare |= {"required": list(parts)} if is_strict else {}
    if "items" in bare:
        bare["items"] = without_limits(bare["items"], is_strict=is_strict)
    return bare


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    with_null = {**schema, "type": [*kinds, *({"null"} - set(kinds))]}
    return with_null | ({"enum": [*schema["enum"], None]} if None not in schema.get("enum", [None]) else {})


def _problems(schema: object, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where} is not a schema"
        return
    for key in schema.keys() - _STRUCTURE - _LIMITS - _NOTES:
        yield f"{where} uses {key}, which is not supported"
    for name in schema.keys() & _LIMITS:
        if isinstance(schema[name], bool) or not isinstance(schema[name], int | float):
            yield f"{where}: {name} is not a number"
    kinds = kinds_of(schema)
    if not kinds or not kinds <= _TYPES.keys():
        yield f"{where} has no known type"
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        yield f"{where}: enum is not a list of values"
    if "default" in schema and kinds <= _SCALARS and violations(schema["default"], schema):
        yield f"{where}: its default does not fit"
    if "object" in kinds:
        yield from _object_problems(schema, where)
    if "array" in kinds:
        yield from _problems(schema.get("items"), f"{where}[]")


def _object_problems(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        yield f"{where} has no properties"
        return
    required = schema.get("required")
    if not isinstance(required, list) or not set(map(str, required)) <= properties.keys():
        yield f"{where} must say which of its properties are required"
    if schema.get("additionalProperties") is not False:
        yield f"{where} must have additionalProperties false"
    for name, part in properties.items():
        yield from _problems(part, f"{where}.{name}")


def _violations(value: object, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    kinds = kinds_of(schema)
    # A boolean is an int to Python only.
    if not any(kind == "boolean" if isinstance(value, bool) else isinstance(value, _TYPES[kind]) for kind in kinds):
        yield f"{where} must be {' or '.join(sorted(kinds))}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        yield from _object_violations(value, schema, where)
    elif isinstance(value, list):
        yield from _size_violations(len(value), schema, "Items", where)
        for number, item in enumerate(value):
            yield from _violations(item, schema["items"], f"{where}[{number}]")
    elif isinstance(value, str):
        yield from _size_violations(len(value), schema, "Length", where)
        if _SURROGATE.search(value):
            yield f"{where} holds a lone surrogate"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_violations(value, schema, where)


def _number_violations(value: float, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{where} is not a finite number"
    if value < schema.get("minimum", value):
        yield f"{where} is {value}, must be {schema['minimum']} or more"
    if value > schema.get("maximum", value):
        yield f"{where} is {value}, must be {schema['maximum']} or less"


def _object_violations(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    properties = schema["properties"]
    for name in properties:
        if name not in schema["required"] and value.get(name) is None:
            continue
        if name not in value:
            yield f"{where} lacks {name}"
        else:
            yield from _violations(value[name], properties[name], f"{where}.{name}")
    for name in value:
        if name not in properties:
            yield f"{where} has {name!r}, which the schema does not name"


def _size_violations(size: int, schema: Mapping[str, Any], what: str, where: str) -> Iterator[str]:
    if size < schema.get(f"min{what}", 0):
        yield f"{where} has {size} {what.lower()}, must have {schema[f'min{what}']} or more"
    if size > schema.get(f"max{what}", size):
        yield f"{where} has {size} {what.lower()}, must have {schema[f'max{what}']} or fewer"


# -- careless values ---------------------------------------------------------------------------------------------------


def coerce(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return `value` in the form of `schema`, as far as it is unambiguous; the rest stays as it is.

    So are read: numbers and truth values in strings, numbers where a string is wanted, one thing where a list is
    wanted, names in another case, null for nothing, half characters. Dropped are properties that the schema does not
    name, and optional ones and parts of inner lists that cannot be used; a `default` replaces what is required.
    """
    kinds = kinds_of(schema)
    if value is None and "null" in kinds:
        return None
    if "object" in kinds:
        return _as_object(value, schema)
    if "array" in kinds:
        given = as_list(value, schema["items"])
        if not isinstance(given, list):
            return given
        has_places = "null" in kinds_of(schema["items"])  # one that is missing must not move the others
        parts = [coerce(part, schema["items"]) for part in given if has_places or part is not None]
        return [part for part in parts if not violations(part, schema["items"])][: schema.get("maxItems")]
    read = _as_scalar(value, kinds, schema)
    return schema["default"] if "default" in schema and violations(read, schema) else read


def read_names(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of `value` that `schema` names, in any case or way of joining words."""
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
    named = read_names(value, schema)
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
            coerced = coerce(named[name], part)
            if is_required or not violations(coerced, part):
                read[name] = coerced
    return read


def as_list(value: Any, item: Mapping[str, Any]) -> Any:
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
        if kinds & {"number", "integer"} and _NUMBER.fullmatch(text):
            number = float(text.rstrip(" %").replace(",", "."))
            value = number / 100 if text.endswith("%") else number
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
        forms = [name for name in named if _is_form_of(loose, name)]
        return named[loose] if loose in named else named[forms[0]] if len(forms) == 1 else value
    return _SURROGATE.sub("\ufffd", value)


def _decoded(value: Any, kind: type) -> Any:
    """Return an object or a list that was given as a string of JSON."""
    if not (isinstance(value, str) and value.lstrip().startswith("{" if kind is dict else "[")):
        return value
    try:
        found = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, kind) else value


def _is_form_of(word: str, name: str) -> bool:
    """Return whether `word` is `name` with another ending: `approved` of `approve`, `users` of `user`."""
    stem = name.removesuffix("e") if len(name) > _MIN_STEM else name
    ending = word.removeprefix(stem)
    return len(stem) >= _MIN_STEM and ending != word and len(ending) <= _MAX_ENDING and ending.isalpha()


def _loose(text: str) -> str:
    return _NOT_WORD.sub("_", text.casefold()).strip("_")
