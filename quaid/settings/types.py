"""The kinds of values that settings have: ranges, what stands in for a bad value, reading one from a text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf, isfinite
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints


class Range(NamedTuple):
    """The numbers that a setting may have, both ends included."""

    least: float = -inf
    most: float = inf


class Cautious(NamedTuple):
    """The value that stands in for one that cannot be read, where the default would be less private."""

    value: Any


_READ_HINTS = cache(get_type_hints)
"""Annotations are text until they are read, which takes a hook longer than all the rest of its settings."""
Count = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]
Share = Annotated[float, Range(0, 1)]
Amount = Annotated[float, Range(0)]
Duration = Annotated[float, Range(0.001)]
VISIBLE_FOLDER = "a folder within the vault that is not hidden"
VisibleFolder = Annotated[str, VISIBLE_FOLDER]


def typed(value: Any, hint: Any) -> Any:
    """Return the value as the type of a setting.

    Raises:
        ValueError: it does not fit; the text says what would.
    """
    hint, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{value!r}, must be one of {', '.join(filter(None, get_args(hint)))}")
        return value
    if hint is float and type(value) is int:
        value = float(value)
    if type(value) is not hint:
        raise ValueError(f"{value!r}, must be {_type_name(hint)}")
    for note in notes:
        if isinstance(note, Range) and not note.least <= value <= note.most:
            raise ValueError(f"{value!r}, must be {_range_name(note)}")
        if note is VISIBLE_FOLDER and value and any(part[:1] in {"", "."} for part in value.strip("/").split("/")):
            raise ValueError(f"{value!r}, must be a visible folder within the vault")
    return value


def stand_in(hint: Any, default: Any) -> Any:
    """Return what stands in for a value that cannot be used."""
    return next((note.value for note in getattr(hint, "__metadata__", ()) if hasattr(note, "value")), default)


def _range_name(allowed: Range) -> str:
    least, most = allowed
    if isfinite(least) and isfinite(most):
        return f"from {least:g} to {most:g}"
    return f"{least:g} or more" if isfinite(least) else f"{most:g} or less"


def from_text(raw: str, hint: Any) -> Any:
    """Return `raw` as the type of a setting.

    Raises:
        ValueError: it does not fit.
    """
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(plain) is Literal or plain is str:
        return typed(raw, hint)
    if plain is bool:
        if raw.lower() in {"1", "true", "yes", "on"}:
            return True
        if raw.lower() in {"0", "false", "no", "off"}:
            return False
        raise ValueError(f"{raw!r}, must be {_type_name(plain)}")
    try:
        value = plain(raw)
    except ValueError as error:
        raise ValueError(f"{raw!r}, must be {_type_name(plain)}") from error
    return typed(value, hint)


def hints_of(cls: Any) -> Mapping[str, Any]:
    """Return the type of each setting of a table, with its range."""
    return _READ_HINTS(cls, include_extras=True)


def _type_name(hint: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(hint, str(hint))
