"""The part of JSON Schema that prompts use: checked when a prompt is read, and again when a model has answered.

Objects allow no other properties than they name. Those that are not required may be missing or null; in requests they
are required and may be null, as the providers' strict structured output demands. `default` is what stands for a value
that is required and missing, or that cannot be used (see fitting.py).
"""

from __future__ import annotations

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
    when the answer is read. With `is_strict` all properties are required, and null stands for one that is missing.
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
