"""Edit one table of a TOML text. A new table is added at the end and a whole one is cut out; tomlkit does the rest.

The result is read again and must hold exactly the intended values.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_HEADING = re.compile(r"^[ \t]*\[", re.MULTILINE)


def read(text: str) -> dict[str, Any]:
    """Return the values of the text.

    Raises:
        ValueError: it is not TOML; the message contains the place.
    """
    return tomllib.loads(text.removeprefix("\ufeff"))


def update(text: str, value: dict[str, Any]) -> str:
    """Return the text with `value` instead of its own values.

    Raises:
        ValueError: the text is written so that it cannot be changed safely.
    """
    for keys, new in _list_differences(read(text), value):
        candidates = [_edit(text, keys, new)]
        if new is None:
            candidates.insert(0, _cut(text, keys))
        elif isinstance(new, dict):
            candidates.insert(0, _append_table(text, keys, new))
        wanted = _change(read(text), keys, new)
        text = next((after for after in candidates if _holds(after, wanted)), "\0")
    if not _holds(text, value):
        raise ValueError("the table is written in a way that cannot be edited without touching the rest")
    return text


def _list_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[list[str], Any]]:
    """Yield the keys and the new value of each table or value that differs; None for one that is removed."""
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        is_new_parent = old is None and isinstance(new, dict) and all(isinstance(item, dict) for item in new.values())
        if is_new_parent or (isinstance(old, dict) and isinstance(new, dict)):
            for keys, value in _list_differences(old or {}, new or {}):
                yield [key, *keys], value
        elif old != new:
            yield [key], new


def _change(values: dict[str, Any], keys: Sequence[str], new: Any) -> dict[str, Any]:
    table = values
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    table[keys[-1]] = new
    return values


def _holds(text: str, values: Mapping[str, Any]) -> bool:
    """Return whether the text has these values. Empty tables do not count."""
    try:
        return _compact(read(text)) == _compact(values)
    except ValueError:
        return False


def _compact(values: Mapping[str, Any]) -> dict[str, Any]:
    compact = {key: _compact(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: value for key, value in compact.items() if value not in ({}, None)}


def _append_table(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(keys)}]", *(f"{key} = {json.dumps(item, ensure_ascii=False)}" for key, item in value.items())]
    bare = text.removeprefix("\ufeff")
    gap = "" if not bare else newline if bare.endswith("\n") else 2 * newline
    return text + gap + newline.join(lines) + newline


def _cut(text: str, keys: Sequence[str]) -> str:
    """Return the text without the table, its sub-tables, and the empty line before it."""
    name = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in keys)
    heading = re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*[.\]]", re.MULTILINE)
    while match := heading.search(text):
        following = _HEADING.search(text, match.end())
        start, end = match.start(), following.start() if following else len(text)
        if following is None:
            start -= len(re.search(r"(?:(?<=\n)\r?\n)?\Z", text[:start])[0])  # type: ignore[index]
        text = text[:start] + text[end:]
    return text


def _edit(text: str, keys: Sequence[str], value: Any) -> str:
    """Set a value by tomlkit, or remove it if it is None. Returns the text as it is where tomlkit cannot."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    table: Any
    table = document = tomlkit.parse(text.removeprefix("\ufeff"))
    try:
        for key in keys[:-1]:
            table = table[key]
        if value is None:
            del table[keys[-1]]
        elif isinstance(table, tomlkit.items.InlineTable) and isinstance(value, dict):
            table[keys[-1]] = tomlkit.inline_table()
            table[keys[-1]].update(value)
        else:
            table[keys[-1]] = value
    except (TOMLKitError, ValueError, KeyError):
        return text
    return text[: text.startswith("\ufeff")] + tomlkit.dumps(document)
