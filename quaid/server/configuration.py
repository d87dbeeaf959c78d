"""The configuration of a server: the operator's own file and the environment, never a vault (law 11)."""

import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from quaid.errors import ConfigError
from quaid.history.mirrors import MirrorLimits
from quaid.http import is_local
from quaid.place import state_home
from quaid.settings import Duration, Number, Range, check_type, read_hints

DATABASE_VARIABLE = "QUAID_SERVER_DATABASE"
WEBHOOK_VARIABLE = "QUAID_SERVER_WEBHOOK_SECRET"
MIN_SECRET = 16


class Issuer(NamedTuple):
    """An accepted issuer of OAuth tokens. `jwks` is the address, or the file, of its public keys; `owner_claim` the
    claim with the owner whose private notes the bearer may see. Without one, they are those stored with tokens of the
    same subject.
    """

    issuer: str
    jwks: str
    owner_claim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig(MirrorLimits):
    """The settings of a server. Times are in seconds, sizes in bytes.

    `database` is the address of the PostgreSQL database. `address` is the public URL, which OAuth tokens must be for.
    `folder` contains working copies, which servers may not share, and mirrors unless `mirrors` names another folder,
    which they may share. The X-Forwarded-For of `proxies` is trusted; `plain_hosts` are reached over http. `rate` and
    `burst` count requests of one token in one process, and those of one address with new tokens.
    """

    database: str
    address: str
    host: str = "127.0.0.1"
    port: Annotated[int, Range(0, 65_535)] = 7440
    folder: str = ""
    mirrors: str = ""
    name: str = ""
    webhook_secret: str = ""
    proxies: str = "127.0.0.1, ::1"
    issuers: tuple[Issuer, ...] = ()
    workers: Number = 2
    readers: Number = 4
    writers: Number = 8
    poll_s: Duration = 60.0
    lease_s: Duration = 15.0
    write_s: Duration = 60.0
    stop_s: Duration = 20.0
    max_body_bytes: Number = 4 * 2**20
    rate: Duration = 20.0
    burst: Number = 60

    @property
    def place(self) -> Path:
        """The folder of the files of this server."""
        return Path(self.folder).expanduser().absolute() if self.folder else state_home() / "served" / self.identity

    @property
    def identity(self) -> str:
        """The name of this server among the servers of one database."""
        return self.name or f"{socket.gethostname()}-{self.port}"


def load_config(path: Path, environ: Mapping[str, str] | None = None) -> ServerConfig:
    """Return the configuration in the file at `path`; the environment overrides it.

    Raises:
        ConfigError: it cannot be read, lacks a setting, or has an invalid key or value.
    """
    environ = os.environ if environ is None else environ
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(str(path), f"it could not be read ({error})") from error
    issuers = table.pop("issuers", [])
    if not isinstance(issuers, list) or not all(isinstance(item, dict) for item in issuers):
        raise ConfigError(str(path), "issuers is not a list of tables; write [[issuers]]")
    for key, variable in (("database", DATABASE_VARIABLE), ("webhook_secret", WEBHOOK_VARIABLE)):
        if environ.get(variable):
            table[key] = environ[variable]
    config: ServerConfig = _read(ServerConfig, table, str(path))
    _check(config, str(path))
    known = tuple(_read(Issuer, item, f"{path}, issuers") for item in issuers)
    for issuer in known:
        # An attacker who could change the keys on the way would sign tokens.
        scheme = issuer.jwks.partition("://")[0].lower() if "://" in issuer.jwks else "https"
        if scheme != "https" and not (scheme == "http" and is_local(issuer.jwks)):
            raise ConfigError(str(path), f"the keys of {issuer.issuer} are not fetched over https")
    return replace(config, issuers=known)


def _read(cls: Any, table: Mapping[str, Any], where: str) -> Any:
    """Return a table as a record. ConfigError: it lacks a key, or has an unknown one, or one with an invalid value."""
    known = {name: each for name, each in signature(cls).parameters.items() if name != "issuers"}
    hints, values = read_hints(cls), {}
    if unknown := sorted(table.keys() - known.keys()):
        raise ConfigError(where, f"{unknown[0]!r} is not a setting; there are {', '.join(sorted(known))}")
    for name, given in known.items():
        if name in table:
            try:
                values[name] = check_type(table[name], hints[name])
            except ValueError as error:
                raise ConfigError(where, f"{name} is {error}") from error
        elif given.default is given.empty:
            raise ConfigError(where, f"{name} is missing")
    return cls(**values)


def _check(config: ServerConfig, where: str) -> None:
    address = urlsplit(config.address)
    if address.scheme not in {"https", "http"} or not address.netloc or address.query or address.fragment:
        raise ConfigError(where, "address is not an http address")
    try:
        is_all = any(ip_network(each.strip()).prefixlen == 0 for each in config.proxies.split(",") if each.strip())
    except ValueError:
        is_all = True
    if is_all:
        raise ConfigError(where, "proxies is not a list of addresses and networks, such as 127.0.0.1, 10.0.0.0/8")
    if config.webhook_secret and len(config.webhook_secret) < MIN_SECRET:
        raise ConfigError(where, f"webhook_secret has fewer than {MIN_SECRET} characters")
