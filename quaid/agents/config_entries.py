"""The entries that Quaid has in a host's config: adding and removing them in its text.

An entry is a value under a key of ours (a server's own), one string of a list that others fill too (a permission), or a
hook, which hosts keep as `{"hooks": {EVENT: [{"matcher", "hooks": [HANDLER]}]}}` among the hooks of others; or a whole
file of ours, such as a skill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from quaid.agents import json_edit, jsonc, toml_edit
from quaid.agents.json_edit import Step, is_same

Syntax = Literal["json", "comments", "json5", "toml", "file"]
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One thing that Quaid puts at `path`. Of a hook, `value` is the whole group with its one handler. The `path` of a
    whole file is what it is called.

    `like` is a pattern for strings that are Quaid's, whatever installation they name.
    """

    path: tuple[str, ...]
    value: Any
    kind: Literal["key", "item", "hook", "file"] = "key"
    like: str = ""

    @property
    def name(self) -> str:
        """The path for people: `mcpServers.quaid`."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The text with all entries in it, and the names of those that were missing or different."""

    text: str
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoveResult:
    """The text without the entries, the names of those removed, and of those that were not as Quaid had left them."""

    text: str
    removed: tuple[str, ...]
    altered: tuple[str, ...]


class ConfigTextError(ValueError):
    """The config cannot be edited; the message says why, without the file's name."""


def merge(
    text: str, syntax: Syntax, wanted: Sequence[ConfigEntry], unwanted: Sequence[ConfigEntry] = ()
) -> MergeResult:
    """Put in the entries that are wanted and remove those that are not. A second time changes nothing.

    Raises:
        ConfigTextError: the text is broken, or something of another type stands in the way.
    """
    if syntax == "file":
        after = next((str(entry.value) for entry in wanted), "")
        return MergeResult(after, tuple(entry.name for entry in wanted or unwanted) if after != text else ())
    _check(text, syntax, (*wanted, *unwanted))
    changed = []
    with _config_errors():
        for entry in unwanted:
            after = _without(text, syntax, entry)
            changed += [f"{entry.name} (taken out)"] if after != text else []
            text = after
        for entry in wanted:
            after = _with(text, syntax, entry)
            changed += [entry.name] if after != text else []
            text = after
    return MergeResult(text, tuple(dict.fromkeys(changed)))


def remove(
    text: str, syntax: Syntax, entries: Sequence[ConfigEntry], written: Sequence[ConfigEntry] = ()
) -> RemoveResult:
    """Remove the entries, and what only held them. `written` are those that Quaid put in, as it did.

    Raises:
        ConfigTextError: the text is broken, or something of another type stands in the way.
    """
    if syntax == "file":
        names = tuple(dict.fromkeys(entry.name for entry in entries)) if text else ()
        return RemoveResult("", names, names if any(entry.value != text for entry in written) else ())
    _check(text, syntax, entries)
    known = {entry.path: entry.value for entry in written if entry.kind != "item"}
    removed, altered = [], []
    for entry in entries:
        places = list(find_places(read(text, syntax), entry))
        if not places:
            continue
        removed.append(entry.name)
        before = known.get(entry.path) if entry.kind != "item" else None
        now = value_at(read(text, syntax), places[0])
        if before is not None and not is_same(now, before["hooks"][0] if entry.kind == "hook" else before):
            altered.append(entry.name)
        with _config_errors():
            text = _without(text, syntax, entry)
    return RemoveResult(text, tuple(dict.fromkeys(removed)), tuple(altered))


def read(text: str, syntax: Syntax) -> Any:
    """The values of a config, `{}` for an empty one.

    Raises:
        ConfigTextError: it is broken.
    """
    with _config_errors():
        if syntax == "toml":
            return toml_edit.read(text)
        if syntax == "file":
            return text
        jsonc.check(text, syntax)
        return json_edit.read(text)


