"""OAuth 2.1 access tokens of other issuers: JSON Web Tokens, checked against the keys that their issuers publish.

A token is good for this server alone (`aud`), of an issuer that the operator named, signed with a public-key algorithm,
and not expired. Nothing is asked of the issuer but its keys.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt

from quaid.errors import QuaidError
from quaid.http import UnreachableError, Wire
from quaid.server.configuration import Issuer
from quaid.server.tokens import Caller, parse_grants

ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""Never `none`, nor one whose key both sides would have to know."""
LEEWAY_S = 30
KEPT_S = 600.0
AGAIN_S = 30.0
"""A key that is not known is looked for at most so often, however many tokens are made up."""
WITHIN_S = 5.0
MAX_TOKEN = 8_192


class KeysUnreachableError(QuaidError):
    """The keys of an issuer could not be read."""

    exit_code = 75
    code = "keys_unreachable"

    def __init__(self, issuer: str) -> None:
        super().__init__(f"The keys of {issuer} could not be read. Try again in a moment.")


@dataclass
class _Keys:
    """The public keys of one issuer, by id. `read_at` is a time.monotonic()."""

    source: str
    known: Mapping[str, jwt.PyJWK] = field(default_factory=dict)
    read_at: float = -math.inf
    mutex: threading.Lock = field(default_factory=threading.Lock)


class AccessTokens:
    """Checks access tokens for the resource at `audience`."""

    def __init__(self, issuers: Sequence[Issuer], audience: str) -> None:
        self._issuers = {each.issuer: each for each in issuers}
        self._keys = {each.issuer: _Keys(each.jwks) for each in issuers}
        self._audience = [audience.rstrip("/"), audience.rstrip("/") + "/"]

    def find(self, token: str) -> Caller | None:
        """Return who bears a token, None where it is not good here.

        Raises:
            KeysUnreachableError: nobody can tell.
        """
        if len(token) > MAX_TOKEN or token.count(".") != 2:
            return None
        try:
            head = jwt.get_unverified_header(token)
            said = jwt.decode(token, options={"verify_signature": False})
            issuer = self._issuers.get(str(said.get("iss", "")))
            if issuer is None or head.get("alg") not in ALGORITHMS:
                return None
            key = self._find_key(issuer, str(head.get("kid", "")))
            if key is None or key.algorithm_name != head["alg"]:
                return None
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[head["alg"]],
                audience=self._audience,
                issuer=issuer.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None
        return _caller_of(claims, issuer)

    def _find_key(self, issuer: Issuer, key_id: str) -> jwt.PyJWK | None:
        keys = self._keys[issuer.issuer]
        with keys.mutex:
            age_s = time.monotonic() - keys.read_at
            if age_s > KEPT_S or (key_id not in keys.known and age_s > AGAIN_S):
                keys.known, keys.read_at = _read_keys(issuer), time.monotonic()
            return keys.known.get(key_id)


def _caller_of(claims: Mapping[str, Any], issuer: Issuer) -> Caller:
    scopes = claims.get("scope", claims.get("scp", ""))
    listed = scopes.split() if isinstance(scopes, str) else [str(each) for each in scopes or ()]
    owner = claims.get(issuer.owner_claim)
    client = str(claims.get("client_id") or claims.get("azp") or claims["sub"])
    # Without a name of one's own one sees what is nobody's secret, never what is private to the vault's own owner.
    own = owner if isinstance(owner, str) and owner and owner != "default" else f"{issuer.issuer}#{claims['sub']}"
    return Caller(client, own, parse_grants(listed))


def _read_keys(issuer: Issuer) -> dict[str, jwt.PyJWK]:
    try:
        if issuer.jwks.startswith(("https://", "http://")):
            response = Wire(issuer.jwks).get("", WITHIN_S)
            if response.status != 200:
                raise KeysUnreachableError(issuer.issuer)
            body = response.body
        else:
            body = Path(issuer.jwks).expanduser().read_bytes()
        listed = json.loads(body)["keys"]
    except (UnreachableError, TimeoutError, OSError, ValueError, KeyError, TypeError) as error:
        raise KeysUnreachableError(issuer.issuer) from error
    found: dict[str, jwt.PyJWK] = {}
    for each in listed:
        try:
            key = jwt.PyJWK(each)
        except (jwt.PyJWTError, AttributeError, TypeError):  # of a kind that we do not take
            continue
        if each.get("use", "sig") == "sig" and key.algorithm_name in ALGORITHMS:
            found[key.key_id or ""] = key
    return found
