"""What issuers and the bearers of forged tokens can do to the check of access tokens."""

# ruff: noqa: E402 - where the driver is missing the tests are skipped before anything imports it
from __future__ import annotations

import asyncio
import base64
import json
import math
import threading
import time
from collections.abc import Iterator

import pytest

jwt = pytest.importorskip("jwt")
pytest.importorskip("psycopg_pool", reason="psycopg is not installed")

from oauth_issuer import AUDIENCE, ISSUER, KEYS, KeyServer, make_token, publish
from served_vaults import wait_for

from quaid.errors import QuaidError
from quaid.server import oauth
from quaid.server.configuration import Issuer
from quaid.server.oauth import AccessTokens
from quaid.server.tokens import Caller


@pytest.fixture
def keys() -> Iterator[KeyServer]:
    server = KeyServer()
    yield server
    server.close()


def open_tokens(jwks: str, owner_claim: str = "") -> AccessTokens:
    return AccessTokens([Issuer(ISSUER, jwks, owner_claim)], AUDIENCE)


async def outcome(tokens: AccessTokens, token: str) -> Caller | str | None:
    try:
        return await tokens.find(token)
    except QuaidError as error:
        return error.code


def age(tokens: AccessTokens, seconds: float) -> None:
    """Let all that the tokens know of the issuer be older."""
    tokens._keys[ISSUER]._asked_at -= seconds
    tokens._keys[ISSUER]._read_at -= seconds


@pytest.mark.parametrize("many", [24, 500])
@pytest.mark.slow
def test_a_known_key_is_used_while_forged_tokens_wait_for_an_issuer_that_hangs(keys: KeyServer, many: int) -> None:
    async def attack() -> None:
        tokens = open_tokens(keys.url)
        assert (await tokens.find(make_token())).client == "claude"
        keys.hang()
        age(tokens, oauth.RETRY_S + 1)
        forged = [asyncio.create_task(outcome(tokens, make_token("EdDSA", kid=f"x{n}"))) for n in range(many)]
        await asyncio.to_thread(wait_for, lambda: keys.waiting)
        for _ in range(20):
            assert (await tokens.find(make_token())).client == "claude"
        assert keys.waiting == 1, "one request at a time, and it is still open"
        assert not any(task.done() for task in forged)
        assert set(await asyncio.gather(*forged)) == {"keys_unreachable"}
        # The failure is remembered: those that come now wait for nothing, and nothing is asked.
        assert await outcome(tokens, make_token("EdDSA", kid="another")) == "keys_unreachable"
        assert (await tokens.find(make_token())).client == "claude"
        assert keys.requests == 2
        await asyncio.wait([tokens._keys[ISSUER]._fetch])
        keys.answer_again()
        age(tokens, oauth.RETRY_S + 1)
        assert await outcome(tokens, make_token("EdDSA", kid="another")) is None
        assert keys.requests == 3

    asyncio.run(attack())


def test_keys_are_fetched_once_however_many_are_made_up_and_again_when_one_may_be_new(keys: KeyServer) -> None:
    async def ask() -> None:
        tokens = open_tokens(keys.url)
        forged = [outcome(tokens, make_token("EdDSA", kid=f"x{number}")) for number in range(50)]
        assert set(await asyncio.gather(*forged)) == {None}
        assert keys.requests == 1
        age(tokens, oauth.RETRY_S + 1)
        assert await outcome(tokens, make_token("EdDSA", kid="new")) is None
        assert keys.requests == 2

    asyncio.run(ask())


def test_keys_are_used_for_an_hour_where_their_issuer_is_down_and_no_longer(keys: KeyServer) -> None:
    async def ask() -> None:
        tokens = open_tokens(keys.url)
        await tokens.find(make_token())
        keys.status = 503
        age(tokens, oauth.REFRESH_S + 1)
        assert (await tokens.find(make_token())).client == "claude"
        age(tokens, oauth.MAX_AGE_S)
        assert await outcome(tokens, make_token()) == "keys_unreachable"

    asyncio.run(ask())


KEY = json.loads(publish())["keys"][0]


@pytest.mark.parametrize(
    ("body", "status", "headers"),
    [
        (publish(), 302, {"Location": "{other}"}), (publish(), 404, {}), (b"x" * 2**21, 200, {}), (b"no", 200, {}),
        (publish(), 200, {"Content-Encoding": "gzip"}), (b"[" * 100_000, 200, {}), (b'{"keys": 5}', 200, {}),
        (b'{"keys": null}', 200, {}), (b"[]", 200, {}), (b"\xff\xfe", 200, {}), (b'{"keys": [1' + b"0" * 9_000, 200, {}),
        (json.dumps({"keys": [{**KEY, "kid": ["a"]}]}).encode(), 200, {}),
    ],
)  # fmt: skip
def test_a_document_of_keys_that_is_not_one_costs_nobody_the_keys_that_are_known(
    keys: KeyServer, body: bytes, status: int, headers: dict[str, str]
) -> None:
    hostile = KeyServer(body, status, **{name: value.format(other=keys.url) for name, value in headers.items()})

    async def ask() -> None:
        tokens = open_tokens(hostile.url)
        assert await outcome(tokens, make_token()) == "keys_unreachable"
        tokens._keys[ISSUER].issuer = Issuer(ISSUER, keys.url)
        age(tokens, oauth.RETRY_S + 1)
        assert (await tokens.find(make_token())).client == "claude"
        tokens._keys[ISSUER].issuer = Issuer(ISSUER, hostile.url)
        age(tokens, oauth.RETRY_S + 1)
        assert await outcome(tokens, make_token("EdDSA", kid="x")) == "keys_unreachable"
        assert (await tokens.find(make_token())).client == "claude"
        assert keys.requests == 1, "a redirect was followed"

    asyncio.run(ask())
    hostile.close()


