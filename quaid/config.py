"""quaid.toml and the user's own config.toml -> typed settings.

Every setting has a default in settings.py, may be set in the vault's quaid.toml, goes after the one of that name in the
user's config.toml, and that after an environment variable named after it: `recall.limit` is `QUAID_RECALL_LIMIT`. An
unknown key or a wrong type is an error with the key's name, never a silent default.

A vault travels, so what says where data goes, what it may cost or what is run is not read from it (`is_users_own`).
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from quaid.errors import ConfigError
from quaid.place import CONFIG_FILE, config_folder, write_private

if TYPE_CHECKING:
    from quaid.settings import Settings  # where it is needed it is imported: a hook that reads no setting is quicker

USER_CONFIG_FILE = "config.toml"
_HEADER = """\
# Quaid on this machine: where data may go, and which vaults are trusted. All settings: quaid config
# offline = true               # nothing leaves this machine

"""
_USERS_TABLES = ("models", "embedding", "notifications")
_USERS_KEYS = ("offline",)
_NOT_SETTINGS = ("trust",)
"""Tables of the user's config.toml that other modules read."""
_KEY_VARIABLE = re.compile(
    r"(ANTHROPIC|AZURE_OPENAI|CEREBRAS|COHERE|DEEPSEEK|FIREWORKS|GEMINI|GOOGLE|GROQ|HF|JINA|LITELLM|LM_STUDIO|MISTRAL"
    r"|NVIDIA|OLLAMA|OPENAI|OPENROUTER|PERPLEXITY|TOGETHER|VOYAGE|XAI|QUAID(_[A-Z0-9]+)*)_(API_KEY|AUTH_TOKEN|KEY|TOKEN)"
)
"""Variables that hold keys of model services. Another one may hold a secret that must not be sent to them."""
_NOT_A_KEY = "{!r} is not a variable for the key of a model service; put the key into QUAID_API_KEY and name that"


