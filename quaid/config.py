"""quaid.toml and the user's own config.toml -> typed settings.

Every setting has a default in settings.py, may be set in the vault's quaid.toml, goes after the one of that name in the
user's config.toml, and that after an environment variable named after it: `recall.limit` is `QUAID_RECALL_LIMIT`. An
unknown key or a value that does not fit is an error with its place, never a silent default.

A vault travels, so what says where data goes, what it may cost or what is run is not read from it (`is_users_own`).
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
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
    VaultSettings,
    check_type,
    get_substitute,
    parse_text,
    read_hints,
)
from quaid.user_config import changing_user_config, put, read_user_config, user_config_path

_USERS_TABLES = ("models", "embedding", "notifications", "audit")
_USERS_KEYS = ("offline", "resident", "git.addresses", "git.sign", "git.sync")
_ONCE_OFFLINE = ("models", "embedding")
"""Tables that had a key `offline` each."""
_RETIRED = {
    "capture": "journal max_facts piece_tokens snippets",
    "embedding": "threads timeout_s duplicate_similarity relevant_similarity",
    "models": (
        "deep_timeout_s fast_timeout_s temperature context_tokens output_limit_field anthropic_version "
        "max_tokens_per_call max_tokens_per_run "
    ),
    "recall": (
        "stages k_least k_most fusion vector_weight rrf_k candidates gate cut_share spread_strength mmr_share "
        "contiguity_decay embed_budget_s rerank_share rerank_budget_s "
    ),
    "sync": "debounce_ms poll_interval_s max_note_mb removal_brake_count removal_brake_share",
    "git": "sync_minutes",
    "janitor": "gate_questions",
    "janitor.policies": "approve date link keep_both pin distil digest graduate ledger",
    "notifications": "janitor extraction retrieval docs",
    "audit": "flood",
    "hooks": "idle_minutes",
    "docs": "most_updates limit chunk_tokens overlap_tokens",
}
"""The keys of each table that earlier versions had. A file that sets one is still read, with a remark."""
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
    of_vault = {
        name: {key: part for key, part in value.items() if not is_users_own(f"{name}.{key}")}
        if isinstance(value, dict)
        else value
        for name, value in read_vault_config(root).items()
        if not is_users_own(name)
    }
    of_user = {key: value for key, value in read_user_config().items() if key not in _NOT_SETTINGS}
    of_vaults: dict[str, str] = {}
    of_users: dict[str, str] = {}
    # What was once set for a part is set for all: nothing that was private becomes less so.
    is_offline = [
        bool(table.pop("offline", False))
        for table in (of_user.get(n) for n in _ONCE_OFFLINE)
        if isinstance(table, dict)
    ]
    if any(is_offline) or any(environ.get(f"QUAID_{name.upper()}_OFFLINE") for name in _ONCE_OFFLINE):
        of_user["offline"] = True
    settings: Settings = _set(Settings(), of_vault, "", of_vaults)
    settings = _set(settings, of_user, "", of_users)
    found = [
        *_with_lines(of_vaults, root / CONFIG_FILE, CONFIG_FILE),
        *_with_lines(of_users, user_config_path(), str(user_config_path())),
    ]
    settings = _override(settings, "", environ, found)
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
    """Return a sentence for the settings that the vault at `root` cannot set, and one for those that no longer exist.

    Raises:
        ConfigError: a file cannot be read.
    """
    of_vault = list(_list_keys(read_vault_config(root)))
    retired = [key for key in dict.fromkeys([*of_vault, *_list_keys(read_user_config())]) if _is_retired(key)]
    remarks = []
    if users_own := [key for key in of_vault if is_users_own(key) and not _is_retired(key)]:
        named = ", ".join(users_own)
        remarks.append(
            f"{CONFIG_FILE} sets {named}, which is ignored: no vault can. Set your own with: quaid config KEY VALUE"
        )
    if retired:
        remarks.append(f"No longer settings, and ignored: {', '.join(retired)}. Remove them from your settings files")
    return remarks


def _is_retired(key: str) -> bool:
    table, _, name = key.rpartition(".")
    return name in _RETIRED.get(table, "").split()


def _list_keys(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and not _is_retired(key):
            yield from _list_keys(value, f"{key}.")
        else:
            yield key


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
        vault = _set(VaultSettings(), table, "vault.", {})
        vault = _override(vault, "vault.", os.environ, [])
        embedding, models = EmbeddingSettings(provider="none"), ModelSettings(provider="none")
        return Settings(vault=vault, embedding=embedding, models=models), error


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


def list_settings(settings: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every setting of `settings`, or of a table of them, as (dotted key, value), in the order of declaration."""
    for name in read_hints(type(settings)):
        value = getattr(settings, name)
        if is_dataclass(value):
            yield from list_settings(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def read_descriptions() -> dict[str, str]:
    """Return what each setting is for, by its dotted key, as settings.py says it."""
    import ast
    import inspect

    tables = {
        node.name: node.body
        for node in ast.parse(inspect.getsource(settings_module)).body
        if isinstance(node, ast.ClassDef)
    }

    def describe(table: Any, prefix: str) -> Iterator[tuple[str, str]]:
        body = tables[table.__name__]
        documented = {
            ast.unparse(field.target): ast.literal_eval(text.value)
            for field, text in pairwise(body)
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
        }
        for name, hint in read_hints(table).items():
            if is_dataclass(hint):
                yield from describe(hint, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", documented[name]

    return dict(describe(Settings, ""))


def parse_value(key: str, raw: str) -> Any:
    """`raw`, as typed in a shell, as the type the setting `key` has.

    Raises:
        ConfigError: no such setting, or `raw` does not fit it.
    """
    cls: Any = Settings
    *sections, name = key.split(".")
    for section in sections:
        cls = read_hints(cls).get(section)
        if cls is None or not is_dataclass(cls):
            raise unknown_setting(key)
    hint = read_hints(cls).get(name)
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
    text = ""
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8-sig") if problems else ""
    lines = {key: f"{name}, line {line}" if (line := _find_line(text, key)) else name for key in problems}
    return [f"{lines[key]}: {problem}" for key, problem in problems.items()]


def _find_line(text: str, key: str) -> int | None:
    """Return the number of the line in a TOML text that sets `key`, or the table that it is in, from 1."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header, assigned = _TABLE.match(line), _ASSIGNED.match(line)
        if header:
            table = _plain_key(header[1]) + "."
        name = table.removesuffix(".") if header else table + _plain_key(assigned[1]) if assigned else ""
        if name and (f"{name}." == f"{key}."[: len(name) + 1] if assigned and not header else name == key):
            return number
    return None


def _plain_key(written: str) -> str:
    return ".".join(part.strip(" \t\"'") for part in written.split("."))


def _set(node: Any, table: Mapping[str, Any], prefix: str, problems: dict[str, str]) -> Any:
    """`node`, a dataclass of settings, as `table` of a TOML file sets it; what cannot be used goes to `problems`."""
    hints = read_hints(type(node))
    changed: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        if _is_retired(key):
            continue
        if name not in hints:
            problems[key] = f"{key} is not a setting{_suggest(key)}"
        elif not is_dataclass(hints[name]):
            try:
                changed[name] = check_type(value, hints[name])
            except ValueError as error:
                problems[key] = f"{key} is {error}"
                changed[name] = get_substitute(hints[name], getattr(node, name))
        elif isinstance(value, dict):
            changed[name] = _set(getattr(node, name), value, f"{key}.", problems)
        else:
            problems[key] = f"{key} must be a table: [{key}]"
    return replace(node, **changed)


def _override(node: Any, prefix: str, environ: Mapping[str, str], problems: list[str]) -> Any:
    hints = read_hints(type(node))
    changed: dict[str, Any] = {}
    for name, hint in hints.items():
        value = getattr(node, name)
        key = f"{prefix}{name}"
        variable = "QUAID_" + key.replace(".", "_").upper()
        if is_dataclass(value):
            changed[name] = _override(value, f"{key}.", environ, problems)
        elif variable in environ:
            try:
                changed[name] = parse_text(environ[variable], hint)
            except ValueError as error:
                problems.append(f"{variable}: {key} is {error}")
                changed[name] = get_substitute(hint, value)
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
