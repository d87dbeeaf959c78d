"""The entries that Quaid has in a host's config, added and removed.

An entry is a value under a key of ours (an MCP server), one string of a list that others fill too (a permission), a
hook, which hosts store as `{"hooks": {EVENT: [{"matcher", "hooks": [HANDLER]}]}}` among those of others, or a whole
file of ours, such as a skill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from quaid.agents import json_edit, toml_edit
from quaid.agents.json_edit import is_same

Syntax = Literal["json", "comments", "json5", "toml", "file"]
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One thing that Quaid adds at `path`. Of a hook, `value` is the whole group with its one handler; the `path` of a
    file is its title. `like` is a pattern for strings that are Quaid's, whatever installation they name.
    """

    path: tuple[str, ...]
    value: Any
    kind: Literal["key", "item", "hook", "file"] = "key"
    like: str = ""

    @property
    def name(self) -> str:
        """The path for people: `mcpServers.quaid`."""
        return ".".join(self.path)


class ConfigTextError(ValueError):
    """The config cannot be edited; the message says why, without the file's name."""


def merge(
    text: str, syntax: Syntax, wanted: Sequence[ConfigEntry], unwanted: Sequence[ConfigEntry] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return the text with the entries that are wanted and without the others, and the names of those that changed.

    Raises:
        ConfigTextError: the text is broken, or a value of another type is in the way.
    """
    if syntax == "file":
        after = next((str(entry.value) for entry in wanted), "")
        return after, tuple(entry.name for entry in wanted or unwanted) if after != text else ()
    plain = _read_checked(text, syntax, (*wanted, *unwanted))
    changed = [f"{entry.name} (taken out)" for entry in unwanted if _remove(plain, entry)]
    text = _update(text, syntax, plain)
    changed += [entry.name for entry in wanted if _add(plain, entry)]
    return _update(text, syntax, plain), tuple(dict.fromkeys(changed))


def remove(
    text: str, syntax: Syntax, entries: Sequence[ConfigEntry], written: Sequence[ConfigEntry] = ()
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the text without the entries, the names of those removed, and of those that the user had changed.

    `written` are the entries as Quaid wrote them.

    Raises:
        ConfigTextError: the text is broken, or a value of another type is in the way.
    """
    if syntax == "file":
        names = tuple(dict.fromkeys(entry.name for entry in entries)) if text else ()
        return "", names, names if any(entry.value != text for entry in written) else ()
    plain = _read_checked(text, syntax, entries)
    known = {entry.path: entry.value for entry in written if entry.kind != "item"}
    removed, altered = [], []
    for entry in entries:
        places = list(find_places(plain, entry))
        if not places:
            continue
        removed.append(entry.name)
        before = known.get(entry.path) if entry.kind != "item" else None
        now = value_at(plain, places[0])
        if before is not None and not is_same(now, before["hooks"][0] if entry.kind == "hook" else before):
            altered.append(entry.name)
        _remove(plain, entry)
    return _update(text, syntax, plain), tuple(dict.fromkeys(removed)), tuple(altered)


def read(text: str, syntax: Syntax) -> Any:
    """Return the values of a config, `{}` for an empty one.

    Raises:
        ConfigTextError: it is broken.
    """
    try:
        if syntax == "toml":
            return toml_edit.read(text)
        if syntax == "file":
            return text
        json_edit.check(text, syntax)
        return json_edit.read(text)
    except ValueError as error:
        raise ConfigTextError(str(error)) from error


def _update(text: str, syntax: Syntax, plain: Any) -> str:
    try:
        return toml_edit.update(text, plain) if syntax == "toml" else json_edit.update(text, plain)
    except ValueError as error:
        raise ConfigTextError(str(error)) from error


def find_places(plain: Any, entry: ConfigEntry) -> Iterator[Place]:
    """Yield the paths of `entry` in a config, in whatever version Quaid or the user left it."""
    if entry.kind == "file":
        yield from [entry.path] if plain else []
        return
    found = value_at(plain, entry.path)
    if entry.kind == "key":
        if found is not None:
            yield entry.path
        return
    for position, item in enumerate(found if isinstance(found, list) else ()):
        if entry.kind == "hook":
            handlers = item.get("hooks") if isinstance(item, dict) else None
            for inner, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if re.search(rf"quaid\S*\s+hook\s+{entry.like}\b", command_line(handler)):
                    yield (*entry.path, position, "hooks", inner)
        elif item == entry.value or (entry.like and isinstance(item, str) and re.search(entry.like, item)):
            yield (*entry.path, position)


def command_line(handler: Any) -> str:
    """Return the command of a hook or server as one line, whether its arguments are a list or not."""
    if not isinstance(handler, dict):
        return ""
    arguments = handler.get("args")
    return " ".join(map(str, [handler.get("command", ""), *(arguments if isinstance(arguments, list) else [])]))


def value_at(plain: Any, path: Sequence[str | int]) -> Any:
    """Return the value at `path`, None if there is none."""
    for step in path:
        if isinstance(step, str):
            plain = plain.get(step) if isinstance(plain, dict) else None
        else:
            plain = plain[step] if isinstance(plain, list) and step < len(plain) else None
    return plain


def _read_checked(text: str, syntax: Syntax, entries: Sequence[ConfigEntry]) -> Any:
    plain = read(text, syntax)
    if not isinstance(plain, dict):
        raise ConfigTextError(f"it holds {_kind(plain)} where an object must be")
    for entry in entries:
        for depth in range(1, len(entry.path) + 1):
            found = value_at(plain, entry.path[:depth])
            wanted: type = dict
            if depth == len(entry.path):
                wanted = list if entry.kind != "key" else dict if isinstance(entry.value, dict) else object
            if found is not None and not isinstance(found, wanted):
                name = ".".join(entry.path[:depth])
                raise ConfigTextError(f"{name} is {_kind(found)} where {_kind(wanted())} must be")
    return plain


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return kinds.get(type(value), "nothing" if value is None else "a number")


def _add(plain: Any, entry: ConfigEntry) -> bool:
    """Add an entry, or correct it where it is; return whether that changed anything."""
    parent = plain
    for step in entry.path[:-1]:
        if parent.get(step) is None:
            parent[step] = {}
        parent = parent[step]
    key = entry.path[-1]
    if entry.kind == "key":
        return _set(parent, key, entry.value)
    places = list(find_places(plain, entry))
    if not places:
        parent[key] = [*(parent.get(key) or ()), entry.value]
        return True
    for extra in reversed(places[1:]):
        _delete(plain, extra, len(entry.path))
    # The group around a hook keeps the matcher that its owner may have given it.
    wanted = entry.value["hooks"][0] if entry.kind == "hook" else entry.value
    return _set(value_at(plain, places[0][:-1]), places[0][-1], wanted) or len(places) > 1


def _set(container: Any, key: str | int, value: Any) -> bool:
    """Set what differs, and leave what others have added to the table; return whether anything differed."""
    present = container[key] if isinstance(key, int) or key in container else None
    if isinstance(present, dict) and isinstance(value, dict):
        changed = [name for name, item in value.items() if _set(present, name, item)]
        return bool(changed)
    if present is not None and is_same(present, value):
        return False
    container[key] = value
    return True


def _remove(plain: Any, entry: ConfigEntry) -> bool:
    places = list(find_places(plain, entry))
    for place in reversed(places):
        _delete(plain, place, len(entry.path))
    return bool(places)


def _delete(plain: Any, place: Place, length: int) -> None:
    """Delete the value at `place`, and the containers that are empty then.

    The group of a hook, below the entry's own path of `length` steps, is empty when its list of handlers is.
    """
    del value_at(plain, place[:-1])[place[-1]]
    place = place[:-1]
    if len(place) > length and not value_at(plain, place):
        place = place[:-1]
        del value_at(plain, place[:-1])[place[-1]]
        place = place[:-1]
    while place and value_at(plain, place) in ({}, []):
        del value_at(plain, place[:-1])[place[-1]]
        place = place[:-1]
