"""The part of JSON Schema that prompts use: what requests show of it, and how an answer is read by it.

Objects allow no other properties than they name. Those that are not required may be missing or null; where a service's
strict structured output demands it, requests have them required and nullable. `default` replaces a value that is
missing or cannot be used.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

_LIMITS = {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
_MAX_VIOLATIONS = 5
_SENTENCES = {
    "type": "must be {}",
    "enum": "must be one of {}",
    "minimum": "must be {} or more",
    "maximum": "must be {} or less",
    "minItems": "must have {} items or more",
    "maxItems": "must have {} items or fewer",
    "minLength": "must have {} characters or more",
    "maxLength": "must have {} characters or fewer",
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXT = {"type": "string"}
_NOTHING = frozenset({"null", "none"})
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15}|,\d{1,2})?\s*%?")
_NOT_WORD = re.compile(r"[\W_]+")
_MIN_STEM, _MAX_ENDING = 4, 3


def violations(value: object, schema: Mapping[str, Any], where: str = "answer") -> list[str]:
    """Return what does not fit `schema` in `value`, which messages call `where`: a sentence each, the first five."""
    found = []
    for error in islice(_validator()(schema).iter_errors(value), _MAX_VIOLATIONS):
        wanted = error.validator_value
        names = [wanted] if isinstance(wanted, str) else sorted(wanted) if error.validator == "type" else wanted
        limit = ", ".join(map(str, names)) if isinstance(names, list) else names
        known = _SENTENCES.get(str(error.validator))
        sentence = known.format(limit) if known else error.message
        found.append(f"{where}{error.json_path.removeprefix('$')} {sentence}")
    return found


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator, validators

    def is_number(_: object, value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) != math.inf

    checker = Draft202012Validator.TYPE_CHECKER.redefine("number", is_number)
    return validators.extend(Draft202012Validator, type_checker=checker)


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
        for part in (part for name, part in parts.items() if is_strict and name not in bare["required"]):
            kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
            part["type"] = [*kinds, *({"null"} - set(kinds))]
            if None not in part.get("enum", [None]):
                part["enum"] = [*part["enum"], None]
        bare |= {"properties": parts, "required": list(parts) if is_strict else bare["required"]}
    if "items" in bare:
        bare["items"] = without_limits(bare["items"], is_strict=is_strict)
    return bare


def outline(schema: Mapping[str, Any]) -> str:
    """Return the form of an answer in a line, as a model reads it: `{"text": string, "turns"?: string[]}`. A question
    mark is after the name of what may be left out.
    """
    if "enum" in schema:
        return "|".join(json.dumps(choice) for choice in schema["enum"] if choice is not None)
    kinds = kinds_of(schema) - {"null"}
    if "object" in kinds:
        marks = {name: "" if name in schema["required"] else "?" for name in schema["properties"]}
        parts = [f'"{name}"{marks[name]}: {outline(part)}' for name, part in schema["properties"].items()]
        return f"{{{', '.join(parts)}}}"
    return f"{outline(schema['items'])}[]" if "array" in kinds else "|".join(sorted(kinds))


# -- careless values ---------------------------------------------------------------------------------------------------


def coerce(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return `value` in the form of `schema`, as far as it is unambiguous; the rest stays as it is.

    So are read: numbers and truth values in strings, numbers where a string is wanted, an object where one is wanted
    (its texts with bars between them), an object where a list of strings is wanted (`name: text`), one thing where a
    list is wanted, names in another case, null for nothing, half characters. Dropped are properties that the schema
    does not name, and optional ones and parts of inner lists that cannot be used; a `default` replaces what is missing.
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
            if "default" in part:
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
    if isinstance(value, dict) and "string" in kinds_of(item):
        given = {name: as_list(texts, _TEXT) for name, texts in value.items()}
        texts = [f"{name}: {text}" for name, parts in given.items() for text in parts if isinstance(text, str) and text]
        return texts or value
    return [value] if is_one else value


def _as_scalar(value: Any, kinds: set[str], schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if "null" in kinds and isinstance(value, str) and value.strip().casefold() in _NOTHING:
        return None
    if isinstance(value, bool):
        return value
    if "string" in kinds:
        if isinstance(value, int | float) and abs(value) < 1e15:
            value = str(int(value) if value == int(value) else value)
        if isinstance(value, dict):
            given = (part for each in value.values() for part in as_list(each, _TEXT) or ())
            value = " | ".join(part for part in given if isinstance(part, str)) or value
        return _as_choice(value, schema.get("enum", ())) if isinstance(value, str) else value
    if isinstance(value, str):
        text = value.strip()
        if "boolean" in kinds:
            return _TRUTH.get(text.casefold(), value)
        if kinds & {"number", "integer"} and _NUMBER.fullmatch(text):
            number = float(text.rstrip(" %").replace(",", "."))
            value = number / 100 if text.endswith("%") else number
    return int(value) if "integer" in kinds and isinstance(value, float) and value.is_integer() else value


def _as_choice(value: str, choices: Sequence[Any]) -> str:
    """Return the one of `choices` that `value` is, in another case or with another ending: `approved` of `approve`,
    `users` of `user`. Without choices, the string without half characters.
    """
    if value in choices or not choices:
        return _SURROGATE.sub("\ufffd", value)
    word, named = _loose(value), {_loose(str(one)): str(one) for one in choices}
    forms = []
    for name in named:
        stem = name.removesuffix("e") if len(name) > _MIN_STEM else name
        ending = word.removeprefix(stem)
        if len(stem) >= _MIN_STEM and ending != word and len(ending) <= _MAX_ENDING and ending.isalpha():
            forms.append(name)
    return named[word] if word in named else named[forms[0]] if len(forms) == 1 else value


def _decoded(value: Any, kind: type) -> Any:
    """Return an object or a list that was given as a string of JSON."""
    if not (isinstance(value, str) and value.lstrip().startswith("{" if kind is dict else "[")):
        return value
    try:
        found = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value
    return found if isinstance(found, kind) else value


def _loose(text: str) -> str:
    return _NOT_WORD.sub("_", text.casefold()).strip("_")
