"""quaid.toml and the user's own config.toml -> typed settings.

Every setting has a default in settings.py, may be set in the vault's quaid.toml, goes after the one of that name in the
user's config.toml, and that after an environment variable named after it: `recall.limit` is `QUAID_RECALL_LIMIT`. An
unknown key or a value that does not fit is an error with its place, never a silent default.

A vault travels, so what says where data goes, what it may cost or what is run is not read from it (`is_users_own`).
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

from quaid import settings as settings_module
from quaid.errors import ConfigError, SettingError
from quaid.place import CONFIG_FILE
from quaid.redaction.name_hints import look_for_numbers
from quaid.settings import (
    EmbeddingSettings,
    ModelSettings,
    Settings,
    check_type,
    find_substitute,
    parse_text,
    read_hints,
)
from quaid.user_config import changing_user_config, put, read_user_config, user_config_path

_USERS_TABLES = ("models", "embedding", "notifications", "audit")
_USERS_KEYS = ("capture.people", "offline", "resident", "git.addresses", "git.sign", "git.sync", "recall.reranker")
_NOT_SETTINGS = ("trust",)
"""Tables of the user's config.toml that other modules read."""
_KEY_VARIABLE = re.compile(
    r"(ANTHROPIC|AZURE_OPENAI|CEREBRAS|COHERE|DEEPSEEK|FIREWORKS|GEMINI|GOOGLE|GROQ|HF|JINA|LITELLM|LM_STUDIO|MISTRAL"
    r"|NVIDIA|OLLAMA|OPENAI|OPENROUTER|PERPLEXITY|TOGETHER|VOYAGE|XAI|QUAID(_[A-Z0-9]+)*)_(API_KEY|AUTH_TOKEN|KEY|TOKEN)"
)
"""Variables that hold keys of model services. Another one may hold a secret that must not be sent to them."""
_TABLE = re.compile(r"\s*\[\[?([^\[\]]+)\]")
_ASSIGNED = re.compile(r"[ \t]*([\w.\"'-]+)[ \t]*=")
_NOT_A_KEY = "{!r} is not a variable for the key of a model service; put the key into QUAID_API_KEY and name that"


