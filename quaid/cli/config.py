"""`quaid config`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from quaid.cli.change_output import tell_written
from quaid.cli.init import change_model
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument
from quaid.cli.terminal import columns
from quaid.config import (
    is_users_own,
    list_settings,
    read_descriptions,
    read_vault_config,
    render_value,
    unknown_setting,
)
from quaid.place import CONFIG_FILE
from quaid.settings import Settings
from quaid.user_config import read_user_config, user_config_path

_OF_THE_MODEL = ("embedding.provider", "embedding.model", "embedding.precision")


class Setting(NamedTuple):
    """One setting and where its value comes from: default, a file, or the name of an environment variable."""

    key: str
    value: Any
    origin: str


def run_config(
    invocation: Invocation,
    key: Annotated[str | None, argument("KEY", "A setting, such as recall.limit.")] = None,
    value: Annotated[str | None, argument("VALUE", "Its new value.")] = None,
) -> None:
    """Show all settings, show one, or change one.

    What belongs to the memory is changed in its quaid.toml, as a commit like any other change. What belongs to you and
    this machine (offline, models, embedding, notifications) is changed in ~/.config/quaid/config.toml: no vault can say
    where your data goes.

    Examples:
      quaid config
      quaid config recall.limit 5
      quaid config models.provider auto
      quaid config embedding.model multilingual-e5-small   # the old model answers until this one is ready
    """
    with invocation.open() as memory:
        settings = list(_list_settings(memory.root, memory.settings, os.environ))
        if key is None:
            said = read_descriptions()
            rows = [(each.key, render_value(each.value), each.origin, said[each.key]) for each in settings]
            invocation.respond(columns(rows), settings=[setting._asdict() for setting in settings])
            return
        found = next((setting for setting in settings if setting.key == key), None)
        if found is None:
            raise unknown_setting(key)
        if value is None:
            text = found.value if isinstance(found.value, str) else render_value(found.value)
            invocation.respond(text, **found._asdict())
            return
        written = memory.configure(key, value)
    tell_written(invocation, written)
    if key in _OF_THE_MODEL:
        change_model(invocation)
    if variable_of(key) in os.environ:
        invocation.notify(f"{variable_of(key)} is set and goes before what the file says.")


def variable_of(key: str) -> str:
    """The environment variable that overrides a setting: `recall.limit` is `QUAID_RECALL_LIMIT`."""
    return "QUAID_" + key.replace(".", "_").upper()


def _list_settings(root: Path, settings: Settings, environ: Mapping[str, str]) -> Iterator[Setting]:
    of_vault, of_user = read_vault_config(root), read_user_config()
    for key, value in list_settings(settings):
        if variable_of(key) in environ:
            origin = variable_of(key)
        elif _holds(of_user, key):
            origin = str(user_config_path())
        else:
            origin = CONFIG_FILE if _holds(of_vault, key) and not is_users_own(key) else "default"
        yield Setting(key, value, origin)


def _holds(written: Mapping[str, Any], key: str) -> bool:
    *sections, name = key.split(".")
    table: Mapping[str, Any] = written
    for section in sections:
        table = table.get(section, {})
    return name in table
