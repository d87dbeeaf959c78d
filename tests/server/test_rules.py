"""What needs no database: tokens of other issuers, the rate, the figures, the log, the configuration."""

# ruff: noqa: E402 - where the driver is missing the tests are skipped before anything imports it
from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from pathlib import Path

import pytest

jwt = pytest.importorskip("jwt")
pytest.importorskip("psycopg_pool", reason="psycopg is not installed")

from cryptography.hazmat.primitives.asymmetric import rsa
from mcp.server.mcpserver.exceptions import ToolError
from oauth_issuer import AUDIENCE, ISSUER, KEYS, make_token, publish

from quaid.errors import ConfigError, QuaidError
from quaid.mcp.serving import SCOPES, ServedCall, ServedTools, current
from quaid.server import log
from quaid.server.configuration import Issuer, ServerConfig, load_config
from quaid.server.limits import RateLimit, TooManyRequestsError, network_of
from quaid.server.log import Metrics
from quaid.server.oauth import AccessTokens
from quaid.server.tokens import Caller
from quaid.server.vault_server import VaultServer


@pytest.fixture
def tokens(tmp_path: Path) -> AccessTokens:
    (tmp_path / "jwks.json").write_bytes(publish())
    return AccessTokens([Issuer(ISSUER, str(tmp_path / "jwks.json"), "preferred_username")], AUDIENCE)


def find(tokens: AccessTokens, token: str) -> Caller | None:
    return asyncio.run(tokens.find(token))


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_token_of_a_known_issuer_for_this_server_is_good(tokens: AccessTokens, algorithm: str) -> None:
    caller = find(tokens, make_token(algorithm))
    assert (caller.client, caller.owner) == ("claude", "maya")
    assert caller.grants == {"team": {"read", "write"}}


def test_every_other_token_is_refused(tokens: AccessTokens) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    now = int(time.time())
    public = json.dumps(jwt.get_algorithm_by_name("RS256").to_jwk(KEYS["RS256"].public_key()))
    refused = {
        "another audience": make_token(aud="https://other.example.org"),
        "no audience": make_token(aud=None),
        "another issuer": make_token(iss="https://evil.example.org"),
        "expired": make_token(exp=now - 120),
        "without an end": make_token(exp=None),
        "not yet": make_token(nbf=now + 120),
        "nobody's": make_token(sub=None),
        "a stranger's signature": make_token(key=stranger),
        "an unknown key": make_token(kid="other"),
        "a key of another kind": make_token("ES256", kid="RS256"),
        "a shared secret": make_token("HS256", "secret" * 8, kid="oct"),
        "a public key as secret": make_token("HS256", public.encode().ljust(64), kid="RS256"),
        "no signature": jwt.encode(
            {"iss": ISSUER, "aud": AUDIENCE, "sub": "u", "exp": now + 60}, None, "none", headers={"kid": "RS256"}
        ),
        "cut": make_token()[:-4],
        "not a token": "a.b.c",
        "huge": make_token() + "x" * 10_000,
    }
    assert {name for name, token in refused.items() if find(tokens, token) is not None} == set()


def test_the_owner_is_never_that_of_the_vault_by_a_claim(tokens: AccessTokens) -> None:
    for claim in ("default", "", None, ["maya"]):
        caller = find(tokens, make_token(preferred_username=claim))
        assert caller.owner == f"{ISSUER}#u1"


def test_keys_that_cannot_be_read_are_no_refusal(tmp_path: Path) -> None:
    tokens = AccessTokens([Issuer(ISSUER, str(tmp_path / "none.json"))], AUDIENCE)
    with pytest.raises(QuaidError, match="keys of"):
        find(tokens, make_token())


def test_the_rate_lets_a_burst_through_and_then_so_many_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("quaid.server.limits.time.monotonic", lambda: now[0])
    limit = RateLimit(2.0, 3)

    def wait_s(caller: str) -> float:
        try:
            limit.take(caller)
        except TooManyRequestsError as error:
            return error.wait_s
        return 0.0

    assert [wait_s("a") for _ in range(3)] == [0, 0, 0]
    assert wait_s("a") == pytest.approx(0.5)
    assert wait_s("b") == 0
    now[0] = 0.5
    assert wait_s("a") == 0
    assert wait_s("a") > 0


def test_the_rate_of_a_caller_that_is_here_is_kept_while_strangers_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quaid.server.limits.MAX_BUCKETS", 5)
    limit = RateLimit(0.001, 1)
    limit.take("here")
    for number in range(20):
        limit.take(f"stranger {number}")
        with pytest.raises(TooManyRequestsError):
            limit.take("here")
        assert len(limit._buckets) <= 5


