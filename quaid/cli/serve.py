"""`quaid serve`."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from quaid.cli.commands import Actions
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, flag, option
from quaid.cli.terminal import columns, count, paragraphs, styled
from quaid.errors import BadInputError, ConfigError, UsageError
from quaid.place import config_folder
from quaid.server.configuration import ServerConfig, load_config
from quaid.shapes import json_object
from quaid.user_config import read_user_config, user_config_path

HAS_DRIVER = find_spec("psycopg_pool") is not None
if HAS_DRIVER:
    from quaid.server.catalogue import Catalogue
    from quaid.server.database import Database, install
    from quaid.server.tokens import METRICS, Tokens, parse_typed_grants
    from quaid.server.vaults import Indexes

CONFIG_VARIABLE = "QUAID_SERVER_CONFIG"
FILE = "server.toml"
Config = Annotated[Path | None, option("FILE", "The configuration of the server.", "--config", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="NAME")]

run_serve = Actions(
    """
    Serve many vaults to agents over HTTP, from their git repositories, with an index in PostgreSQL.

    Scopes are read, write, review and admin. See docs/how-to/serve.md.

    Examples:
      quaid serve --config server.toml
      quaid serve vault add team https://git.example.org/team/memory.git
      quaid serve token add ci --grant team:read,write --owner maya
    """,
    default="run",
)
vault = Actions("Add or remove the repositories that are served.")
token = Actions("Add, list or remove the tokens of machines.")
run_serve.add_typer(vault, name="vault")
run_serve.add_typer(token, name="token")


@run_serve.action("run")
def run(_: Invocation, config: Config = None) -> None:
    """Serve until stopped (the default)."""
    settings = _load(config)
    from quaid.mcp.serving import serve
    from quaid.server.vault_server import VaultServer

    if read_user_config().get("owner"):
        problem = "owner would be the owner of every vault that is served; remove it for the user who runs the server"
        raise ConfigError(str(user_config_path()), problem)
    serve(VaultServer(settings))


@run_serve.action("setup")
def set_up(
    invocation: Invocation,
    address: Annotated[str, argument("ADDRESS", "The database as its owner reaches it.")],
    config: Config = None,
) -> None:
    """Make the tables in the database."""
    settings = _load(config)
    install(address, settings.database)
    invocation.respond(f"{styled('Ready', 'green')}: quaid serve", outcome="ready")


@run_serve.action("status")
def show_status(invocation: Invocation, config: Config = None) -> None:
    """Show the vaults, the pending jobs and the failures."""
    with _open_database(config) as (database, _):
        catalogue = Catalogue(database)
        counts, vaults = catalogue.count(), catalogue.list_all()
    head = f"{count(counts['vaults'], 'vault')}, {counts['failing']} failing, {count(counts['jobs'], 'job')} waiting"
    rows = [(vault.name, (vault.indexed or "not yet")[:10], vault.problem or "up to date") for vault in vaults]
    text = paragraphs(head, columns(rows) or "Add one with: quaid serve vault add NAME ADDRESS")
    invocation.respond(text, **counts, list=[json_object(vault, address=vault.shown_address) for vault in vaults])


@vault.action("add")
def add_vault(
    invocation: Invocation,
    name: Name,
    address: Annotated[str, argument("ADDRESS", "Its repository.")],
    branch: Annotated[str, option("NAME", "The branch that is served.")] = "main",
    config: Config = None,
) -> None:
    """Serve a repository."""
    with _open_database(config) as (database, settings):
        shown = Catalogue(database, settings.plain_hosts).add(name, address, branch).shown_address
    invocation.respond(f"{styled('Added', 'green')}: {name}, {shown}", name=name, address=shown, outcome="added")


@vault.action("remove")
def remove_vault(invocation: Invocation, name: Name, config: Config = None) -> None:
    """Serve a repository no longer; it is not changed."""
    with _open_database(config) as (database, settings):
        indexes = Indexes(settings.database, 1)
        indexes.open()
        indexes.forget(Catalogue(database).remove(name))
        indexes.close()
    invocation.respond(f"{styled('Removed', 'green')}: {name}", name=name, outcome="removed")


@token.action("add")
def add_token(
    invocation: Invocation,
    name: Name,
    grant: Annotated[list[str] | None, option("VAULT:SCOPES", "What it may do; once for each vault.")] = None,
    owner: Annotated[str, option("NAME", "The owner whose private notes it may read.")] = "",
    metrics: Annotated[bool, flag("It may read the metrics.", "--metrics")] = False,
    config: Config = None,
) -> None:
    """Make a token for a machine; it is printed only once."""
    with _open_database(config) as (database, _):
        grants = dict(parse_typed_grants(grant or [])) | ({METRICS: frozenset({"read"})} if metrics else {})
        if not grants:
            raise UsageError("It may do nothing. Give a vault and scopes: --grant team:read,write")
        # Not redacted: the token is what was asked for.
        print(Tokens(database).add(name, grants, owner))
    invocation.notify("Keep it now: it is not shown again.")


@token.action("list")
def list_tokens(invocation: Invocation, config: Config = None) -> None:
    """List the tokens and what each may do."""
    with _open_database(config) as (database, _):
        tokens = Tokens(database).list_all()
    rows = [
        (name, owner, " ".join(f"{vault}:{','.join(sorted(scopes))}" for vault, scopes in grants.items()))
        for name, owner, grants in tokens
    ]
    shape = [{"name": name, "owner": owner, "grants": grants} for name, owner, grants in tokens]
    invocation.respond(columns(rows) or "There are no tokens.", tokens=shape)


@token.action("remove")
def remove_token(invocation: Invocation, name: Name, config: Config = None) -> None:
    """Revoke a token."""
    with _open_database(config) as (database, _):
        Tokens(database).remove(name)
    invocation.respond(f"{styled('Removed', 'green')}: {name}", name=name, outcome="removed")


def _load(path: Path | None) -> ServerConfig:
    named = path or os.environ.get(CONFIG_VARIABLE)
    config = load_config(Path(named) if named else config_folder() / FILE)
    if not HAS_DRIVER:
        raise BadInputError("The driver for PostgreSQL is not installed. Install it with: pip install 'quaid[server]'")
    return config


@contextmanager
def _open_database(path: Path | None) -> Iterator[tuple[Database, ServerConfig]]:
    config = _load(path)
    with closing(Database(config.database, 2)) as database:
        database.open()
        yield database, config
