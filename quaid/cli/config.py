"""`quaid config`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns
from quaid.cli.written import as_shape, tell_written
from quaid.config import list_settings, render_value
from quaid.errors import ConfigError
from quaid.place import CONFIG_FILE
from quaid.settings import Settings


class Setting(NamedTuple):
    """One setting and where its value comes from: default, quaid.toml, or the name of an environment variable."""

    key: str
    value: Any
    origin: str


def run_config(
    ctx: typer.Context,
    key: Annotated[str | None, typer.Argument(metavar="KEY", help="A setting, like recall.limit.")] = None,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="Its new value.")] = None,
) -> None:
    """Show all settings, show one, or change one in quaid.toml (as a commit, like any other change).

    Examples:
      quaid config
      quaid config recall.limit
      quaid config recall.limit 5
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        settings = list(_list_settings(memory.root, memory.settings, os.environ))
        if key is None:
            invocation.tell(lambda: _render(settings), settings=[setting._asdict() for setting in settings])
            return
        found = next((setting for setting in settings if setting.key == key), None)
        if found is None:
            raise ConfigError(key, "there is no such setting")
        if value is None:
            invocation.tell(lambda: _render_alone(found.value), **found._asdict())
            return
        written = memory.configure(key, value)
    if invocation.as_json:
        invocation.answer(**as_shape(written))
    else:
        tell_written(invocation, written)
    if variable_of(key) in os.environ:
        invocation.say(f"{variable_of(key)} is set and goes before quaid.toml.")


def variable_of(key: str) -> str:
    """The environment variable that overrides a setting: `recall.limit` is `QUAID_RECALL_LIMIT`."""
    return "QUAID_" + key.replace(".", "_").upper()


def _list_settings(root: Path, settings: Settings, environ: Mapping[str, str]) -> Iterator[Setting]:
    written = tomllib.loads((root / CONFIG_FILE).read_text(encoding="utf-8"))
    for key, value in list_settings(settings):
        *sections, name = key.split(".")
        table: Mapping[str, Any] = written
        for section in sections:
            table = table.get(section, {})
        origin = CONFIG_FILE if name in table else "default"
        yield Setting(key, value, variable_of(key) if variable_of(key) in environ else origin)


def _render(settings: list[Setting]) -> str:
    return columns((setting.key, render_value(setting.value), setting.origin) for setting in settings)


def _render_alone(value: object) -> str:
    return value if isinstance(value, str) else render_value(value)
