"""`quaid mcp --http`: for whoever has the token, on this machine, and for no page of a browser."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_host import BATCH, DEFAULT, HELLO, OLD_HELLO, call
from vaults import Vault, refused

from quaid.cli.main import main
from quaid.errors import BadInputError
from quaid.mcp import transports
from quaid.place import state_folder
from quaid.resident.loopback import listen

USUAL = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)/mcp")


@pytest.fixture
def served(vault: Vault):
    process = subprocess.Popen(
        ["quaid", "mcp", "--http", "--port", "0", "--vault", str(vault.root)], stderr=subprocess.PIPE
    )
    try:
        url = ADDRESS.search(process.stderr.readline())
        yield vault, url[0].decode(), process
    finally:
        process.kill()
        process.communicate()


def post(url: str, message=HELLO, **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, USUAL | named), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def announce(url: str, size: int, headers: dict[str, str]) -> int:
    """What is answered to the mere announcement of a body of `size` bytes."""
    with closing(HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=20)) as connection:
        connection.putrequest("POST", "/mcp")
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(size)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status


@pytest.mark.slow
def test_both_eras_and_every_refusal(served) -> None:
    vault, url, process = served
    path = state_folder(vault.root) / "mcp-token"
    token = path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600
    allowed = {"Authorization": f"Bearer {token}"}

    assert post(url, **allowed)[0] == 200
    assert post(url)[0] == 401
    for wrong in ("", "Bearer", "Bearer x", f"Bearer {token}x", f"Basic {token}", "Bearer é"):
        assert post(url, Authorization=wrong)[0] == 401
    for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example", url.replace("http:", "https:")):
        assert post(url, **allowed, Origin=origin)[0] == 403
    assert post(url, **allowed, Origin=url.removesuffix("/mcp"))[0] == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "127.0.0.1:1"):
        assert post(url, **allowed, Host=host)[0] == 421
    assert post(url, b"no json", **allowed)[0] == 400
    assert post(url, b"[1]", **allowed)[0] == 400
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(OLD_HELLO).encode(), USUAL | allowed)) as hello:
        session = allowed | {"Mcp-Session-Id": hello.headers["Mcp-Session-Id"]}
    status, answers = post(url, BATCH, **session)
    assert (status, [answer["id"] for answer in json.loads(answers)]) == (200, [2, "three"])
    assert json.loads(answers)[1]["result"]["tools"]
    assert post(url, BATCH)[0] == 401
    assert post(url, BATCH[1:2], **session) == (202, b"")
    assert post(url, BATCH, **session, Mcp_Protocol_Version="2025-11-25")[0] == 400
    assert announce(url, transports.MAX_BODY + 1, allowed) == 413
    assert post(url.replace("/mcp", "/"), **allowed)[0] == 404

    async def talk(mode):
        async with (
            create_mcp_http_client(headers=allowed) as wire,
            Client(streamable_http_client(url, http_client=wire), mode=mode) as client,
        ):
            assert tuple(tool.name for tool in (await client.list_tools()).tools) == DEFAULT
            await call(client, "memory_store", text="Maya takes oat milk in her coffee")
            assert len((await call(client, "memory_recall", query="oat milk"))["memories"]) == 1

    for mode in ("legacy", "auto"):
        anyio.run(talk, mode)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    assert token not in process.stderr.read().decode()


HURRIED = """
import sys
from pathlib import Path
from quaid.mcp import transports
transports.REQUEST_S = 0.4
transports.serve_http(Path(sys.argv[1]), "default", 0)
"""


@pytest.mark.slow
def test_who_does_not_finish_a_request_is_cut_off_and_who_waits_for_an_answer_is_not(vault: Vault) -> None:
    process = subprocess.Popen([sys.executable, "-c", HURRIED, str(vault.root)], stderr=subprocess.PIPE)
    try:
        url = ADDRESS.search(process.stderr.readline())[0].decode()
        allowed = {"Authorization": f"Bearer {(state_folder(vault.root) / 'mcp-token').read_text().strip()}"}
        address = "127.0.0.1", urlsplit(url).port
        head = b"POST /mcp HTTP/1.1\r\nhost: %b\r\n" % urlsplit(url).netloc.encode()
        starts = {b"": 0, b"P": 0, head: 0, head + b"content-length: 9\r\n\r\n{": 0, head + b"x: ": 9}
        silent = [(socket.create_connection(address, 20), start, drips) for start, drips in starts.items()]
        for connection, start, drips in silent:
            connection.sendall(start)
            with suppress(OSError):
                for _ in range(drips):
                    connection.sendall(b"a")
                    time.sleep(0.1)
            with suppress(ConnectionResetError):
                while connection.recv(1000):  # what is refused at once is told why
                    pass
            connection.close()
        with closing(HTTPConnection(*address, timeout=20)) as connection:
            connection.request("POST", "/mcp", json.dumps(HELLO), {**USUAL, **allowed})
            session = connection.getresponse().headers["mcp-session-id"]
        with closing(HTTPConnection(*address, timeout=1.0)) as connection:
            connection.request("GET", "/mcp", headers={**USUAL, **allowed, "mcp-session-id": session})
            answer = connection.getresponse()
            assert answer.status == 200
            with pytest.raises(TimeoutError):  # a stream of what the server has to tell stays open
                answer.read(1)
    finally:
        process.kill()
        process.communicate()


class TestToken:
    def test_one_is_made_once_and_kept_from_others(self, vault: Vault) -> None:
        token = transports.find_token(vault.root)
        assert len(token) >= 40
        assert transports.find_token(vault.root) == token
        path = state_folder(vault.root) / transports.TOKEN_FILE
        path.chmod(0o644)
        assert transports.find_token(vault.root) != token
        assert path.stat().st_mode & 0o777 == 0o600

    def test_one_in_the_environment_goes_before(self, vault: Vault, monkeypatch) -> None:
        monkeypatch.setenv("QUAID_MCP_TOKEN", "0123456789abcdef")
        assert transports.find_token(vault.root) == "0123456789abcdef"
        assert not (state_folder(vault.root) / transports.TOKEN_FILE).exists()

    @pytest.mark.parametrize("token", ["", "short", "with a space in its middle", "é" * 20, "tab\tin the middle of it"])
    def test_one_that_is_none_is_refused(self, vault: Vault, monkeypatch, token) -> None:
        monkeypatch.setenv("QUAID_MCP_TOKEN", token)
        said = str(refused(lambda: transports.find_token(vault.root), BadInputError))
        assert "QUAID_MCP_TOKEN" in said
        assert not token or token not in said


class TestPort:
    @pytest.mark.parametrize("port", [-1, 65536, 10**9])
    def test_one_that_cannot_be(self, port) -> None:
        assert "between 0 and 65535" in str(refused(lambda: listen(port), BadInputError))

    def test_one_that_is_taken(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            assert f"Port {port}" in str(refused(lambda: listen(port), BadInputError))

    def test_only_this_machine_is_listened_to(self) -> None:
        with listen(0) as listening:
            assert listening.getsockname()[0] == "127.0.0.1"

    def test_none_is_for_stdio(self, capsys) -> None:
        assert main(["mcp", "--port", "1"]) == 2
        assert "--port is for --http" in capsys.readouterr().err