def test_an_address_is_what_one_customer_of_a_network_has() -> None:
    for addresses in (
        ["203.0.113.7", "::ffff:203.0.113.7"],
        ["2001:db8::1", "2001:db8::ffff:1", "2001:DB8:0:0:9::%eth0"],
        ["", "unknown", "_hidden", "203.0.113.7:80", "\xe9", "x" * 9_000, "1.2.3"],
    ):
        assert len({network_of(address) for address in addresses}) == 1, addresses
    different = ["203.0.113.7", "203.0.113.8", "2001:db8::1", "2001:db8:0:1::1", ""]
    assert len({network_of(address) for address in different}) == len(different)


def test_a_tool_runs_with_the_scope_that_it_takes_whatever_the_door_let_through() -> None:
    """The door reads a request by itself; the tool is called by what the protocol has read of it."""
    tools = ServedTools(VaultServer(ServerConfig(database="postgresql://nobody.invalid/x", address=AUDIENCE)))

    async def call(tool: str, arguments: dict[str, str], scope: str) -> str:
        current.set(ServedCall(Caller("c", "o", {"team": frozenset({scope})}), "team", scope="admin"))
        with pytest.raises(ToolError) as refused:
            await tools.call_tool(tool, arguments)
        return str(refused.value)

    for tool, scope in (("memory_store", "read"), ("memory_forget", "review"), ("memory_answer", "write")):
        said = asyncio.run(call(tool, {"text": "x"}, scope))
        assert said.startswith(f"The token has no scope quaid:team:{SCOPES[tool]}"), said


def test_the_figures_are_what_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.count("quaid_requests_total", route="/v/{vault}/mcp", status="200")
    metrics.observe("quaid_request_seconds", 0.02, route="x")
    metrics.observe("quaid_request_seconds", 99.0, route="x")
    text = metrics.render({("quaid_jobs_waiting", ()): 3.0})
    assert '# TYPE quaid_requests_total counter\nquaid_requests_total{route="/v/{vault}/mcp",status="200"} 1\n' in text
    assert 'quaid_request_seconds_bucket{route="x",le="0.025"} 1\n' in text
    assert 'quaid_request_seconds_bucket{route="x",le="+Inf"} 2\nquaid_request_seconds_sum{route="x"} 99.02\n' in text
    assert "quaid_jobs_waiting 3\n" in text


def test_the_log_has_fields_for_what_happened_and_none_for_what_was_said() -> None:
    out = io.StringIO()
    log.write_line("tool", to=out, tool="memory_recall", ms=3, vault=None)
    line = json.loads(out.getvalue())
    assert (line["event"], line["tool"]) == ("tool", "memory_recall")
    assert "vault" not in line
    for field in ("query", "text", "token"):
        with pytest.raises(ValueError):
            log.write_line("tool", to=out, **{field: "x"})


def test_what_libraries_log_is_told_without_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    record = logging.LogRecord(
        "uvicorn.error",
        logging.ERROR,
        "",
        0,
        "the diary says %s",
        ("everything",),
        (ValueError, ValueError("diary"), None),
    )
    log.ContentlessHandler().handle(record)
    assert json.loads(out.getvalue())["problem"] == "uvicorn.error: ValueError"
    assert "diary" not in out.getvalue()


def test_the_configuration_says_what_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    right = 'database = "postgresql://x"\naddress = "https://memory.example.org"\n'
    for more, said in (
        ("prot = 1\n", "'prot' is not a setting"),
        ('port = "x"\n', "port is 'x', must be a whole number"),
        ("rate = 0\n", "rate is 0.0, must be"),
        ('webhook_secret = "short"\n', "fewer than 16"),
        ('[[issuers]]\nissuer = "x"\n', "jwks is missing"),
        ("issuers = 3\n", "not a list of tables"),
        *(
            (f'[[issuers]]\nissuer = "x"\njwks = "{jwks}"\n', "not fetched over https")
            for jwks in (
                "http://login.example.org/k",
                "HTTP://login.example.org/k",
                "ftp://login.example.org/k",
                "http://127.0.0.1@login.example.org/k",
                "file:///etc/keys",
            )
        ),
        *((f'proxies = "{proxies}"\n', "proxies is not") for proxies in ("*", "proxy", "0.0.0.0/0", "10.0.0.1/8")),
    ):
        path.write_text(right + more)
        with pytest.raises(ConfigError, match=said):
            load_config(path, {})
    path.write_text(right)
    assert load_config(path, {"QUAID_SERVER_DATABASE": "postgresql://y"}).database == "postgresql://y"
    path.write_text('database = "x"\naddress = "memory"\n')
    with pytest.raises(ConfigError, match="address is not"):
        load_config(path, {})
