"""Statements of the port -> statements of PostgreSQL, and the values that it takes."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from quaid.index.port import Values

MAX_KEY = 600
"""Characters of what is looked up by an index: PostgreSQL refuses to keep more than 2,700 bytes in one."""
KEYED = frozenset({"documents", "names", "edges", "links", "pending", "citations"})
"""Tables whose texts are all looked up, or shown in one line."""
_PART = re.compile(r"'(?:[^']|'')*'|::|CROSS JOIN|(?P<list>json_each\()?(?:\?(?P<number>\d*)|:(?P<name>[a-z]\w*))|%")
_WRITES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE)\b")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


class Statement(NamedTuple):
    """A statement as psycopg takes it; `lists` are the parameters that are lists in JSON."""

    sql: str
    lists: frozenset[int | str]
    is_numbered: bool
    writes: bool


@lru_cache(maxsize=1024)
def translate(statement: str) -> Statement:
    """Return what PostgreSQL is asked instead: the hint of a CROSS JOIN means nothing to it."""
    lists: set[int | str] = set()
    is_numbered = False
    place = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal is_numbered, place
        text, opened = found[0], found["list"] or ""
        if text == "CROSS JOIN":
            return "JOIN"
        if found["number"] is None and found["name"] is None:
            return text.replace("%", "%%")
        key: int | str = found["name"] or (f"p{found['number']}" if found["number"] else place)
        if opened:
            lists.add(key)
        if found["number"]:
            is_numbered = True
        if isinstance(key, int):
            place += 1
            return f"{opened}%s"
        return f"{opened}%({key})s"

    sql = _PART.sub(replace, statement)
    return Statement(sql, frozenset(lists), is_numbered, bool(_WRITES.match(statement)))


def bind(statement: Statement, values: Values) -> dict[str, Any] | list[Any]:
    """Return `values` as `statement` names them and as PostgreSQL can keep them."""
    if isinstance(values, Mapping):
        return {name: _clean(value, is_list=name in statement.lists) for name, value in values.items()}
    if statement.is_numbered:
        named = {f"p{number}": value for number, value in enumerate(values, start=1)}
        return {name: _clean(value, is_list=name in statement.lists) for name, value in named.items()}
    return [_clean(value, is_list=place in statement.lists) for place, value in enumerate(values)]


def shorten(values: Sequence[Any]) -> list[Any]:
    """Return `values` of a row of one of `KEYED`, no text longer than an index can keep."""
    return [value[:MAX_KEY] if isinstance(value, str) else value for value in values]


def _clean(value: Any, *, is_list: bool) -> Any:
    """Return a value without what is no text to PostgreSQL, NUL and half characters; a truth value is a number."""
    if isinstance(value, str):
        if is_list and "\\u" in value:
            return json.dumps([_clean_item(item) for item in json.loads(value)])
        return clean_text(value)
    return int(value) if isinstance(value, bool) else value


def _clean_item(item: Any) -> Any:
    if isinstance(item, list):
        return [_clean_item(each) for each in item]
    return clean_text(item) if isinstance(item, str) else item


def clean_text(text: str) -> str:
    """Return `text` with a mark in the place of each NUL and half character."""
    if text.isascii():
        return text.replace("\0", _REPLACEMENT) if "\0" in text else text
    return _NOT_TEXT.sub(_REPLACEMENT, text)
