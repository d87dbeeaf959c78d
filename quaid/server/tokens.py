"""Callers and their rights: scopes per vault, and the tokens of machines."""

import hashlib
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeGuard

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from quaid.errors import BadInputError
from quaid.server.catalogue import NAME
from quaid.server.database import Database

SCOPES = ("read", "write", "review", "admin")
"""Queries; storing and forgetting; answering the janitor's questions; all of it. Each includes `read`."""
METRICS = "server:metrics"
"""The name in place of a vault in the grant of a token that reads the metrics."""
PREFIX = "quaid_"
KNOWN_S = 10.0
"""A removed token is refused on every server after this time."""
MAX_KNOWN = 10_000
_SCOPE = re.compile(r"quaid:([a-z0-9-]+):([a-z]+)")
_TOKEN_NAME = re.compile(r"[\w.@-]{1,64}")
MAX_NAME = 255
VAULT_OWNER = "default"
OWN_NOTES = "token "
"""The prefix of the owner of notes that a token without an owner stores. No token name has a space in it."""

Grants = Mapping[str, frozenset[str]]
"""Vault name -> scopes."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: the client for the log and the commits, the owner whose private notes are shown, and the grants."""

    client: str
    owner: str
    grants: Grants = field(default_factory=dict)

    def may(self, vault: str, scope: str) -> bool:
        """Return whether this scope of a vault is granted."""
        granted = self.grants.get(vault, frozenset())
        return scope in granted or "admin" in granted or (scope == "read" and bool(granted))

    def list_readable(self) -> list[str]:
        """Return the names of the readable vaults."""
        return sorted(name for name in self.grants if NAME.fullmatch(name) and self.may(name, "read"))


def is_name(value: object) -> TypeGuard[str]:
    """Return whether a value can be the name of a client or an owner."""
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable() and value == value.strip()


def is_reserved(name: str) -> bool:
    """Return whether no token or issuer can give this name: that of the owner of each vault, or of the owner that a
    token or a subject has alone.
    """
    return name.casefold() == VAULT_OWNER or name.startswith(OWN_NOTES) or "#" in name


def parse_grants(scopes: Iterable[str]) -> Grants:
    """Return the grants of OAuth scopes such as `quaid:team:read`; others grant nothing."""
    found: dict[str, set[str]] = {}
    for scope in scopes:
        match = _SCOPE.fullmatch(scope)
        if match and match[2] in SCOPES and NAME.fullmatch(match[1]):
            found.setdefault(match[1], set()).add(match[2])
    return {name: frozenset(granted) for name, granted in found.items()}


def parse_typed_grants(typed: Sequence[str]) -> Grants:
    """Parse grants such as `team:read,write`. BadInputError: one is not valid."""
    found: dict[str, frozenset[str]] = {}
    for each in typed:
        vault, _, listed = each.partition(":")
        scopes = frozenset(listed.split(","))
        if not NAME.fullmatch(vault) or not scopes <= set(SCOPES):
            raise BadInputError(f"{each!r} is not a grant. Give a vault and scopes: team:read,write")
        found[vault] = found.get(vault, frozenset()) | scopes
    return found


class Tokens:
    """The tokens of machines. The database has only their hashes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[bytes, tuple[float, Caller]] = {}

    def add(self, name: str, grants: Grants, owner: str = "", expires: datetime | None = None) -> str:
        """Return a new token, which is shown only once. Its bearer may see the private notes of `owner`, by default
        only those that are stored with this token.

        Raises:
            BadInputError: the name is not valid, reserved or taken; the owner is not a name.
        """
        if not _TOKEN_NAME.fullmatch(name):
            raise BadInputError(f"{name!r} is not a name for a token. Give letters, digits and hyphens.")
        if is_reserved(name):
            raise BadInputError(
                f"{name!r} is what each vault calls its own owner. Give the token another name, and --owner "
                f"{VAULT_OWNER} if it may see the private notes of that owner."
            )
        if owner and not is_name(owner):
            raise BadInputError(f"{owner!r} is not a name for an owner. Give it as it is in the notes' `owner`.")
        token = PREFIX + secrets.token_urlsafe(32)
        listed = Jsonb({vault: sorted(scopes) for vault, scopes in grants.items()})
        try:
            self._database.change(
                "INSERT INTO quaid_server.tokens (name, hash, owner, grants, expires) VALUES (%s, %s, %s, %s, %s)",
                (name, digest_of(token), owner or OWN_NOTES + name, listed, expires),
            )
        except UniqueViolation as error:
            raise BadInputError(f"There is a token {name} already. Remove it, or give another name.") from error
        return token

    def remove(self, name: str) -> None:
        """Remove a token. BadInputError: there is none with that name."""
        if not self._database.change("DELETE FROM quaid_server.tokens WHERE name = %s", (name,)):
            raise BadInputError(f"There is no token {name!r}. See them with: quaid serve token list")

    def list_all(self) -> list[tuple[str, str, Grants]]:
        """Return the name, the owner and the grants of each token."""
        rows = self._database.ask("SELECT name, owner, grants FROM quaid_server.tokens ORDER BY name")
        return [(row["name"], row["owner"], _grants_of(row["grants"])) for row in rows]

    def find(self, token: str) -> Caller | None:
        """Return the caller with a token, None if there is none. Raises DatabaseUnreachableError."""
        digest, now = digest_of(token), time.monotonic()
        known = self._known.get(digest)
        if known is None or known[0] < now:
            rows = self._database.ask(
                "SELECT name, owner, grants, expires FROM quaid_server.tokens WHERE hash = %s", (digest,)
            )
            if not rows or (rows[0]["expires"] is not None and rows[0]["expires"] <= datetime.now(UTC)):
                self._known.pop(digest, None)  # not cached: a stranger can make up any number of tokens
                return None
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            caller = Caller(rows[0]["name"], rows[0]["owner"], _grants_of(rows[0]["grants"]))
            known = self._known[digest] = (now + KNOWN_S, caller)
        return known[1]


def digest_of(token: str) -> bytes:
    """Return the hash of a token."""
    # A token has 256 random bits: a slow hash would only slow down its bearer.
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def _grants_of(listed: Mapping[str, list[str]]) -> Grants:
    return {vault: frozenset(scopes) for vault, scopes in listed.items()}
