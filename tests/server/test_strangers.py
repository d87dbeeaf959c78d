"""A server as strangers meet it: forged tokens while an issuer hangs, and requests that are made to break it."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed")
pytest.importorskip("jwt")

from oauth_issuer import ISSUER, KeyServer, make_token
from served_vaults import PROTOCOL, SECRET, USUAL, Answer, GitHost, ServerProcess, fact, get, post, wait_for

from quaid.mcp.serving import READING, SCOPES
from quaid.server.catalogue import Catalogue
from quaid.server.database import Database
from quaid.server.oauth import LEEWAY_S
from quaid.server.tokens import METRICS, Tokens, parse_typed_grants

OTHER = "https://other.example.org"
NOTES = {
    **fact("oat", "Maya Chen drinks oat milk in her coffee"),
    **fact("diary", "The vault owner hides the diary under the piano", privacy="private"),
    **fact("bob", "Bob hides the letters behind the clock", owner="bob", privacy="private"),
}


@dataclass
class Place:
    """A server, the address of its issuer's keys, its database, and tokens by name."""

    server: ServerProcess
    keys: KeyServer
    other_keys: KeyServer
    database: Database
    tokens: dict[str, str]

    def sign(self, **claims: object) -> str:
        return make_token(aud=self.server.url, **claims)

    def ask(self, who: str, tool: str = "memory_recall", **arguments: object) -> Answer:
        return self.ask_with(self.tokens[who], tool, **arguments)

    def ask_with(self, token: str, tool: str = "memory_recall", **arguments: object) -> Answer:
        return self.server.ask("team", token, tool, **(arguments or {"query": "oat milk"}))


