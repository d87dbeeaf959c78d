"""What a service may do to whoever asks it: neither memory, nor time, nor a key are its to take."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import tracemalloc
from contextlib import suppress
from unittest.mock import patch

import httpx  # noqa: F401 - loading it takes its time, which is not the service's
import pytest
from matrices import for_each
from model_service import Service as ModelService
from model_service import colour
from vaults import PATIENCE_S

from quaid.embed import open_embedder
from quaid.errors import EmbeddingError, ModelError
from quaid.http import MAX_BYTES, UnreachableError, Wire
from quaid.llm import Models
from quaid.redaction import detector  # noqa: F401 - as httpx: what is sent is read by it
from quaid.settings import EmbeddingSettings, ModelSettings

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
DEADLINE_S = 0.5
AMPLE_S = 60.0
"""For an answer that is to come, however busy the machine is."""


class Hostile:
    """A server whose every connection is given to `act` once the request's headers are there."""

    def __init__(self):
        self.act = lambda connection: None
        self.asked = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=(self.socket.accept()[0],), daemon=True).start()

    def _answer(self, connection):
        with connection, suppress(OSError):
            self.asked.append(connection.recv(1 << 20))
            self.act(connection)

    def drip(self, before, piece):
        def act(connection):
            connection.sendall(before)
            for _ in range(200):
                connection.sendall(piece)
                time.sleep(0.02)

        self.act = act


@pytest.fixture
def hostile():
    running = Hostile()
    yield running
    running.socket.close()


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.01)
    monkeypatch.setattr("quaid.embed.services.QUESTION_WAIT_S", AMPLE_S)


def embed(url, deadline_s=DEADLINE_S):
    settings = EmbeddingSettings(provider="openai", model="m", url=url, dimensions=2)
    with patch("quaid.embed.services.TIMEOUT_S", deadline_s):
        open_embedder(settings).embed(["text"])


def ask(provider):
    def call(url, deadline_s=DEADLINE_S):
        environ = {"OPENAI_API_KEY": "sk-secret", "ANTHROPIC_API_KEY": "sk-secret", "PATH": ""}
        settings = ModelSettings(provider=provider, url=url, fast="quick", deep="wise")
        Models(settings, environ=environ).ask(colour(), {"text": "red"}, deadline_s=deadline_s)

    return call


each = pytest.mark.parametrize("call", [embed, ask("openai")], ids=["embedding", "model"])


def refused(call, url, deadline_s=DEADLINE_S):
    """The sentence with which `call` gives up, soon after its deadline and in little memory."""
    tracemalloc.start()
    began = time.monotonic()
    with pytest.raises((EmbeddingError, ModelError)) as caught:
        call(url, deadline_s)
    took_s, (_now, peak) = time.monotonic() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took_s < deadline_s + PATIENCE_S
    assert peak < 4 * MAX_BYTES
    assert "sk-secret" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def bomb():
    return gzip.compress(b'{"data": "' + bytes(120_000_000) + b'"}', 1)


@each
def test_a_packed_answer_is_not_unpacked(hostile, call, bomb):
    head = HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb)
    hostile.act = lambda connection: connection.sendall(head + bomb)
    assert "compressed as gzip" in refused(call, hostile.url, AMPLE_S)
    assert b"accept-encoding: identity" in hostile.asked[-1].lower()


@each
def test_an_answer_without_end_is_cut_off(hostile, call):
    def act(connection):
        connection.sendall(HEAD + b"\r\n")
        while True:
            connection.sendall(bytes(1 << 20))

    hostile.act = act
    assert refused(call, hostile.url)


@each
@pytest.mark.parametrize(("before", "piece"), [(HEAD + b"\r\n", b" "), (HEAD + b"x: ", b"a"), (b"", b"\r\n")])
def test_a_drip_ends_with_the_deadline(hostile, call, before, piece):
    hostile.drip(before, piece)
    refused(call, hostile.url)


@pytest.mark.parametrize("call", [embed, ask("openai"), ask("anthropic"), ask("ollama")])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_takes_no_key_elsewhere(hostile, call, status):
    elsewhere = Hostile()
    answer = f"HTTP/1.1 {status} Moved\r\nlocation: {elsewhere.url}/\r\ncontent-length: 0\r\n\r\n"
    hostile.act = lambda connection: connection.sendall(answer.encode())
    assert str(status) in refused(call, hostile.url, AMPLE_S)
    assert elsewhere.asked == []
    elsewhere.socket.close()


def test_a_connection_that_was_cut_does_not_spoil_the_next_question(hostile):
    wire = Wire(hostile.url)
    hostile.drip(HEAD + b"\r\n", b" ")
    with pytest.raises(TimeoutError):
        wire.post("/", {}, {}, time.monotonic() + 0.2)
    hostile.act = lambda connection: connection.sendall(HEAD + b"content-length: 2\r\n\r\n{}")
    assert wire.post("/", {}, {}, time.monotonic() + 5).body == b"{}"


def test_the_largest_answer_that_is_taken_is_taken(hostile):
    for size, is_taken in ((MAX_BYTES, True), (MAX_BYTES + 1, False)):
        head = HEAD + b"content-length: %d\r\n\r\n" % size
        hostile.act = lambda connection, head=head, size=size: connection.sendall(head + bytes(size))
        if is_taken:
            assert len(Wire(hostile.url).get("/", 20).body) == size
        else:
            with pytest.raises(UnreachableError, match="more than 20 MB"):
                Wire(hostile.url).get("/", 20)


@pytest.mark.parametrize("key", ["schlüssel", "sk-secret\nx: y"])
def test_a_key_that_is_none_is_named_and_not_shown(hostile, monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(EmbeddingError, match="OPENAI_API_KEY holds characters") as caught:
        embed(hostile.url)
    assert key not in str(caught.value)


@for_each("provider", ["anthropic", "openai", "ollama"])
@for_each("told", ["1e300", "1e999", "NaN", "-5", "1" + "0" * 400, "Infinity"])
def test_what_no_call_can_have_taken_is_estimated(provider, told):
    service = ModelService()
    body = None

    def absurd():
        nonlocal body
        body = json.dumps(service.wrap(service.requests[-1][0], service.requests[-1][1], json.dumps(service.value)))
        for count in ("100", "10", "40", "20", "150"):
            body = body.replace(f": {count}", f": {told}")
        return 200, body, {}

    service.script = [absurd]
    usage = service.models(provider).ask(colour(), {"text": "a red door"}).usage
    assert 0 < usage.input_tokens < 10_000
    assert 0 < usage.output_tokens < 10_000
    assert usage.cached_tokens == usage.written_tokens == 0
    service.close()