def load_settings(root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the vault at `root`: its quaid.toml (absent means all defaults), the user's own, the
    environment.

    Raises:
        ConfigError: unreadable TOML, an unknown key, or a value of the wrong type.
    """
    from quaid.settings import Settings

    of_vault = {key: value for key, value in read_vault_config(root).items() if not is_users_own(key)}
    of_user = {key: value for key, value in read_user_config().items() if key not in _NOT_SETTINGS}
    settings: Settings = _set(_set(Settings(), of_vault, "", CONFIG_FILE), of_user, "", str(user_config_path()))
    settings = _override(settings, "", environ if environ is not None else os.environ)
    for key, name in (("models", settings.models.api_key_env), ("embedding", settings.embedding.api_key_env)):
        if name and not _KEY_VARIABLE.fullmatch(name):
            raise ConfigError(f"{key}.api_key_env", _NOT_A_KEY.format(name))
    _check_folder(settings.vault.folder)
    return _offline(settings) if settings.offline else settings


def _check_folder(folder: str) -> None:
    if folder and any(not part or part.startswith(".") for part in folder.strip("/").split("/")):
        raise ConfigError("vault.folder", f"{folder!r} is not a visible folder within the vault")


def _offline(settings: Settings) -> Settings:
    return replace(
        settings,
        models=replace(settings.models, offline=True),
        embedding=replace(settings.embedding, offline=True),
        notifications=replace(settings.notifications, webhook=""),
    )


def is_users_own(key: str) -> bool:
    """Return whether a setting belongs to the user and the machine, so that a vault cannot set it."""
    return key in _USERS_KEYS or key.partition(".")[0] in _USERS_TABLES


def ignored_settings(root: Path) -> list[str]:
    """Return a sentence that names the settings which the vault at `root` has no say in; none where it has set none.

    Raises:
        ConfigError: its quaid.toml cannot be read.
    """
    table = read_vault_config(root)
    keys = [
        key if not isinstance(value, dict) else f"{key}.{name}"
        for key, value in table.items()
        if is_users_own(key)
        for name in (value if isinstance(value, dict) else ("",))
    ]
    if not keys:
        return []
    named = ", ".join(keys)
    return [f"{CONFIG_FILE} sets {named}, which is ignored: no vault can. Set your own with: quaid config KEY VALUE"]


def set_users_own(key: str, value: object) -> Path:
    """Set one key of the user's own config; the file it stands in. A provider of models gets the day of the consent.

    Raises:
        ConfigError: the file cannot be read or written.
    """

    def edit(document: Any) -> None:
        _put(document, key, value)
        if key == "models.provider":
            _put(document, "models.agreed", f"{datetime.now(UTC):%Y-%m-%d}" if value not in {"", "none"} else "")

    change_user_config(edit)
    return user_config_path()


def settings_for_reading(root: Path) -> tuple[Settings, ConfigError | None]:
    """Return the settings and None, or the error that keeps them from being read and the defaults without any model: it
    is not known which one is meant.
    """
    from quaid.settings import EmbeddingSettings, ModelSettings, Settings, VaultSettings

    try:
        return load_settings(root), None
    except ConfigError as error:
        vault = VaultSettings()
        # Which notes are Quaid's does not change with a slip elsewhere in the file.
        with suppress(ConfigError):
            found = _override(_set(vault, _salvage_vault_table(root), "vault.", CONFIG_FILE), "vault.", os.environ)
            _check_folder(found.folder)
            vault = found
        embedding, models = EmbeddingSettings(provider="none"), ModelSettings(provider="none")
        return Settings(vault=vault, embedding=embedding, models=models), error


def _salvage_vault_table(root: Path) -> dict[str, Any]:
    """The [vault] table of a quaid.toml that cannot be read as a whole; empty where it cannot be read itself."""
    with suppress(OSError, tomllib.TOMLDecodeError):
        text = (root / CONFIG_FILE).read_text(encoding="utf-8-sig", errors="replace")
        found = re.search(r"^\[vault\][^\n]*\n.*?(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE)
        return tomllib.loads(found[0])["vault"] if found else {}
    return {}


def own_names(root: Path, settings: Settings) -> frozenset[str]:
    """Return the names of the one who asks: what belongs to nobody in particular belongs to the vault's own owner."""
    mine = settings.owner
    # Without a name of one's own it is the same whatever quaid.toml says, and that is not read twice.
    try:
        is_own = mine == "default" or mine == load_settings(root, environ={}).owner
    except ConfigError:
        is_own = False
    return frozenset({mine, "default"} if is_own else {mine})


def list_settings(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Return every setting as (dotted key, value), in the order they are declared."""
    yield from _walk(settings, "")


def parse_value(key: str, raw: str) -> Any:
    """`raw`, as typed in a shell, as the type the setting `key` has.

    Raises:
        ConfigError: no such setting, or `raw` does not fit it.
    """
    from quaid.settings import Settings

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
    """Return the text of a quaid.toml with `key` set; comments, order and everything else stay."""
    import tomlkit

    mark = "\ufeff" if text.startswith("\ufeff") else ""
    document = tomlkit.parse(text.removeprefix(mark))
    _put(document, key, value)
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


def user_config_path() -> Path:
    """Return the path of the user's config, which need not exist."""
    return config_folder() / USER_CONFIG_FILE


def read_user_config() -> dict[str, Any]:
    """Return the tables of the user's config; empty when there is none.

    Raises:
        ConfigError: it is not TOML, or somebody else could have written it.
    """
    text = _read_user_config()
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(user_config_path()), str(error)) from error


def change_user_config(edit: Callable[[Any], None]) -> None:
    """Let `edit` change the file as a tomlkit document; comments and order stay. One process at a time.

    Raises:
        ConfigError: it cannot be read or written.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    with _locked():
        try:
            document = tomlkit.parse(_read_user_config() or _HEADER)
            edit(document)
        except TOMLKitError as error:
            raise ConfigError(str(user_config_path()), str(error)) from error
        try:
            # Behind a link lies the file of those who keep their settings in a repository: the link stays.
            write_private(user_config_path().resolve(), tomlkit.dumps(document), sync=True)
        except OSError as error:
            raise ConfigError(str(user_config_path()), error.strerror or str(error)) from error


def _put(document: Any, key: str, value: object) -> None:
    import tomlkit

    *sections, name = key.split(".")
    table: Any = document
    for section in sections:
        if section not in table:
            table[section] = tomlkit.table()
        table = table[section]
    table[name] = value


def _walk(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for item in fields(node):
        value = getattr(node, item.name)
        if is_dataclass(value):
            yield from _walk(value, f"{prefix}{item.name}.")
        else:
            yield f"{prefix}{item.name}", value


def _set(node: Any, table: Mapping[str, Any], prefix: str, file: str) -> Any:
    """`node`, a dataclass of settings, with what `table` of the TOML file `file` sets."""
    hints = get_type_hints(type(node))
    changed: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        if name not in hints:
            raise ConfigError(file, f"{key} is not a setting")
        if not is_dataclass(hints[name]):
            changed[name] = _typed(value, hints[name], key, file)
        elif isinstance(value, dict):
            changed[name] = _set(getattr(node, name), value, f"{key}.", file)
        else:
            raise ConfigError(file, f"{key} must be a table: [{key}]")
    return replace(node, **changed)


def _typed(value: Any, hint: Any, key: str, file: str) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            choices = ", ".join(filter(None, get_args(hint)))
            raise ConfigError(file, f"{key} is {value!r}, must be one of {choices}")
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise ConfigError(file, f"{key} is {value!r}, must be {_type_name(hint)}")
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
        return _typed(raw, hint, key, CONFIG_FILE)
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


def _read_user_config() -> str:
    try:
        handle = os.open(user_config_path(), os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(str(user_config_path()), error.strerror or str(error)) from error
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ConfigError(str(user_config_path()), "is not a file")
        if about.st_uid not in {os.geteuid(), 0} or about.st_mode & stat.S_IWOTH:
            raise ConfigError(
                str(user_config_path()), "another user can change it; make it yours alone with chown and chmod 600"
            )
        try:
            return file.read().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(user_config_path()), str(error)) from error


@contextmanager
def _locked() -> Iterator[None]:
    import fcntl

    folder = config_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(folder / f".{USER_CONFIG_FILE}.lock", flags, 0o600)
    except OSError as error:
        raise ConfigError(str(user_config_path()), error.strerror or str(error)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