def start(folder: Path, address: str, git: GitHost, **settings: object) -> Iterator[Place]:
    database, keys, other_keys = Database(address, 2), KeyServer(), KeyServer()
    database.open()
    tokens = Tokens(database)
    made = {
        "writer": tokens.add(f"writer-{folder.name}", parse_typed_grants(["team:read,write"]), "maya"),
        "reader": tokens.add(f"reader-{folder.name}", parse_typed_grants(["team:read"])),
        "bob": tokens.add(f"bob-{folder.name}", parse_typed_grants(["team:read"])),
        "owner": tokens.add(f"owner-{folder.name}", parse_typed_grants(["team:read"]), "default"),
        "figures": tokens.add(f"figures-{folder.name}", {METRICS: frozenset({"read"})}),
    }
    issuers = [
        {"issuer": ISSUER, "jwks": keys.url, "owner_claim": "preferred_username"},
        {"issuer": OTHER, "jwks": other_keys.url},
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
        server = ServerProcess(folder, address, issuers=issuers, **settings).start()
    try:
        catalogue = Catalogue(database)
        if not catalogue.list_all():
            catalogue.add("team", git.make("team", NOTES))
        wait_for(lambda: catalogue.find("team").indexed, 60)
        yield Place(server, keys, other_keys, database, made)
    finally:
        server.kill()
        keys.close()
        other_keys.close()
        database.close()


@pytest.fixture(scope="module")
def place(address: str, git: GitHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from start(tmp_path_factory.mktemp("wide"), address, git)


@pytest.fixture
def strict(address: str, git: GitHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The same with a rate that is soon used up, and so slow that it makes no difference how fast this machine is."""
    yield from start(tmp_path_factory.mktemp("strict"), address, git, rate=0.5, burst=60)


# -- forged tokens ------------------------------------------------------------------------------------------------


async def send(place: Place, token: str, address: str) -> int:
    """Send a question from an address, as a proxy says it; return the status of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", place.server.port)
    body = query('"oat milk"').encode()
    headers = {**USUAL, "Host": "x", "Authorization": f"Bearer {token}", "X-Forwarded-For": address,
               "Mcp-Protocol-Version": PROTOCOL, "Content-Length": str(len(body)), "Connection": "close"}  # fmt: skip
    head = "POST /v/team/mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(head.encode() + b"\r\n" + body)
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1]) if answer else 0


@pytest.mark.slow
def test_forged_tokens_and_an_issuer_that_hangs_stop_nobody(place: Place) -> None:
    async def attack() -> None:
        good = [place.sign(), place.sign(sub="another"), place.tokens["writer"], place.tokens["reader"]]
        assert await send(place, good[0], "198.51.100.1") == 200
        keys = place.other_keys
        keys.hang()
        forged = [place.sign(algorithm="EdDSA", iss=OTHER, kid=f"made-up-{number}") for number in range(500)]
        waiting = [asyncio.create_task(send(place, token, f"203.0.113.{n % 250}")) for n, token in enumerate(forged)]
        await asyncio.to_thread(wait_for, lambda: keys.waiting)
        assert await asyncio.gather(*(send(place, token, "198.51.100.1") for token in good)) == [200] * len(good)
        assert keys.waiting == 1, "the issuer has not answered yet, and is asked once"
        assert any(not task.done() for task in waiting), "the forged tokens still wait"
        assert set(await asyncio.gather(*waiting)) == {503}
        assert await send(place, place.sign(iss=OTHER, kid="made-up"), "203.0.113.1") == 503
        assert keys.requests == 1, "the failure is remembered"
        assert "made-up" not in place.server.read_log()

    asyncio.run(attack())


@pytest.mark.slow
def test_an_address_that_tries_many_tokens_is_told_to_wait_and_others_are_not(strict: Place) -> None:
    async def attack() -> None:
        mine, oauth = strict.tokens["writer"], strict.sign()
        for token in (mine, oauth):
            assert await send(strict, token, "203.0.113.7") == 200
        before = strict.keys.requests
        guesses = [f"quaid_{n}" if n % 2 else strict.sign(kid=f"x{n}") for n in range(300)]
        statuses = await asyncio.gather(*(send(strict, guess, "203.0.113.7") for guess in guesses))
        assert set(statuses) == {401, 429}
        assert statuses.count(429) > 100
        assert strict.keys.requests == before
        # The tokens of that very address that are known stay known, and other addresses have their own rate.
        for token in (mine, oauth):
            assert await send(strict, token, "203.0.113.7") == 200
        for address in ("203.0.113.8", "2001:db8::1", "2001:db8:0:1::1"):
            assert await send(strict, strict.tokens["reader"], address) == 200
            assert await send(strict, "quaid_x", address) == 401
        # One customer's IPv6 network is one address, and so is all that is none.
        for addresses in ([f"2001:db8:0:2::{n:x}" for n in range(200)], [f"no-address-{n}" for n in range(200)]):
            statuses = await asyncio.gather(*(send(strict, "quaid_x", address) for address in addresses))
            assert statuses.count(429) > 50, addresses[0]

    asyncio.run(attack())


# -- whose notes --------------------------------------------------------------------------------------------------


def test_a_token_sees_private_notes_only_of_the_owner_that_it_was_given(place: Place) -> None:
    for who, seen in (("owner", {"piano"}), ("bob", set()), ("reader", set()), ("writer", set())):
        text = "".join(
            place.ask(who, tool, query=asked).text
            for tool in ("memory_recall", "memory_search")
            for asked in ("Where is the diary hidden?", "letters behind the clock")
        )
        assert {word for word in ("piano", "clock") if word in text} == seen, who
    for claim in ("default", "Default", "bob"):
        token = place.sign(preferred_username=claim)
        text = place.server.ask(
            "team", token, "memory_recall", query="Where is the diary hidden, under the piano?"
        ).text
        assert "hides the diary" not in text


def test_what_a_token_without_an_owner_stores_belongs_to_no_person(place: Place, git: GitHost) -> None:
    token = Tokens(place.database).add("bob", parse_typed_grants(["team:read,write"]))
    stored = place.ask_with(token, "memory_store", text="The spare bicycle stands in the cellar")
    assert stored.shape["outcome"] == "created", stored.body
    assert "owner: token bob\n" in git.read("team")
    assert "spare bicycle" in place.ask_with(token, query="Where does the spare bicycle stand?").text


# -- requests that are made to hurt --------------------------------------------------------------------------------

DEEP = "[" * 50_000 + "]" * 50_000


def call(arguments: str, tool: str = "memory_recall") -> str:
    """A call of a tool with these arguments, whatever they are."""
    params = f'{{"name": "{tool}", "arguments": {arguments}}}'
    return f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'


def query(text: str) -> str:
    return call(f'{{"query": {text}}}')


BODIES = {
    "nothing": b"", "no JSON": b"x", "cut": b'{"jsonrpc": "2.0"', "null": b"null", "a number": b"5", "a text": b'"x"',
    "an empty list": b"[]", "a list": b"[{}, 5, null]", "NUL byte": b"\0", "invalid UTF-8": b'{"a": "\xff\xfe"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"), "BOM": b'\xef\xbb\xbf{"a": 1}', "surrogate bytes": b'{"a": "\xed\xa0\x80"}',
    "deep": DEEP.encode(), "deep object": b'{"a":' * 50_000, "huge number": b'{"id": 1' + b"0" * 20_000 + b"}",
    "huge float": b'{"id": 1e999999}', "NaN": b'{"id": NaN, "x": Infinity}', "gzip": gzip.compress(b"{}"),
    "NUL": query('"a\\u0000b"').encode(), "lone surrogate": query('"a\\ud800b"').encode(),
    "low surrogate": query('"\\udc00"').encode(), "NUL as a name": call('{"\\u0000": 1}').encode(),
    "NUL of a push": b'{"repository": {"clone_url": "https://h/\\u0000"}}',
    "surrogate of a push": b'{"repository": {"clone_url": "https://h/\\ud800"}}',
    "odd push": b'{"repository": {"clone_url": 5, "ssh_url": [], "url": {}}, "project": 7}',
    "push of a list": b'[{"repository": {}}]', "null push": b'{"repository": null}',
    "two methods": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": 5, "params": 1, "params": []}',
    "no method": b'{"jsonrpc": "2.0", "id": 1}', "odd id": b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}',
    "null id": b'{"jsonrpc": "2.0", "id": null, "method": "ping"}',
    "odd params": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}',
    "odd name": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": ["memory_store"]}}',
    "odd arguments": call("[]").encode(), "null arguments": call("null").encode(),
    "batch": f"[{query(1)}, {query(2)}]".encode(), "wide": b'{"a": [' + b"0," * 400_000 + b"0]}",
    "no such method": b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud83d\\ude00/x"}',
    "answer": b'{"jsonrpc": "2.0", "id": 1, "result": {}}', "error": b'{"jsonrpc": "2.0", "id": 1, "error": {}}',
    "subscribe": b'{"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "file:///etc/passwd"}}',
    "level": b'{"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "debug"}}',
    "cancel": b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}',
    "too large": b'"' + b"x" * (5 * 2**20) + b'"',
}  # fmt: skip
HEADERS: list[dict[str, str]] = [
    {}, {"Content-Type": "text/plain"}, {"Content-Type": "\xff"}, {"Content-Encoding": "gzip"}, {"Accept": "x"},
    {"Mcp-Session-Id": "of-another"}, {"Mcp-Protocol-Version": "x" * 5000}, {"Mcp-Protocol-Version": "2099-01-01"},
    {"Last-Event-Id": "\xe9"}, {"Idempotency-Key": "\xff" * 4000}, {"X-Request-Id": "\xe9\xff"}, {"Origin": "null"},
    {"Origin": "\xff://"}, {"Host": "evil.example"}, {"X-Forwarded-For": "\xff, ::1%25\xe9"}, {"Cookie": "\xff=\xff"},
    {"Authorization": "Bearer \xff\xfe"}, {"Authorization": "Bearer " + "a." * 4000}, {"Authorization": "bearer"},
    {"Authorization": "Basic eA=="}, {"Transfer-Encoding": "gzip"}, {"Expect": "200-ok"}, {"Range": "bytes=-1"},
]  # fmt: skip
ROUTES = ["/healthz", "/readyz", "/metrics", "/hooks/push", "/.well-known/oauth-protected-resource",
          "/.well-known/oauth-protected-resource/v/team/mcp", "/v/team/mcp", "/mcp"]  # fmt: skip