def test_keys_that_are_none_of_ours_are_passed_over() -> None:
    others = [{}, 5, None, "x", [], {"kty": "RSA"}, {"kty": "RSA", "n": 5, "e": []}, {"kty": "EC", "crv": 5}]
    keys = KeyServer(json.dumps({"keys": [*others, *json.loads(publish())["keys"]]}).encode())
    assert asyncio.run(open_tokens(keys.url).find(make_token())).client == "claude"
    keys.close()


HOSTILE_CLAIMS = [
    *({name: value} for name in ("exp", "nbf", "iat") for value in
      ("9999999999", math.nan, math.inf, -math.inf, [], {}, True, "x", 10**400, "\0")),
    *({"exp": value} for value in (0, -1, 1e-300, -(10**400))),
    *({"scope": value} for value in (5, 5.5, {}, {"quaid:team:read": 1}, [5], [None], [["quaid:team:read"]], True)),
    *({"scope": None, "scp": value} for value in (5, {}, [5], True)),
    *({name: value} for name in ("sub", "aud", "iss") for value in (5, None, [5], {}, True, "\0", "\ud800", "", "x" * 3000)),
    *({"client_id": value} for value in (5, [5], True, "a\nQuaid-Fact: x", "\0", "\ud800", "x" * 3000, "\u202e")),
]  # fmt: skip


@pytest.mark.parametrize("claims", HOSTILE_CLAIMS, ids=lambda claims: repr(claims)[:60])
def test_claims_of_another_kind_are_refused_even_if_they_are_signed(keys: KeyServer, claims: dict[str, object]) -> None:
    now = int(time.time())
    told = {"iss": ISSUER, "aud": AUDIENCE, "sub": "u1", "exp": now + 600, "scope": "quaid:team:read", **claims}
    if claims.get("scope", "") is None:
        del told["scope"]
    assert asyncio.run(open_tokens(keys.url).find(sign(json.dumps(told)))) is None


@pytest.mark.parametrize("payload", ["[" * 3000, "[" * 500 + "]" * 500, "5", "null", "[]", '"x"', "{", "", "\0",
                                     '{"iss": ' + "9" * 5000 + "}", '{"iss": ["https://login.example.org"]}'])  # fmt: skip
@pytest.mark.parametrize("head", [None, "[" * 3000, "5", "null", "[]", '{"alg": ["RS256"], "kid": "RS256"}',
                                  '{"alg": "RS256", "kid": 5}', '{"alg": "RS256", "kid": "RS256", "crit": 5}',
                                  '{"alg": "RS256", "kid": "\\ud800"}', '{"alg": "RS256", "b64": false}'])  # fmt: skip
def test_what_is_no_token_is_refused(keys: KeyServer, head: str | None, payload: str) -> None:
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "u1", "exp": int(time.time()) + 600}
    for text in (payload, json.dumps(good)) if head is not None else (payload,):
        tokens = open_tokens(keys.url)
        assert asyncio.run(tokens.find(sign(text, head or '{"alg": "EdDSA", "kid": "EdDSA"}'))) is None


def sign(payload: str, head: str = '{"alg": "EdDSA", "kid": "EdDSA"}') -> str:
    """What the issuer signs, whatever it is."""
    parts = [base64.urlsafe_b64encode(part.encode("utf-8", "surrogatepass")).rstrip(b"=") for part in (head, payload)]
    signed = KEYS["EdDSA"].sign(b".".join(parts))
    return b".".join([*parts, base64.urlsafe_b64encode(signed).rstrip(b"=")]).decode()


@pytest.mark.parametrize("name", ["default", "Default", "DEFAULT", " default", "token ci", f"{ISSUER}#u2", "", None,
                                  ["maya"], 5, "a\nb", "\0", "\ud800", "x" * 3000])  # fmt: skip
@pytest.mark.parametrize("claim", ["", "sub", "preferred_username"])
def test_no_claim_makes_its_bearer_an_owner_that_it_was_not_given(keys: KeyServer, claim: str, name: object) -> None:
    """Neither the owner of a vault, nor a token without an owner, nor another subject."""
    told = {"sub": "u1", "preferred_username": name, **({"sub": name} if claim == "sub" else {})}
    caller = asyncio.run(open_tokens(keys.url, claim).find(sign_claims(told)))
    assert caller is None or caller.owner == f"{ISSUER}#{told['sub']}"
    named = asyncio.run(open_tokens(keys.url, claim).find(make_token()))
    assert named.owner == {"": f"{ISSUER}#u1", "sub": "u1", "preferred_username": "maya"}[claim]


def sign_claims(told: dict[str, object]) -> str:
    return sign(json.dumps({"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 600, "client_id": "c", **told}))


def test_a_fetch_runs_in_a_thread_of_its_own(keys: KeyServer) -> None:
    """With every other thread of the event loop busy, a key is still fetched."""

    async def ask() -> None:
        may_end = threading.Event()
        busy = [asyncio.create_task(asyncio.to_thread(may_end.wait)) for _ in range(64)]
        await asyncio.sleep(0)
        assert (await open_tokens(keys.url).find(make_token())).client == "claude"
        may_end.set()
        await asyncio.gather(*busy)

    asyncio.run(ask())
