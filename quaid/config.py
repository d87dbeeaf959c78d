"""quaid.toml -> typed settings.

Every setting has a default in settings.py, may be set in the vault's quaid.toml, and may be overridden by an
environment variable named after it: `recall.limit` is `QUAID_RECALL_LIMIT`. An unknown key or a wrong type is an error
with the key's name, never a silent default.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from quaid.errors import ConfigError
from quaid.place import CONFIG_FILE
from quaid.settings import EmbeddingSettings, ModelSettings, Settings


def load_settings(root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Read `root`/quaid.toml (absent means all defaults) and apply the environment.

    Raises:
        ConfigError: unreadable TOML, an unknown key, or a value of the wrong type.
    """
    path = root / CONFIG_FILE
    table: dict[str, Any] = {}
    if path.exists():
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise ConfigError(CONFIG_FILE, str(error)) from error
    settings: Settings = _build(Settings, table, "")
    overridden: Settings = _override(settings, "", environ if environ is not None else os.environ)
    return overridden


def settings_for_reading(root: Path) -> tuple[Settings, ConfigError | None]:
    """The settings, and why they are not the owner's: then they are all defaults, and no model is used, for it is not
    known which one is meant.
    """
    try:
        return load_settings(root), None
    except ConfigError as error:
        return Settings(embedding=EmbeddingSettings(provider="none"), models=ModelSettings(provider="none")), error


def own_names(root: Path, settings: Settings) -> frozenset[str]:
    """The names of the one who asks: what belongs to nobody in particular belongs to the vault's own owner."""
    mine = settings.owner
    # Without a name of one's own it is the same whatever quaid.toml says, and that is not read twice.
    try:
        is_own = mine == "default" or mine == load_settings(root, environ={}).owner
    except ConfigError:
        is_own = False
    return frozenset({mine, "default"} if is_own else {mine})


def list_settings(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Every setting as (dotted key, value), in the order they are declared."""
    yield from _walk(settings, "")


def parse_value(key: str, raw: str) -> Any:
    """`raw`, as typed in a shell, as the type the setting `key` has.

    Raises:
        ConfigError: no such setting, or `raw` does not fit it.
    """
    cls: Any = Settings
    *sections, name = key.split(".")
    for section in sections:
        cls = get_type_hints(cls).get(section)
        if cls is None or not is_dataclass(cls):
            raise ConfigError(key, "there is no such setting")
    hint = get_type_hints(cls).get(name)
    if hint is None or is_dataclass(hint):
        raise ConfigError(key, "there is no such setting")
    return _from_text(raw, hint, key)


def render_setting(text: str, key: str, value: object) -> str:
    """The text of a quaid.toml with `key` set; comments, order and everything else stay."""
    import tomlkit

    mark = "\ufeff" if text.startswith("\ufeff") else ""
    document = tomlkit.parse(text.removeprefix(mark))
    *sections, name = key.split(".")
    table: Any = document
    for section in sections:
        if section not in table:
            table[section] = tomlkit.table()
        table = table[section]
    table[name] = value
    return mark + tomlkit.dumps(document)


def render_value(value: object) -> str:
    """A setting as quaid.toml writes it."""
    return json.dumps(value, ensure_ascii=False)


def _walk(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for item in fields(node):
        value = getattr(node, item.name)
        if is_dataclass(value):
            yield from _walk(value, f"{prefix}{item.name}.")
        else:
            yield f"{prefix}{item.name}", value


def _build(cls: Any, table: Mapping[str, Any], prefix: str) -> Any:
    hints = get_type_hints(cls)
    known = {item.name for item in fields(cls)}
    for key in table:
        if key not in known:
            raise ConfigError(CONFIG_FILE, f"{prefix}{key} is not a setting")
    values = {key: _typed(value, hints[key], f"{prefix}{key}") for key, value in table.items()}
    return cls(**values)


def _typed(value: Any, hint: Any, key: str) -> Any:
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise ConfigError(CONFIG_FILE, f"{key} must be a table: [{key}]")
        return _build(hint, value, f"{key}.")
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ConfigError(CONFIG_FILE, f"{key} is {value!r}, must be one of {', '.join(get_args(hint))}")
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise ConfigError(CONFIG_FILE, f"{key} is {value!r}, must be {_type_name(hint)}")
    return value


def _override(node: Any, prefix: str, environ: Mapping[str, str]) -> Any:
    hints = get_type_hints(type(node))
    changed: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        key = f"{prefix}{item.name}"
        if is_dataclass(value):
            changed[item.name] = _override(value, f"{key}.", environ)
            continue
        raw = environ.get("QUAID_" + key.replace(".", "_").upper())
        changed[item.name] = value if raw is None else _from_text(raw, hints[item.name], key)
    return type(node)(**changed)


def _from_text(raw: str, hint: Any, key: str) -> Any:
    if get_origin(hint) is Literal or hint is str:
        return _typed(raw, hint, key)
    if hint is bool:
        if raw.lower() in {"1", "true", "yes", "on"}:
            return True
        if raw.lower() in {"0", "false", "no", "off"}:
            return False
    else:
        try:
            return hint(raw)
        except ValueError:
            pass
    raise ConfigError(key, f"{raw!r} must be {_type_name(hint)}")


def _type_name(hint: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names.get(hint, str(hint))