PATHS = ["/", "/v/%00/mcp", "/v/%ff/mcp", "/v/%ed%a0%80/mcp", "/v/..%2f..%2fetc/mcp", "/v/team%00/mcp", "/v/" + "x" * 9000,
         "/v/" + "x" * 5000 + "/mcp", "/v/team/mcp?token=quaid_x&access_token=%00%ff", "/v//mcp", "//v/team/mcp",
         "/v/team/mcp/", "/v/TEAM/mcp", "/.well-known/oauth-protected-resource/%00/../x", "/mcp?vaults=%00",
         "/hooks/push?x=%ed%a0%80", "/metrics/%00", "*", "http://evil.example/v/team/mcp", "/v/%/mcp", "/;x", "/v/team/mcp#%00"]  # fmt: skip
METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "X" * 300]


def speak(place: Place, raw: bytes, within_s: float = 30.0) -> int:
    """Send bytes as they are, and return the status of the answer, 0 where the connection was closed without one."""
    with socket.create_connection(("127.0.0.1", place.server.port), within_s) as line:
        answer = b""
        with suppress(ConnectionError):  # it need not read to its end what it has refused
            line.sendall(raw)
            while b"\r\n" not in answer and (block := line.recv(4096)):
                answer += block
    return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def compose(method: str, path: str, headers: dict[str, str], body: bytes | None) -> bytes:
    given = {"Host": "x", "Connection": "close", **USUAL, "Mcp-Protocol-Version": PROTOCOL}
    given |= {} if body is None or "Transfer-Encoding" in headers else {"Content-Length": str(len(body))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in (given | headers).items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def check(place: Place, statuses: dict[str, int]) -> None:
    """No request was answered by a fault of the server, and its log has neither a trace of one nor a token."""
    assert {what: status for what, status in statuses.items() if status >= 500} == {}
    log = place.server.read_log()
    assert "Traceback" not in log
    # uvicorn's own is for an answer to somebody who has broken the protocol, and to whom nothing can be said.
    faults = [line for line in log.splitlines() if '"library"' in line and "Error" in line]
    assert [line for line in faults if "uvicorn.error: LocalProtocolError" not in line] == []
    assert not [name for name, token in place.tokens.items() if token in log]
    assert get(f"{place.server.url}/readyz")[0] == 200


@pytest.mark.matrix
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("who", ["nobody", "writer", "figures", "oauth", "webhook"])
def test_no_body_is_answered_by_a_fault(place: Place, route: str, who: str) -> None:
    statuses = {}
    for what, body in BODIES.items():
        signed = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        token = place.sign() if who == "oauth" else place.tokens.get(who, "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"X-Hub-Signature-256": f"sha256={signed}"} if who == "webhook" else {}
        statuses[what] = speak(place, compose("POST", route, headers, body))
    if who == "webhook" and route == "/hooks/push":
        assert {statuses[what] for what in ("NUL of a push", "surrogate of a push", "deep", "invalid UTF-8")} == {400}
        assert statuses["odd push"] == 202
        assert statuses["too large"] in {0, 413}
    check(place, statuses)


@pytest.mark.parametrize("who", ["nobody", "writer"])
def test_no_header_path_or_method_is_answered_by_a_fault(place: Place, who: str) -> None:
    known = {"Authorization": f"Bearer {place.tokens[who]}"} if who != "nobody" else {}
    body = query('"oat milk"').encode()
    statuses = {
        f"{method} {path} {headers}": speak(place, compose(method, path, known | headers, content))
        for method, path, headers, content in (
            *(("POST", route, headers, body) for route in ROUTES for headers in HEADERS),
            *(("POST", path, {}, body) for path in PATHS),
            *((method, path, {}, None) for path in PATHS for method in ("GET",)),
            *((method, route, {}, None) for route in ROUTES for method in METHODS),
        )
    }
    check(place, statuses)


LIES = {
    "longer than it says": (b"Content-Length: 2\r\n", b"{}" + b"x" * 100),
    "two lengths": (b"Content-Length: 2\r\nContent-Length: 3\r\n", b"{} "),
    "a length and chunks": (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n"),
    "a negative length": (b"Content-Length: -1\r\n", b"{}"),
    "a length that is none": (b"Content-Length: 0x2\r\n", b"{}"),
    "an endless length": (b"Content-Length: " + b"9" * 30 + b"\r\n", b"{}"),
    "chunks": (b"Transfer-Encoding: chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n"),
    "chunks of a size that is none": (b"Transfer-Encoding: chunked\r\n", b"zz\r\n{}\r\n0\r\n\r\n"),
    "a huge chunk": (b"Transfer-Encoding: chunked\r\n", b"f" * 30 + b"\r\n{}\r\n0\r\n\r\n"),
    "too many chunks": (b"Transfer-Encoding: chunked\r\n", b"10000\r\n" * 1 + (b" " * 0x10000 + b"\r\n10000\r\n") * 80),
    "a header with a NUL": (b"X-Y: \0\r\nContent-Length: 2\r\n", b"{}"),
    "a header without an end": (b"X-Y: " + b"x" * 200_000, b""),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("who", ["nobody", "writer"])
def test_no_lie_about_a_body_is_answered_by_a_fault(place: Place, lie: str, who: str) -> None:
    head, body = LIES[lie]
    known = f"Authorization: Bearer {place.tokens[who]}\r\n".encode() if who != "nobody" else b""
    usual = b"Host: x\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
    statuses = {}
    for route in ("/v/team/mcp", "/mcp", "/hooks/push", "/healthz"):
        raw = b"POST " + route.encode() + b" HTTP/1.1\r\n" + usual + known + head + b"\r\n" + body
        statuses[route] = speak(place, raw)
    check(place, statuses)


ODD = [
    None, True, -1, 10**30, -(10**30), 1e308, "", "x" * 20_000, "9999-99-99", "%", "\\", "\u202e\u200b", "\U0001f600" * 300,
    "\x01\x1b[2J", [[]], [None], {"a": {}}, "../../etc/passwd", "--upload-pack=x", ':/"[[NEAR(*', "a\r\nQuaid-Fact: x",
]  # fmt: skip
USUAL_ARGUMENTS = {
    "query": "milk",
    "ref": "nothing",
    "text": "",
    "subject": "",
    "relation": "is",
    "object": "",
    "answer": "no",
}


@pytest.mark.matrix
@pytest.mark.parametrize("tool", sorted({*READING, *SCOPES}))
def test_no_argument_of_a_tool_is_a_bug(place: Place, tool: str) -> None:
    admin = Tokens(place.database).add(f"admin-{tool}", parse_typed_grants(["team:admin"]), "maya")
    headers = {"Authorization": f"Bearer {admin}", "Mcp-Protocol-Version": PROTOCOL}
    listed = post(f"{place.server.url}/v/team/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', headers)[1]
    (schema,) = (each["inputSchema"] for each in json.loads(listed)["result"]["tools"] if each["name"] == tool)
    usual = {name: value for name, value in USUAL_ARGUMENTS.items() if name in schema["properties"]}
    statuses = {}
    for name in schema["properties"]:
        for odd in ODD:
            answer = place.ask_with(admin, tool, **(usual | {name: odd}))
            statuses[f"{name}={odd!r}"[:60]] = answer.status
            assert "bug in Quaid" not in answer.text, (name, odd, answer.text)
    check(place, statuses)


def test_slow_senders_hold_nobody_up(place: Place) -> None:
    """Neither with half a head nor with half a body, with a token and without."""
    head = compose("POST", "/v/team/mcp", {"Authorization": f"Bearer {place.tokens['writer']}"}, b"x" * 1000)
    starts = [head[:50], head[:-990], compose("POST", "/hooks/push", {}, b"x" * 1000)[:-990], b""]
    lines = [socket.create_connection(("127.0.0.1", place.server.port), 30) for _ in range(200)]
    for number, line in enumerate(lines):
        line.sendall(starts[number % len(starts)])
    for who in ("writer", "reader"):
        assert place.ask(who).status == 200
    assert place.ask_with(place.sign()).status == 200
    for line in lines:
        line.close()


# -- scopes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session", [None, "1", "of-the-writer"])
def test_a_session_lends_no_scope(place: Place, session: str | None) -> None:
    """Each request is that of its own token, whatever session it names, on one connection too."""
    before = place.ask("writer", "memory_recall", query="borrowed").text
    extra = {"Mcp-Session-Id": session} if session else {}
    store = call('{"text": "A borrowed scope stored this"}', "memory_store")
    recall = query('"oat milk"')
    with socket.create_connection(("127.0.0.1", place.server.port), 30) as line, line.makefile("rb") as answers:
        for who, body, wanted in (("writer", recall, 200), ("reader", store, 403), ("reader", recall, 200)):
            headers = {"Authorization": f"Bearer {place.tokens[who]}", "Connection": "keep-alive", **extra}
            line.sendall(compose("POST", "/v/team/mcp", headers, body.encode()))
            assert int(answers.readline().split()[1]) == wanted
            length = 0
            while (header := answers.readline().strip().lower()) != b"":
                length = int(header.split()[1]) if header.startswith(b"content-length") else length
            answers.read(length)
    assert place.ask("writer", "memory_recall", query="borrowed").text == before


def test_a_scope_is_checked_for_the_tool_that_runs_however_its_request_is_written(place: Place) -> None:
    store = '{"name": "memory_store", "arguments": {"text": "A reader stored this"}}'
    recall = '{"name": "memory_recall", "arguments": {"query": "x"}}'
    for params in (f'"params": {store}, "params": {recall}', f'"params": {recall}, "params": {store}',
                   '"params": {"name": "memory_recall", "name": "memory_store", "arguments": {"text": "A reader stored this"}}',
                   '"params": {"name": "memory\\u005fstore", "arguments": {"text": "A reader stored this"}}',
                   f'"params": {store}, "x": 1{"0" * 5000}', f'"x": {"[" * 1200}{"]" * 1200}, "params": {store}'):  # fmt: skip
        for body in (f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", {params}}}',
                     f'[{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", {params}}}]'):  # fmt: skip
            headers = {"Authorization": f"Bearer {place.tokens['reader']}", "Mcp-Protocol-Version": PROTOCOL}
            assert post(f"{place.server.url}/v/team/mcp", body.encode(), headers)[0] in {200, 400, 403}
    assert "A reader stored this" not in place.ask("owner", "memory_recall", query="A reader stored this").text


def test_no_stream_is_opened_that_would_outlive_its_token(place: Place) -> None:
    headers = {"Authorization": f"Bearer {place.tokens['writer']}", "Accept": "text/event-stream"}
    for path in ("/v/team/mcp", "/v/nothing/mcp", "/mcp"):
        assert get(f"{place.server.url}{path}", headers)[0] == 405


@pytest.mark.slow
def test_a_token_that_expires_is_refused_by_the_server_that_has_accepted_it(place: Place) -> None:
    token = place.sign(exp=int(time.time()) - LEEWAY_S + 3)
    assert place.ask_with(token).status == 200
    wait_for(lambda: place.ask_with(token).status == 401)
