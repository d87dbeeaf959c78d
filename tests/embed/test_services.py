"""Ollama and OpenAI-compatible services, against a real HTTP server that speaks their formats."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler

import numpy as np
import pytest
from loopback import LoopbackServer
from vaults import PATIENCE_S

from quaid.embed import open_embedder
from quaid.embed.cache import is_unit
from quaid.errors import EmbeddingError, EmbeddingServiceError
from quaid.settings import EmbeddingSettings


class Service:
    """An HTTP server on a free port. `script` holds answers to give before the good ones begin: (status, body, headers)."""

    def __init__(self):
        self.requests = []
        self.script = []
        self.dimension = 4
        self.delay_s = 0.0
        self.hangs = threading.Event()
        self.hangs.set()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.requests.append((self.path, body, dict(self.headers)))
                service.hangs.wait()
                time.sleep(service.delay_s)
                status, answer, headers = service.script.pop(0) if service.script else (200, service.answer(body), {})
                content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                for key, value in {"content-length": str(len(content)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args):
                pass

        self.server = LoopbackServer(Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def vector(self, text):
        return [float(len(text)), 1.0, 2.0, *[0.0] * (self.dimension - 3)]

    def answer(self, body):
        vectors = [self.vector(text) for text in body["input"]]
        if self.is_openai:
            data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
            return {"object": "list", "data": data[::-1], "model": body["model"], "usage": {"prompt_tokens": 3}}
        return {"model": body["model"], "embeddings": vectors, "total_duration": 1, "prompt_eval_count": 3}

    @property
    def is_openai(self):
        return self.requests[-1][0].endswith("/v1/embeddings")


@pytest.fixture
def service():
    running = Service()
    yield running
    running.hangs.set()
    running.server.shutdown()
    running.server.server_close()


@pytest.fixture(autouse=True)
def _environment(tmp_path, monkeypatch):
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)


def open_service(service, provider, **settings):
    url = service.url + ("/v1" if provider == "openai" else "")
    return open_embedder(EmbeddingSettings(**{"provider": provider, "model": "m", "url": url, **settings}))


both = pytest.mark.parametrize("provider", ["ollama", "openai"])


@both
def test_vectors_are_normalised_and_in_the_order_of_the_texts(service, provider):
    embedder = open_service(service, provider)
    texts = ["one", "fifteen letters", "", "lone \ud83d"]
    vectors = embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    lengths = vectors[:, 0] / vectors[:, 1]
    assert np.allclose(lengths, [3, 15, 1, 6], atol=1e-4)
    assert np.allclose(embedder.embed_query("one"), vectors[0])
    assert embedder.embed([]).shape == (0, 4)
    assert "/api/embed" in service.requests[0][0] or "/v1/embeddings" in service.requests[0][0]


@both
def test_many_texts_go_in_several_requests(service, provider):
    embedder = open_service(service, provider, dimensions=4)
    texts = ["x" * (i + 1) for i in range(150)] + ["y" * 90_000, "z" * 90_000]
    vectors = embedder.embed(texts)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts], rtol=1e-4)
    assert len(service.requests) == 4
    assert service.requests[0][1]["dimensions"] == 4


@both
def test_the_dimension_is_asked_once_and_remembered_for_later_processes(service, provider):
    first = open_service(service, provider)
    assert (first.dimension, first.dimension) == (4, 4)
    assert len(service.requests) == 1
    later = open_service(service, provider)
    assert later.dimension == 4
    assert later.fingerprint == first.fingerprint
    assert len(service.requests) == 1
    assert open_service(service, provider, model="other").fingerprint != first.fingerprint
    assert open_service(service, provider, dimensions=8).dimension == 8


@both
def test_another_dimension_than_expected_is_an_error_and_forgotten(service, provider):
    assert open_service(service, provider).dimension == 4
    service.dimension = 6
    with pytest.raises(EmbeddingError, match="6 numbers where 4"):
        open_service(service, provider).embed(["text"])
    assert open_service(service, provider).dimension == 6


@both
def test_two_server_errors_then_success(service, provider):
    service.script = [(500, {"error": "busy"}, {}), (503, "<html>", {})]
    assert open_service(service, provider, dimensions=4).embed(["text"]).shape == (1, 4)
    assert len(service.requests) == 3


@both
def test_retry_after_is_honoured(service, provider):
    service.script = [(429, {"error": {"message": "slow down"}}, {"retry-after": "0.6"})]
    began = time.monotonic()
    open_service(service, provider, dimensions=4).embed(["text"])
    assert 0.6 <= time.monotonic() - began < PATIENCE_S


@both
def test_a_retry_after_beyond_the_time_limit_is_not_waited_for(service, provider, monkeypatch):
    service.script = [(429, {"error": {"message": "slow down"}}, {"retry-after": "300"})]
    monkeypatch.setattr("quaid.embed.services.TIMEOUT_S", 2.0)
    began = time.monotonic()
    with pytest.raises(EmbeddingError, match="slow down"):
        open_service(service, provider, dimensions=4).embed(["text"])
    assert time.monotonic() - began < PATIENCE_S


@both
def test_a_service_that_stays_broken_is_given_up(service, provider):
    service.script = [(500, {"error": "no memory"}, {})] * 9
    with pytest.raises(EmbeddingError, match="500: no memory"):
        open_service(service, provider, dimensions=4).embed(["text"])
    assert len(service.requests) == 3


@both
@pytest.mark.parametrize(
    "answer",
    ["no json {", [], {"data": None, "embeddings": None}, {"data": [{"index": 0}], "embeddings": [["a", "b"]]}, "null"],
)
def test_garbage_is_one_clear_sentence(service, provider, answer):
    service.script = [(200, answer, {})]
    with pytest.raises(EmbeddingError, match=rf"{provider} at {service.url}.*answered"):
        open_service(service, provider, dimensions=2).embed_query("text")


@both
def test_a_wrong_count_is_detected(service, provider):
    vector = [1.0, 2.0]
    service.script = [(200, {"data": [{"index": 0, "embedding": vector}], "embeddings": [vector]}, {})]
    with pytest.raises(EmbeddingError, match="1 vectors for 2 texts"):
        open_service(service, provider, dimensions=2).embed(["one", "two"])


@both
def test_infinite_numbers_are_refused(service, provider):
    answer = '{"data": [{"index": 0, "embedding": [1e999, 1]}], "embeddings": [[1e999, 1]]}'
    service.script = [(200, answer, {})]
    with pytest.raises(EmbeddingError, match="finite"):
        open_service(service, provider, dimensions=2).embed_query("text")


BAD_VECTORS = {
    "zero": [0.0, 0.0], "nested": [[1.0, 2.0]], "short": [1.0], "long": [1.0, 2.0, 3.0], "empty": [], "null": None,
    "infinite": [1e999, 1.0], "nulls": [None, 1.0], "tiny": [1e-320, 0.0], "huge": [1e300, 1e300], "text": "abc",
    "number": 1.0, "object": {"a": 1}, "of huge integers": [10**400, 1], "not a number": [float("nan"), 1.0],
}  # fmt: skip


@both
@pytest.mark.parametrize("kind", BAD_VECTORS)
def test_one_bad_vector_costs_its_text_alone(service, provider, kind):
    rows = [[3.0, 4.0], BAD_VECTORS[kind], [4.0, 3.0]]
    data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
    service.script = [(200, {"data": data, "embeddings": rows}, {})]
    vectors = open_service(service, provider, dimensions=2).embed(["one", "two", "three"])
    assert np.allclose(vectors[[0, 2]], [[0.6, 0.8], [0.8, 0.6]])
    assert np.isnan(vectors[1]).all()
    assert [is_unit(row.tobytes(), 2) for row in vectors] == [True, False, True]


@both
def test_nothing_but_bad_vectors_is_an_error(service, provider):
    rows = [[0.0, 0.0]] * 2
    data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
    service.script = [(200, {"data": data, "embeddings": rows}, {})]
    with pytest.raises(EmbeddingError, match="finite"):
        open_service(service, provider, dimensions=2).embed(["one", "two"])


@both
@pytest.mark.parametrize("kind", ["nested", "empty", "null", "text", "number", "object"])
def test_a_bad_vector_is_no_dimension(service, provider, kind):
    row = BAD_VECTORS[kind]
    service.script = [(200, {"data": [{"index": 0, "embedding": row}], "embeddings": [row]}, {})]
    embedder = open_service(service, provider)
    if kind != "nested":
        with pytest.raises(EmbeddingError, match="not a list of vectors"):
            embedder.fingerprint  # noqa: B018 - it is asked for
        assert embedder.dimension == 4


@both
def test_connection_refused_fails_soon_and_says_whom(service, provider):
    service.server.shutdown()
    service.server.server_close()
    began = time.monotonic()
    with pytest.raises(EmbeddingError, match=f"{service.url}.*could not be reached"):
        open_service(service, provider, dimensions=4).embed_query("text")
    assert time.monotonic() - began < PATIENCE_S


@both
def test_a_service_that_hangs_is_waited_for_briefly_and_left_alone_for_a_while(service, provider, monkeypatch):
    monkeypatch.setattr("quaid.embed.services.QUESTION_WAIT_S", 0.2)
    service.hangs.clear()
    with pytest.raises(EmbeddingServiceError, match=r"did not answer in 0\.2 s"):
        open_service(service, provider, dimensions=4).embed_query("text")
    asked = len(service.requests)
    service.hangs.set()
    later = open_service(service, provider, dimensions=4)  # as another process does
    with pytest.raises(EmbeddingServiceError, match=r"did not answer in 0\.2 s"):
        later.embed_query("text")
    assert len(service.requests) == asked
    assert open_service(service, provider, dimensions=4, model="other").embed_query("text").shape == (4,)
    monkeypatch.setattr("quaid.embed.services.PAUSE_S", 0.0)
    assert later.embed_query("text").shape == (4,)
    monkeypatch.undo()
    assert later.embed_query("text").shape == (4,)  # it answers: the failure is forgotten


@both
def test_what_nobody_waits_for_may_take_longer(service, provider, monkeypatch):
    monkeypatch.setattr("quaid.embed.services.QUESTION_WAIT_S", 0.1)
    embedder = open_service(service, provider, dimensions=4)
    service.delay_s = 0.4
    with pytest.raises(EmbeddingServiceError):
        embedder.embed(["text"])
    embedder.is_patient = True
    assert embedder.embed(["text"]).shape == (1, 4)


def test_a_missing_ollama_model_names_the_command(service):
    service.script = [(404, {"error": 'model "nomic" not found, try pulling it first'}, {})]
    with pytest.raises(EmbeddingError, match="ollama pull nomic"):
        open_service(service, "ollama", model="nomic", dimensions=4).embed(["text"])
    assert len(service.requests) == 1


def test_a_refused_key_names_its_variable_and_not_its_value(service, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    service.script = [(401, {"error": {"message": "Incorrect API key"}}, {})]
    with pytest.raises(EmbeddingError, match="MY_KEY") as caught:
        open_service(service, "openai", api_key_env="MY_KEY", dimensions=4).embed(["text"])
    assert "sk-secret" not in str(caught.value)
    assert service.requests[0][2]["authorization"] == "Bearer sk-secret"


def test_openai_without_a_key_says_which_variable():
    with pytest.raises(EmbeddingError, match="OPENAI_API_KEY"):
        open_embedder(EmbeddingSettings(provider="openai", dimensions=4)).embed(["text"])


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("", "http://localhost:11434"),
        ("0.0.0.0", "http://localhost:11434"),
        ("0.0.0.0:8080", "http://localhost:8080"),
        ("box", "http://box:11434"),
        ("http://box:1", "http://box:1"),
        ("https://ollama.example", "https://ollama.example:443"),
        ("http://box/prefix/", "http://box:11434/prefix"),
        ("[::1]:99", "http://[::1]:99"),
    ],
)
def test_ollama_host_may_lack_what_an_address_needs(monkeypatch, host, expected):
    monkeypatch.setenv("OLLAMA_HOST", host)
    embedder = open_embedder(EmbeddingSettings(provider="ollama", dimensions=4))
    assert embedder.fingerprint == f"ollama/{expected}/all-minilm/4"
