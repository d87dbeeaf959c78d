"""Records as JSON values, for every answer that a program reads: `--json`, MCP and the page."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import Any


def json_value(value: Any) -> Any:
    """Return `value` as JSON has it.

    Dataclasses, named tuples and mappings become objects; other sequences and sets lists, the sets sorted; dates and
    moments ISO 8601. Enums are their values, and anything else is its text.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if names := _field_names(value):
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return {str(json_value(key)): json_value(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(json_value, value))
    if isinstance(value, (list, tuple)):
        return list(map(json_value, value))
    return value.isoformat() if isinstance(value, date) else str(value)


def json_object(record: object, *names: str, without: Collection[str] = (), **values: object) -> dict[str, Any]:
    """Return a record as a JSON object.

    Args:
        record: a dataclass, a named tuple or, with `names`, any object.
        names: its attributes to include, in this order; by default all fields.
        without: fields to leave out.
        values: keys to add or to replace.
    """
    included = {name: getattr(record, name) for name in names or _field_names(record) if name not in without}
    return {name: json_value(value) for name, value in {**included, **values}.items()}


def _field_names(record: object) -> tuple[str, ...]:
    if is_dataclass(record) and not isinstance(record, type):
        return tuple(field.name for field in fields(record))
    return getattr(record, "_fields", ())
