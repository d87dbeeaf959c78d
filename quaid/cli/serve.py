"""`quaid serve`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, count, paragraphs, styled
from quaid.errors import BadInputError, ConfigError, UsageError
from quaid.place import config_folder

if TYPE_CHECKING:
    from quaid.server.catalogue import ServedVault
    from quaid.server.configuration import ServerConfig
    from quaid.server.database import Database, Row

CONFIG_VARIABLE = "QUAID_SERVER_CONFIG"
FILE = "server.toml"


def run_serve(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="ACTION", help="run, setup, status, vault …, token …", show_default=False),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The configuration of the server.", show_default=False)
    ] = None,
    grant: Annotated[
        list[str] | None, typer.Option(metavar="VAULT:SCOPES", help="token add: what it may do; once for each vault.")
    ] = None,
    owner: Annotated[str, typer.Option(metavar="NAME", help="token add: whose private notes its bearer may see.")] = "",
    metrics: Annotated[bool, typer.Option("--metrics", help="token add: it may read the figures.")] = False,
    branch: Annotated[str, typer.Option(metavar="NAME", help="vault add: the branch that is served.")] = "main",
) -> None:
    r"""Serve many vaults to agents over HTTP, from their git repositories, with an index in PostgreSQL.

    \b
    run                       serve until stopped (the default)
    setup ADDRESS             make the tables, in the database as its owner reaches it
    status                    the vaults, what waits, and what fails
    vault add NAME ADDRESS    serve a repository
    vault remove NAME         serve it no longer; the repository stays
    token add NAME            make a token for a machine, which is printed this once
    token list, token remove NAME

    Scopes are read, write, review and admin. See docs/serve.md.

    Examples:
      quaid serve --config server.toml
      quaid serve vault add team https://git.example.org/team/memory.git
      quaid serve token add ci --grant team:read,write --owner maya
    """
    invocation: Invocation = ctx.obj
    action, *rest = words or ["run"]
    known: dict[str, Callable[[], None]] = {
        "run": lambda: _run(_load(config)),
        "setup": lambda: _set_up(invocation, _load(config), rest),
        "status": lambda: _with_database(_load(config), lambda database: _show_status(invocation, database)),
        "vault": lambda: _with_database(
            _load(config), lambda database: _vault(invocation, database, _load(config), rest, branch)
        ),
        "token": lambda: _with_database(
            _load(config), lambda database: _token(invocation, database, rest, grant or [], owner, metrics=metrics)
        ),
    }
    if action not in known:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(known)}.")
    known[action]()


def _load(path: Path | None) -> ServerConfig:
    from quaid.server.configuration import load_config

    named = path or os.environ.get(CONFIG_VARIABLE)
    return load_config(Path(named) if named else config_folder() / FILE)


def _run(config: ServerConfig) -> None:
    _need_driver()
    from quaid.config import read_user_config, user_config_path
    from quaid.mcp.serving import serve
    from quaid.server.vault_server import VaultServer

    if read_user_config().get("owner"):
        said = "owner would be the owner of every vault that is served; remove it for the user who runs the server"
        raise ConfigError(str(user_config_path()), said)
    serve(VaultServer(config))


def _set_up(invocation: Invocation, config: ServerConfig, words: Sequence[str]) -> None:
    if len(words) != 1:
        raise UsageError("Give the address of the database as its owner reaches it: quaid serve setup ADDRESS")
    _need_driver()
    from quaid.server.database import install

    install(words[0], config.database)
    invocation.respond(f"{styled('Ready', 'green')}: quaid serve", outcome="ready")


def _need_driver() -> None:
    try:
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise BadInputError(
            "The driver for PostgreSQL is not installed. Install it with: pip install 'quaid[server]'"
        ) from error


def _with_database(config: ServerConfig, use: Callable[[Database], None]) -> None:
    _need_driver()
    from quaid.server.database import Database

    database = Database(config.database, 2)
    try:
        database.open()
        use(database)
    finally:
        database.close()


def _show_status(invocation: Invocation, database: Database) -> None:
    from quaid.server.catalogue import Catalogue

    catalogue = Catalogue(database)
    counted, vaults = catalogue.count(), catalogue.list_all()
    shape = [{**asdict(vault), "address": vault.shown_address} for vault in vaults]
    invocation.respond(_render_status(counted, vaults), **counted, list=shape)


def _render_status(counted: Row, vaults: Sequence[ServedVault]) -> str:
    head = f"{count(counted['vaults'], 'vault')}, {counted['failing']} failing, {count(counted['jobs'], 'job')} waiting"
    rows = [(vault.name, (vault.indexed or "not yet")[:10], vault.problem or "up to date") for vault in vaults]
    return paragraphs(head, columns(rows) if rows else "Add one with: quaid serve vault add NAME ADDRESS")


def _vault(invocation: Invocation, database: Database, config: ServerConfig, words: Sequence[str], branch: str) -> None:
    from quaid.server.catalogue import Catalogue
    from quaid.server.vaults import Indexes

    catalogue = Catalogue(database, config.plain_hosts)
    match words:
        case ["add", name, address]:
            vault = catalogue.add(name, address, branch)
            shown = vault.shown_address
            invocation.respond(
                f"{styled('Added', 'green')}: {name}, {shown}", name=name, address=shown, outcome="added"
            )
        case ["remove", name]:
            indexes = Indexes(config.database, 1)
            indexes.open()
            indexes.forget(catalogue.remove(name))
            indexes.close()
            invocation.respond(f"{styled('Removed', 'green')}: {name}", name=name, outcome="removed")
        case _:
            raise UsageError("Give: quaid serve vault add NAME ADDRESS, or: quaid serve vault remove NAME")


def _token(
    invocation: Invocation, database: Database, words: Sequence[str], grants: list[str], owner: str, *, metrics: bool
) -> None:
    from quaid.server.tokens import METRICS, Tokens, parse_typed_grants

    tokens = Tokens(database)
    match words:
        case ["add", name]:
            granted = dict(parse_typed_grants(grants)) | ({METRICS: frozenset({"read"})} if metrics else {})
            if not granted:
                raise UsageError("It may do nothing. Give a vault and scopes: --grant team:read,write")
            token = tokens.add(name, granted, owner)
            # The one place that shows it: it is not redacted, as it is what was asked for.
            print(token)
            invocation.notify("Keep it now: it is not shown again.")
        case ["list"]:
            listed = tokens.list_all()
            rows = [
                (name, own, " ".join(f"{vault}:{','.join(sorted(scopes))}" for vault, scopes in granted.items()))
                for name, own, granted in listed
            ]
            shape = [{"name": name, "owner": own, "grants": granted} for name, own, granted in listed]
            invocation.respond(columns(rows) if rows else "There are no tokens.", tokens=shape)
        case ["remove", name]:
            tokens.remove(name)
            invocation.respond(f"{styled('Removed', 'green')}: {name}", name=name, outcome="removed")
        case _:
            raise UsageError("Give: quaid serve token add NAME, token list, or: token remove NAME")
