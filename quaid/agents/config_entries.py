"""The entries that Quaid has in a host's config, added and removed.

An entry is a value under a key of ours (an MCP server), one string of a list that others fill too (a permission), a
hook, which hosts store as `{"hooks": {EVENT: [{"matcher", "hooks": [HANDLER]}]}}` among those of others, or a whole
file of ours, such as a skill.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from quaid.agents.config_text import ConfigTextError, Syntax, edit, is_same, read

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
    _check(text, syntax, (*wanted, *unwanted))
    changed: dict[str, None] = {}
    for entry in unwanted:
        while places := list(find_places(read(text, syntax), entry)):
            text = _delete(text, syntax, places[-1], entry)
            changed[f"{entry.name} (taken out)"] = None
    for entry in wanted:
        plain = read(text, syntax)
        places = list(find_places(plain, entry))
        while len(places) > 1:
            text = _delete(text, syntax, places.pop(), entry)
            changed[entry.name] = None
        # The group around a hook keeps the matcher that its owner may have given it.
        value = entry.value["hooks"][0] if entry.kind == "hook" and places else entry.value
        place: Place = places[0] if places else entry.path
        if not places and entry.kind != "key":
            listed = value_at(plain, entry.path)
            place, value = ((*place, len(listed)), value) if listed else (place, [value])
        for path, item in _list_differences(value_at(plain, place), value, place):
            text = edit(text, syntax, path, item)
            changed[entry.name] = None
    return text, tuple(changed)


def _list_differences(present: Any, wanted: Any, path: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the paths whose values are not the wanted ones. What others have added to a table stays."""
    if isinstance(present, dict) and isinstance(wanted, dict):
        for key, item in wanted.items():
            yield from _list_differences(present.get(key), item, (*path, key))
    elif present is None or not is_same(present, wanted):
        yield path, wanted


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
    _check(text, syntax, entries)
    known = {entry.path: entry.value for entry in written if entry.kind != "item"}
    removed, altered = [], []
    for entry in entries:
        plain = read(text, syntax)
        places = list(find_places(plain, entry))
        if not places:
            continue
        removed.append(entry.name)
        before = known.get(entry.path) if entry.kind != "item" else None
        now = value_at(plain, places[0])
        if before is not None and not is_same(now, before["hooks"][0] if entry.kind == "hook" else before):
            altered.append(entry.name)
        for place in reversed(places):
            text = _delete(text, syntax, place, entry)
    return text, tuple(dict.fromkeys(removed)), tuple(altered)


def render_snippet(syntax: Syntax, entries: Sequence[ConfigEntry]) -> str:
    """Return the entries as one line to paste into a config."""
    if syntax != "toml":
        return json.dumps(read(merge("", syntax, entries)[0], syntax), ensure_ascii=False)
    tables = [(entry.name, (f"{key} = {json.dumps(item)}" for key, item in entry.value.items())) for entry in entries]
    return "; ".join(f"{name} = {{{', '.join(items)}}}" for name, items in tables)


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


def _check(text: str, syntax: Syntax, entries: Sequence[ConfigEntry]) -> None:
    """Raise ConfigTextError where a value of another type is in the way of an entry."""
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


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return kinds.get(type(value), "nothing" if value is None else "a number")


def _delete(text: str, syntax: Syntax, place: Place, entry: ConfigEntry) -> str:
    """Delete the value at `place`, and the containers that are empty then; of a hook, its group with all it has."""
    plain = read(text, syntax)
    if entry.kind == "hook" and len(value_at(plain, place[:-1])) == 1:
        place = place[:-2]
    while len(place) > 1 and len(value_at(plain, place[:-1])) == 1:
        place = place[:-1]
    return edit(text, syntax, place, None)
