"""Editing one table of a TOML text. A new table is added at the end and a whole one cut out, as a person would do it;
what cannot be done so is left to tomlkit. Either way the result is read again and must hold exactly what was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

Step = str | int
_HEADING = re.compile(r"^[ \t]*\[", re.MULTILINE)


def read(text: str) -> Any:
    """The values of the text.

    Raises:
        ValueError: it is not TOML; the message says where.
    """
    import tomllib

    return tomllib.loads(text.removeprefix("\ufeff"))


def put(text: str, path: Sequence[Step], value: Any) -> str:
    """Set the value at `path`: a table where there is none, or one value of a table that is there.

    Raises:
        ValueError: the text is written so that nothing can be added to it safely.
    """
    keys = [str(step) for step in path]
    wanted = read(text)
    table: Any = wanted
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    is_new = keys[-1] not in table
    table[keys[-1]] = value
    ways = (_append_table, _put_by_tomlkit) if is_new and isinstance(value, dict) else (_put_by_tomlkit,)
    return _first_equal_to([wanted], (way(text, keys, value) for way in ways))


def drop(text: str, path: Sequence[Step]) -> str:
    """Remove the value at `path`, if there is one.

    Raises:
        ValueError: it is written so that it cannot be removed safely.
    """
    keys = [str(step) for step in path]
    wanted, pruned = read(text), read(text)
    table = wanted
    for key in keys[:-1]:
        table = table.get(key, {})
    if keys[-1] not in table:
        return text
    del table[keys[-1]]
    # A table that only its children's headings made is gone with the last of them.
    _prune(pruned, keys)
    return _first_equal_to([wanted, pruned], (way(text, keys) for way in (_cut, _drop_by_tomlkit)))


def _first_equal_to(wanted: Sequence[Any], texts: Iterable[str | None]) -> str:
    for text in texts:
        with suppress(ValueError):
            if text is not None and read(text) in wanted:
                return text
    raise ValueError("the table is written in a way that cannot be edited without touching the rest")


def _append_table(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(keys)}]", *(f"{key} = {json.dumps(item, ensure_ascii=False)}" for key, item in value.items())]
    bare = text.removeprefix("\ufeff")
    gap = "" if not bare else newline if bare.endswith("\n") else 2 * newline
    return text + gap + newline.join(lines) + newline


def _cut(text: str, keys: Sequence[str]) -> str:
    """The text without the table's heading, its lines, its sub-tables, and the empty line before them."""
    name = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in keys)
    heading = re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*[.\]]", re.MULTILINE)
    while match := heading.search(text):
        following = _HEADING.search(text, match.end())
        start, end = match.start(), following.start() if following else len(text)
        if following is None:
            start -= len(re.search(r"(?:(?<=\n)\r?\n)?\Z", text[:start])[0])  # type: ignore[index]
        text = text[:start] + text[end:]
    return text


def _put_by_tomlkit(text: str, keys: Sequence[str], value: Any) -> str | None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    document = tomlkit.parse(text.removeprefix("\ufeff"))
    table: Any = document
    try:
        for key in keys[:-1]:
            table = table[key]
        if isinstance(table, tomlkit.items.InlineTable) and isinstance(value, dict):
            inline = tomlkit.inline_table()
            inline.update(value)
            value = inline
        table[keys[-1]] = value
    except (TOMLKitError, ValueError, KeyError):
        return None
    return text[: text.startswith("\ufeff")] + tomlkit.dumps(document)


def _drop_by_tomlkit(text: str, keys: Sequence[str]) -> str:
    import tomlkit

    document = tomlkit.parse(text.removeprefix("\ufeff"))
    table: Any = document
    for key in keys[:-1]:
        table = table[key]
    del table[keys[-1]]
    return text[: text.startswith("\ufeff")] + tomlkit.dumps(document)


def _prune(table: dict[str, Any], keys: Sequence[str]) -> None:
    if len(keys) > 1:
        _prune(table[keys[0]], keys[1:])
        if not table[keys[0]]:
            del table[keys[0]]
    else:
        del table[keys[0]]
