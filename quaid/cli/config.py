"""`quaid config`."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

from quaid import config
from quaid.cli.change_output import tell_written
from quaid.cli.init import change_model
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument
from quaid.cli.terminal import columns
from quaid.place import CONFIG_FILE
from quaid.user_config import read_user_config, user_config_path

_OF_A_MODEL = ("embedding.provider", "embedding.model", "embedding.precision", "recall.reranker")


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
        of_vault, of_user = config.read_vault_config(memory.root), read_user_config()
        origins = {}
        for each, _ in config.list_settings(memory.settings):
            origins[each] = "default"
            if variable_of(each) in os.environ:
                origins[each] = variable_of(each)
            elif _holds(of_user, each):
                origins[each] = str(user_config_path())
            elif _holds(of_vault, each) and not config.is_users_own(each):
                origins[each] = CONFIG_FILE
        values = dict(config.list_settings(memory.settings))
        if key is None:
            descriptions = config.read_descriptions()
            rows = [
                (each, config.render_value(values[each]), origin, descriptions[each])
                for each, origin in origins.items()
            ]
            shapes = [{"key": each, "value": values[each], "origin": origin} for each, origin in origins.items()]
            invocation.respond(columns(rows), settings=shapes)
            return
        if key not in values:
            raise config.unknown_setting(key)
        if value is None:
            found = values[key]
            text = found if isinstance(found, str) else config.render_value(found)
            invocation.respond(text, key=key, value=found, origin=origins[key])
            return
        written = memory.configure(key, value)
    tell_written(invocation, written)
    if key in _OF_A_MODEL:
        change_model(invocation, key)
    if variable_of(key) in os.environ:
        invocation.notify(f"{variable_of(key)} is set and goes before what the file says.")


def variable_of(key: str) -> str:
    """The environment variable that overrides a setting: `recall.limit` is `QUAID_RECALL_LIMIT`."""
    return "QUAID_" + key.replace(".", "_").upper()


def _holds(written: Mapping[str, Any], key: str) -> bool:
    *sections, name = key.split(".")
    for section in sections:
        written = written.get(section, {})
    return name in written
