"""OAuth 2.1 access tokens of other issuers: JSON Web Tokens, checked against the keys that their issuers publish.

A valid token is for this server alone (`aud`), from a configured issuer, signed with a public-key algorithm, and not
expired. Only the keys are requested from the issuer.
"""

import asyncio
import json
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt

from quaid.errors import QuaidError
from quaid.http import UnreachableError, Wire, pieces
from quaid.server import log
from quaid.server.configuration import Issuer
from quaid.server.tokens import Caller, is_name, is_reserved, parse_grants

ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""Neither `none` nor algorithms with a shared secret."""
LEEWAY_S = 30
REFRESH_S = 600.0
MAX_AGE_S = 3600.0
"""Keys that cannot be refreshed are used up to this age."""
RETRY_S = 10.0
"""The shortest interval between fetches, however many tokens are forged."""
FETCH_S = 5.0
MAX_TOKEN = 8_192
MAX_DOCUMENT = 2**18
MAX_TIME = 2**40
_TIMES = ("exp", "nbf", "iat")
_MALFORMED = (jwt.PyJWTError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of PyJWT and Python for malicious tokens."""


class AccessTokens:
    """Checks access tokens for the resource at `audience`."""

    def __init__(self, issuers: Sequence[Issuer], audience: str) -> None:
        self._keys = {each.issuer: _IssuerKeys(each) for each in issuers}
        self._audience = [audience.rstrip("/"), audience.rstrip("/") + "/"]

    async def find(self, token: str) -> Caller | None:
        """Return the caller of a token, None if it is not valid. QuaidError: its key cannot be fetched."""
        if len(token) > MAX_TOKEN or token.count(".") != 2:
            return None
        try:
            head = jwt.get_unverified_header(token)
            keys = self._keys.get(str(jwt.decode(token, options={"verify_signature": False}).get("iss", "")))
            if keys is None or head.get("alg") not in ALGORITHMS:
                return None
            key = await keys.find(str(head.get("kid", "")))
            if key is None or key.algorithm_name != head["alg"]:
                return None
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[head["alg"]],
                audience=self._audience,
                issuer=keys.issuer.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            return _caller_of(claims, keys.issuer)
        except _MALFORMED:
            return None


class _IssuerKeys:
    """The public keys of one issuer, by id. All but the fetch runs in the event loop, so there is no lock to wait for,
    and callers with a known key do not wait for a fetch.
    """

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self._known: Mapping[str, jwt.PyJWK] = {}
        self._read_at = self._asked_at = -math.inf
        self._fetch: asyncio.Task[None] | None = None
        # Its own thread: an issuer, or a name server, that hangs blocks no other issuer.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="quaid-keys")

    async def find(self, key_id: str) -> jwt.PyJWK | None:
        """Return a key, None if the issuer has no such key. Raises QuaidError where they cannot be read."""
        now = time.monotonic()
        age_s = now - self._read_at
        key = self._known.get(key_id) if age_s < MAX_AGE_S else None
        is_fetching = self._fetch is not None and not self._fetch.done()
        if (key is None or age_s > REFRESH_S) and now - self._asked_at > RETRY_S and not is_fetching:
            self._asked_at = now
            self._fetch = asyncio.create_task(self._refresh())
        if key is None and self._fetch is not None and not self._fetch.done():
            await asyncio.wait([self._fetch], timeout=max(0.0, self._asked_at + FETCH_S - now))
            key = self._known.get(key_id) if self._read_at >= self._asked_at else None
        if key is None and self._read_at < self._asked_at:
            sentence = f"The keys of {self.issuer.issuer} could not be read. Try again in a moment."
            raise QuaidError(sentence, code="keys_unreachable")
        return key

    async def _refresh(self) -> None:
        try:
            self._known = await asyncio.get_running_loop().run_in_executor(self._thread, _read_keys, self.issuer)
        except Exception as error:  # noqa: BLE001 - whatever the document holds, it is a failure of the issuer
            log.write_line("keys_unreachable", problem=f"{self.issuer.issuer}: {type(error).__name__}")
        else:
            self._read_at = time.monotonic()


def _caller_of(claims: Mapping[str, Any], issuer: Issuer) -> Caller | None:
    scopes = claims.get("scope", claims.get("scp", ""))
    listed = scopes.split() if isinstance(scopes, str) else scopes
    client = claims.get("client_id") or claims.get("azp") or claims["sub"]
    is_listed = isinstance(listed, list) and all(isinstance(each, str) for each in listed)
    are_times = all(type(at := claims.get(each, 0)) in {int, float} and at < MAX_TIME for each in _TIMES)
    if not (is_listed and are_times and is_name(client) and is_name(claims["sub"])):
        return None
    owner = claims.get(issuer.owner_claim) if issuer.owner_claim else None
    # Without an owner claim, the owner is one that nobody else can have.
    own = owner if is_name(owner) and not is_reserved(owner) else f"{issuer.issuer}#{claims['sub']}"
    return Caller(client, own, parse_grants(listed))


def _read_keys(issuer: Issuer) -> dict[str, jwt.PyJWK]:
    if "://" in issuer.jwks:
        with Wire(issuer.jwks).stream("", time.monotonic() + FETCH_S) as response:
            if response.status_code != 200:  # a redirect is not followed
                raise UnreachableError(str(response.status_code))
            body = b"".join(pieces(response, MAX_DOCUMENT))
    else:
        with Path(issuer.jwks).expanduser().open("rb") as file:
            body = file.read(MAX_DOCUMENT)
    found: dict[str, jwt.PyJWK] = {}
    for each in json.loads(body)["keys"]:
        try:
            key = jwt.PyJWK(each)
        except _MALFORMED:  # an unsupported kind
            continue
        if each.get("use", "sig") == "sig" and key.algorithm_name in ALGORITHMS:
            found[key.key_id or ""] = key
    return found