def find_places(plain: Any, entry: ConfigEntry) -> Iterator[Path]:
    """The paths at which `entry` is in a config, in whatever version Quaid or its owner left it."""
    if entry.kind == "file":
        yield from [entry.path] if plain else []
        return
    found = value_at(plain, entry.path)
    if entry.kind == "key":
        if found is not None:
            yield entry.path
    elif isinstance(found, list):
        for position, item in enumerate(found):
            if entry.kind == "hook":
                handlers = item.get("hooks") if isinstance(item, dict) else None
                for inner, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                    if re.search(rf"quaid\S*\s+hook\s+{entry.like}\b", command_line(handler)):
                        yield (*entry.path, position, "hooks", inner)
            elif item == entry.value or (entry.like and isinstance(item, str) and re.search(entry.like, item)):
                yield (*entry.path, position)


def command_line(handler: Any) -> str:
    """The command of a hook or server as one line, whether its arguments are a list or not."""
    if not isinstance(handler, dict):
        return ""
    arguments = handler.get("args")
    return " ".join(map(str, [handler.get("command", ""), *(arguments if isinstance(arguments, list) else [])]))


@contextmanager
def _config_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ConfigTextError(str(error)) from error


def value_at(plain: Any, path: Sequence[Step]) -> Any:
    """The value at `path`; None where there is none."""
    for step in path:
        if isinstance(step, str):
            plain = plain.get(step) if isinstance(plain, dict) else None
        else:
            plain = plain[step] if isinstance(plain, list) and step < len(plain) else None
    return plain


def _check(text: str, syntax: Syntax, entries: Sequence[ConfigEntry]) -> None:
    plain = read(text, syntax)
    if not isinstance(plain, dict):
        raise ConfigTextError(f"it holds {_kind(plain)} where an object must be")
    for entry in entries:
        for depth in range(1, len(entry.path) + 1):
            found = value_at(plain, entry.path[:depth])
            wanted = list if depth == len(entry.path) and entry.kind != "key" else dict
            if depth == len(entry.path) and not isinstance(entry.value, dict) and entry.kind == "key":
                continue
            if found is not None and not isinstance(found, wanted):
                name = ".".join(entry.path[:depth])
                raise ConfigTextError(f"{name} is {_kind(found)} where {_kind(wanted())} must be")


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return kinds.get(type(value), "nothing" if value is None else "a number")


def _with(text: str, syntax: Syntax, entry: ConfigEntry) -> str:
    plain = read(text, syntax)
    if entry.kind == "key":
        return _put(text, syntax, entry.path, entry.value, value_at(plain, entry.path))
    places = list(find_places(plain, entry))
    if not places:
        return json_edit.append(text, entry.path, entry.value)
    for twice in reversed(places[1:]):
        text = _pruned(text, syntax, twice, len(entry.path))
    # The group around a hook keeps the matcher its owner may have given it.
    return json_edit.put(text, places[0], entry.value["hooks"][0] if entry.kind == "hook" else entry.value)


def _put(text: str, syntax: Syntax, path: Path, value: Any, present: Any) -> str:
    """Set what differs, and leave what others have added to the table."""
    if isinstance(present, dict) and isinstance(value, dict):
        for key, item in value.items():
            text = _put(text, syntax, (*path, key), item, present.get(key))
        return text
    if present is not None and is_same(present, value):
        return text
    return toml_edit.put(text, path, value) if syntax == "toml" else json_edit.put(text, path, value)


def _without(text: str, syntax: Syntax, entry: ConfigEntry) -> str:
    for place in reversed(list(find_places(read(text, syntax), entry))):
        text = _pruned(text, syntax, place, len(entry.path))
    return text


def _pruned(text: str, syntax: Syntax, place: Path, length: int) -> str:
    """The text without the value at `place`, and without what that leaves empty.

    A hook's group is empty when its list of handlers is; `length` is that of the entry's own path.
    """
    if syntax == "toml":
        return toml_edit.drop(text, place)
    text = json_edit.drop(text, place)
    place = place[:-1]
    if len(place) > length and not value_at(json_edit.read(text), place):
        text, place = json_edit.drop(text, place[:-1]), place[:-2]
    while place and value_at(json_edit.read(text), place) in ({}, []):
        text, place = json_edit.drop(text, place), place[:-1]
    return text