def load_settings(root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the vault at `root`: its quaid.toml (absent means all defaults), the user's own, the
    environment.

    Raises:
        ConfigError: unreadable TOML, an unknown key, or a value that does not fit.
    """
    settings, problems = _read_settings(root, environ if environ is not None else os.environ)
    if problems:
        raise SettingError(problems)
    return settings


def _read_settings(root: Path, environ: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Return the settings, and a sentence with its place for each that cannot be used and has its default."""
    of_user = {key: value for key, value in read_user_config().items() if key not in _NOT_SETTINGS}
    of_vaults: dict[str, str] = {}
    of_users: dict[str, str] = {}
    values = _read_values(read_vault_config(root), of_vaults, of_vault=True)
    values |= _read_values(of_user, of_users)
    found = [
        *_with_lines(of_vaults, root / CONFIG_FILE, CONFIG_FILE),
        *_with_lines(of_users, user_config_path(), str(user_config_path())),
    ]
    settings: Settings = _with_values(Settings(), values | _read_environment(environ, found))
    for key in ("models", "embedding"):
        part = getattr(settings, key)
        if part.api_key_env and not _KEY_VARIABLE.fullmatch(part.api_key_env):
            found.append(f"{key}.api_key_env: {_NOT_A_KEY.format(part.api_key_env)}")
            settings = replace(settings, **{key: replace(part, api_key_env="")})
    look_for_numbers(wanted=settings.capture.redact_numbers)
    if settings.offline:
        models, embedding = replace(settings.models, offline=True), replace(settings.embedding, offline=True)
        notifications = replace(settings.notifications, webhook="")
        settings = replace(settings, models=models, embedding=embedding, notifications=notifications)
    return settings, found


def is_users_own(key: str) -> bool:
    """Return whether a setting belongs to the user and the machine, so that a vault cannot set it."""
    return key in _USERS_KEYS or key.partition(".")[0] in _USERS_TABLES


def ignored_settings(root: Path) -> list[str]:
    """Return a sentence for the settings that the vault at `root` has and cannot set.

    Raises:
        ConfigError: the file cannot be read.
    """
    named = ", ".join(key for key, _ in _flatten(read_vault_config(root)) if is_users_own(key))
    if not named:
        return []
    return [f"{CONFIG_FILE} sets {named}, which is ignored: no vault can. Set your own with: quaid config KEY VALUE"]


@cache
def _read_types(cls: type = Settings, prefix: str = "") -> Mapping[str, Any]:
    """Return the type of each setting and of each table by its dotted key, in the order of declaration."""
    types: dict[str, Any] = {}
    for name, hint in read_hints(cls).items():
        types[f"{prefix}{name}"] = hint
        if isinstance(hint, type) and is_dataclass(hint):
            types |= _read_types(hint, f"{prefix}{name}.")
    return types


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of a TOML file; what is no table of settings is a value."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and is_dataclass(_read_types().get(key)):
            yield from _flatten(value, f"{key}.")
        else:
            yield key, value


def set_users_own(key: str, value: object) -> Path:
    """Set one key of the user's own config, and return the file. A provider of models gets the day of the consent.

    Raises:
        ConfigError: the file cannot be read or written.
    """
    with changing_user_config() as document:
        put(document, key, value)
        if key == "models.provider":
            put(document, "models.agreed", f"{datetime.now(UTC):%Y-%m-%d}" if value not in {"", "none"} else "")
    return user_config_path()


def settings_for_reading(root: Path) -> tuple[Settings, ConfigError | None]:
    """Return the settings and None, or with an error: defaults for those that it names; where a file cannot be read the
    defaults of all without any model, because the intended one is unknown.
    """
    try:
        settings, problems = _read_settings(root, os.environ)
        return settings, SettingError(problems) if problems else None
    except ConfigError as error:
        # Which notes are Quaid's does not change with a slip elsewhere in the file.
        table: dict[str, Any] = {}
        with suppress(OSError, tomllib.TOMLDecodeError):
            text = (root / CONFIG_FILE).read_text(encoding="utf-8-sig", errors="replace")
            found = re.search(r"^\[vault\][^\n]*\n.*?(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE)
            table = tomllib.loads(found[0])["vault"] if found else {}
        values = _read_values({"vault": table}, {}) | _read_environment(os.environ, [])
        of_vault = {key: value for key, value in values.items() if key.startswith("vault.")}
        without_models = Settings(embedding=EmbeddingSettings(provider="none"), models=ModelSettings(provider="none"))
        return _with_values(without_models, of_vault), error


def own_names(root: Path, settings: Settings) -> frozenset[str]:
    """Return the names of the caller. What has no particular owner belongs to the vault's own owner."""
    mine = settings.owner
    # Without a name of one's own it is the same whatever quaid.toml says, and that is not read twice.
    try:
        is_own = mine == "default" or mine == load_settings(root, environ={}).owner
    except ConfigError:
        is_own = False
    return frozenset({mine, "default", settings.owner_name or mine} if is_own else {mine})


def person_of(root: Path, settings: Settings) -> str:
    """Return the name of the caller, to whom `my` and `User` refer; empty if it is unknown."""
    # The name in quaid.toml is always that of the vault's own owner.
    name = settings.owner_name if "default" in own_names(root, settings) else ""
    return name or ("" if settings.owner == "default" else settings.owner)


def list_settings(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield every setting as (dotted key, value), in the order of declaration."""
    return ((key, attrgetter(key)(settings)) for key, hint in _read_types().items() if not is_dataclass(hint))


def read_descriptions() -> dict[str, str]:
    """Return what each setting is for, by its dotted key, as settings.py says it."""
    import ast
    import inspect

    tables = {
        node.name: node.body
        for node in ast.parse(inspect.getsource(settings_module)).body
        if isinstance(node, ast.ClassDef)
    }

    known: dict[str, Any] = {f"{key}.": hint for key, hint in _read_types().items() if is_dataclass(hint)}
    found = {}
    for prefix, table in {"": Settings, **known}.items():
        for field, text in pairwise(tables[table.__name__]):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                found[prefix + ast.unparse(field.target)] = ast.literal_eval(text.value)
    return found


def parse_value(key: str, raw: str) -> Any:
    """`raw`, as typed in a shell, as the type the setting `key` has.

    Raises:
        ConfigError: no such setting, or `raw` does not fit it.
    """
    hint = _read_types().get(key)
    if hint is None or is_dataclass(hint):
        raise unknown_setting(key)
    try:
        return parse_text(raw, hint)
    except ValueError as error:
        raise ConfigError(key, str(error).replace(", must", " must", 1)) from error


def unknown_setting(key: str) -> ConfigError:
    """Return the error of a key that is not a setting, with the most similar setting."""
    return ConfigError(key, f"there is no such setting{_suggest(key)}")


def render_setting(text: str, key: str, value: object) -> str:
    """Return the text of a quaid.toml with `key` set; comments, order and everything else stay."""
    import tomlkit

    mark = "\ufeff" if text.startswith("\ufeff") else ""
    document = tomlkit.parse(text.removeprefix(mark))
    put(document, key, value)
    return mark + tomlkit.dumps(document)


def render_value(value: object) -> str:
    """Return a setting as quaid.toml writes it."""
    return json.dumps(value, ensure_ascii=False)


def read_vault_config(root: Path) -> dict[str, Any]:
    """Return the tables of the quaid.toml of the vault at `root`; empty when there is none.

    Raises:
        ConfigError: it cannot be read.
    """
    path = root / CONFIG_FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(CONFIG_FILE, str(error)) from error


def _with_lines(problems: Mapping[str, str], path: Path, name: str) -> list[str]:
    """Return what cannot be used of the file at `path`, by key, each with its line."""
    text, table, lines = "", "", dict[str, int]()
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8-sig") if problems else ""
    for number, line in enumerate(text.splitlines(), 1):
        header, assigned = _TABLE.match(line), _ASSIGNED.match(line)
        if header:
            table = _plain_key(header[1]) + "."
        named = table.removesuffix(".") if header else table + _plain_key(assigned[1]) if assigned else ""
        for key in problems if named else ():
            # The line that sets the key, or the table that it is in.
            if named == key or (assigned and not header and key.startswith(f"{named}.")):
                lines.setdefault(key, number)
    return [f"{name}, line {lines[key]}: {why}" if key in lines else f"{name}: {why}" for key, why in problems.items()]


def _plain_key(written: str) -> str:
    return ".".join(part.strip(" \t\"'") for part in written.split("."))


def _read_values(table: Mapping[str, Any], problems: dict[str, str], *, of_vault: bool = False) -> dict[str, Any]:
    """Return the settings in the tables of a TOML file by key; what cannot be used goes to `problems`."""
    values: dict[str, Any] = {}
    for key, value in _flatten(table):
        hint = _read_types().get(key)
        if of_vault and is_users_own(key):
            continue
        if hint is None:
            problems[key] = f"{key} is not a setting{_suggest(key)}"
        elif is_dataclass(hint):
            problems[key] = f"{key} must be a table: [{key}]"
        else:
            try:
                values[key] = check_type(value, hint)
            except ValueError as error:
                problems[key] = f"{key} is {error}"
                if substitute := find_substitute(hint):
                    values[key] = substitute.value
    return values


def _read_environment(environ: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """Return the settings in the environment by key; a sentence about what cannot be used goes to `problems`."""
    values: dict[str, Any] = {}
    for key, hint in _read_types().items():
        variable = "QUAID_" + key.replace(".", "_").upper()
        if variable in environ and not is_dataclass(hint):
            try:
                values[key] = parse_text(environ[variable], hint)
            except ValueError as error:
                problems.append(f"{variable}: {key} is {error}")
                if substitute := find_substitute(hint):
                    values[key] = substitute.value
    return values


def _with_values(node: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    """Return settings, or a table of them, with `values` by dotted key."""
    changed: dict[str, Any] = {}
    for name in read_hints(type(node)):
        key, part = f"{prefix}{name}", getattr(node, name)
        if is_dataclass(part):
            changed[name] = _with_values(part, values, f"{key}.")
        elif key in values:
            changed[name] = values[key]
    return replace(node, **changed)


def _suggest(key: str) -> str:
    """Return the setting that a wrong key may mean, in brackets; empty where none is near."""
    from difflib import get_close_matches

    known = [name for name, _ in list_settings(Settings())]
    if any(name.startswith(f"{key}.") for name in known):
        return ""
    table, _, last = key.rpartition(".")
    siblings = {name.rpartition(".")[2]: name for name in known if name.rpartition(".")[0] == table}
    same_end = [name for name in known if name.rpartition(".")[2] == last]
    similar = [siblings[near] for near in get_close_matches(last, siblings, n=1, cutoff=0.75)]
    similar = similar or (same_end if len(same_end) == 1 else get_close_matches(key, known, n=1, cutoff=0.85))
    return f" (did you mean {similar[0]}?)" if similar else ""
